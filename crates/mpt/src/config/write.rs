//! Settings as a configuration file: what would have to be written to get them.
//!
//! Reading the result gives the same settings. What is as it would be anyway is left out, so that
//! it looks as if a person had written it. What no file can say is lost.

use super::schema::Tabled as _;
use super::writer::Writer;
use super::{Control, Daemon, Metrics, Settings, Tunnel, Web};

/// The settings as the text of a file.
pub(crate) fn write(settings: &Settings) -> String {
    let Settings { control, daemon, metrics, web, tunnels } = settings;
    let mut out = Writer::default();
    out.table(&Control::KEYS, |out| control.write(out, ()));
    out.table(&Daemon::KEYS, |out| daemon.write(out, ()));
    out.table(&Metrics::KEYS, |out| metrics.write(out, ()));
    out.table(&Web::KEYS, |out| web.write(out, ()));
    out.tables(&Tunnel::KEYS, tunnels, |tunnel, out| tunnel.write(out, ()));
    out.into_text()
}
