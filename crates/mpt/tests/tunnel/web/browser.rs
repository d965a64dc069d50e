//! A headless Chromium that is told what to do over a pipe, and that records what it requests.
//!
//! It is driven by the Chrome DevTools Protocol, whose messages are JSON with a zero byte after each. Chromium reads
//! them from descriptor 3 and answers on 4, which a shell opens from two named pipes.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use mpt_lab::lab::Host;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::site::{PATIENCE, eventually};
use crate::suite::skip;

/// Names under which distributions have it.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// What Chromium calls the origin of requests that it makes for itself, and no page.
const ITSELF: &str = "not an origin";

/// A browser with one page.
pub(super) struct Browser {
    child: Child,
    to: File,
    from: Receiver<Value>,
    next: u64,
    session: String,
    /// What the page or its console complained of.
    complaints: Vec<String>,
    place: TempDir,
}

impl Browser {
    /// Starts one on `host`; the test is skipped where there is none.
    pub(super) fn start(host: &Host) -> Self {
        let Some(program) = find() else {
            skip("no Chromium; `apt-get install chromium` brings one");
        };
        let place = tempfile::tempdir().expect("a folder");
        let (to, from) = (place.path().join("to"), place.path().join("from"));
        for pipe in [&to, &from] {
            mkfifo(pipe, Mode::S_IRUSR | Mode::S_IWUSR).expect("a named pipe");
        }
        let log = place.path().join("net-log.json");
        let mut command = Command::new("sh");
        command
            .args(["-c", "exec \"$@\" 3<\"$TO\" 4>\"$FROM\"", "sh"])
            .arg(program)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
            .args(["--no-first-run", "--disable-background-networking"])
            .args(["--disable-component-update", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", place.path().join("profile").display()))
            .arg(format!("--log-net-log={}", log.display()))
            .arg("about:blank")
            .env("TO", &to)
            .env("FROM", &from)
            .env("HOME", place.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(place.path().join("complaints")).expect("a file"));
        let child = host.run(|| command.spawn()).expect("Chromium starts");
        // The shell opens them in this order, too.
        let to = OpenOptions::new().write(true).open(to).expect("a pipe");
        let from = File::open(from).expect("a pipe");
        let (sender, messages) = mpsc::channel();
        thread::spawn(move || {
            for message in BufReader::new(from).split(0) {
                let Ok(message) = message else { return };
                let Ok(message) = serde_json::from_slice(&message) else { return };
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let session = String::new();
        let complaints = Vec::new();
        let mut browser = Self { child, to, from: messages, next: 1, session, complaints, place };
        let target = browser.call("Target.createTarget", &json!({ "url": "about:blank" }));
        let target = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", &target);
        browser.session = session["sessionId"].as_str().expect("a session").to_owned();
        for domain in ["Page.enable", "Runtime.enable", "Log.enable"] {
            browser.call(domain, &json!({}));
        }
        browser
    }

    /// Makes the window so large, like a phone's if `mobile`.
    pub(super) fn resize(&mut self, width: u32, height: u32, mobile: bool) {
        let size =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile });
        self.call("Emulation.setDeviceMetricsOverride", &size);
    }

    /// Goes to an address.
    pub(super) fn open(&mut self, url: &str) {
        let answer = self.call("Page.navigate", &json!({ "url": url }));
        assert!(answer.get("errorText").is_none(), "{url}: {answer}");
    }

    /// What a JavaScript expression comes to in the page.
    pub(super) fn evaluate(&mut self, expression: &str) -> Value {
        let question = json!({ "expression": expression, "returnByValue": true });
        let answer = self.call("Runtime.evaluate", &question);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Waits until a JavaScript expression is true in the page.
    pub(super) fn wait_for(&mut self, expression: &str) {
        eventually(expression, || self.evaluate(expression) == true);
    }

    /// The page as a picture, PNG in base64.
    pub(super) fn picture(&mut self) -> String {
        let answer = self.call("Page.captureScreenshot", &json!({ "format": "png" }));
        answer["data"].as_str().expect("a picture").to_owned()
    }

    /// What the page or its console complained of since the last time.
    pub(super) fn complaints(&mut self) -> Vec<String> {
        std::mem::take(&mut self.complaints)
    }

    /// Ends it, and returns the addresses that pages requested something from.
    pub(super) fn end(mut self) -> Vec<String> {
        self.session.clear();
        self.call("Browser.close", &json!({}));
        self.child.wait().expect("its end");
        let log = fs::read_to_string(self.place.path().join("net-log.json")).expect("a log");
        requests(&log)
    }

    fn call(&mut self, method: &str, parameters: &Value) -> Value {
        let id = self.next;
        self.next += 1;
        let mut message = json!({ "id": id, "method": method, "params": parameters });
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).expect("Chromium reads");
        loop {
            let mut message = self.from.recv_timeout(PATIENCE).unwrap_or_else(|_| {
                let complaints = fs::read_to_string(self.place.path().join("complaints"));
                panic!("Chromium does not answer {method}: {}", complaints.unwrap_or_default())
            });
            if message["id"] == id {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].take();
            }
            let method = message["method"].as_str();
            if matches!(method, Some("Runtime.exceptionThrown" | "Log.entryAdded")) {
                self.complaints.push(message["params"].to_string());
            }
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn find() -> Option<PathBuf> {
    let folders: Vec<PathBuf> = env::split_paths(&env::var_os("PATH")?).collect();
    let files = NAMES.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    files.into_iter().find(|file: &PathBuf| Path::is_file(file))
}

/// The requests of pages in a log of the browser: those with an initiator, and not of its own pages.
fn requests(log: &str) -> Vec<String> {
    let log: Value = serde_json::from_str(log).expect("a log");
    let events = log["events"].as_array().expect("the events of the log");
    let request = |event: &Value| {
        let (url, initiator) =
            (event["params"]["url"].as_str()?, event["params"]["initiator"].as_str()?);
        let own = ["data:", "chrome:", "about:"].iter().any(|scheme| url.starts_with(scheme));
        (initiator != ITSELF && !own).then(|| url.to_owned())
    };
    events.iter().filter_map(request).collect()
}
