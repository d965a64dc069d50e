//! Asking the daemon, again and again, over its leave-taking and return.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use mpt_control::{Client, Reply, Request, Status};

use super::model::Lost;
use super::terminal::{Farewell, Word};

/// Asks one daemon for its status many times.
#[derive(Debug)]
pub(super) struct Sampler {
    socket: PathBuf,
    client: Option<Client>,
    /// Since when there is no answer.
    lost: Option<Instant>,
}

impl Sampler {
    /// Will ask the daemon that listens at `socket`.
    pub(super) fn new(socket: &Path) -> Self {
        Self { socket: socket.to_owned(), client: None, lost: None }
    }

    /// The status at this moment.
    ///
    /// A connection that stands is used again. If it broke, which a daemon that was restarted or
    /// that does not wait for the silent is reason enough for, there is one attempt with a fresh one.
    ///
    /// # Errors
    /// There is no daemon, it does not answer, or it says why it will not.
    pub(super) fn sample(&mut self) -> Result<Status> {
        if let Some(mut client) = self.client.take()
            && let Ok(status) = ask(&mut client)
        {
            self.client = Some(client);
            return Ok(status);
        }
        let mut client = Client::connect(&self.socket)?;
        let status = ask(&mut client)?;
        self.client = Some(client);
        Ok(status)
    }

    /// Like [`Sampler::sample`], an error being something to live with.
    pub(super) fn try_sample(&mut self) -> std::result::Result<Status, Lost> {
        match self.sample() {
            Ok(status) => {
                self.lost = None;
                Ok(status)
            }
            Err(error) => {
                let since = *self.lost.get_or_insert_with(Instant::now);
                let seconds = since.elapsed().as_secs_f64();
                Err(Lost { reason: format!("{error:#}"), seconds })
            }
        }
    }

    /// Requests once per `interval`, the first time after one, until the listener is gone.
    pub(super) fn run(mut self, interval: Duration, listener: &Farewell) {
        let mut rhythm = Rhythm::new(interval);
        loop {
            std::thread::sleep(rhythm.wait());
            let sample = self.try_sample().map(Box::new);
            if listener.0.send(Word::Sampled(sample)).is_err() {
                return;
            }
        }
    }
}

/// The status from a daemon that is connected to.
pub(crate) fn ask(client: &mut Client) -> Result<Status> {
    let reply = client.request(&Request::Status {})?;
    let Reply::Status { status } = reply else { bail!(reply.into_refusal()) };
    Ok(*status)
}

/// Equal intervals, however long what happens in them takes.
#[derive(Debug)]
pub(super) struct Rhythm {
    interval: Duration,
    next: Instant,
}

impl Rhythm {
    /// The first beat is one interval from here.
    pub(super) fn new(interval: Duration) -> Self {
        Self { interval, next: Instant::now() + interval }
    }

    /// How long to wait for the next beat. Beats that were missed are not made up for.
    pub(super) fn wait(&mut self) -> Duration {
        let now = Instant::now();
        let wait = self.next.saturating_duration_since(now);
        self.next = self.next.max(now) + self.interval;
        wait
    }
}
