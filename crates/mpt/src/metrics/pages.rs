//! The exporter that the settings want, if they want one.

use std::net::SocketAddr;
use std::time::Instant;

use anyhow::{Context as _, Result};
use mpt_io::poll::{Event, Poll};

use super::Format;
use super::exporter::Exporter;
use crate::config::Settings;

/// One exporter, or none.
pub(crate) struct Pages {
    /// The next exporter's first token. None is used twice, so that no event of one reaches another.
    token: u64,
    serving: Option<(SocketAddr, Exporter)>,
    /// Where listening failed, so that it is reported once.
    refused: Option<SocketAddr>,
}

/// Tokens for one exporter and its clients.
const TOKENS: u64 = 1 << 32;

impl Pages {
    /// None yet; tokens from `token` on are theirs.
    pub(crate) fn new(token: u64) -> Self {
        Self { token, serving: None, refused: None }
    }

    /// Starts or stops serving, as the settings have it.
    ///
    /// # Errors
    ///
    /// If the address cannot be had. It is not tried again before the settings name another.
    pub(crate) fn reconcile(&mut self, settings: &Settings, poll: &Poll) -> Result<()> {
        let wanted = settings.metrics.listen;
        let current = self.serving.as_ref().map(|(listen, _)| *listen);
        if wanted == current || (wanted.is_some() && wanted == self.refused) {
            return Ok(());
        }
        self.serving = None;
        self.refused = wanted;
        if let Some(listen) = wanted {
            let exporter = Exporter::open(listen, poll, self.token)
                .with_context(|| format!("cannot serve metrics at {listen}"))?;
            self.token += TOKENS;
            self.serving = Some((listen, exporter));
            self.refused = None;
            tracing::info!(%listen, "serving metrics");
        }
        Ok(())
    }

    /// Takes an event of `poll`; those of others are left alone.
    pub(crate) fn handle(
        &mut self,
        event: Event,
        poll: &Poll,
        now: Instant,
        page: &mut dyn FnMut(Format) -> String,
    ) {
        if let Some((_, exporter)) = &mut self.serving {
            exporter.handle(event, poll, now, page);
        }
    }

    /// Closes connections that exceed a time limit.
    pub(crate) fn handle_timeout(&mut self, poll: &Poll, now: Instant) {
        if let Some((_, exporter)) = &mut self.serving {
            exporter.handle_timeout(poll, now);
        }
    }
}
