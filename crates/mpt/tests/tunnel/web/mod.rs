//! The web page of the real daemon, as a browser shows it.
//!
//! `MPT_PICTURE=FILE` has the picture of the README made, which is why traffic is as it is.

mod browser;

use std::env;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;

use mpt_control::{ErrorKind, Reply, Request};
use mpt_io::netlink::Netlink;
use mpt_lab::topology::Side;
use mpt_lab::traffic::udp;

use crate::site::{PATIENCE, Site, daemon, eventually, eventually_or};
use crate::suite::Test;
use browser::Browser;

pub(crate) const TESTS: &[Test] = &[
    ("the_web_page_shows_paths_and_changes_them_with_the_token", shown),
    ("the_web_page_comes_moves_and_goes", reloaded),
];

/// A phone's screen, in the pixels of its pages.
const PHONE: (u32, u32) = (390, 844);

const LINKS: &str = "[[link]]\nname = 'fibre'\nrate_mbps = 40\ndelay_ms = 4\n\
                     [[link]]\nname = 'lte'\nrate_mbps = 20\ndelay_ms = 18\nloss = 0.01\n";

/// 24 Mbit/s, for as long as the test may take.
const STREAM: udp::Options = udp::Options {
    interval: Duration::from_micros(400),
    size: 1200,
    length: Duration::from_secs(600),
};

/// A configuration with the web page, and with a quota, what is used of which is not kept.
fn with_web(config: &str, listen: &str) -> String {
    let config = config.replace("name = 'lte'", "name = 'lte'\nquota = '50 GB'");
    format!("[web]\nlisten = '{listen}'\n\n[daemon]\nstate_dir = '/proc/mpt'\n\n{config}")
}

fn loopback_up(site: &Site) {
    site.lab.left().run(|| {
        let mut netlink = Netlink::open().expect("a netlink socket");
        let index = netlink.link("lo").expect("an answer").expect("a loopback").index;
        netlink.set_up(index, true).expect("a loopback that is up");
    });
}

fn start() -> Site {
    let mut site = Site::links_only(LINKS, "scheduler = 'weighted'\n");
    loopback_up(&site);
    let config = with_web(&site.config(Side::Left), "127.0.0.1:9480");
    site.start_daemon_with(Side::Left, &config);
    site.start_daemon(Side::Right);
    site.await_all_up();
    site
}

/// What `mpt web token` prints.
fn token_url(site: &Site) -> String {
    let output = Command::new(daemon())
        .args(["web", "token", "--socket"])
        .arg(site.daemon(Side::Left).socket())
        .output()
        .expect("mpt runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("UTF-8").trim().to_owned()
}

fn shown() {
    let mut site = start();
    let mut browser = Browser::start(site.lab.left());
    let stream = site.stream(4, STREAM);
    browser.resize(PHONE.0, PHONE.1, true);
    browser.open("http://127.0.0.1:9480/");
    browser.wait_for("document.querySelectorAll('article .state.up').length === 2");
    // Half of 24 Mbit/s each, as their weights are alike.
    let fact = |path: usize, fact: usize| {
        format!(
            "document.querySelectorAll('article')[{path}].querySelectorAll('dd')[{fact}].textContent"
        )
    };
    for path in 0..2 {
        browser.wait_for(&format!("/^1[0-9].[0-9] Mbit.s$/.test({})", fact(path, 0)));
        browser.wait_for(&format!("/^[45][0-9].[0-9] %$/.test({})", fact(path, 2)));
        browser.wait_for(&format!("/^[0-9.]+ ms$/.test({})", fact(path, 3)));
    }
    // It is about what comes in, and nothing does: the loss of the second link is seen at the other end.
    browser.wait_for("document.body.innerText.includes('carried 50 % of the bytes')");
    browser.wait_for("document.querySelector('#events li') !== null");
    browser.wait_for("/quota: .* of 50.0 GB used/.test(document.body.innerText)");
    let overflow = browser.evaluate("document.documentElement.scrollWidth > innerWidth");
    assert_eq!(overflow, false, "a phone shows it without scrolling sideways");
    let buttons =
        "[...document.querySelectorAll('button, input')].filter(it => it.offsetParent).length";
    assert_eq!(browser.evaluate(buttons), 0, "without the token there is nothing to change");

    let url = token_url(&site);
    assert_eq!(url, token_url(&site), "it is the same until another one is wanted");
    browser.open(&url);
    browser.wait_for(&format!("{buttons} === 4"));
    assert_eq!(browser.evaluate("location.href"), "http://127.0.0.1:9480/");
    browser.evaluate("document.querySelectorAll('article button')[1].click()");
    eventually("the second path is off", || site.path(Side::Left, 1).state == "off");
    browser.wait_for("document.querySelectorAll('article .state.off').length === 1");
    browser.wait_for(&format!("{} === '100.0 %'", fact(0, 2)));
    browser.evaluate("document.querySelectorAll('article button')[1].click()");
    eventually("the second path is up", || site.path(Side::Left, 1).state == "up");
    browser.evaluate(
        "(() => { const it = document.querySelectorAll('article input')[0]; it.value = '3'; \
         it.dispatchEvent(new Event('change')); })()",
    );
    eventually("the first path has the weight", || site.path(Side::Left, 0).weight == 3);
    browser.wait_for(&format!("/^7[0-9].[0-9] %$/.test({})", fact(0, 2)));
    // What the command line says of such a change is said here.
    let click =
        |path: usize| format!("document.querySelectorAll('article button')[{path}].click()");
    for path in 0..2 {
        browser.evaluate(&click(path));
    }
    browser.wait_for("document.querySelectorAll('article .state.off').length === 2");
    browser.wait_for(
        "document.body.innerText.includes('connection peer has no path in service any more')",
    );
    for path in 0..2 {
        browser.evaluate(&click(path));
    }
    browser.wait_for("document.querySelectorAll('article .state.up').length === 2");
    browser.wait_for("!document.body.innerText.includes('no path in service')");
    assert_eq!(browser.complaints(), Vec::<String>::new());
    if let Some(file) = env::var_os("MPT_PICTURE") {
        browser.resize(1000, 900, false);
        // A curve is what people see.
        let samples = "document.querySelector('polyline').getAttribute('points').split(' ').length";
        let mut long = || browser.evaluate(samples).as_u64() > Some(60);
        assert!((0..5).any(|_| eventually_or(&mut long)), "no curve");
        let picture = browser.picture();
        fs::write(file, decode(&picture)).expect("a picture");
    }

    // The daemon restarts: the page finds it again, and the old token is worth nothing.
    let config = with_web(&site.config(Side::Left), "127.0.0.1:9480");
    site.end_daemon(Side::Left);
    browser.wait_for("document.body.classList.contains('stale')");
    site.start_daemon_with(Side::Left, &config);
    browser.wait_for("!document.body.classList.contains('stale')");
    browser.evaluate("document.querySelectorAll('article button')[1].click()");
    browser.wait_for("document.body.innerText.includes('the token is wrong: ask `mpt web token`')");
    browser.wait_for(&format!("{buttons} === 0"));
    drop(stream);

    let requests = browser.end();
    assert!(requests.iter().any(|url| url.ends_with("/events")), "{requests:?}");
    let elsewhere: Vec<&String> =
        requests.iter().filter(|url| !url.starts_with("http://127.0.0.1:9480/")).collect();
    assert!(elsewhere.is_empty(), "{elsewhere:?}");
}

fn reloaded() {
    let site = start();
    let file = site.config(Side::Left);
    let page = |port: u16, host: &str| {
        site.lab.left().run(|| {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            let mut stream = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
            write!(stream, "GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").ok()?;
            let mut text = String::new();
            stream.read_to_string(&mut text).ok()?;
            Some(text)
        })
    };
    let there = |port| page(port, "localhost").is_some_and(|page| page.contains("<title>mpt"));
    assert!(there(9480));
    assert!(page(9480, "attacker.example").is_some_and(|page| page.starts_with("HTTP/1.1 421 ")));
    let reload = |config: &str| {
        let daemon = site.daemon(Side::Left);
        daemon.configure(config).expect("a file");
        daemon.request(&Request::Reload {}).expect("an answer")
    };
    let without = with_web(&file, "").replace("[web]\nlisten = ''\n", "");
    for (config, here, gone) in
        [(with_web(&file, "127.0.0.1:9481"), Some(9481), 9480), (without, None, 9481)]
    {
        let Reply::Changed { changes } = reload(&config) else { panic!("no changes") };
        assert!(changes.iter().any(|change| change.starts_with("web.listen ")), "{changes:?}");
        if let Some(port) = here {
            eventually("there is a page", || there(port));
        }
        eventually("the other is gone", || !there(gone));
    }
    let reply = site.daemon(Side::Left).request(&Request::WebToken { renew: false });
    let Ok(Reply::Error { kind: ErrorKind::Unavailable, message, .. }) = reply else {
        panic!("{reply:?}")
    };
    assert!(message.contains("[web]"), "{message}");
}

/// Base64 (RFC 4648 section 4).
fn decode(text: &str) -> Vec<u8> {
    let digit = |byte: u8| {
        let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        alphabet.iter().position(|other| *other == byte).map(|place| place as u32)
    };
    let digits: Vec<u32> = text.bytes().filter_map(digit).collect();
    let four = |group: &[u32]| {
        let bits = group.iter().fold(0, |bits, digit| bits << 6 | digit) << (6 * (4 - group.len()));
        bits.to_be_bytes()[1..group.len()].to_vec()
    };
    digits.chunks(4).flat_map(four).collect()
}
