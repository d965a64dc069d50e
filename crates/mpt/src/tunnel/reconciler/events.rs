//! What the tunnel's threads tell the main thread, and who sees to it.

use std::time::Instant;

use mpt_proto::{ConnectionId, PathId};

use super::Reconciler;
use crate::netmon::NetMonitor;
use crate::tunnel::main_event::MainEvent;

impl Reconciler {
    /// Takes in what the threads have to say. Returns whether that was anything about a path.
    pub(super) fn take_main_events(&mut self, netmon: &mut NetMonitor, now: Instant) -> bool {
        let (mut any, mut requested) = (false, false);
        while let Ok(main_event) = self.handle.main_events.try_recv() {
            match main_event {
                MainEvent::Heard { connection, path, heard } => {
                    self.on_heard(connection, path, heard, netmon, now);
                    any = true;
                }
                MainEvent::InterfaceGone { index } if index == self.interface.index() => {
                    self.recreate.on_gone(now);
                }
                // That one has been created again.
                MainEvent::InterfaceGone { .. } => {}
                MainEvent::ConnectRequest { request, local } => {
                    self.on_connect_request(&request, local, now);
                    requested = true;
                }
                MainEvent::ClientRequest { request, local } => {
                    self.on_client_request(&request, local, now);
                    requested = true;
                }
                MainEvent::PathRequest { request, local } => {
                    self.on_path_request(&request, local, now);
                }
            }
        }
        if requested && let Err(error) = self.reconcile_routes() {
            tracing::warn!(tunnel = self.settings.name, "{error:#}");
        }
        any
    }

    /// A path has fallen silent, or is heard. If it is silent, its name may stand for another address
    /// by now.
    fn on_heard(
        &mut self,
        connection: ConnectionId,
        path: PathId,
        heard: bool,
        netmon: &mut NetMonitor,
        now: Instant,
    ) {
        let mut connections = self.connections.values_mut();
        let Some(connection) = connections.find(|other| other.id == connection) else { return };
        let Some(path) = connection.paths.values_mut().find(|other| other.id == path) else {
            return;
        };
        path.silent = !heard;
        path.doubted = !heard;
        if let Some(name) = path.settings.remote.name().filter(|_| !heard) {
            netmon.names.doubt(name, now);
        }
    }
}
