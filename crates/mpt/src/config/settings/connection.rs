//! The settings of a connection, `[[tunnel.connection]]`, and those that a template shares with it.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use mpt_proto::{PeerKind, PublicKey};

use super::Path;
use crate::config::address;
use crate::config::classes::{self, Class};
use crate::config::commands::Commands;
use crate::config::keys::{Row, Rows};
use crate::config::prefix::Prefix;
use crate::config::remote::{self, Remote};
use crate::config::reorder::{self, Reorder};
use crate::config::schema::{Tabled as _, settings};
use crate::config::selector::Match;
use crate::config::timers;
use crate::config::uplinks::{self, Interfaces, Pattern, Uplink};
use crate::config::value;
use crate::config::words::{Framing, Profile, Scheduler};
use crate::config::writer::Writer;

settings! {
    /// One connection: the association with one peer.
    Connection "[[tunnel.connection]]", read as ConnectionRead, with none: () {
        /// Name for commands, 1 to 64 bytes; unique within the file.
        name: String = required(value::name, "\"server\""), Apart;
        /// What the peer is.
        peer_kind ["peer"]: PeerKind = own(
            Rows::Here(&[
                Row::own(
                    "peer",
                    "",
                    "[\"10.9.0.2\"]",
                    "The peer's tunnel addresses, at most one of each IP version; or the kind of peer: `\"mpt\"`, `\"mpt-original\"` or `\"gre\"`, below.",
                ),
                Row::own(
                    "peer_addresses",
                    "",
                    "[\"10.9.0.2\"]",
                    "The peer's tunnel addresses, if `peer` is a kind of peer.",
                ),
            ]),
            |of: &Self, out: &mut Writer, ()| if of.peer_kind == PeerKind::Mpt {
                out.key("peer", &of.peer);
            } else {
                out.key("peer", &of.peer_kind);
                out.key("peer_addresses", &of.peer);
            }
        ),
            ConnectionReplaced;
        /// The peer's tunnel addresses, at least one, at most one of each IP version, and none an own
        /// address; exactly one if the peer is an original MPT, and then `networks` are of its version
        /// too. Several connections of one tunnel may have the same, in the same order; then at most one
        /// of them has no `selector`. Otherwise none occurs twice in the whole file.
        peer ["peer"]: Vec<IpAddr> = own(Rows::Here(&[]), |_: &Self, _: &mut Writer, ()| {}),
            ConnectionReplaced;
        /// The peer's public key, as `mpt pubkey` prints it. With it the connection is sealed: everything is encrypted
        /// and authenticated, and nothing else is sent or accepted.
        public_key: Option<PublicKey> = optional(
            value::public_key,
            "\"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\""
        ), ConnectionReplaced;
        /// With `public_key`, the file of a key that only both hosts know, as `mpt genkey` writes it; nobody else may be
        /// able to read it.
        preshared_key_file: Option<PathBuf> =
            optional(value::file, "\"/etc/mpt/preshared.key\""), ConnectionReplaced;
        /// With `public_key`, the file of the secret of an invitation: the peer takes this host for the client that it has
        /// invited, and knows it by its key from then on. Nobody else may be able to read it; it may be missing.
        invitation_file: Option<PathBuf> =
            optional(value::file, "\"/etc/mpt/invitation\""), ConnectionReplaced;
        /// Further prefixes behind the peer; routes to them are installed. `0.0.0.0/0` and `::/0`
        /// are default routes.
        networks: Vec<Prefix> = default(value::list(address::network), Vec::new()), InPlace;
        /// Which of the inner packets to the peer it carries; `None` = those that no other connection
        /// to the peer carries. Where several match, the first in the order of the file does.
        selector ["match"]: Option<Match> = own(
            Rows::Here(&[Row::own(
                "match",
                "none",
                "{ protocol = \"udp\", ports = [5060] }",
                "Which packets it carries, if several connections have the same `peer`, below.",
            )]),
            |of: &Self, out: &mut Writer, ()| if let Some(selector) = &of.selector {
                out.inline("match", |out| selector.write(out));
            }
        ), InPlace;
        /// UDP port here.
        local_port: u16 = default(value::integer(1..=u16::MAX), Connection::DEFAULT_PORT),
            ConnectionReplaced;
        /// UDP port of the peer.
        remote_port: u16 = default(value::integer(1..=u16::MAX), Connection::DEFAULT_PORT),
            ConnectionReplaced;
        /// How commands are exchanged with the peer; exactly if that is an original MPT.
        commands: Option<Commands> = own(
            Rows::Of(&Commands::KEYS),
            |of: &Self, out: &mut Writer, ()| if let Some(commands) = &of.commands {
                commands.write(out, ());
            }
        ), InPlace;
        /// How it treats its packets.
        policies: Policies = own(
            Rows::Of(&Policies::KEYS),
            |of: &Self, out: &mut Writer, ()| of.policies.write(out, of.peer_kind)
        ), Within;
        /// The peer's address or host name on all paths. Then there is a path by each interface from which a
        /// route leads there, and no `[[tunnel.connection.path]]`.
        remote: Option<Remote> = optional(remote::remote, "\"server.example.org\""), PathReplaced;
        /// With `remote`, which interfaces may have a path: `"auto"` = every one, or a list of names, with
        /// `*` for any characters.
        interfaces: Interfaces = default(uplinks::interfaces, Interfaces::Auto), InPlace;
        /// With `remote`, which interfaces have no path: names, with `*` for any characters.
        exclude: Vec<Pattern> = default(value::list(uplinks::pattern), Vec::new()), InPlace;
        /// Time between keepalives on paths that are not configured.
        keepalive: Option<Duration> = optional(timers::keepalive(), "0.5", "0.5"), InPlace;
        /// Silence after which a path that is not configured is down, longer than `keepalive`.
        dead_time: Option<Duration> =
            optional(timers::dead_time(), "1.75", "3.5 × `keepalive`: 1.75"), InPlace;
        /// In a session: how many milliseconds a path that is not configured may be silently dead while nothing is sent on it, as
        /// in a path.
        failover: Option<u16> = optional(
            timers::failover(),
            "1000",
            "1000; 10000 if metered; none with `keepalive` or `dead_time`"
        ), InPlace;
        /// Silence after which a path that the peer chose is removed, longer than `dead_time`.
        forget: Duration = default(timers::forget(), timers::FORGET), InPlace;
        /// What single interfaces have of their own.
        uplinks ["interface"]: Vec<Uplink> = own(
            Rows::Here(&[Row::table("interface")]),
            |of: &Self, out: &mut Writer, ()| uplinks::write(&of.uplinks, out)
        ), InPlace;
        /// What packets need that is not as usual. A packet belongs to the first class that fits.
        classes ["class"]: Vec<Class> = own(
            Rows::Here(&[Row::table("class")]),
            |of: &Self, out: &mut Writer, ()| classes::write(&of.classes, false, out)
        ), InPlace;
        /// Its paths, at most 64, with distinct names. None if they are found by themselves, or learned from
        /// the peer.
        paths: Vec<Path> = own(
            Rows::Here(&[Row::table("path")]),
            |of: &Self, out: &mut Writer, ()| out.tables(&Path::KEYS, &of.paths, |path, out| {
                path.write(out, of.peer_kind);
            })
        ), Apart;
    }
}

impl Connection {
    /// The UDP port of GRE-in-UDP (RFC 8086).
    pub(crate) const DEFAULT_PORT: u16 = 4754;

    /// Most paths of one connection.
    pub(crate) const MAX_PATHS: usize = mpt_proto::MAX_PATHS;
}

settings! {
    /// How a connection, configured or made by a template, treats its packets: how they are framed,
    /// spread over the paths and put in order.
    #[derive(Copy)]
    Policies "", read as PoliciesRead, with peer_kind: PeerKind {
        /// Named set of policies: `"adaptive"` (extended framing, nothing else to configure), `"classic"` (weights), or
        /// `"auto"`: adaptive in extended framing and classic in plain framing.
        profile: Profile = default(value::one_of(Profile::WORDS), Profile::Auto), InPlace;
        /// `"earliest"`: each packet where it arrives first, by measured rates and delays; `"lowest-rtt"`: each on the path
        /// with the lowest delay that has room; `"redundant"`: each on all paths that have room (these three in plain
        /// framing, where nothing is measured, by weights); `"weighted"`: each packet independently, by the paths' weights; `"flow"`: all
        /// packets of a flow on one path.
        scheduler: Scheduler = own(
            Rows::Here(&[Row::own(
                "scheduler",
                "`\"earliest\"`; in profile `\"classic\"` or plain framing `\"weighted\"`",
                "\"earliest\"",
                "`\"earliest\"`: each packet where it arrives first, by measured rates and delays; `\"lowest-rtt\"`: each on the path with the lowest delay that has room; `\"redundant\"`: each on all paths that have room (these three in plain framing, where nothing is measured, by weights); `\"weighted\"`: each packet independently, by the paths' weights; `\"flow\"`: all packets of a flow on one path.",
            )]),
            |of: &Self, out: &mut Writer, peer_kind| {
                out.unless("scheduler", &of.scheduler, &Scheduler::default_for(of.profile, of.framing));
            }
        ), InPlace;
        /// With the scheduler `"earliest"`: send fewer acknowledgements of TCP connections in their first five seconds,
        /// so that differing delays of the paths do not end their slow start.
        thin_acks: bool = default(value::flag, true), InPlace;
        /// With the scheduler `"earliest"`: have the peer hold packets of a bulk flow that keeps too little in flight for
        /// the slower paths, as BBR does, until they have taken as long as by these, and those of TCP connections from
        /// the first one on for up to 170 ms, because BBR goes by its first packets, unless connections by that port (as
        /// those of the web) seldom send much; with `"weighted"`, in a session: full segments of TCP, until they have
        /// taken as long as by the slowest path.
        equalise: bool = default(value::flag, true), InPlace;
        /// With the schedulers `"earliest"`, `"lowest-rtt"` and `"redundant"`: on a path on which others keep a queue, such as a
        /// TCP flow outside of the tunnel, send as one flow of CUBIC would, until the queue is empty. Otherwise the tunnel
        /// yields to them and gets next to nothing.
        compete: bool = default(value::flag, true), InPlace;
        /// With the same schedulers: stop a path that goes on to lose more than a fifth of all packets when next to nothing
        /// is sent on it, for 30 s at first and up to 8 minutes (the circuit breaker of RFC 8085). The only path is sent
        /// 64 kbit/s.
        breaker: bool = default(value::flag, true), InPlace;
        /// With the schedulers `"earliest"` and `"lowest-rtt"`: send again what paths have lost, wait for what the peer sends
        /// again, and leave paths that are silent at once. The peer has to do it, too.
        repair: bool = default(value::flag, true), InPlace;
        /// What the datagrams look like: `"plain"`, `"extended"`, `"sealed"` (encrypted; with a `public_key` nothing else), or `"auto"`: extended
        /// with a peer that supports it, and plain with any other.
        framing: Framing = own(
            Rows::Here(&[Row::own(
                "framing",
                "`\"auto\"`; with a `public_key` `\"sealed\"`; with other kinds `\"plain\"`",
                "\"auto\"",
                "What the datagrams look like: `\"plain\"`, `\"extended\"`, `\"sealed\"` (encrypted; with a `public_key` nothing else), or `\"auto\"`: extended with a peer that supports it, and plain with any other.",
            )]),
            |of: &Self, out: &mut Writer, peer_kind| if peer_kind == PeerKind::Mpt {
                out.unless("framing", &of.framing, &Framing::default_for(peer_kind));
            }
        ), ConnectionReplaced;
        /// GRE key, the same on both hosts.
        key: Option<u32> = optional(value::integer(0..=u32::MAX), "7"), ConnectionReplaced;
        /// Send the GRE checksum.
        checksum: bool = default(value::flag, false), ConnectionReplaced;
        /// Whether datagrams carry a sequence number; towards an original MPT exactly if there is a window.
        sequence: bool = own(
            Rows::Here(&[Row::own(
                "sequence",
                "true; with `\"gre\"` false",
                "true",
                "Send sequence numbers; without them the peer cannot restore the packet order.",
            )]),
            |of: &Self, out: &mut Writer, peer_kind| if peer_kind != PeerKind::Original {
                // Towards an original MPT it follows from the window.
                out.unless("sequence", &of.sequence, &(peer_kind == PeerKind::Mpt));
            }
        ), ConnectionReplaced;
        /// Receive-side ordering.
        reorder: Reorder = own(
            Rows::Here(&[Row::own(
                "reorder",
                "",
                "{ window = 4096, max_delay = 0.1, early_release = true, late = \"deliver\" }",
                "Reorder buffer, below.",
            )]),
            |of: &Self, out: &mut Writer, peer_kind| out.inline("reorder", |out| {
                reorder::write(of.reorder, Reorder::default_for(of.scheduler, peer_kind), out);
            })
        ), InPlace;
    }
}
