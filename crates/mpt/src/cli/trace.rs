//! `mpt trace`
//!
//! The daemon traces as long as somebody asks; this command asks and writes. So a disk that is full ends this command
//! and nothing else.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use mpt_control::{Client, ErrorKind, Reply, Request, TraceLine, TraceMark, Traced};
use mpt_io::poll::{Events, Interest, Poll};

use super::signals::Signals;
use crate::exit::Exit;
use crate::output;

/// Between two questions: a small part of what the daemon keeps.
const INTERVAL: Duration = Duration::from_millis(250);

/// Left for the last line, in bytes.
const LAST_LINE: u64 = 200;

/// What is traced, and where it goes.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// The connection; all if it is left out
    #[arg(value_name = "CONNECTION")]
    connection: Option<String>,
    /// Write to this file instead of standard output; one that exists is replaced
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// End after so many seconds; without it at INT or TERM
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    seconds: Option<u64>,
    /// End before the file is larger than so many MB
    #[arg(long, value_name = "MB", default_value = "100", value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
}

impl Options {
    /// Traces until the time or the room is up, a signal comes, or the daemon goes.
    pub(super) fn run(&self, socket: &Path) -> Result<Exit> {
        let signals = Signals::register().context("cannot wait for signals")?;
        let mut client = Client::connect(socket)?;
        let Reply::Version { version } = client.request(&Request::Version {})? else {
            bail!("the daemon did not tell its version");
        };
        let (mut next, mut lines) = match self.ask(&mut client, BTreeMap::new())? {
            Ok(first) => first,
            Err(message) => {
                output::complain(message);
                return Ok(Exit::Negative);
            }
        };
        let mut writer = Writer::new(self.open()?, self.limit * 1_000_000);
        writer.begin(version, &next);
        let end = self.seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
        let poll = Poll::new().context("cannot wait for signals")?;
        poll.add(&signals.end, 0, Interest::READABLE).context("cannot wait for signals")?;
        let mut events = Events::with_capacity(1);
        let reason = loop {
            for line in &lines {
                writer.line(line);
            }
            writer.flush();
            if writer.is_over() {
                break "limit";
            }
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                break "time";
            }
            let wait = INTERVAL.min(left.unwrap_or(INTERVAL));
            poll.wait(&mut events, Some(wait)).context("cannot wait for signals")?;
            let ended = signals.end.came();
            match self.ask(&mut client, next.clone()) {
                Ok(Ok((marks, more))) => (next, lines) = (marks, more),
                // The connection was removed, or the daemon has ended.
                Ok(Err(_)) | Err(_) => break "daemon",
            }
            if ended {
                lines.iter().for_each(|line| writer.line(line));
                break "signal";
            }
        };
        writer.end(reason).map_or(Ok(Exit::Done), |error| match (&self.output, error.kind()) {
            (None, io::ErrorKind::BrokenPipe) => Ok(Exit::Done),
            (None, _) => Err(error).context("cannot write to standard output; the trace has ended"),
            (Some(file), _) => Err(error).with_context(|| {
                format!("cannot write {}; the trace has ended, the daemon goes on", file.display())
            }),
        })
    }

    fn open(&self) -> Result<Box<dyn Write>> {
        Ok(match &self.output {
            None => Box::new(io::stdout()),
            Some(file) => {
                let created = File::create(file);
                Box::new(created.with_context(|| format!("cannot create {}", file.display()))?)
            }
        })
    }

    /// What was traced since these marks. The inner error is a refusal because of what was asked for.
    #[allow(clippy::type_complexity, reason = "marks and lines, or why not")]
    fn ask(
        &self,
        client: &mut Client,
        after: BTreeMap<String, TraceMark>,
    ) -> Result<Result<(BTreeMap<String, TraceMark>, Vec<TraceLine>), String>> {
        let request = Request::Trace { connection: self.connection.clone(), after };
        let reply = client.request(&request)?;
        let Reply::Trace { lines, next } = reply else {
            let refusal = reply.into_refusal();
            if refusal.kind != ErrorKind::NoSuchConnection {
                bail!(refusal);
            }
            return Ok(Err(refusal.message));
        };
        Ok(Ok((next, lines)))
    }
}

/// Writes lines until there is no more room for them.
struct Writer<W: Write> {
    to: BufWriter<W>,
    limit: u64,
    written: u64,
    /// A line had no room.
    is_full: bool,
    missed: u64,
    /// The time of the last line.
    at_seconds: f64,
    error: Option<io::Error>,
}

impl<W: Write> Writer<W> {
    fn new(to: W, limit: u64) -> Self {
        let to = BufWriter::new(to);
        Self { to, limit, written: 0, is_full: false, missed: 0, at_seconds: 0.0, error: None }
    }

    fn begin(&mut self, version: String, marks: &BTreeMap<String, TraceMark>) {
        let at_micros = marks.values().map(|mark| mark.at_micros).max().unwrap_or(0);
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let what = Traced::Begin { version, unix_seconds: since.as_secs_f64() };
        let at_seconds = at_micros as f64 / 1e6;
        self.line(&TraceLine { at_seconds, what, ..TraceLine::default() });
    }

    /// A line, if there is room for it and for the last one.
    fn line(&mut self, line: &TraceLine) {
        self.write(line, self.limit.saturating_sub(LAST_LINE));
        self.at_seconds = self.at_seconds.max(line.at_seconds);
        if let Traced::Missed { lines } = line.what {
            self.missed += lines;
        }
    }

    fn write(&mut self, line: &TraceLine, limit: u64) {
        if self.is_over() {
            return;
        }
        let text = serde_json::to_string(line).map_err(io::Error::from);
        let len = text.as_ref().map_or(0, |text| text.len() as u64 + 1);
        if self.written + len > limit {
            self.is_full = true;
            return;
        }
        match text.and_then(|text| writeln!(self.to, "{text}")) {
            Ok(()) => self.written += len,
            Err(error) => self.error = Some(error),
        }
    }

    fn flush(&mut self) {
        if self.error.is_none() {
            self.error = self.to.flush().err();
        }
    }

    /// Whether nothing more can be written.
    fn is_over(&self) -> bool {
        self.is_full || self.error.is_some()
    }

    /// The last line. Returns what went wrong, if anything did.
    fn end(mut self, reason: &str) -> Option<io::Error> {
        let what = Traced::End { reason: reason.to_owned(), missed: self.missed };
        self.is_full = false;
        let at_seconds = self.at_seconds;
        self.write(&TraceLine { at_seconds, what, ..TraceLine::default() }, self.limit);
        self.flush();
        // What could not be written is not tried again.
        let (_, _) = self.to.into_parts();
        self.error
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;

    /// A file in memory with room for so many bytes.
    #[derive(Clone, Default)]
    struct Disk {
        bytes: Rc<RefCell<Vec<u8>>>,
        room: Option<usize>,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut held = self.bytes.borrow_mut();
            if self.room.is_some_and(|room| held.len() + bytes.len() > room) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            held.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn line(at_seconds: f64) -> TraceLine {
        TraceLine { at_seconds, what: Traced::Missed { lines: 2 }, ..TraceLine::default() }
    }

    fn read(disk: &Disk) -> Vec<TraceLine> {
        let text = String::from_utf8(disk.bytes.borrow().clone()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn the_limit_holds_and_the_last_line_says_so() {
        let disk = Disk::default();
        let mut writer = Writer::new(disk.clone(), 2000);
        writer.begin("1.2.3".into(), &BTreeMap::new());
        for number in 0..1000 {
            writer.line(&line(f64::from(number)));
        }
        assert!(writer.is_over());
        assert!(writer.end("limit").is_none());
        let lines = read(&disk);
        let len = disk.bytes.borrow().len();
        assert!((1500..=2000).contains(&len), "{len}");
        assert!(matches!(&lines[0].what, Traced::Begin { version, .. } if version == "1.2.3"));
        let last = lines.last().unwrap();
        assert!(matches!(&last.what, Traced::End { reason, .. } if reason == "limit"), "{last:?}");
    }

    #[test]
    fn a_disk_that_is_full_is_an_error_and_ends_it() {
        let disk = Disk { room: Some(100), ..Disk::default() };
        let mut writer = Writer::new(disk.clone(), 1_000_000);
        (0..10).for_each(|number| writer.line(&line(f64::from(number))));
        assert!(!writer.is_over(), "it is written at once");
        writer.flush();
        assert!(writer.is_over());
        let error = writer.end("limit").unwrap();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
