//! The live view of a run.
//!
//! On a terminal a small view is drawn again several times per second: the step, how long it still
//! takes, and a bar for each link and for the flow. Elsewhere each second is a line, or, where even that is
//! too much, each step.

use std::io::Write;
use std::time::Duration;

use super::{Style, Terminal};
use crate::experiment::watch::{CutEvent, Step, Tick, Watch};
use crate::record::megabits;

/// Characters of a bar. With name and figures a line stays within 80 columns.
const BAR: usize = 40;

/// Characters for a name: that of a network device has up to 15.
const NAME: usize = 15;

/// How much is said where there is no terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// A line per second.
    Seconds,
    /// A line per step.
    Steps,
}

/// A watcher that shows a run on a stream.
pub struct Live<W> {
    out: W,
    terminal: Terminal,
    detail: Detail,
    step: Option<Step>,
    /// Lines of the view that stand on the terminal and will be drawn over.
    drawn: usize,
    next_line: Duration,
}

impl<W: Write> Live<W> {
    /// A watcher that writes to `out`, which leads to `terminal`.
    pub fn new(out: W, terminal: Terminal, detail: Detail) -> Self {
        Self { out, terminal, detail, step: None, drawn: 0, next_line: Duration::ZERO }
    }

    /// Writes lines that stay. A failed write is ignored: nothing that matters is lost.
    fn say(&mut self, lines: &[String]) {
        let mut text = self.erasure();
        for line in lines {
            text.push_str(line);
            text.push('\n');
        }
        self.drawn = 0;
        let _ = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
    }

    /// Writes lines that the next ones will be drawn over.
    fn draw(&mut self, lines: &[String]) {
        self.say(lines);
        self.drawn = lines.len();
    }

    /// What moves the cursor to the first line of the view and clears from there on.
    fn erasure(&self) -> String {
        if self.drawn == 0 { String::new() } else { format!("\x1b[{}A\x1b[J", self.drawn) }
    }
}

impl<W: Write> Watch for Live<W> {
    fn on_step(&mut self, step: &Step) {
        self.next_line = Duration::ZERO;
        if !self.terminal.interactive {
            let seconds = step.length.as_secs_f64();
            let Step { number, count, title, .. } = step;
            self.say(&[format!("[{number}/{count}] {title}, {seconds} s")]);
        }
        self.step = Some(step.clone());
    }

    fn on_tick(&mut self, tick: &Tick) {
        let Some(step) = &self.step else { return };
        if self.terminal.interactive {
            let frame = frame(self.terminal, step, tick);
            self.draw(&frame);
        } else if self.detail == Detail::Seconds && tick.elapsed >= self.next_line {
            // The rates are those of the last second; at the very beginning there is none.
            if tick.elapsed >= Duration::from_secs(1) {
                let line = second(step, tick);
                self.say(&[line]);
            }
            self.next_line = Duration::from_secs(tick.elapsed.as_secs() + 1);
        }
    }

    fn on_cut(&mut self, event: &CutEvent) {
        let CutEvent { link, cut, elapsed } = event;
        let (style, what) =
            if *cut { (Style::Red, "cut, silently") } else { (Style::Green, "restored") };
        let text = format!("  {:4.1} s  link {link} {what}", elapsed.as_secs_f64());
        self.say(&[self.terminal.paint(style, &text)]);
    }

    fn on_trouble(&mut self, what: &str) {
        let line = self.terminal.paint(Style::Yellow, what);
        self.say(&[line]);
    }

    fn on_result(&mut self, goodput_mbps: Option<f64>) {
        let Some(step) = self.step.take() else { return };
        let what = format!("[{}/{}] {}", step.number, step.count, step.title);
        let figure = goodput_mbps.map_or("done".into(), |rate| format!("{rate:.1} Mbit/s"));
        self.say(&[format!("{what}: {}", self.terminal.paint(Style::Bold, &figure))]);
    }
}

/// One second as a line: what the flow got, and what each link carried of it.
fn second(step: &Step, tick: &Tick) -> String {
    let links = step.links.iter().zip(&tick.links).zip(&tick.cut).map(|((name, rate), cut)| {
        let mark = if *cut { " (cut)" } else { "" };
        format!("{name}{mark} {:.1}", megabits(*rate))
    });
    let seconds = tick.elapsed.as_secs();
    let links = links.collect::<Vec<_>>().join(", ");
    format!("  {seconds:3} s  flow {:5.1} Mbit/s; links: {links}", megabits(tick.goodput))
}

/// The view: the step and the time, then a bar per link and one for the flow.
fn frame(terminal: Terminal, step: &Step, tick: &Tick) -> Vec<String> {
    let left = step.remaining.saturating_sub(tick.elapsed).as_secs();
    let head = format!("[{}/{}] {}", step.number, step.count, step.title);
    let time =
        format!("{} of {} s, {left} s left in all", tick.elapsed.as_secs(), step.length.as_secs());
    let full = full_bar(step);
    let mut lines = vec![format!("{}  {}", terminal.paint(Style::Bold, &head), time)];
    for (index, name) in step.links.iter().enumerate() {
        let rate = tick.links.get(index).copied().unwrap_or(0.0);
        let cut = tick.cut.get(index).copied().unwrap_or(false);
        let limit = step.rates.get(index).copied().flatten();
        let (style, note) = match limit {
            _ if cut => (Style::Red, "cut".to_owned()),
            Some(limit) => (Style::Cyan, format!("of {:.0}", megabits(limit))),
            None => (Style::Cyan, String::new()),
        };
        lines.push(bar(terminal, style, name, rate, full, &note));
    }
    lines.push(bar(terminal, Style::Green, "flow", tick.goodput, full, "Mbit/s"));
    lines
}

/// The rate of a bar of full length: all links together.
fn full_bar(step: &Step) -> f64 {
    step.rates.iter().flatten().sum::<f64>().max(1e6)
}

fn bar(terminal: Terminal, style: Style, name: &str, rate: f64, full: f64, note: &str) -> String {
    let length = ((rate / full * BAR as f64).round() as usize).min(BAR);
    let filled = terminal.paint(style, &"█".repeat(length));
    let empty = terminal.paint(Style::Dim, &"·".repeat(BAR - length));
    format!("  {name:<NAME$} {filled}{empty} {:6.1} {note}", megabits(rate)).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_shows_step_time_and_a_bar_per_link_in_80_columns() {
        let lines = frame(Terminal::PLAIN, &step(), &tick(5.4));
        assert_eq!(lines[0], "[3/4] tunnel over 2 links  5 of 12 s, 28 s left in all");
        let filled: Vec<_> = lines[1..].iter().map(|line| line.matches('█').count()).collect();
        assert_eq!(filled, [26, 0, 23], "of 40 characters for 60 Mbit/s");
        assert!(lines[1].ends_with("39.0 of 40") && lines[2].ends_with("0.0 cut"));
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{lines:#?}");
    }

    #[test]
    fn without_a_terminal_each_second_is_one_line_without_control_sequences() {
        let text = shown(Terminal::PLAIN, Detail::Seconds);
        let lines: Vec<_> = text.lines().collect();
        let [head, one, two, cut, result] = lines[..] else { panic!("{text}") };
        assert_eq!(head, "[3/4] tunnel over 2 links, 12 s");
        assert_eq!(one, "    1 s  flow  35.0 Mbit/s; links: fibre 39.0, lte (cut) 0.0");
        assert!(two.starts_with("    2 s"));
        assert_eq!(cut, "   2.5 s  link lte restored");
        assert_eq!(result, "[3/4] tunnel over 2 links: 55.1 Mbit/s");
        assert!(!text.contains('\x1b'));
    }

    #[test]
    fn if_a_second_axis_is_too_large_each_step_is_listed() {
        assert_eq!(shown(Terminal::PLAIN, Detail::Steps).lines().count(), 3);
    }

    #[test]
    fn on_a_terminal_a_frame_is_drawn_over_the_one_before() {
        let text = shown(Terminal { interactive: true, colour: false }, Detail::Seconds);
        assert!(text.starts_with("[3/4]"), "nothing above the view is touched");
        // Four lines per frame: seven frames follow the first, then the cut and the result.
        assert_eq!(text.matches("\x1b[4A\x1b[J").count(), 8);
        assert!(text.ends_with("55.1 Mbit/s\n"));
    }

    /// What is written for a step with a reading every 0.3 s, a cut and a result.
    fn shown(terminal: Terminal, detail: Detail) -> String {
        let mut text = Vec::new();
        let mut live = Live::new(&mut text, terminal, detail);
        live.on_step(&step());
        for reading in 0..8 {
            live.on_tick(&tick(f64::from(reading) * 0.3));
        }
        let elapsed = Duration::from_millis(2500);
        live.on_cut(&CutEvent { link: "lte".into(), cut: false, elapsed });
        live.on_result(Some(55.1));
        String::from_utf8(text).unwrap()
    }

    fn step() -> Step {
        Step {
            title: "tunnel over 2 links".into(),
            number: 3,
            count: 4,
            length: Duration::from_secs(12),
            remaining: Duration::from_secs(34),
            links: vec!["fibre".into(), "lte".into()],
            rates: vec![Some(40e6), Some(20e6)],
        }
    }

    fn tick(seconds: f64) -> Tick {
        Tick {
            elapsed: Duration::from_secs_f64(seconds),
            goodput: 35e6,
            links: vec![39e6, 0.0],
            cut: vec![false, true],
        }
    }
}
