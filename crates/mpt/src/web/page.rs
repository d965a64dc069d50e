//! The page: one file, and what its reader's browser is told about it.

use std::fmt::Write as _;
use std::io;

use crate::http::Response;
use crate::random;

const DOCUMENT: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");

/// The page, with rules that let the browser run what is in it and nothing else, and talk to this site only.
///
/// # Errors
/// There are no random numbers.
pub(super) fn page() -> io::Result<Response> {
    let mut nonce = String::new();
    for byte in random::bytes::<16>()? {
        // Writing to a string cannot fail.
        let _ = write!(nonce, "{byte:02x}");
    }
    let text = DOCUMENT
        .replace("{{nonce}}", &nonce)
        .replace("{{style}}", STYLE)
        .replace("{{script}}", SCRIPT);
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; \
         img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'"
    );
    Ok(Response::found("text/html; charset=utf-8", text)
        .with("Content-Security-Policy", &policy)
        .with("Cross-Origin-Opener-Policy", "same-origin")
        .with("Referrer-Policy", "no-referrer"))
}
