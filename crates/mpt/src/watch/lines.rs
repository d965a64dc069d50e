//! The watch for programs: one JSON object per line and interval, until the reader goes.

use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use mpt_io::poll::{Events, Interest, Poll};

use super::model::Lost;
use super::sampler::{Rhythm, Sampler};
use crate::exit::Exit;
use crate::output;

/// Prints the status of the daemon at `socket` as a line of JSON at once and then every `interval`.
///
/// A daemon that goes away later is complained about once and asked again until it is back; there
/// are no lines meanwhile. That the reader goes is the end, and it is noticed while waiting too.
///
/// # Errors
/// There is no daemon to begin with, or standard output cannot be written.
pub(crate) fn lines(socket: &Path, interval: Duration) -> Result<Exit> {
    let mut sampler = Sampler::new(socket);
    let mut sample: Result<_, Lost> = Ok(sampler.sample()?);
    let mut rhythm = Rhythm::new(interval);
    let reader = Reader::new().context("cannot wait for standard output")?;
    let mut complained = false;
    loop {
        match &sample {
            Ok(status) => {
                complained = false;
                let text = serde_json::to_string(status).context("cannot write the status")?;
                match print(&text) {
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break,
                    printed => printed.context("cannot write to standard output")?,
                }
            }
            Err(_) if complained => {}
            Err(lost) => {
                output::complain(format_args!("{}: retrying", lost.reason));
                complained = true;
            }
        }
        if reader.goes_within(rhythm.wait()).context("cannot wait for standard output")? {
            break;
        }
        sample = sampler.try_sample();
    }
    Ok(Exit::Done)
}

fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{text}")?;
    stdout.flush()
}

/// The reader of standard output.
struct Reader(Poll);

impl Reader {
    fn new() -> io::Result<Self> {
        let poll = Poll::new()?;
        // A file cannot be waited for, and is never closed by a reader. The other end of a pipe is
        // never readable, so its only event is that it is closed.
        let _ = poll.add(io::stdout(), 0, Interest { readable: false, writable: false });
        Ok(Self(poll))
    }

    /// Waits for `time`, or less if the reader goes in it.
    fn goes_within(&self, time: Duration) -> io::Result<bool> {
        let end = Instant::now() + time;
        let mut events = Events::with_capacity(1);
        loop {
            let left = end.saturating_duration_since(Instant::now());
            self.0.wait(&mut events, Some(left))?;
            if events.iter().any(|event| event.closed) {
                return Ok(true);
            }
            if left.is_zero() {
                return Ok(false);
            }
        }
    }
}
