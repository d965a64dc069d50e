//! The site that the settings want, if they want one.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use mpt_io::poll::{Event, Poll};

use super::Backend;
use super::site::Site;
use crate::config::{Listen, Settings};

/// One site, or none.
pub(crate) struct Web {
    /// The next site's first token. None is used twice, so that no event of one reaches another.
    token: u64,
    serving: Option<(Listen, Site)>,
    /// Where listening failed, so that it is reported once.
    refused: Option<Listen>,
}

/// Tokens for one site and its clients.
const TOKENS: u64 = 1 << 32;

impl Web {
    /// None yet; tokens from `token` on are theirs.
    pub(crate) fn new(token: u64) -> Self {
        Self { token, serving: None, refused: None }
    }

    /// Starts or stops serving, as the settings have it.
    ///
    /// # Errors
    ///
    /// If it cannot listen there. It is not tried again before the settings name another place.
    pub(crate) fn reconcile(&mut self, settings: &Settings, poll: &Poll) -> Result<()> {
        let wanted = settings.web.listen.as_ref();
        let current = self.serving.as_ref().map(|(listen, _)| listen);
        if wanted == current || (wanted.is_some() && wanted == self.refused.as_ref()) {
            return Ok(());
        }
        self.serving = None;
        self.refused = wanted.cloned();
        if let Some(listen) = wanted {
            let site = Site::open(listen, poll, self.token)
                .with_context(|| format!("cannot serve the web page at {listen}"))?;
            self.token += TOKENS;
            self.serving = Some((listen.clone(), site));
            self.refused = None;
            tracing::info!(%listen, "serving the web page");
        }
        Ok(())
    }

    /// Takes an event of `poll`; those of others are left alone.
    pub(crate) fn handle(
        &mut self,
        event: Event,
        poll: &Poll,
        now: Instant,
        backend: &mut dyn Backend,
    ) {
        if let Some((_, site)) = &mut self.serving {
            site.handle(event, poll, now, backend);
        }
    }

    /// Says what has changed to those who watch, and closes connections that exceed a time limit.
    pub(crate) fn handle_timeout(&mut self, poll: &Poll, now: Instant, backend: &mut dyn Backend) {
        if let Some((_, site)) = &mut self.serving {
            site.handle_timeout(poll, now, backend);
        }
    }

    /// How long nobody has to be told anything; none if nobody watches.
    pub(crate) fn wait(&self, now: Instant) -> Option<Duration> {
        self.serving.as_ref().and_then(|(_, site)| site.wait(now))
    }
}
