//! The thread that writes the log.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::sync::Arc;

use mpt_io::poll::{Events, Interest, Poll};

use super::line;
use super::queue::{Queue, Queued};

/// Where lines are written to.
pub(super) trait Sink: Write {
    /// Waits until there may be room again, after [`ErrorKind::WouldBlock`].
    ///
    /// # Errors
    ///
    /// It cannot be waited for.
    fn await_room(&mut self) -> io::Result<()>;
}

/// Writes the lines of a queue.
pub(super) struct Writer<S> {
    sink: S,
    queue: Arc<Queue>,
    missing: Missing,
    /// Whether the last write ended within a line.
    within_line: bool,
}

/// The lines that are missing since the last that was written.
#[derive(Debug, Default)]
struct Missing {
    dropped: u64,
    failed: u64,
    /// Why the last of `failed` was not written.
    error: String,
}

impl<S: Sink> Writer<S> {
    /// Nothing written yet.
    pub(super) fn new(sink: S, queue: Arc<Queue>) -> Self {
        Self { sink, queue, missing: Missing::default(), within_line: false }
    }

    /// Writes all lines, for the life of the process.
    pub(super) fn run(&mut self) -> ! {
        loop {
            let line = self.queue.pop();
            self.write_line(line);
        }
    }

    /// Writes the lines that are queued.
    pub(super) fn write_queued(&mut self) {
        while let Some(line) = self.queue.try_pop() {
            self.write_line(line);
        }
    }

    /// Writes a line, and before it what is missing.
    fn write_line(&mut self, Queued { text, dropped }: Queued) {
        self.missing.dropped += dropped;
        let result = self.write_missing().and_then(|()| self.write(&text));
        if let Err(error) = &result {
            self.missing.failed += 1;
            self.missing.error = error.to_string();
        }
        self.queue.on_written(result.as_ref().map(|_| ()));
    }

    fn write_missing(&mut self) -> io::Result<()> {
        let Missing { dropped, failed, error } = &self.missing;
        let reasons = [
            (*dropped > 0).then(|| format!("{dropped} because the log was not read in time")),
            (*failed > 0).then(|| format!("{failed} could not be written: {error}")),
        ];
        let reasons: Vec<_> = reasons.into_iter().flatten().collect();
        if !reasons.is_empty() {
            let (number, reasons) = (dropped + failed, reasons.join(", "));
            let text = format_args!("{number} log lines are missing here: {reasons}");
            self.write(line("WARN", text).as_bytes())?;
            self.missing = Missing::default();
        }
        Ok(())
    }

    fn write(&mut self, text: &[u8]) -> io::Result<()> {
        let ended = [b"\n", text].concat();
        let mut rest = if self.within_line { &ended[..] } else { text };
        while !rest.is_empty() {
            match self.sink.write(rest) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => {
                    rest = &rest[written..];
                    self.within_line = !rest.is_empty();
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.sink.await_room()?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Standard error by a descriptor of its own.
pub(super) struct StandardError(pub(super) Arc<File>);

impl Write for StandardError {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self.0).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink for StandardError {
    /// Somebody who shares it has made it non-blocking, as shells and terminals do.
    fn await_room(&mut self) -> io::Result<()> {
        let poll = Poll::new()?;
        poll.add(&*self.0, 0, Interest::WRITABLE)?;
        poll.wait(&mut Events::with_capacity(1), None).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use mpt_control::LogStatus;

    use super::*;

    /// Takes so many bytes and then fails; a few at a time.
    struct Disk {
        content: Vec<u8>,
        room: usize,
        waited: usize,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.room == 0 {
                return Err(ErrorKind::StorageFull.into());
            }
            // Every other call finds it busy.
            if self.waited.is_multiple_of(2) {
                self.waited += 1;
                return Err(ErrorKind::WouldBlock.into());
            }
            self.waited += 1;
            let taken = bytes.len().min(self.room).min(7);
            self.content.extend(&bytes[..taken]);
            self.room -= taken;
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Sink for Disk {
        fn await_room(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn writer(room: usize) -> Writer<Disk> {
        let disk = Disk { content: Vec::new(), room, waited: 0 };
        Writer::new(disk, Arc::default())
    }

    fn log(writer: &mut Writer<Disk>, text: &str) {
        writer.queue.push(text.into());
        writer.write_queued();
    }

    fn lines(writer: &Writer<Disk>) -> Vec<String> {
        String::from_utf8_lossy(&writer.sink.content).lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_line_is_written_in_pieces_as_there_is_room() {
        let mut writer = writer(1000);
        log(&mut writer, "a line that is longer than seven bytes\n");
        log(&mut writer, "another\n");
        assert_eq!(lines(&writer), ["a line that is longer than seven bytes", "another"]);
        assert_eq!(writer.queue.status(), LogStatus::default());
    }

    #[test]
    fn the_next_line_that_can_be_written_says_how_many_could_not() {
        let mut writer = writer(10);
        for text in ["first\n", "second\n", "third\n", "fourth\n"] {
            log(&mut writer, text);
        }
        let status = writer.queue.status();
        assert_eq!(status.lost, [("write_failed".to_owned(), 3)].into());
        let error = io::Error::from(ErrorKind::StorageFull).to_string();
        assert_eq!(status.error.as_deref(), Some(&error[..]));

        writer.sink.room = 1000;
        log(&mut writer, "fifth\n");
        log(&mut writer, "sixth\n");
        let lines = lines(&writer);
        // The disk was full in the middle of the second line.
        assert_eq!((&lines[0][..], &lines[1][..]), ("first", "seco"));
        let missing =
            format!(" WARN 3 log lines are missing here: 3 could not be written: {error}");
        assert!(lines[2].ends_with(&missing), "{}", lines[2]);
        assert_eq!(lines[3..], ["fifth", "sixth"]);
        assert_eq!(writer.queue.status().lost["write_failed"], 3);
    }

    #[test]
    fn the_next_line_says_how_many_were_dropped() {
        let mut writer = writer(usize::MAX);
        let long = format!("{}\n", "x".repeat(300 << 10));
        for _ in 0..3 {
            writer.queue.push(long.clone().into_bytes());
        }
        writer.write_queued();
        log(&mut writer, "next\n");
        let lines = lines(&writer);
        assert!(lines[1].contains(" 2 log lines are missing here: 2 because"), "{}", lines[1]);
        assert_eq!(lines[2], "next");
    }
}
