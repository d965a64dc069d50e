//! Peers that are known by name: from the file of hosts, and from a name server.
//!
//! The whole binary has a file of hosts and one of name servers of its own, which the tests write.

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use mpt_lab::netns::Namespace;
use mpt_lab::topology::Side;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use simple_dns::rdata::{A, AAAA, RData};
use simple_dns::{CLASS, Packet, PacketFlag, QTYPE, RCODE, ResourceRecord, TYPE};
use tempfile::TempDir;

use crate::site::QUICK;
use crate::suite::{Test, skip};
use crate::uplinks::{SERVER, Uplinks, client_config, ip, join, server_config, tunnel};

pub(crate) const TESTS: &[Test] = &[
    ("names::the_next_address_of_a_name_is_tried", next_address),
    ("names::a_name_is_resolved_again_outside_of_the_tunnel", again),
    ("names::a_name_server_may_know_nothing_of_one_ip_version", half),
    ("names::a_name_that_nobody_knows_is_told", unknown),
];

/// The folder with the files, or why there is none.
static FILES: OnceLock<Result<TempDir, String>> = OnceLock::new();

/// Gives this process and its children files of hosts and name servers of their own. To be called before
/// any thread starts.
pub(crate) fn prepare() {
    let prepared = || -> Result<TempDir, String> {
        let say = |error: &dyn std::fmt::Display| format!("no files of names of our own: {error}");
        let folder = tempfile::tempdir().map_err(|error| say(&error))?;
        unshare(CloneFlags::CLONE_NEWNS).map_err(|error| say(&error))?;
        let none = None::<&str>;
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)
            .map_err(|error| say(&error))?;
        for name in ["hosts", "resolv.conf"] {
            let file = folder.path().join(name);
            fs::write(&file, "").map_err(|error| say(&error))?;
            let place = format!("/etc/{name}");
            mount(Some(&file), place.as_str(), none, MsFlags::MS_BIND, none)
                .map_err(|error| say(&error))?;
        }
        Ok(folder)
    };
    FILES.set(prepared()).expect("once");
}

/// Removes the files. Nobody else would: the process ends without destructors.
pub(crate) fn remove_files() {
    if let Some(Ok(folder)) = FILES.get() {
        let _ = fs::remove_dir_all(folder.path());
    }
}

/// Writes one of the files.
pub(crate) fn write(name: &str, text: &str) {
    match FILES.get().expect("prepared") {
        Ok(folder) => fs::write(folder.path().join(name), text).expect("a file"),
        Err(reason) => skip(reason),
    }
}

/// The client's file with a name for the server.
fn by_name(config: &str, name: &str) -> String {
    config.replace(&format!("remote = '{SERVER}'"), &format!("remote = '{name}'"))
}

fn next_address() {
    write("resolv.conf", "");
    // There is no route to the first, and no answer from the next two.
    let nobody = ["2001:db8:77::1", "203.0.113.77", "203.0.113.78"];
    write("hosts", &format!("{} far\n{SERVER} far\n", nobody.join(" far\n")));
    let mut world = Uplinks::new();
    world.start_server(&server_config("", QUICK));
    world.start_client(&by_name(&client_config("", QUICK), "far"));
    for path in ["fibre", "lte"] {
        world.await_both(path, "up");
        assert_eq!(world.path(Side::Left, path).remote, format!("{SERVER}:4754"));
    }
    world.assert_flawless();
}

fn again() {
    const LATER: &str = "203.0.113.6";
    const NAME: &str = "server.example.org";
    write("hosts", "");
    write("resolv.conf", "nameserver 127.0.0.1\nnameserver 192.88.99.53\n");
    let mut world = Uplinks::new();
    // Only the default route leads there, and that will lead into the tunnel.
    let library = Namespace::new().expect("a host");
    join(&world.internet, "library", "192.88.99.1", &library, "eth0", "192.88.99.53");
    library.run(|| crate::uplinks::add_default("eth0", "192.88.99.1", None));
    let server = NameServer::start(&library, "192.88.99.53");
    server.tell(NAME, SERVER);
    world.start_server(&server_config("", QUICK));
    let everything = "networks = ['0.0.0.0/0', '::/0']";
    world.start_client(&by_name(&client_config(everything, QUICK), NAME));
    world.await_both("fibre", "up");

    // The server moves, and with it all paths of the client end.
    world.on_server = None;
    world.server.run(|| {
        let route = crate::uplinks::default_route("eth0", "203.0.113.1", None);
        crate::uplinks::netlink().remove_route_in(&route).expect("it is gone");
        crate::uplinks::remove_address("eth0", SERVER);
        crate::uplinks::add_address("eth0", LATER);
        crate::uplinks::add_default("eth0", "203.0.113.1", None);
    });
    server.tell(NAME, LATER);
    world.start_server(&server_config("", QUICK).replace(SERVER, LATER));
    world.await_both("fibre", "up");
    world.await_both("lte", "up");
    assert_eq!(world.path(Side::Left, "fibre").remote, format!("{LATER}:4754"));
    world.assert_flawless();
}

fn half() {
    const NAME: &str = "server.example.org";
    write("hosts", "");
    for on_ipv6 in [OnIpv6::Fails, OnIpv6::IsSilent] {
        write("resolv.conf", "nameserver 203.0.113.1\n");
        let mut world = Uplinks::new();
        let server = NameServer::start(&world.internet, "203.0.113.1");
        *server.on_ipv6.lock().expect("no panic") = on_ipv6;
        server.tell(NAME, SERVER);
        world.start_server(&server_config("", QUICK));
        // The system's resolver, which might do without the other half too, asks through the tunnel.
        let everything = "networks = ['0.0.0.0/0']";
        world.start_client(&by_name(&client_config(everything, QUICK), NAME));
        world.await_both("fibre", "up");
        assert!(server.asked_for_ipv6.load(Ordering::Relaxed), "{on_ipv6:?}");
    }
}

fn unknown() {
    write("hosts", &format!("{SERVER} far.example.org\n"));
    write("resolv.conf", "nameserver 203.0.113.1\noptions timeout:1 attempts:1\n");
    let mut world = Uplinks::new();
    let server = NameServer::start(&world.internet, "203.0.113.1");
    world.start_server(&server_config("", QUICK));
    let path = |name: &str, interface: &str, remote: &str| {
        format!(
            "[[tunnel.connection.path]]\nname = '{name}'\ninterface = '{interface}'\nremote = '{remote}'\n{QUICK}"
        )
    };
    let config = tunnel(1, "")
        + &path("fibre", "eth0", "far.example.org")
        + &path("lte", "wwan0", "nowhere.example.org");
    world.start_client(&config);
    // The unresolvable one does not delay the others.
    world.await_both("fibre", "up");
    world.await_cause(
        "lte",
        "nowhere.example.org cannot be resolved: 203.0.113.1 answers that the name does not exist",
    );
    let paths = world.daemon(Side::Left).status().expect("a status").tunnels.remove(0);
    let path = paths.connections[0].paths.iter().find(|path| path.name == "lte").expect("a path");
    assert_eq!((path.remote.as_str(), path.mtu), ("nowhere.example.org:4754", 0), "not known yet");
    let said = "path lte was probing, is down: nowhere.example.org is being resolved; it is used when that changes";
    let log = world.daemon(Side::Left).log();
    assert!(log.contains(said), "{log}");
    server.tell("nowhere.example.org", SERVER);
    world.await_both("lte", "up");
}

/// What a name server does when it is asked for IPv6 addresses.
#[derive(Clone, Copy, Debug)]
enum OnIpv6 {
    Answers,
    Fails,
    IsSilent,
}

/// A name server with configured answers.
struct NameServer {
    records: Arc<Mutex<BTreeMap<String, IpAddr>>>,
    on_ipv6: Arc<Mutex<OnIpv6>>,
    asked_for_ipv6: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl NameServer {
    fn start(host: &Namespace, address: &str) -> Self {
        let socket =
            host.run(|| UdpSocket::bind(SocketAddr::new(ip(address), 53))).expect("a port");
        socket.set_read_timeout(Some(Duration::from_millis(50))).expect("a timeout");
        let records = Arc::new(Mutex::new(BTreeMap::new()));
        let stop = Arc::new(AtomicBool::new(false));
        let on_ipv6 = Arc::new(Mutex::new(OnIpv6::Answers));
        let asked_for_ipv6 = Arc::new(AtomicBool::new(false));
        let (known, over) = (Arc::clone(&records), Arc::clone(&stop));
        let (policy, asked) = (Arc::clone(&on_ipv6), Arc::clone(&asked_for_ipv6));
        let thread = std::thread::spawn(move || {
            let mut buffer = [0; 512];
            while !over.load(Ordering::Relaxed) {
                let Ok((len, client)) = socket.recv_from(&mut buffer) else { continue };
                let Ok(query) = Packet::parse(&buffer[..len]) else { continue };
                let records = known.lock().expect("no panic").clone();
                let mut on_ipv6 = OnIpv6::Answers;
                if query.questions.iter().any(|asked| asked.qtype == QTYPE::TYPE(TYPE::AAAA)) {
                    asked.store(true, Ordering::Relaxed);
                    on_ipv6 = *policy.lock().expect("no panic");
                }
                if let Some(answer) = answer(&query, &records, on_ipv6) {
                    let _ = socket.send_to(&answer, client);
                }
            }
        });
        Self { records, on_ipv6, asked_for_ipv6, stop, thread: Some(thread) }
    }

    /// From now on that name stands for that address.
    fn tell(&self, name: &str, address: &str) {
        self.records.lock().expect("no panic").insert(name.to_owned(), ip(address));
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The answer to a query; `on_ipv6` is [`OnIpv6::Answers`] if it is about anything else.
fn answer(
    query: &Packet<'_>,
    records: &BTreeMap<String, IpAddr>,
    on_ipv6: OnIpv6,
) -> Option<Vec<u8>> {
    let question = query.questions.first()?;
    let mut answer = Packet::new_reply(query.id());
    answer.set_flags(PacketFlag::RECURSION_AVAILABLE);
    answer.questions.push(question.clone());
    let record = |data| ResourceRecord::new(question.qname.clone(), CLASS::IN, 60, data);
    match (records.get(&question.qname.to_string()), question.qtype) {
        (Some(IpAddr::V4(address)), QTYPE::TYPE(TYPE::A)) => {
            answer.answers.push(record(RData::A(A { address: address.to_bits() })));
        }
        (Some(IpAddr::V6(address)), QTYPE::TYPE(TYPE::AAAA)) => {
            answer.answers.push(record(RData::AAAA(AAAA { address: address.to_bits() })));
        }
        (Some(_), _) => match on_ipv6 {
            OnIpv6::Answers => {}
            OnIpv6::Fails => *answer.rcode_mut() = RCODE::ServerFailure,
            OnIpv6::IsSilent => return None,
        },
        (None, _) => *answer.rcode_mut() = RCODE::NameError,
    }
    answer.build_bytes_vec().ok()
}
