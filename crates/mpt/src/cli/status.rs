//! `mpt status`

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use mpt_control::Client;

use crate::exit::Exit;
use crate::output::Look;
use crate::{output, watch};

/// Asks the daemon at `socket` for its status and prints it; with an interval to watch it by, again
/// and again.
pub(super) fn status(
    watched: Option<Duration>,
    json: bool,
    verbose: bool,
    socket: &Path,
) -> Result<Exit> {
    match watched {
        Some(interval) if json => return watch::lines(socket, interval),
        Some(interval) => return watch::watch(socket, interval, &mut || false),
        None => {}
    }
    let status = watch::ask(&mut Client::connect(socket)?)?;
    if json {
        let text = serde_json::to_string_pretty(&status).context("cannot write the status")?;
        output::print(&(text + "\n"))
    } else {
        let look = Look { colour: output::colour_on_stdout(), verbose };
        output::print(&output::status(&status, look))
    }
}

/// The interval of a watch from the command line. The daemon is not to be kept busy by being asked,
/// and a day without an answer is no watch.
pub(super) fn interval(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    if !(0.1..=3600.0).contains(&seconds) {
        return Err("not within 0.1 to 3600 seconds".to_owned());
    }
    Ok(Duration::from_secs_f64(seconds))
}
