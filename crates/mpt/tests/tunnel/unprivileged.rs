//! The same tests once more, with two threads for each tunnel, as a user who may do nothing but open a TUN device: root becomes
//! nobody first, and then a user namespace is entered as anybody would. Who is not root already
//! ran them that way.

mod black_hole;
mod carry;
mod change;
mod commands;
mod cost;
mod crowd;
mod failover;
mod gre;
mod hostile;
mod identity;
mod import;
mod inner_mtu;
mod lifetime;
mod many;
mod mapping;
mod measured;
mod names;
mod netmon;
mod original;
mod outside;
mod rights;
mod router;
mod routing;
mod site;
mod suite;
mod tap;
mod threads;
mod translator;
mod uplinks;

/// The user called nobody everywhere.
const NOBODY: u32 = 65534;

fn main() {
    // Started once more by the lab to guard a daemon, it only stands in for that.
    mpt_lab::guard::stand_in();
    site::copy_daemon(nix::unistd::Uid::effective().is_root().then_some(NOBODY));
    let nobody = mpt_lab::privilege::become_nobody();
    suite::run(nobody.and_then(|()| mpt_lab::privilege::enter().map(drop)), 2, &[]);
}
