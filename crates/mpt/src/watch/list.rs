//! The list of what there is, in the order of the configuration, as far as it is asked for.

use mpt_control::{ConnectionState, PathState, QuotaState, TunnelStatus};

use super::model::{ConnectionRates, Model, PathRates, TunnelRates};

/// One row of the list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row<'m> {
    /// The tunnel that it belongs to.
    pub(super) tunnel: &'m TunnelStatus,
    /// What is on it.
    pub(super) what: What<'m>,
}

/// What is on a row.
#[derive(Clone, Copy, Debug)]
pub(super) enum What<'m> {
    /// A tunnel.
    Tunnel(&'m TunnelRates),
    /// A connection.
    Connection(&'m ConnectionState, &'m ConnectionRates),
    /// How a connection brings its packets into order, and what it drops.
    Order(&'m ConnectionState, &'m ConnectionRates),
    /// A path of a connection.
    Path(&'m ConnectionState, &'m PathState, &'m PathRates),
    /// Why a path is not up.
    Cause(&'m PathState),
    /// How much of its quota a path has used.
    Quota(&'m PathState, &'m QuotaState),
}

/// Which row is meant, by name: places in the list change when something is added or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) tunnel: String,
    /// None: the tunnel itself.
    pub(super) connection: Option<String>,
    /// None: the connection itself.
    pub(super) path: Option<String>,
}

impl Row<'_> {
    /// Whether it can be selected.
    pub(super) fn is_selectable(&self) -> bool {
        match self.what {
            What::Tunnel(_) | What::Connection(..) | What::Path(..) => true,
            What::Order(..) | What::Cause(_) | What::Quota(..) => false,
        }
    }

    /// Where it is, if it can be selected.
    pub(super) fn place(&self) -> Option<Place> {
        let (connection, path) = match self.what {
            What::Tunnel(_) => (None, None),
            What::Connection(connection, _) => (Some(connection), None),
            What::Path(connection, path, _) => (Some(connection), Some(path)),
            What::Order(..) | What::Cause(_) | What::Quota(..) => return None,
        };
        Some(Place {
            tunnel: self.tunnel.name.clone(),
            connection: connection.map(|connection| connection.name.clone()),
            path: path.map(|path| path.name.clone()),
        })
    }

    /// Whether `place` means this row.
    pub(super) fn is_at(&self, place: &Place) -> bool {
        let names = (place.connection.as_ref(), place.path.as_ref());
        self.tunnel.name == place.tunnel
            && match self.what {
                What::Tunnel(_) => names == (None, None),
                What::Connection(connection, _) => names == (Some(&connection.name), None),
                What::Path(connection, path, _) => {
                    names == (Some(&connection.name), Some(&path.name))
                }
                What::Order(..) | What::Cause(_) | What::Quota(..) => false,
            }
    }
}

/// The rows that contain `filter`, whatever their case. What belongs to a connection that does is
/// there as well, and so are the tunnel and the connection that a path belongs to. Where `brief`,
/// connections are one row and their paths are left out.
pub(super) fn rows<'m>(model: &'m Model, filter: &str, brief: bool) -> Vec<Row<'m>> {
    let filter = Filter(filter.to_lowercase());
    let mut rows = Vec::new();
    for (tunnel, rates) in model.tunnels() {
        let all = filter.0.is_empty() || filter.fits([tunnel.name.as_str()]);
        let start = rows.len();
        rows.push(Row { tunnel, what: What::Tunnel(rates) });
        for (connection, rates) in tunnel.connections.iter().zip(&rates.connections) {
            let all = all || filter.fits_connection(connection);
            let paths = connection.paths.iter().zip(&rates.paths);
            let paths: Vec<_> = paths.filter(|(path, _)| all || filter.fits_path(path)).collect();
            if !all && paths.is_empty() {
                continue;
            }
            rows.push(Row { tunnel, what: What::Connection(connection, rates) });
            if brief {
                continue;
            }
            rows.push(Row { tunnel, what: What::Order(connection, rates) });
            for (path, rates) in paths {
                rows.push(Row { tunnel, what: What::Path(connection, path, rates) });
                if path.state != "up" && reason(path).is_some() {
                    rows.push(Row { tunnel, what: What::Cause(path) });
                }
                if let Some(quota) = &path.quota {
                    rows.push(Row { tunnel, what: What::Quota(path, quota) });
                }
            }
        }
        if !all && rows.len() == start + 1 {
            rows.pop();
        }
    }
    rows
}

/// The state of a path in a word.
pub(super) fn word(path: &PathState) -> &str {
    if path.state == "up" && path.standby {
        return "standby";
    }
    path.state.split(':').next().unwrap_or_default()
}

/// Why a path is in its state, as far as the word for it does not say.
pub(super) fn reason(path: &PathState) -> Option<String> {
    let details = path.state.split_once(':').map(|(_, details)| details.trim().to_owned());
    let parts: Vec<String> = [details, path.cause.clone()].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Lower-case text to be found.
struct Filter(String);

impl Filter {
    fn fits<'t>(&self, texts: impl IntoIterator<Item = &'t str>) -> bool {
        texts.into_iter().any(|text| text.to_lowercase().contains(&self.0))
    }

    fn fits_connection(&self, connection: &ConnectionState) -> bool {
        let names = [&connection.name].into_iter().chain(&connection.accepted_by);
        self.fits(names.chain(&connection.peer).map(String::as_str))
    }

    fn fits_path(&self, path: &PathState) -> bool {
        let names = [path.name.as_str(), word(path), &path.remote];
        self.fits(names.into_iter().chain(path.interface.as_deref()))
    }
}
