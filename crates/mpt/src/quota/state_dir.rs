//! The folder of what is kept while the daemon does not run.

use std::os::unix::fs::DirBuilderExt as _;
use std::{fs, io};

use nix::unistd::User;

use crate::config::Settings;

/// Makes the folder for a user to whom the process will switch, if a path has a quota and there is no such folder. Without it
/// everything else works, so a failure is only reported.
pub(crate) fn prepare(settings: &Settings, user: Option<&User>) {
    let connections = || settings.tunnels.iter().flat_map(|tunnel| &tunnel.connections);
    let of_paths = connections().flat_map(|connection| &connection.paths);
    let of_interfaces = connections().flat_map(|connection| &connection.uplinks);
    let any = of_paths.map(|path| path.quota).chain(of_interfaces.map(|said| said.quota));
    let folder = &settings.daemon.state_dir;
    if any.flatten().next().is_none() || folder.exists() {
        return;
    }
    let make = || -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o755).create(folder)?;
        if let Some(user) = user {
            std::os::unix::fs::chown(folder, Some(user.uid.as_raw()), Some(user.gid.as_raw()))?;
        }
        Ok(())
    };
    if let Err(error) = make() {
        tracing::warn!(
            "cannot make the folder {}: {error}; a restart of the daemon forgets how much of quotas is used",
            folder.display()
        );
    }
}
