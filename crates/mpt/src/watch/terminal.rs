//! The terminal: taken over, and given back as it was.
//!
//! The terminal is always restored at the end of the watch: by dropping [`Terminal`], by a panic
//! hook before the message of a panic is written, and the signals that would end the process are
//! handled as events.

use std::io::{self, Read as _};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::Sender;
use std::thread;

use mpt_control::Status;
use ratatui::crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use ratatui::{DefaultTerminal, Frame};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::pipe;

use super::model::Lost;

/// The events for the drawing thread.
#[derive(Debug)]
pub(super) enum Word {
    /// A key was pressed.
    Key(KeyEvent),
    /// The terminal has another size.
    Resized,
    /// The daemon was asked.
    Sampled(Result<Box<Status>, Lost>),
    /// By a signal, or because input has failed.
    End,
}

/// A sender whose end is the end of the watch, so that no thread falls silent unnoticed.
#[derive(Debug)]
pub(super) struct Farewell(pub(super) Sender<Word>);

impl Drop for Farewell {
    fn drop(&mut self) {
        // Without a listener the watch has ended already.
        let _ = self.0.send(Word::End);
    }
}

/// The terminal while it is ours.
#[derive(Debug)]
pub(super) struct Terminal(DefaultTerminal);

impl Terminal {
    /// Takes over the terminal. Keys, changes of size and signals are sent to `listener`.
    ///
    /// # Errors
    /// The kernel's error, or what the terminal does not do.
    pub(super) fn open(listener: &Sender<Word>) -> io::Result<Self> {
        let (mut read, write) = UnixStream::pair()?;
        for signal in [SIGHUP, SIGINT, SIGTERM] {
            pipe::register(signal, write.try_clone()?)?;
        }
        let ended = Farewell(listener.clone());
        thread::spawn(move || {
            let _ended = ended;
            // A byte is a signal; an error or the end is as good.
            let _ = read.read(&mut [0]);
        });
        // Sets the panic hook as well.
        let terminal = Self(ratatui::try_init()?);
        let listener = Farewell(listener.clone());
        thread::spawn(move || while attend(&listener) {});
        Ok(terminal)
    }

    /// Draws a picture.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(super) fn draw(&mut self, picture: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.0.draw(picture).map(drop)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Where this fails there is no terminal left to put back.
        let _ = ratatui::try_restore();
    }
}

/// Waits for the next key or size and passes it on; `false` if there will be none.
fn attend(listener: &Farewell) -> bool {
    let word = match event::read() {
        Ok(Event::Key(key)) if key.kind != KeyEventKind::Release => Word::Key(key),
        Ok(Event::Resize(..)) => Word::Resized,
        Ok(
            Event::Key(_)
            | Event::FocusGained
            | Event::FocusLost
            | Event::Mouse(_)
            | Event::Paste(_),
        ) => {
            return true;
        }
        Err(_) => return false,
    };
    listener.0.send(word).is_ok()
}
