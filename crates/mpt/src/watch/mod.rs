//! `mpt status --watch`: what the daemon does, as it does it.
//!
//! A thread asks the daemon for its status once per interval ([`sampler`]), another waits for keys,
//! a third for signals; what they learn goes through one channel to the thread that draws. That one
//! keeps two things: the [`model::Model`], which is the latest status and the rates since the one
//! before it, and the [`ui::Ui`], which is what the person in front of it chose to see. The picture
//! is a pure function of both ([`draw`]), and so is what a key does, so both are tested without a
//! terminal. [`mod@lines`] is the same watch for programs: an object of JSON per line.

mod draw;
mod lines;
mod list;
mod model;
mod sampler;
mod terminal;
mod ui;

#[cfg(test)]
mod tests;

use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use self::sampler::Sampler;
use self::terminal::{Terminal, Word};
use self::ui::{Flow, Ui};
use crate::exit::Exit;
use crate::output;

pub(crate) use lines::lines;
pub(crate) use model::{ConnectionRates, Model, PathRates, TunnelRates};
pub(crate) use sampler::ask;

/// Shows the daemon at `socket` on the terminal, asking every `interval`, until its user has seen
/// enough, a signal ends it, or it `is_over`, which is asked as often.
///
/// # Errors
/// There is no terminal, or no daemon to begin with.
pub(crate) fn watch(
    socket: &Path,
    interval: Duration,
    is_over: &mut dyn FnMut() -> bool,
) -> Result<Exit> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        bail!("--watch needs a terminal: use `mpt status --watch --json` for a line per interval");
    }
    let mut sampler = Sampler::new(socket);
    let mut model = Model::new(sampler.sample()?);
    let mut ui = Ui::new(interval, output::colour_on_stdout());

    let (sender, words) = mpsc::channel();
    let mut terminal = Terminal::open(&sender).context("cannot use this terminal")?;
    std::thread::spawn(move || sampler.run(interval, &terminal::Farewell(sender)));
    // Whatever happens in here, dropping the terminal gives it back as it was.
    let end = attend(&mut terminal, &words, &mut model, &mut ui, is_over);
    drop(terminal);
    end.map(|()| Exit::Done)
}

/// Draws, and takes in what comes, until that is the end.
fn attend(
    terminal: &mut Terminal,
    words: &Receiver<Word>,
    model: &mut Model,
    ui: &mut Ui,
    is_over: &mut dyn FnMut() -> bool,
) -> Result<()> {
    while !is_over() {
        terminal.draw(|frame| draw::draw(frame, model, ui)).context("cannot draw")?;
        let Ok(word) = words.recv() else { return Ok(()) };
        // Whatever else has come meanwhile needs no picture of its own.
        for word in std::iter::once(word).chain(words.try_iter()) {
            match word {
                Word::Key(key) => match ui.handle(key, model) {
                    Flow::Continue => {}
                    Flow::Quit => return Ok(()),
                },
                Word::Resized => {}
                Word::Sampled(_) if ui.is_paused() => {}
                Word::Sampled(sample) => match sample {
                    Ok(status) => model.accept(*status),
                    Err(lost) => model.lose(lost),
                },
                Word::End => return Ok(()),
            }
        }
    }
    Ok(())
}
