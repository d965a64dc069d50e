//! A headless Chromium that shows a page, and a listener in place of the whole network.

use std::collections::HashSet;
use std::env;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Names under which distributions have it.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// What the browser made of a page.
pub(crate) struct Shown {
    /// The document after everything in it has run.
    pub(crate) document: String,
    /// The first line of each request for something outside the machine, which all go to the listener.
    pub(crate) requests: Vec<String>,
}

/// The browser, or a word that it is missing.
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

/// Shows a file, with every request for another host sent to the listener.
pub(crate) fn show(browser: &Path, page: &Path) -> Shown {
    let listener = Listener::new();
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        .args(["--no-first-run", "--no-default-browser-check", "--disable-sync"])
        .args(["--disable-background-networking", "--disable-component-update"])
        .args(["--disable-domain-reliability", "--disable-client-side-phishing-detection"])
        .args([
            "--disable-features=OptimizationHints,MediaRouter,Translate",
            "--disable-extensions",
        ])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        // Even for hosts of this machine, which a browser asks directly otherwise.
        .arg(format!("--proxy-server=http://{}", listener.address))
        .arg("--proxy-bypass-list=<-loopback>")
        .args(["--window-size=1280,1024", "--virtual-time-budget=2000", "--dump-dom"])
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    let document = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success() && document.contains("</html>"),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Shown { document, requests: listener.finish() }
}

/// A proxy that answers nothing and remembers everything.
struct Listener {
    address: std::net::SocketAddr,
    over: Arc<AtomicBool>,
    thread: JoinHandle<Vec<String>>,
}

impl Listener {
    fn new() -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&over);
        let thread = thread::spawn(move || {
            let mut seen = Vec::new();
            for stream in socket.incoming() {
                if is_over.load(Ordering::SeqCst) {
                    break;
                }
                seen.push(first_line(stream.unwrap()));
            }
            seen
        });
        Self { address, over, thread }
    }

    fn finish(self) -> Vec<String> {
        self.over.store(true, Ordering::SeqCst);
        // Wakes the thread up; whatever connected before stands before it in the queue.
        drop(TcpStream::connect(self.address).unwrap());
        self.thread.join().unwrap()
    }
}

fn first_line(mut stream: TcpStream) -> String {
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut request = Vec::new();
    let mut part = [0; 512];
    while !request.contains(&b'\n') {
        match stream.read(&mut part) {
            Ok(0) | Err(_) => break,
            Ok(read) => request.extend_from_slice(&part[..read]),
        }
    }
    // A refusal, so that nobody waits; that it arrives does not matter.
    stream
        .write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        .ok();
    stream.shutdown(Shutdown::Both).ok();
    let request = String::from_utf8_lossy(&request).into_owned();
    request.lines().next().unwrap_or("nothing").to_owned()
}

/// The requests of a page beyond those that the browser makes for itself.
pub(crate) fn beyond(requests: &[String], usual: &[String]) -> Vec<String> {
    let usual: HashSet<&str> = usual.iter().map(|line| target(line)).collect();
    requests.iter().filter(|line| !usual.contains(target(line))).cloned().collect()
}

/// The method and host of a request, without the path that may differ each time.
fn target(line: &str) -> &str {
    let host = line.splitn(4, '/').take(3).map(str::len).sum::<usize>() + 2;
    line.get(..host).unwrap_or(line)
}
