//! The kernel's own Multipath TCP (RFC 8684) over every link of a lab.
//!
//! A connection begins with one subflow, from the left host to the right one's address on the first
//! link. Further subflows are triggered by the right host: [`allow`] makes it announce its
//! addresses on all other links, and the left host opens one further subflow to each. The left host
//! has no endpoint addresses configured, so its routes select the source of a subflow: only the
//! address on the same link has a route. Hence one subflow per link, and no mesh.
//!
//! ```text
//! left  a₀ ──── link 0 ──── b₀  right      connect(b₀)
//!       a₁ ──── link 1 ──── b₁             b₁ announced, the left host joins: a₁ → b₁
//!       a₂ ──── link 2 ──── b₂             b₂ announced, the left host joins: a₂ → b₂
//! ```
//!
//! Two rules for who opens sockets in such a lab:
//!
//! - A socket is made with [`Mptcp::socket`], listens on and connects to [`Mptcp::remote`], and is bound to
//!   no device: every subflow would be. If links of both IP versions are there, socket and
//!   address are of IPv6, for one of IPv4 has no subflow of IPv6; an IPv4 address is then written as
//!   an IPv6 one (RFC 4291 section 2.5.5.2).
//! - A join is a SYN to the announced address and the connection's port, and somebody must listen there
//!   until it has come, even if the application stopped listening after its first connection. That
//!   is what [`Doors`] are for.
//!
//! Every subflow sends with the congestion control that was set on the MPTCP socket
//! (`TCP_CONGESTION`), before or after it came up; or with that of its route, or else of its host.

mod path_manager;

use std::fmt;
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;

use mpt_io::mptcp_info::mptcp_info;
use mpt_io::netlink;
use nix::errno::Errno;
use socket2::{Domain, Protocol, Socket, Type};

use super::{Host, Lab};
use crate::netns::Namespace;
use crate::topology::{Addressing, Side, Topology};
use path_manager::{Limits, PathManager};

/// Most links of one connection: the first, and as many others as the kernel announces and joins
/// (`MPTCP_PM_ADDR_MAX` in `net/mptcp/protocol.h`).
pub const MAX_LINKS: usize = 1 + FURTHER;
const FURTHER: usize = 8;
/// Joins that may be on their way at once.
const BACKLOG: i32 = 128;
/// How long a host gives MPTCP up after a SYN with it seemed to have vanished, in seconds; 0 never does.
const BLACKHOLE: &str = "/proc/sys/net/mptcp/blackhole_timeout";
/// The kernel's counters, of the namespace of the thread that reads them.
const COUNTERS: &str = "/proc/thread-self/net/netstat";

/// Why MPTCP cannot be used in a lab.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// This kernel or this topology does not support it, and everything else can run without it.
    #[error("MPTCP is unavailable: {0}")]
    Unavailable(String),
    /// It should have worked.
    #[error("cannot allow MPTCP: {0:#}")]
    Failed(#[from] anyhow::Error),
}

/// How a lab's MPTCP connections are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mptcp {
    remote: IpAddr,
    further: Vec<IpAddr>,
    left_out: usize,
}

/// Lets every MPTCP connection of the lab that begins from here on use all links, as far as the kernel
/// goes; see [`Mptcp::left_out`].
///
/// # Errors
///
/// [`Refusal::Unavailable`] where the kernel has no MPTCP or has it switched off, and where the right
/// host has one address for all links, which leaves nothing to announce.
pub fn allow(lab: &Lab) -> Result<Mptcp, Refusal> {
    allow_between(lab.topology(), |side| &lab.host(side).namespace)
}

/// As [`allow`], between any two namespaces that are addressed as a topology says.
pub(crate) fn allow_between<'n>(
    topology: &Topology,
    namespace: impl Fn(Side) -> &'n Namespace,
) -> Result<Mptcp, Refusal> {
    if topology.addressing == Addressing::OneServer {
        let reason = "a server with one address announces no others, so only the first link would \
            be used; write `addressing = \"per-link\"`";
        return Err(Refusal::Unavailable(reason.into()));
    }
    let mptcp = Mptcp::plan(topology);
    for side in [Side::Left, Side::Right] {
        let announced = if side == Side::Right { &mptcp.further[..] } else { &[] };
        namespace(side).run(|| mptcp.set_up(announced))?;
    }
    Ok(mptcp)
}

impl Mptcp {
    /// The right host's address to listen on and to connect to.
    pub fn remote(&self) -> IpAddr {
        self.remote
    }

    /// How many links a connection uses, 1 to [`MAX_LINKS`].
    pub fn links(&self) -> usize {
        1 + self.further.len()
    }

    /// How many of the lab's links, the last ones, are not used because the kernel supports at most
    /// [`MAX_LINKS`] in a connection. A report of a result must say so.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// A fresh MPTCP socket in the namespace of the calling thread, for either end.
    ///
    /// # Errors
    ///
    /// The kernel's; [`allow`] has made one before.
    pub fn socket(&self) -> io::Result<Socket> {
        let domain = if self.remote.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
        Socket::new(domain, Type::STREAM, Some(Protocol::MPTCP))
    }

    /// Listens for the joins of connections to `port` of [`remote`](Self::remote). To be opened before
    /// the connection is.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::AddrInUse`] if another socket listens on this port of all addresses; then
    /// no doors are needed. Or the kernel's error.
    pub fn open_doors(&self, right: &Host, port: u16) -> io::Result<Doors> {
        let open = |&address: &IpAddr| -> io::Result<Socket> {
            let socket = self.socket()?;
            socket.set_reuse_address(true)?;
            socket.bind(&SocketAddr::new(address, port).into())?;
            socket.listen(BACKLOG)?;
            Ok(socket)
        };
        let doors = right.run(|| self.further.iter().map(open).collect::<io::Result<_>>())?;
        Ok(Doors { _listeners: doors })
    }

    fn plan(topology: &Topology) -> Self {
        let links = topology.links.len().min(MAX_LINKS);
        let versions = topology.links[..links].iter().map(|link| link.version);
        let mixed = versions.clone().any(|version| Some(version) != versions.clone().next());
        let mut addresses = (0..links).map(|link| topology.address(Side::Right, link)).map(
            |address| match address {
                IpAddr::V4(short) if mixed => short.to_ipv6_mapped().into(),
                IpAddr::V4(_) | IpAddr::V6(_) => address,
            },
        );
        let remote = addresses.next().expect("a lab has at least one link");
        let left_out = topology.links.len() - links;
        Self { remote, further: addresses.collect(), left_out }
    }

    /// Sets up a host, from within it.
    fn set_up(&self, announced: &[IpAddr]) -> Result<(), Refusal> {
        let mut manager = PathManager::open().map_err(Refusal::of_netlink)?;
        let further = u32::try_from(self.further.len()).expect("at most FURTHER");
        let limits = Limits { subflows: further, accepted_addresses: further };
        manager.set_limits(limits).map_err(Refusal::of_netlink)?;
        for address in announced {
            manager.announce(address.to_canonical()).map_err(Refusal::of_netlink)?;
        }
        match fs::write(BLACKHOLE, "0") {
            Ok(()) => {}
            // Kernels before 6.12 never give up.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                let what = "cannot configure the kernel to keep MPTCP when links are cut";
                return Err(anyhow::Error::new(error).context(what).into());
            }
        }
        match self.socket() {
            Ok(_) => Ok(()),
            Err(error) if is_unsupported(&error) => {
                let reason = format!("{error}; `sysctl net.mptcp.enabled=1` may help");
                Err(Refusal::Unavailable(reason))
            }
            Err(error) => Err(anyhow::Error::new(error).context("no MPTCP socket").into()),
        }
    }
}

impl Refusal {
    fn of_netlink(error: netlink::Error) -> Self {
        let unsupported = match &error {
            netlink::Error::NotFound { .. } => true,
            netlink::Error::Refused { source, .. } => is_unsupported(source),
            netlink::Error::Exists { .. }
            | netlink::Error::Name(_)
            | netlink::Error::Permission { .. } => false,
        };
        if unsupported {
            Self::Unavailable(format!("this kernel has none: {error}"))
        } else {
            Self::Failed(error.into())
        }
    }
}

/// Whether this is how a kernel says that it was built without something, or that it is switched off.
pub(crate) fn is_unsupported(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw);
    matches!(
        errno,
        Some(Errno::EOPNOTSUPP | Errno::EPROTONOSUPPORT | Errno::ENOPROTOOPT | Errno::EAFNOSUPPORT)
    )
}

/// Listeners on the addresses to which further subflows come. They never accept: the kernel hands a
/// join to the connection that it belongs to.
#[derive(Debug)]
pub struct Doors {
    _listeners: Vec<Socket>,
}

/// What a connection became.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Connection {
    /// Multipath TCP.
    Multipath {
        /// Subflows that exist, the first one included.
        subflows: u32,
    },
    /// Plain TCP over one link.
    FellBack(Fallback),
}

/// Why a host's MPTCP connections fell back to TCP, as far as its kernel counted reasons.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fallback {
    reasons: Vec<&'static str>,
}

/// What the connection of a socket became; `host` is the one that the socket is of. Further subflows come
/// up only when the first bytes have been acknowledged.
///
/// # Errors
///
/// The kernel's, if this is no stream socket.
pub fn look(host: &Host, socket: impl AsFd) -> io::Result<Connection> {
    match mptcp_info(socket)? {
        Some(info) => Ok(Connection::Multipath { subflows: info.subflows }),
        None => {
            let counters = host.run(|| fs::read_to_string(COUNTERS))?;
            Ok(Connection::FellBack(Fallback::read(&counters)))
        }
    }
}

impl Fallback {
    /// Counters of `/proc/net/netstat` and what they mean.
    const REASONS: [(&'static str, &'static str); 9] = [
        ("MPCapableFallbackSYNACK", "the peer answered without MPTCP"),
        ("MPCapableFallbackACK", "the peer's third packet had no MPTCP option"),
        ("MPCapableSYNTXDrop", "SYNs with MPTCP got no answer"),
        ("MPCapableSYNTXDisabled", "MPTCP fallback after SYNs with MPTCP were lost"),
        ("MPCapableDataFallback", "the first data had no MPTCP option"),
        ("MPFallbackTokenInit", "there was no token for the connection"),
        ("DSSCorruptionFallback", "the data sequence mapping was corrupted"),
        ("DssFallback", "data had no data sequence mapping"),
        ("SimultConnectFallback", "both ends connected at once"),
    ];

    fn read(counters: &str) -> Self {
        let mut lines = counters.lines().filter(|line| line.starts_with("MPTcpExt:"));
        let (names, values) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
        let counted = |wanted: &str| {
            let mut pairs = names.split_whitespace().zip(values.split_whitespace());
            pairs.any(|(name, value)| name == wanted && value != "0")
        };
        let reasons = Self::REASONS.iter().filter(|(name, _)| counted(name));
        Self { reasons: reasons.map(|&(_, reason)| reason).collect() }
    }
}

impl fmt::Display for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the connection is plain TCP: ")?;
        if self.reasons.is_empty() {
            return f.write_str("the kernel reports no reason");
        }
        f.write_str(&self.reasons.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(versions: &[u8]) -> Mptcp {
        let link =
            |(number, version)| format!("[[link]]\nname = 'l{number}'\nversion = {version}\n");
        let text: String = versions.iter().enumerate().map(link).collect();
        Mptcp::plan(&Topology::parse(&text).unwrap())
    }

    #[test]
    fn addresses_are_written_as_ipv6_only_where_versions_mix() {
        assert!(plan(&[4, 4]).remote().is_ipv4());
        assert!(plan(&[6, 6]).remote().is_ipv6());
        let mixed = plan(&[4, 6, 4]);
        assert_eq!(mixed.remote().to_string(), "::ffff:198.18.1.2");
        assert!(mixed.further.iter().all(IpAddr::is_ipv6));
        assert_eq!(mixed.further[1].to_canonical().to_string(), "198.18.3.2");
    }

    #[test]
    fn links_beyond_the_kernels_limit_are_omitted_with_a_message() {
        for (links, used) in [(1, 1), (9, 9), (12, 9)] {
            let plan = plan(&vec![4; links]);
            assert_eq!((plan.links(), plan.left_out()), (used, links - used));
        }
        // A version that only a link that is left out has mixes nothing.
        let versions = [&[4; 9][..], &[6]].concat();
        assert!(plan(&versions).remote().is_ipv4());
    }

    #[test]
    fn the_reasons_of_a_fallback_are_those_counted() {
        let text = "TcpExt: DssFallback\nTcpExt: 9\n\
                    MPTcpExt: MPCapableSYNRX MPCapableFallbackSYNACK DssFallback\n\
                    MPTcpExt: 4 2 0\n";
        let fallback = Fallback::read(text);
        assert_eq!(fallback.reasons, ["the peer answered without MPTCP"]);
        assert!(Fallback::read("").to_string().ends_with("no reason"));
    }

    #[test]
    fn only_what_the_kernel_lacks_is_unavailable() {
        let refused = |errno: Errno| netlink::Error::Refused {
            action: "try".into(),
            source: io::Error::from(errno),
            explanation: None,
        };
        let is_unavailable = |error| matches!(Refusal::of_netlink(error), Refusal::Unavailable(_));
        assert!(is_unavailable(refused(Errno::EOPNOTSUPP)));
        assert!(is_unavailable(netlink::Error::NotFound { action: "try".into() }));
        assert!(!is_unavailable(refused(Errno::EINVAL)));
        assert!(!is_unavailable(netlink::Error::Permission { action: "try".into() }));
    }
}
