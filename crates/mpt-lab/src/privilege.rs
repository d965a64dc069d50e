//! Getting what a lab needs of the kernel, with or without root.
//!
//! A lab needs CAP_NET_ADMIN and CAP_SYS_ADMIN over its network namespaces, and /dev/net/tun. A
//! process that has both capabilities uses them. Any other becomes root of a new user namespace,
//! where all of it is permitted as well; that must happen before the process has a second thread,
//! so [`enter`] is the first call of `main`.
//!
//! [`become_nobody`] switches from root to a user who may only open a TUN device, for tests of the
//! unprivileged mode.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::set_dumpable;
use nix::sys::stat::{Mode, SFlag, makedev, mknod, umask};
use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid};

use crate::guard;

/// The kernel's TUN device node.
pub const TUN_NODE: &str = "/dev/net/tun";
/// Its device number (Documentation/admin-guide/devices.txt).
const TUN_NUMBER: (u64, u64) = (10, 200);
/// The user `nobody` of every distribution, and the kernel's overflow user.
const NOBODY: u32 = 65534;

const CAP_NET_ADMIN: u32 = 12;
const CAP_SYS_ADMIN: u32 = 21;

/// By what right the lab works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privilege {
    /// The process had the capabilities already.
    Capable,
    /// It is root in its own user namespace.
    UserNamespace,
}

/// Obtains the right to make network namespaces and TUN devices.
///
/// Must be called first in `main`, before any thread starts. If this process was started to stand
/// in for a program (see [`guard`]), it becomes that program here and the call never returns.
///
/// # Errors
///
/// What is missing and the command that fixes it.
pub fn enter() -> Result<Privilege> {
    guard::stand_in();
    let privilege = if is_capable()? {
        Privilege::Capable
    } else {
        enter_user_namespace()?;
        Privilege::UserNamespace
    };
    check_tun(Path::new(TUN_NODE))
        .map_err(|missing| anyhow!("{missing}; fix it with: {}", missing.remedy()))?;
    Ok(privilege)
}

/// Switches from root to user nobody, in a mount namespace with a TUN node that every user may
/// open.
///
/// Afterwards call [`enter`], as any unprivileged program would. Must be called before any thread
/// starts. There is no way back.
///
/// # Errors
///
/// Why it cannot be done here; tests then skip, saying so.
pub fn become_nobody() -> Result<()> {
    if !Uid::effective().is_root() {
        bail!("only root can become user nobody with its own TUN node");
    }
    open_tun_node_to_all()?;
    setgroups(&[]).context("supplementary groups stay")?;
    let (group, user) = (Gid::from_raw(NOBODY), Uid::from_raw(NOBODY));
    setresgid(group, group, group).context("group stays")?;
    setresuid(user, user, user).context("user stays")?;
    // Changing the user made /proc/self belong to root (PR_SET_DUMPABLE in prctl(2)), which would
    // forbid writing the maps of a user namespace. A program started by user nobody has this set.
    set_dumpable(true).context("the process stays undumpable")
}

/// Gives this thread, and what it starts, a TUN node that every user may open, as udev makes it. The
/// rest of the host does not see it. Only for root.
///
/// # Errors
///
/// Why it cannot be done here; tests then skip, saying so.
pub fn open_tun_node_to_all() -> Result<()> {
    unshare(CloneFlags::CLONE_NEWNS).context("no private mount namespace")?;
    mount_on("/", MsFlags::MS_REC | MsFlags::MS_PRIVATE, None)
        .context("mounts stay shared with the host")?;
    provide_tun_node().context("no TUN node of its own")
}

/// Becomes root of new user, network and mount namespaces.
fn enter_user_namespace() -> Result<()> {
    // These are the ids outside; inside, before the maps are written, every user is the overflow
    // user.
    let (user, group) = (Uid::effective(), Gid::effective());
    let flags = CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS;
    unshare(flags).map_err(io::Error::from).context(
        "not root, and user namespaces are refused; allow them with \
         `sudo sysctl -w user.max_user_namespaces=15000 kernel.unprivileged_userns_clone=1 \
         kernel.apparmor_restrict_unprivileged_userns=0` (those that exist), or run as root",
    )?;
    // Only with setgroups denied may an unprivileged process write its group map
    // (user_namespaces(7)).
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/uid_map", &format!("0 {user} 1"))?;
    write("/proc/self/gid_map", &format!("0 {group} 1"))
}

/// Whether the effective capabilities suffice where the process is.
pub(crate) fn is_capable() -> Result<bool> {
    let status =
        fs::read_to_string("/proc/self/status").context("cannot read /proc/self/status")?;
    let set = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok())
        .context("/proc/self/status names no effective capabilities")?;
    Ok([CAP_NET_ADMIN, CAP_SYS_ADMIN].iter().all(|capability| set >> capability & 1 == 1))
}

/// The TUN node cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot open {}: {source}", .node.display())]
pub struct NoTun {
    node: PathBuf,
    source: io::Error,
}

impl NoTun {
    /// The command that fixes it.
    pub fn remedy(&self) -> String {
        let node = self.node.display();
        match self.source.raw_os_error().map(Errno::from_raw) {
            Some(Errno::EACCES | Errno::EPERM) => format!(
                "sudo chmod 0666 {node}  (for good: echo 'KERNEL==\"tun\", MODE=\"0666\"' | sudo \
                 tee /etc/udev/rules.d/80-tun.rules)"
            ),
            Some(Errno::ENOENT) => {
                format!("sudo mkdir -p /dev/net && sudo mknod -m 0666 {node} c 10 200")
            }
            _ => "sudo modprobe tun".to_owned(),
        }
    }
}

/// Whether the TUN node can be opened.
///
/// # Errors
///
/// Why not, with a remedy.
pub fn check_tun(node: &Path) -> Result<(), NoTun> {
    match fs::File::options().read(true).write(true).open(node) {
        Ok(_) => Ok(()),
        Err(source) => Err(NoTun { node: node.to_owned(), source }),
    }
}

/// Replaces the host's TUN node by one that every user may open, for this mount namespace.
fn provide_tun_node() -> Result<()> {
    let folder = Path::new(TUN_NODE).parent().expect("the node lies in a folder");
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    mount_on(folder, MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC, Some("tmpfs"))?;
    let everybody = Mode::from_bits_truncate(0o666);
    let before = umask(Mode::empty());
    let made = mknod(TUN_NODE, SFlag::S_IFCHR, everybody, makedev(TUN_NUMBER.0, TUN_NUMBER.1));
    umask(before);
    made.with_context(|| format!("cannot make {TUN_NODE}"))?;
    check_tun(Path::new(TUN_NODE))?;
    Ok(())
}

fn mount_on(place: impl AsRef<Path>, flags: MsFlags, kind: Option<&str>) -> Result<()> {
    let place = place.as_ref();
    mount(kind, place, kind, flags, None::<&str>)
        .with_context(|| format!("cannot mount on {}", place.display()))
}

fn write(file: &str, text: &str) -> Result<()> {
    fs::write(file, text).with_context(|| format!("cannot write {text:?} to {file}"))
}
