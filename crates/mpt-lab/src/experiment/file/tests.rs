use super::*;
use crate::results::{Of, OfRuns};

const LINKS: &str = "title = 't'\n[[link]]\nname = 'a'\n[[link]]\nname = 'b'\n";

fn only(text: &str) -> Cell {
    Experiment::parse("x", text).unwrap().cells.remove(0)
}

#[test]
fn what_is_left_out_has_the_values_of_the_documentation() {
    let cell = only(LINKS);
    assert_eq!(cell.tunnel.weights, [1, 1]);
    assert_eq!((cell.traffic.seconds, cell.traffic.omit), (12.0, 2.0));
    assert_eq!((cell.topology.seed, cell.scale), (1, 1.0));
    assert!(cell.outage.is_none() && cell.events.is_empty());
    let experiment = Experiment::parse("some/where.toml", LINKS).unwrap();
    assert_eq!((experiment.repetitions, experiment.alone), (1, true));
    assert_eq!(experiment.systems, [System::Classic]);
    assert_eq!(experiment.entry.name, "where");
}

#[test]
fn the_example_of_the_documentation_can_be_read() {
    let documentation = include_str!("../file.rs");
    let lines = documentation.lines().map_while(|line| line.strip_prefix("//!"));
    let example: String = lines
        .skip_while(|line| line.trim() != "```toml")
        .skip(1)
        .take_while(|line| line.trim() != "```")
        .flat_map(|line| [line, "\n"])
        .collect();
    let experiment = Experiment::parse("example", &example).unwrap();
    assert_eq!(experiment.cells.len(), 3);
    assert_eq!(experiment.cells[2].topology.links[1].forward.delay.as_millis(), 20);
    assert_eq!(experiment.cells[0].tunnel.weights, [40, 20]);
    assert_eq!(experiment.cells[0].outage.as_ref().unwrap().cuts[0].link, 1);
}

#[test]
fn a_target_names_its_cells_and_which_of_them_count() {
    let axis = "[[axis]]\nname = 'd'\nset = ['link.a.delay_ms']\nvalues = [1, 2, 3]\n";
    let of = |keys: &str| {
        let text = format!(
            "{LINKS}{axis}[[target]]\nsystem = 'classic'\nfigure = 'gain'\nbound = 'at-least'\n\
             value = 1\n{keys}\n"
        );
        let read = Experiment::parse("x", &text).unwrap_or_else(|error| panic!("{error}"));
        read.entry.targets[0].clone()
    };
    let all = of("");
    assert_eq!((all.cells, all.of_runs, all.share), (Of::Each, OfRuns::Median, 1.0));
    assert!(all.only.is_empty());
    assert_eq!(of("at = 'd=1,3'").only["d"], ["1", "3"]);
    assert_eq!(of("cells = 'median'").cells, Of::Median);
    assert_eq!(of("cells = { at-least = 2 }").cells, Of::AtLeast(2));
    assert_eq!(of("of_runs = 'worst'\nround_trips = 3").of_runs, OfRuns::Worst);
}

#[test]
fn cubic_over_links_of_different_delays_runs_longer() {
    let links = "title = 't'\n[[link]]\nname = 'a'\n[[link]]\nname = 'b'\ndelay_ms = 5\n";
    let long = |text: &str| only(text).traffic.long_seconds;
    let traffic = "[traffic]\nlong_seconds = 60\n";
    assert_eq!(long(&format!("{links}{traffic}")), Some(60.0));
    assert_eq!(long(&format!("{LINKS}{traffic}")), None, "the delays are the same");
    assert_eq!(long(&format!("{links}{traffic}congestion = 'bbr'")), None);
    assert_eq!(long(&format!("{links}{traffic}kind = 'quic'")), None);
    assert_eq!(long(links), None, "nobody asked");
    let experiment = Experiment::parse("x", &format!("{links}{traffic}")).unwrap();
    assert_eq!(experiment.length(false).as_secs(), 10 + 10 + 60 + 4, "links alone do not");
    assert_eq!(experiment.quick().cells[0].traffic.length().as_secs(), 4);
}

#[test]
fn every_error_is_reported_with_line_and_caret() {
    for (text, message, marked) in [
        ("[tunnel]\nwieghts = [1, 1]", "unknown field `wieghts`", "wieghts"),
        ("[tunnel]\nwieghts = [1, 1]", "did you mean `weights`?", "wieghts"),
        ("[tunnel]\nweights = [1, 1, 1]", "3 weights, but 2 in [[link]]", "[tunnel]"),
        ("[tunnel]\nweights = [1, 0]", "a weight of 0: weights are 1 to 10000", "[tunnel]"),
        ("[tunnel]\nkeepalive = -1", "-1 is out of range: 0 to 600 seconds", "-1"),
        ("[tunnel]\nprofile = 'fast'", "unknown variant `fast`", "'fast'"),
        ("[tunnel]\nreorder = { window = 10001 }", "10001 is out of range", "10001"),
        ("[tunnel]\ninner = 5", "there is no IP version 5", "5"),
        ("[traffic]\nseconds = 9", "leave under 8 s", "[traffic]"),
        ("[traffic]\nlong_seconds = 9", "9 is out of range: 20 to 600", "9"),
        ("[traffic]\nseconds = 30\nlong_seconds = 20", "not longer than the 30 s", "[traffic]"),
        ("[traffic]\nflows = 0", "0 is out of range: 1 to 200 flows", "0"),
        ("[traffic]\nbuffer_mb = 0", "0 is out of range: 1 to 1000 MB", "0"),
        ("[traffic]\nflows = 17", "17 flows: at most 16", "[traffic]"),
        ("[traffic]\nkind = 'udp'\nrate_mbps = 90000", "more than 10000000 packets", "[traffic]"),
        ("[traffic]\nkind = 'ping'\ninterval = 0.001\nseconds = 600", "requests", "[traffic]"),
        ("[outage]\nseconds = 9\ncut = [{ link = 'c', at = 1, until = 2 }]", "no link", "'c'"),
        (
            "[outage]\nseconds = 9\ncut = [{ link = 'a', at = 1, until = 10 }]",
            "does not fit",
            "{ link = 'a', at = 1, until = 10 }",
        ),
        ("links = 3", "there are 1 to 2 links", "3"),
        (
            "systems = ['mtp']",
            "there are adaptive, adaptive-extended, classic, mpt, mptcp, oracle",
            "'mtp'",
        ),
        ("[[event]]\nat = 1\nlink = 'c'\nchange = 'cut'", "no link is called `c`", "'c'"),
        ("[[event]]\nat = 1\nlink = 'a'\nchange = 'roam'", "`nat = true`", "[[event]]"),
        ("[[event]]\nat = 1\nlink = 'a'\nchange = 'rate'", "has no `rate_mbps`", "[[event]]"),
        (
            "[[event]]\nat = 1\nlink = 'a'\nchange = 'mend'\ndirection = 'both'",
            "only `cut` has a `direction`",
            "[[event]]",
        ),
        (
            "[[event]]\nat = 1\nlink = 'a'\nchange = 'cut'\nshare = 1",
            "only `rate` has a `share`",
            "[[event]]",
        ),
        (
            "[[event]]\nat = 1\nlink = 'a'\nchange = 'rate'\nshares = [1, 2]",
            "`shares` need `every`",
            "[[event]]",
        ),
        (
            "[[event]]\nat = 1\nlink = 'a'\nchange = 'cut'\nshares = [1, 2]\nevery = 1",
            "two or more `shares`",
            "[[event]]",
        ),
        ("[traffic]\nkind = 'udp'\nbeside = {}", "only `tcp` and `quic`", "[traffic]"),
        ("[[axis]]\nname = 'd'\nset = ['seed']\nvalues = [1, 1]", "has `1` twice", "'d'"),
        (
            "[[axis]]\nname = 'd'\nset = ['repetitions']\nvalues = [1]",
            "cannot vary `repetitions`",
            "'d'",
        ),
        ("[published]\nclassic.goodput_mbps = [1, 2]", "2 values, but 1 cells", "[1, 2]"),
        ("[[plot]]\nkind = 'lines'\nx = 'delay'", "no axis is called", "[[plot]]"),
        (
            "[[plot]]\nkind = 'lines'\nfigure = 'goodput_mpbs'",
            "did you mean `goodput_mbps`?",
            "[[plot]]",
        ),
        ("systems = ['clasic']", "did you mean `classic`?", "'clasic'"),
        ("[[axis]]\nname = 'd'", "needs either `values`", "'d'"),
        (
            "[[axis]]\nname = 'd'\nset = ['link.a.delay_ms']\nvalues = [1, -1]",
            "at d -1: `delay_ms` is -1",
            "[[axis]]",
        ),
        (
            "[tunnel]\nweights = [7]\n[[axis]]\nname = 'd'\nset = ['seed']\nvalues = [1]",
            "1 weights, but 2",
            "[tunnel]",
        ),
        (
            "[[target]]\nsystem = 'mpd'\nfigure = 'yield'\nbound = 'within'\nvalue = 1",
            "no system is called `mpd`",
            "[[target]]",
        ),
        (
            "[[target]]\nsystem = 'classic'\nfigure = 'yield'\nbound = 'within'\nvalue = 1\nat = 'd=7'",
            "no axis is called `d`",
            "[[target]]",
        ),
        (
            "[[target]]\nsystem = 'classic'\nfigure = 'yield'\nbound = 'within'\nvalue = 1\nat = 'd'",
            "write AXIS=LABEL",
            "[[target]]",
        ),
        (
            "[[target]]\nsystem = 'classic'\nfigure = 'yeild'\nbound = 'within'\nvalue = 1",
            "no figure is called `yeild`",
            "[[target]]",
        ),
        (
            "[[axis]]\nname = 'd'\nset = ['link.c.delay_ms']\nvalues = [1]",
            "`link` has no `c`",
            "[[axis]]",
        ),
    ] {
        let text = match text.starts_with('[') {
            true => format!("{LINKS}{text}\n"),
            false => format!("{text}\n{LINKS}"),
        };
        let error = Experiment::parse("some.toml", &text).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
        let place = text.rfind(marked).unwrap();
        let line = text[..place].matches('\n').count() + 1;
        assert!(error.contains(&format!("some.toml:{line}:")), "{line} in\n{error}");
        assert!(error.contains(&"^".repeat(marked.len())), "{marked} in\n{error}");
    }
}

#[test]
fn the_experiments_that_come_with_the_lab_can_be_read() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/experiments");
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        Experiment::read(&entry.unwrap().path()).unwrap_or_else(|error| panic!("{error}"));
        count += 1;
    }
    assert!(count >= 4, "{count}");
}
