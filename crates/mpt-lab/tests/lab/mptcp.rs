//! The kernel's Multipath TCP over emulated links: one subflow per link, and only where allowed.

use std::io::{self, Read};
use std::net::{SocketAddr, TcpStream};
use std::thread;

use mpt_lab::lab::Lab;
use mpt_lab::lab::mptcp::{self, Connection, Doors, Mptcp, Refusal};
use socket2::{Domain, Protocol, Socket, Type};

use crate::world::{PATIENCE, Test, eventually, lab, skip};

pub(crate) const TESTS: &[Test] = &[
    ("mptcp_uses_every_link_ipv4", || all_links(&[4, 4])),
    ("mptcp_uses_every_link_ipv6", || all_links(&[6, 6])),
    ("mptcp_uses_four_links_of_both_versions_ipv4_first", || all_links(&[4, 6, 4, 6])),
    ("mptcp_uses_four_links_of_both_versions_ipv6_first", || all_links(&[6, 4, 6, 4])),
    ("mptcp_uses_nine_links_of_twelve_and_says_so", nine_links),
    ("mptcp_uses_one_link_unless_allowed", one_link),
    ("mptcp_that_became_tcp_is_told_with_the_reason", fallback),
    ("mptcp_is_unavailable_with_one_server_address", one_server),
];

/// What a link of 20 Mbit/s carries in a second.
const SECOND: u64 = 2_500_000;

fn all_links(versions: &[u8]) {
    let lab = links(versions);
    let mptcp = allow(&lab);
    let mut connection = connect(&lab, &mptcp);
    let before = carried(&lab);
    connection.pump(2 * SECOND * versions.len() as u64);
    let subflows = u32::try_from(versions.len()).unwrap();
    for (host, socket) in [(lab.left(), &connection.source), (lab.right(), &connection.sink)] {
        assert_eq!(mptcp::look(host, socket).unwrap(), Connection::Multipath { subflows });
    }
    for (link, (before, after)) in before.iter().zip(carried(&lab)).enumerate() {
        // Its share is 5 MB, less what went before it was joined.
        assert!(after - before > SECOND / 2, "link {link} carried {} bytes", after - before);
    }
}

fn nine_links() {
    let lab = links(&[4; 12]);
    let mptcp = allow(&lab);
    assert_eq!((mptcp.links(), mptcp.left_out()), (mptcp::MAX_LINKS, 3));
    let mut connection = connect(&lab, &mptcp);
    eventually("all subflows are up", || {
        connection.pump(10_000);
        mptcp::look(lab.left(), &connection.source).unwrap()
            == Connection::Multipath { subflows: 9 }
    });
    assert_eq!(carried(&lab)[9..], [0, 0, 0]);
}

fn one_link() {
    let lab = links(&[4, 4]);
    // Settings of another lab have no effect on this one.
    let mptcp = allow(&links(&[4, 4]));
    let mut connection = connect(&lab, &mptcp);
    connection.pump(SECOND);
    let look = mptcp::look(lab.left(), &connection.source).unwrap();
    assert_eq!(look, Connection::Multipath { subflows: 1 });
    let carried = carried(&lab);
    assert!(carried[0] > 500_000 && carried[1] == 0, "{carried:?}");
}

fn fallback() {
    let lab = links(&[4, 4]);
    let mptcp = allow(&lab);
    let plain = || Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).unwrap();
    let listener = lab.right().run(|| listen(plain(), &mptcp));
    let source =
        lab.left().run(|| join(&mptcp, listener.local_addr().unwrap().as_socket().unwrap()));
    let look = mptcp::look(lab.left(), &source).unwrap();
    let Connection::FellBack(fallback) = look else { panic!("{look:?}") };
    assert!(fallback.to_string().contains("the peer answered without MPTCP"), "{fallback}");
}

fn one_server() {
    let lab = lab("addressing = 'one-server'\n[[link]]\nname = 'a'\n[[link]]\nname = 'b'");
    let refusal = mptcp::allow(&lab).unwrap_err();
    assert!(matches!(&refusal, Refusal::Unavailable(_)), "{refusal}");
}

/// Allows it; gives up where the kernel has none.
pub(crate) fn allow(lab: &Lab) -> Mptcp {
    match mptcp::allow(lab) {
        Ok(mptcp) => mptcp,
        Err(Refusal::Unavailable(reason)) => skip(&reason),
        Err(Refusal::Failed(error)) => panic!("{error:#}"),
    }
}

/// Links of 20 Mbit/s with these IP versions.
pub(crate) fn links(versions: &[u8]) -> Lab {
    let link = |(number, version)| {
        format!("[[link]]\nname = 'l{number}'\nversion = {version}\nrate_mbps = 20\ndelay_ms = 5\n")
    };
    lab(&versions.iter().enumerate().map(link).collect::<String>())
}

/// Bytes that have gone over each link from left to right.
fn carried(lab: &Lab) -> Vec<u64> {
    lab.reports().iter().map(|report| report.forward.stats.delivered.bytes).collect()
}

/// A connection from left to right.
struct Pumped {
    source: TcpStream,
    sink: TcpStream,
    _doors: Doors,
}

/// Connects; the listener is gone at once, as with many applications.
fn connect(lab: &Lab, mptcp: &Mptcp) -> Pumped {
    let listener = lab.right().run(|| listen(mptcp.socket().unwrap(), mptcp));
    let remote = listener.local_addr().unwrap().as_socket().unwrap();
    let doors = mptcp.open_doors(lab.right(), remote.port()).unwrap();
    let source = lab.left().run(|| join(mptcp, remote));
    let sink = TcpStream::from(listener.accept().unwrap().0);
    Pumped { source, sink, _doors: doors }
}

fn listen(socket: Socket, mptcp: &Mptcp) -> Socket {
    socket.bind(&SocketAddr::new(mptcp.remote(), 0).into()).unwrap();
    socket.listen(1).unwrap();
    socket
}

fn join(mptcp: &Mptcp, remote: SocketAddr) -> TcpStream {
    let socket = mptcp.socket().unwrap();
    socket.connect_timeout(&remote.into(), PATIENCE).unwrap();
    socket.into()
}

impl Pumped {
    /// Sends this many bytes, and waits until all have arrived.
    fn pump(&mut self, bytes: u64) {
        let (mut source, mut sink) = (&self.source, &self.sink);
        thread::scope(|scope| {
            scope.spawn(move || {
                io::copy(&mut io::repeat(0x5a).take(bytes), &mut source).unwrap();
            });
            let received = io::copy(&mut Read::by_ref(&mut sink).take(bytes), &mut io::sink());
            assert_eq!(received.unwrap(), bytes);
        });
    }
}
