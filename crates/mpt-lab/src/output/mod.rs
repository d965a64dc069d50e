//! Output for people: a live view during a run, and a table at its end.
//!
//! Whether there is a terminal, and whether it has colours, is decided in one place, [`Terminal`];
//! everything else asks it. Frames and tables are made as text by pure functions, so that tests can
//! read them.

pub mod live;
pub mod report;
pub mod summary;
pub(crate) mod table;

use std::env;
use std::io::IsTerminal;

/// What a stream of output leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// A person watches: lines may be drawn again.
    pub interactive: bool,
    /// Colours are shown.
    pub colour: bool,
}

impl Terminal {
    /// Looks at a stream, at `TERM`, and at `NO_COLOR` (no-color.org).
    pub fn of(stream: &impl IsTerminal) -> Self {
        let dumb = env::var_os("TERM").is_none_or(|term| term == "dumb");
        let refused = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let interactive = stream.is_terminal() && !dumb;
        Self { interactive, colour: interactive && !refused }
    }

    /// No terminal: plain lines, one after the other.
    pub const PLAIN: Self = Self { interactive: false, colour: false };

    /// `text` in a style, if there are colours.
    fn paint(self, style: Style, text: &str) -> String {
        if self.colour && !text.is_empty() {
            format!("\x1b[{}m{text}\x1b[0m", style as u8)
        } else {
            text.to_owned()
        }
    }
}

/// A way to stand out, as the parameter of the control sequence SGR (ECMA-48 section 8.3.117).
#[derive(Clone, Copy, Debug)]
enum Style {
    Bold = 1,
    Dim = 2,
    Red = 31,
    Green = 32,
    Yellow = 33,
    Cyan = 36,
}
