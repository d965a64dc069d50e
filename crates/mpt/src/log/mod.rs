//! The daemon's log: lines to standard error that hold up nothing and end nothing.
//!
//! Every thread may log, those that control and those that carry packets too. A line therefore only
//! goes into a bounded [`queue`], and one thread, the [`writer`], writes what is queued. A standard
//! error that nobody reads blocks that thread alone; what the queue has no room for is dropped. A
//! standard error that takes nothing, such as a file on a full disk, costs lines and nothing else.
//! Both are counted by reason, and the next line that is written says how many are missing.
//!
//! Panics are logged the same way, and what `mpt run` says when it fails: nothing else in the daemon
//! may write to standard error.

mod queue;
mod writer;

use std::fmt::Display;
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::panic::{self, PanicHookInfo};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use mpt_control::LogStatus;
use signal_hook::consts::SIGXFSZ;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer as Text;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};

use self::queue::Queue;
use self::writer::{StandardError, Writer};
use crate::config::Report;
use crate::output;

/// How long the end of the daemon waits for lines to be written. A log that is read takes them in
/// milliseconds.
const FLUSH_LIMIT: Duration = Duration::from_secs(1);

/// The stack of the thread that writes, in bytes: it formats a line at a time.
const STACK: usize = 256 << 10;

/// The log of this process. Dropping it writes what is queued, for at most [`FLUSH_LIMIT`].
#[derive(Debug)]
pub(crate) struct Log {
    queue: Arc<Queue>,
    sink: Arc<File>,
    /// Whether there is a thread that writes.
    writing: bool,
}

/// What has become of the lines, for reports.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogCounters(Arc<Queue>);

impl Log {
    /// Takes in what is logged from here on, by `tracing` and by panics. Nothing is written before
    /// [`Log::write`].
    ///
    /// # Errors
    ///
    /// `MPT_LOG` is no filter, or a descriptor or a signal handler cannot be had.
    pub(crate) fn start() -> Result<Self> {
        let filter = match std::env::var("MPT_LOG") {
            Ok(filter) => EnvFilter::try_new(&filter).with_context(|| {
                format!("MPT_LOG is `{filter}`, but should be error, warn, info, debug or trace")
            })?,
            Err(_) => EnvFilter::new("info"),
        };
        // A separate descriptor, because a writer holds the lock of the library's.
        let sink = io::stderr().as_fd().try_clone_to_owned().context("cannot open the log")?;
        // A log that has reached the limit of a file's size (`ulimit -f`) is an error of writing, and
        // not a signal that ends the process (setrlimit(2)).
        signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))
            .context("cannot handle signals")?;
        let queue = Arc::new(Queue::default());
        let lines = Arc::clone(&queue);
        tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(move || queue::Line(Arc::clone(&lines)))
            // It would go to standard error, and a panic would follow if that fails.
            .log_internal_errors(false)
            .with_ansi(output::colour_on(&io::stderr()))
            .with_target(false)
            .init();
        let lines = Arc::clone(&queue);
        panic::set_hook(Box::new(move |panic| lines.push(panicked(panic).into_bytes())));
        Ok(Self { queue, sink: Arc::new(File::from(sink)), writing: false })
    }

    /// Starts the thread that writes. To be called when the process has given up its privileges, which
    /// a thread from before would keep.
    ///
    /// # Errors
    ///
    /// There is no thread to be had.
    pub(crate) fn write(&mut self) -> io::Result<()> {
        if !self.writing {
            let mut writer = self.writer();
            let thread = thread::Builder::new().name("log".into()).stack_size(STACK);
            thread.spawn(move || writer.run())?;
            self.writing = true;
        }
        Ok(())
    }

    fn writer(&self) -> Writer<StandardError> {
        Writer::new(StandardError(Arc::clone(&self.sink)), Arc::clone(&self.queue))
    }

    /// What `mpt status` shows of it.
    pub(crate) fn counters(&self) -> LogCounters {
        LogCounters(Arc::clone(&self.queue))
    }

    /// Says why the command fails, as [`output::complain`].
    pub(crate) fn complain(&self, what: impl Display) {
        self.queue.push(format!("{}\n", output::complaint(what)).into_bytes());
    }

    /// Shows what is wrong with a configuration file, as [`output::report`].
    pub(crate) fn report(&self, report: &Report) {
        self.queue.push(report.render(output::colour_on(&io::stderr())).into_bytes());
        self.complain(report);
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        match self.write() {
            Ok(()) => self.queue.flush(FLUSH_LIMIT),
            // There is no memory for a thread, perhaps: what there is to say is said without one.
            Err(_) => self.writer().write_queued(),
        }
    }
}

impl LogCounters {
    /// The counters, as they are shown.
    pub(crate) fn status(&self) -> LogStatus {
        self.0.status()
    }
}

/// A line of our own, as `tracing` would write it without colours.
fn line(level: &str, text: impl Display) -> String {
    let mut line = String::new();
    // It fails only where the clock or the memory do; then the line has no time.
    let _ = SystemTime.format_time(&mut Text::new(&mut line));
    format!("{line} {level:>5} {text}\n")
}

fn panicked(panic: &PanicHookInfo<'_>) -> String {
    let payload = panic.payload();
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let thread = thread::current();
    let place = panic.location().map(|place| format!(" at {place}")).unwrap_or_default();
    // Captured only if `RUST_BACKTRACE` asks for it.
    let backtrace = match std::backtrace::Backtrace::capture() {
        backtrace if backtrace.status() == std::backtrace::BacktraceStatus::Captured => {
            format!("\n{backtrace}")
        }
        _ => String::new(),
    };
    line(
        "ERROR",
        format_args!(
            "thread `{}` panicked{place}: {}{backtrace}",
            thread.name().unwrap_or("without a name"),
            text.unwrap_or("no message"),
        ),
    )
}
