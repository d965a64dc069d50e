//! A headless Chromium that shows a page without network access, and records the page's requests.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Names under which distributions have it.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// What Chromium calls the origin of requests that it makes for itself, and no page.
const ITSELF: &str = "not an origin";

/// What the browser made of a page.
pub(crate) struct Shown {
    /// The document after everything in it has run.
    pub(crate) document: String,
    /// Where the page wanted something from that is not on this machine.
    pub(crate) requests: Vec<String>,
}

/// The browser, or a message that it is missing.
pub(crate) fn find(test: &str) -> Option<PathBuf> {
    let folders: Vec<PathBuf> = env::split_paths(&env::var_os("PATH")?).collect();
    let found = NAMES
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|file| file.is_file());
    if found.is_none() {
        let remedy = "no Chromium; `apt-get install chromium` brings one";
        assert_ne!(env::var("MPT_NO_SKIP").as_deref(), Ok("1"), "{test}: {remedy}");
        println!("SKIPPED {test}: {remedy}");
    }
    found
}

/// Shows a file. All requests, of the page or of the browser itself, go to a non-existent proxy,
/// and the browser logs them with their origin.
pub(crate) fn show(browser: &Path, page: &Path) -> Shown {
    let place = tempfile::tempdir().unwrap();
    let log = place.path().join("net-log.json");
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        .args(["--no-first-run", "--disable-background-networking", "--disable-component-update"])
        .arg(format!("--user-data-dir={}", place.path().join("profile").display()))
        .arg(format!("--log-net-log={}", log.display()))
        // Port 9 (discard) is unused; requests to this machine go there too.
        .args(["--proxy-server=http://127.0.0.1:9", "--proxy-bypass-list=<-loopback>"])
        .args(["--window-size=1280,1024", "--dump-dom"])
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    let document = String::from_utf8(output.stdout).unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && document.contains("</html>"), "{complaints}");
    Shown { document, requests: requests(&fs::read_to_string(log).unwrap()) }
}

/// The requests of the page in a log of the browser: those with an initiator, other than for files.
fn requests(log: &str) -> Vec<String> {
    let log: Value = serde_json::from_str(log).unwrap();
    let events = log["events"].as_array().expect("the events of the log");
    let request = |event: &Value| {
        let (url, initiator) =
            (event["params"]["url"].as_str()?, event["params"]["initiator"].as_str()?);
        let local = ["file:", "data:", "chrome:"].iter().any(|scheme| url.starts_with(scheme));
        (initiator != ITSELF && !local).then(|| url.to_owned())
    };
    events.iter().filter_map(request).collect()
}
