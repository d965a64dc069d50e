//! The page as a browser shows it: every drawing is there, nothing overlaps, nothing is fetched.

use std::fs;
use std::path::{Path, PathBuf};

use mpt_lab::report::{Report, html};
use mpt_lab::results::Results;
use serde::Deserialize;

use crate::browser;
use crate::synthetic;

/// What `measure.js` finds out.
#[derive(Deserialize)]
struct Measured {
    drawings: Vec<Drawing>,
    scripts: usize,
    duplicates: usize,
    broken: usize,
    width: f64,
    window: f64,
}

#[derive(Debug, Deserialize)]
struct Drawing {
    id: String,
    width: f64,
    height: f64,
    faults: Vec<String>,
    empty: usize,
    lines: usize,
    marks: usize,
    bars: usize,
    whiskers: usize,
    fields: usize,
    published: usize,
    title: String,
    description: String,
}

#[test]
fn every_plot_is_drawn() {
    let Some(browser) = browser::find("every_plot_is_drawn") else { return };
    let place = tempfile::tempdir().unwrap();
    let page = page(place.path());
    let measured = measure(&browser, place.path(), &page);

    for drawing in &measured.drawings {
        assert!(drawing.width > 200.0 && drawing.height > 15.0, "{drawing:?}");
        assert!(drawing.faults.is_empty(), "{drawing:#?}");
        assert_eq!(drawing.empty, 0, "a shape without size: {drawing:?}");
        assert!(!drawing.title.is_empty() && !drawing.description.is_empty(), "{drawing:?}");
    }
    let of = |id: &str| -> Vec<&Drawing> {
        let begins =
            |drawing: &&Drawing| drawing.id.starts_with(id) && !drawing.id.ends_with("legend");
        let found: Vec<_> = measured.drawings.iter().filter(begins).collect();
        assert!(!found.is_empty(), "nothing is drawn of {id}");
        found
    };
    let sum = |id: &str, count: fn(&Drawing) -> usize| of(id).into_iter().map(count).sum::<usize>();

    // Seven delays, three systems; every figure has a spread, goodput of one system is published.
    let goodput = of("experiment-1-plot-1-")[0];
    assert_eq!((goodput.lines, goodput.marks, goodput.whiskers, goodput.published), (3, 21, 21, 7));
    let efficiency = of("experiment-1-plot-2-")[0];
    assert_eq!((efficiency.lines, efficiency.marks, efficiency.published), (3, 21, 0));
    // Ten by ten of two systems, and a panel for what was published in 12 of them.
    assert_eq!(of("experiment-2-plot-1-").len(), 3);
    assert_eq!(sum("experiment-2-plot-1-", |drawing| drawing.fields), 212);
    // Over time: a panel for each cell of full runs, a line for each system.
    assert_eq!(
        (of("experiment-1-time-").len(), sum("experiment-1-time-", |drawing| drawing.lines)),
        (7, 21)
    );
    assert_eq!(
        (of("experiment-2-time-").len(), sum("experiment-2-time-", |drawing| drawing.lines)),
        (100, 200)
    );
    assert_eq!(
        (of("experiment-3-plot-1-").len(), sum("experiment-3-plot-1-", |drawing| drawing.lines)),
        (2, 4)
    );
    // Ten windows, four delays, a panel for each of two systems.
    assert_eq!(of("experiment-4-plot-1-").len(), 2);
    assert_eq!(sum("experiment-4-plot-1-", |drawing| drawing.marks), 80);
    assert!(
        !measured.drawings.iter().any(|drawing| drawing.id.contains("experiment-4-time")),
        "quick"
    );
    // Twelve profiles, three flows, three systems; in six cells one was skipped.
    assert_eq!(
        (of("experiment-5-plot-1-").len(), sum("experiment-5-plot-1-", |drawing| drawing.bars)),
        (3, 102)
    );
    assert_eq!(
        (of("experiment-5-plot-2-").len(), sum("experiment-5-plot-2-", |drawing| drawing.bars)),
        (1, 36)
    );
    // One cell, one system, no axis.
    let only = |n: usize| of(&format!("experiment-6-plot-{n}-"))[0];
    assert_eq!((only(1).bars, only(2).marks, only(3).fields, only(4).lines), (1, 1, 1, 1));

    assert_eq!(measured.scripts, 0, "text of results became a script");
    assert_eq!((measured.duplicates, measured.broken), (0, 0), "names of elements");
    assert!(measured.width <= measured.window, "the page is wider than the window");
}

#[test]
fn no_request_leaves_the_machine() {
    let Some(browser) = browser::find("no_request_leaves_the_machine") else { return };
    let place = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| -> PathBuf {
        let file = place.path().join(name);
        fs::write(&file, text).unwrap();
        file
    };
    let page = page(place.path());
    for tag in ["<script", "<img", "<link", "@import", "url("] {
        assert!(!page.contains(tag), "{tag}");
    }
    // Without the policy, whatever the page asked for would be asked for.
    let naked = page.replace(html::POLICY, "");
    assert!(page != naked, "the page has its policy");
    let requests = |name: &str, text: &str| browser::show(&browser, &file(name, text)).requests;
    assert_eq!(requests("report.html", &page), [""; 0]);
    assert_eq!(requests("naked.html", &naked), [""; 0]);

    // One image is enough to be seen here, and the policy is enough to keep it back.
    let image = "<img src=\"http://outside.test/x.png\"></main>";
    let asking = naked.replace("</main>", image);
    assert_eq!(requests("asking.html", &asking), ["http://outside.test/x.png"]);
    let forbidden = page.replace("</main>", image);
    assert_eq!(requests("forbidden.html", &forbidden), [""; 0]);
}

/// The page about synthetic results.
fn page(place: &Path) -> String {
    let folder = place.join("results");
    synthetic::write(&folder, 1.0);
    let page = html::page(&Report::of(&Results::read(&folder).unwrap()));
    assert!(!page.contains("NaN") && !page.contains("inf"), "a figure is none");
    page
}

fn measure(browser: &Path, place: &Path, page: &str) -> Measured {
    // A script must be allowed to measure, so the policy goes; that there is one is tested elsewhere.
    let script = format!("<script>{}</script></body>", include_str!("measure.js"));
    let copy = page.replace(html::POLICY, "").replace("</body>", &script);
    let file = place.join("measured.html");
    fs::write(&file, copy).unwrap();
    let document = browser::show(browser, &file).document;
    let json = document.split_once("<pre id=\"measured\">").expect("the script ran").1;
    let json = json.split_once("</pre>").expect("the end of the result").0;
    let json = json.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    serde_json::from_str(&json).unwrap()
}
