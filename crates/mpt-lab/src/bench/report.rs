//! The result of a run as tables, for a terminal or as Markdown.

use super::ratio::{Named, UDP_SIZES};
use super::record::Record;
use super::samples::{Figure, Quantity};
use super::subject::{Subject, Wire};
use crate::output::table::align;

/// What stands where nothing was measured.
const NOTHING: &str = "-";
/// A load of other processes above this many processors makes figures doubtful.
const DOUBTFUL: f64 = 0.05;

/// Tables of aligned columns.
pub fn text(record: &Record) -> String {
    let mut lines = vec![setting(record)];
    for table in tables(record) {
        lines.extend([String::new(), table.title]);
        let rows: Vec<_> = std::iter::once(table.head).chain(table.rows).collect();
        lines.extend(align(&rows).into_iter().map(|line| format!("  {line}")));
    }
    lines.extend(remarks(record));
    lines.join("\n")
}

/// The same tables as Markdown.
pub fn markdown(record: &Record) -> String {
    let mut lines = vec![setting(record)];
    for table in tables(record) {
        let rule = table.head.iter().enumerate().map(|(n, _)| if n == 0 { "---" } else { "---:" });
        let rule: Vec<_> = rule.map(str::to_owned).collect();
        lines.extend([String::new(), format!("**{}**", table.title), String::new()]);
        for row in std::iter::once(&table.head).chain([&rule]).chain(&table.rows) {
            lines.push(format!("| {} |", row.join(" | ")));
        }
    }
    lines.extend(remarks(record));
    lines.join("\n")
}

struct Table {
    title: String,
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

fn setting(record: &Record) -> String {
    let (machine, options) = (&record.machine, &record.options);
    format!(
        "Linux {}, {} processors; CUBIC; medians of {} repetitions of {} s and {} rounds of {} s, [smallest - largest]; of ratios within rounds, means of the middle half.",
        machine.kernel,
        machine.processors,
        options.repetitions,
        options.tcp.as_secs_f64(),
        options.repetitions * options.rounds,
        options.round.as_secs_f64()
    )
}

fn remarks(record: &Record) -> Vec<String> {
    let mut lines = Vec::new();
    for skipped in &record.skipped {
        lines.extend([
            String::new(),
            format!("Omitted: {}: {}.", row_title(skipped.wire, skipped.subject), skipped.why),
        ]);
    }
    let background = record.machine.background;
    if background > DOUBTFUL {
        lines.push(String::new());
        lines.push(format!(
            "Doubtful: other programs used {background:.2} processors. Repeat it on an idle machine."
        ));
    }
    lines
}

fn tables(record: &Record) -> Vec<Table> {
    let goodput = [Wire::PassThrough, Wire::WireLike].map(|wire| goodput(record, wire));
    let others = [bound(record), shaped(record), pings(record), udp(record), ratios(record)];
    goodput.into_iter().chain(others).filter(|table| !table.rows.is_empty()).collect()
}

fn goodput(record: &Record, wire: Wire) -> Table {
    let [one, many] = record.options.flows;
    let head = ["", "1 flow, Gbit/s", "x no tunnel", "machine s/Gbit", "daemons s/Gbit"];
    let mut head: Vec<String> = head.map(str::to_owned).into();
    head.extend([format!("{many} flows, Gbit/s"), "x no tunnel".into(), "daemon MiB".into()]);
    let row = |&subject: &Subject| {
        let figure = |quantity| record.figure(wire, subject, quantity);
        let relative = |flows| {
            let raw = record.figure(wire, Subject::Raw, Quantity::Goodput(flows))?.middle();
            Some(figure(Quantity::Goodput(flows))?.middle() / raw)
        };
        let median = |quantity, digits| number(figure(quantity).map(Figure::middle), digits);
        figure(Quantity::Goodput(one))?;
        Some(vec![
            subject.title(),
            spread(figure(Quantity::Goodput(one)), 2),
            number(relative(one), 2),
            median(Quantity::MachineTime(one), 3),
            median(Quantity::DaemonTime(one), 3),
            spread(figure(Quantity::Goodput(many)), 2),
            number(relative(many), 2),
            median(Quantity::Memory, 1),
        ])
    };
    let rows = record.options.subjects.iter().filter_map(row).collect();
    Table { title: format!("TCP, {}", wire.title()), head, rows }
}

fn bound(record: &Record) -> Table {
    let head = ["", "1 flow, Gbit/s", "daemons s/Gbit"].map(str::to_owned);
    let row = |wire: Wire, subject: Subject| {
        let figure = |quantity| record.figure(wire, subject, quantity);
        let goodput = figure(Quantity::BoundGoodput)?;
        let time = figure(Quantity::BoundDaemonTime);
        Some(vec![row_title(wire, subject), spread(Some(goodput), 2), spread(time, 3)])
    };
    let title = "TCP in rounds, each host on its own processors".into();
    Table { title, head: head.into(), rows: rows(record, row) }
}

fn shaped(record: &Record) -> Table {
    let head = ["", "1 flow, Gbit/s", "x ideal", "machine s/Gbit", "daemons s/Gbit", "daemon MiB"];
    let one = record.options.flows[0];
    let row = |&subject: &Subject| {
        let figure = |quantity| record.figure(Wire::Shaped, subject, quantity);
        let median = |quantity, digits| number(figure(quantity).map(Figure::middle), digits);
        figure(Quantity::Goodput(one))?;
        Some(vec![
            subject.title(),
            spread(figure(Quantity::Goodput(one)), 3),
            spread(figure(Quantity::OfIdeal(one)), 3),
            median(Quantity::MachineTime(one), 3),
            median(Quantity::DaemonTime(one), 3),
            median(Quantity::Memory, 1),
        ])
    };
    let title = format!("TCP, each pair {}", Wire::Shaped.title());
    let rows = record.options.subjects.iter().filter_map(row).collect();
    Table { title, head: head.map(str::to_owned).into(), rows }
}

fn pings(record: &Record) -> Table {
    let head = ["", "idle p50", "idle p99", "loaded p50", "loaded p99"].map(str::to_owned);
    let row = |wire: Wire, subject: Subject| {
        record.figure(wire, subject, Quantity::PingIdleP50)?;
        let mut row = vec![row_title(wire, subject)];
        row.extend(
            [
                Quantity::PingIdleP50,
                Quantity::PingIdleP99,
                Quantity::PingLoadedP50,
                Quantity::PingLoadedP99,
            ]
            .map(|quantity| spread(record.figure(wire, subject, quantity), 3)),
        );
        Some(row)
    };
    let title = "Round-trip time in ms, idle and beside one TCP flow".into();
    Table { title, head: head.into(), rows: rows(record, row) }
}

fn udp(record: &Record) -> Table {
    let head = std::iter::once(String::new())
        .chain(UDP_SIZES.iter().map(|size| format!("{size} bytes")))
        .collect();
    let row = |wire: Wire, subject: Subject| {
        record.figure(wire, subject, Quantity::UdpRate(UDP_SIZES[0]))?;
        let rates =
            UDP_SIZES.map(|size| spread(record.figure(wire, subject, Quantity::UdpRate(size)), 0));
        Some([vec![row_title(wire, subject)], rates.into()].concat())
    };
    let title = "UDP, 1000 packets per second at less than 1 % loss".into();
    Table { title, head, rows: rows(record, row) }
}

fn ratios(record: &Record) -> Table {
    let row = |(name, figure): &Named| vec![name.clone(), spread(figure.as_ref(), 2)];
    let rows = record.ratios.iter().map(row).collect();
    Table {
        title: "Ratios within a repetition or a round".into(),
        head: vec![String::new(), "ratio".into()],
        rows,
    }
}

/// A row for every wire and subject that has one.
fn rows(record: &Record, row: impl Fn(Wire, Subject) -> Option<Vec<String>>) -> Vec<Vec<String>> {
    record.options.combinations().filter_map(|(wire, subject)| row(wire, subject)).collect()
}

fn row_title(wire: Wire, subject: Subject) -> String {
    format!("{}, {}", wire.title(), subject.title())
}

fn spread(figure: Option<&Figure>, digits: usize) -> String {
    figure.map_or(NOTHING.into(), |figure| {
        let (middle, min, max) = (figure.middle(), figure.min(), figure.max());
        format!("{middle:.digits$} [{min:.digits$} - {max:.digits$}]")
    })
}

fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or(NOTHING.into(), |value| format!("{value:.digits$}"))
}

#[cfg(test)]
mod tests {
    use super::super::options::Options;
    use super::super::record::Skipped;
    use super::super::samples::{Key, Samples};
    use super::*;

    fn record() -> Record {
        let mut samples = Samples::default();
        for (subject, values) in [(Subject::Raw, [40.0, 50.0]), (Subject::MPT1, [10.0, 20.0])] {
            for (repetition, value) in values.into_iter().enumerate() {
                let key = Key { wire: Wire::PassThrough, subject, quantity: Quantity::Goodput(1) };
                samples.push(repetition, key, value);
            }
        }
        let skipped = vec![Skipped {
            wire: Wire::PassThrough,
            subject: Subject::Vxlan,
            why: "it is absent".into(),
        }];
        Record::new(&Options::quick(), &samples, skipped, &[0.5]).unwrap()
    }

    #[test]
    fn a_table_has_a_row_for_what_was_measured() {
        let text = text(&record());
        let row = text.lines().find(|line| line.starts_with("  MPT, 1 path ")).expect("a row");
        let words: Vec<_> = row.split_whitespace().skip(3).take(5).collect();
        assert_eq!(words, ["15.00", "[10.00", "-", "20.00]", "0.33"]);
        assert!(!text.contains("TCP, wire-like") && !text.contains("UDP"), "{text}");
        assert!(text.contains("Omitted: pass-through, kernel VXLAN: it is absent."));
        assert!(text.contains("Doubtful"));
    }

    #[test]
    fn markdown_has_as_many_cells_in_every_row_of_a_table() {
        let text = markdown(&record());
        let lines: Vec<_> = text.lines().filter(|line| line.starts_with('|')).collect();
        let cells = |line: &str| line.matches('|').count() - 1;
        let (goodput, ratios): (Vec<&str>, Vec<&str>) =
            lines.iter().partition(|line| cells(line) == 8);
        assert_eq!(goodput.len(), 4, "head, rule, two subjects");
        assert!(ratios.len() > 20 && ratios.iter().all(|line| cells(line) == 2));
        assert!(text.contains("| pass_1path_over_raw | 0.33 [0.25 - 0.40] |"), "{text}");
    }
}
