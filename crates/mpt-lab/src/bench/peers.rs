//! A server with many clients that it knows by their keys: what each costs, and what their handshakes cost others.
//!
//! The clients are the core of the tunnel without interfaces, all in one thread with a socket for each. They join as any
//! client does. What is measured beside a bulk flow is what a responder has to do for handshakes alone: the initiations are
//! made beforehand, with the keys of clients that are in sessions, and nobody uses what is agreed on.

mod strangers;

use std::fmt::Write as _;
use std::fs;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, ensure};
use mpt_control::Request;
use mpt_proto::{
    Cipher, Ciphers, ConnectionConfig, Endpoint, EndpointConfig, FramingConfig, Held, HostKeys,
    Origin, PathConfig, PathStatus, PeerKeys, PeerKind, Pins, Prefix, PrivateKey, PublicKey,
    ReorderConfig, SchedulerConfig, Secret, Sink, SocketId,
};
use serde::Serialize;
use tempfile::TempDir;

use super::hosts::Hosts;
use super::subject::Wire;
use super::tcp::Streams;
use crate::daemon::Daemon;
use crate::stop::Stop;
use crate::topology::{Side, Topology};
use crate::traffic::tcp::Transport;
pub use strangers::Cost;
use strangers::Forgery;

/// How long all clients may take to join: the server computes 500 handshakes per second.
const JOIN_LIMIT: Duration = Duration::from_secs(60);
/// How often another one begins.
const JOIN_EVERY: Duration = Duration::from_millis(2);
/// How often the clients look at their sockets.
const TURN: Duration = Duration::from_millis(5);
/// So seldom that thousands of idle clients are no load.
const KEEPALIVE: Duration = Duration::from_secs(20);
const SERVER_PORT: u16 = 4754;

/// How much is measured.
#[derive(Clone, Debug, Serialize)]
pub struct Options {
    /// Clients that the server knows.
    pub configured: usize,
    /// How many of them are in a session.
    pub active: usize,
    /// Handshakes per second beside the bulk flow.
    pub handshakes: usize,
    /// How long the bulk flow is measured, each with and without handshakes, in seconds.
    pub seconds: f64,
    /// How often it is.
    pub repetitions: usize,
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// How much was measured.
    pub options: Options,
    /// Bytes of resident memory that a known client without a session takes.
    pub bytes_per_configured: f64,
    /// Bytes of resident memory that a session takes besides.
    pub bytes_per_active: f64,
    /// How long the server took to read the files of the clients, in seconds.
    pub read_seconds: f64,
    /// Clients that joined per second; the server permits itself about 500.
    pub joins_per_second: f64,
    /// Bulk TCP beside nothing, in Gbit/s: the median.
    pub alone_gbps: f64,
    /// Bulk TCP beside handshakes, in Gbit/s: the median.
    pub beside_gbps: f64,
    /// The median of the ratios of neighbouring measurements.
    pub beside_over_alone: f64,
    /// Processor time that the server takes for one handshake of a client in a session, in microseconds; without a bulk flow.
    pub handshake_micros: f64,
    /// Handshakes that the server answered per second, meanwhile.
    pub answered_per_second: f64,
    /// What the server takes for a datagram under an index that leads nowhere.
    pub stranger_data: Cost,
    /// What it takes for an initiation of somebody who does not know its public key.
    pub stranger_initiation: Cost,
}

/// Measures all that, and says what it is doing.
///
/// # Errors
///
/// Something went wrong: a daemon that ends, clients that do not get in, a flow over which nothing comes; or the run was
/// ended from outside.
pub fn run(
    options: &Options,
    binary: &Path,
    stop: &Stop,
    say: &mut dyn FnMut(&str),
) -> Result<Figures> {
    ensure!(options.active < options.configured, "one client more is configured for the bulk flow");
    let folder = tempfile::tempdir().context("cannot make a folder")?;
    let site = Site::start(options, &folder, binary)?;
    let server = &site.server;
    let empty = server.resident_bytes()?;
    let begin = Instant::now();
    write_clients(&folder, options.configured)?;
    server.change(&Request::PeersReload {})?;
    let read_seconds = begin.elapsed().as_secs_f64();
    let configured = server.resident_bytes()?;
    say(&format!("{} clients are known", options.configured));
    stop.check()?;

    // Before there are sessions, of which every look at the server would tell.
    let [stranger_data, stranger_initiation] =
        site.strangers(Duration::from_secs_f64(options.seconds))?;
    stop.check()?;

    let clients = site.clients(options.active)?;
    let begin = Instant::now();
    let crowd = Crowd::start(clients)?;
    while crowd.in_session() < options.active {
        stop.check()?;
        ensure!(
            begin.elapsed() < JOIN_LIMIT,
            "only {} of {} clients are in; the server printed:\n{}",
            crowd.in_session(),
            options.active,
            server.log()
        );
        thread::sleep(TURN);
    }
    let joins_per_second = options.active as f64 / begin.elapsed().as_secs_f64();
    let active = server.resident_bytes()?;
    say(&format!("{} clients are in sessions", options.active));

    let handshake_micros = site.cost(options, &crowd)?;
    let bulk = site.start_bulk(binary, &folder)?;
    let mut figures = Vec::new();
    let mut answered = 0;
    let length = Duration::from_secs_f64(options.seconds);
    for repetition in 0..options.repetitions {
        let made = crowd.make(options, repetition + 1)?;
        let alone = site.goodput(length, stop)?;
        let before = crowd.answers();
        let flood = Flood::start(made, options.handshakes, &crowd);
        let beside = site.goodput(length, stop);
        drop(flood);
        answered += crowd.answers() - before;
        let beside = beside?;
        say(&format!("alone {alone:.2} Gbit/s, beside handshakes {beside:.2} Gbit/s"));
        figures.push((alone, beside));
    }
    drop(bulk);
    let each = |bytes: u64, before: u64, count| bytes.saturating_sub(before) as f64 / count as f64;
    let median = |of: &dyn Fn(&(f64, f64)) -> f64| {
        let mut all: Vec<f64> = figures.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let flooded = (length + WARM_UP).as_secs_f64() * options.repetitions as f64;
    Ok(Figures {
        options: options.clone(),
        bytes_per_configured: each(configured, empty, options.configured),
        bytes_per_active: each(active, configured, options.active),
        read_seconds,
        joins_per_second,
        alone_gbps: median(&|it| it.0),
        beside_gbps: median(&|it| it.1),
        beside_over_alone: median(&|it| it.1 / it.0),
        handshake_micros,
        answered_per_second: answered as f64 / flooded,
        stranger_data,
        stranger_initiation,
    })
}

/// The figures for people.
pub fn text(figures: &Figures) -> String {
    let Figures { options, .. } = figures;
    let mut text = String::new();
    // Writing to a string cannot fail.
    let mut line = |what: String, value: String| {
        let _ = writeln!(text, "{what:<46} {value:>10}");
    };
    line(
        format!("bytes per client known, of {}", options.configured),
        format!("{:.0}", figures.bytes_per_configured),
    );
    line(
        format!("bytes per session besides, of {}", options.active),
        format!("{:.0}", figures.bytes_per_active),
    );
    line("seconds to read their files".into(), format!("{:.2}", figures.read_seconds));
    line("clients that joined per second".into(), format!("{:.0}", figures.joins_per_second));
    line("bulk flow alone, Gbit/s".into(), format!("{:.2}", figures.alone_gbps));
    line(
        format!("bulk flow beside {} handshakes/s, Gbit/s", options.handshakes),
        format!("{:.2}", figures.beside_gbps),
    );
    line("ratio".into(), format!("{:.3}", figures.beside_over_alone));
    line("processor time per handshake, µs".into(), format!("{:.0}", figures.handshake_micros));
    line("handshakes answered per second".into(), format!("{:.0}", figures.answered_per_second));
    for (what, cost) in
        [("data", figures.stranger_data), ("initiation", figures.stranger_initiation)]
    {
        line(format!("a stranger's {what}, µs"), format!("{:.2}", cost.own_micros));
        line("the same with the kernel's work".into(), format!("{:.2}", cost.with_kernel_micros));
    }
    text
}

/// TCP has found its rate by then.
const WARM_UP: Duration = Duration::from_millis(300);

/// The server at the right, and where its clients are at the left.
struct Site {
    // Dropped first: a daemon has nothing to do in a host that is gone.
    server: Daemon,
    hosts: Hosts,
}

impl Site {
    fn start(options: &Options, folder: &TempDir, binary: &Path) -> Result<Self> {
        let topology = Topology::parse("[[link]]\nname = 'pair0'\n").context("a link")?;
        let hosts = Hosts::start(Wire::WireLike, &topology)?;
        fs::create_dir(folder.path().join("peers.d")).context("cannot make a folder")?;
        let config = format!(
            "[[tunnel]]\nname = 'mpt0'\naddresses = ['{}/16']\nprivate_key_file = '{}'\n\
             [[tunnel.accept]]\nname = 'client'\npeers = '{}'\nkeepalive = {}\ndead_time = {}\n",
            inner(None),
            key_file(folder, "server", &private(None))?,
            folder.path().join("peers.d").display(),
            KEEPALIVE.as_secs(),
            (10 * KEEPALIVE).as_secs(),
        );
        ensure!(options.configured < 60_000, "at most 59999 clients");
        let server = Daemon::start_in(&hosts.right, &[], "server", &config, binary)?;
        Ok(Self { server, hosts })
    }

    /// The clients from the second on; the first one is the bulk flow's.
    fn clients(&self, count: usize) -> Result<Vec<Client>> {
        let server = SocketAddr::new(self.hosts.address(Side::Right, 0), SERVER_PORT);
        let local = SocketAddr::new(self.hosts.address(Side::Left, 0), 0);
        let socket = || -> Result<UdpSocket> {
            let socket = UdpSocket::bind(local).context("cannot open a socket")?;
            socket.set_nonblocking(true).context("cannot open a socket")?;
            Ok(socket)
        };
        self.hosts.left.run(|| (1..=count).map(|at| Client::new(at, socket()?, server)).collect())
    }

    /// The processor time of a handshake at the server, in microseconds.
    fn cost(&self, options: &Options, crowd: &Crowd) -> Result<f64> {
        let length = Duration::from_secs_f64(options.seconds);
        let made = crowd.make(options, 0)?;
        let idle = self.server.cpu_time()?;
        thread::sleep(length);
        let (begin, before) = (self.server.cpu_time()?, crowd.answers());
        let flood = Flood::start(made, options.handshakes, crowd);
        thread::sleep(length);
        let (used, answers) = (self.server.cpu_time()? - begin, crowd.answers() - before);
        drop(flood);
        ensure!(answers > 0, "no handshake was answered");
        let used = used.saturating_sub(begin - idle);
        Ok(used.as_secs_f64() * 1e6 / answers as f64)
    }

    /// What a datagram of each kind of stranger costs.
    fn strangers(&self, length: Duration) -> Result<[Cost; 2]> {
        let from = (&self.hosts.left, SocketAddr::new(self.hosts.address(Side::Left, 0), 0));
        let server = SocketAddr::new(self.hosts.address(Side::Right, 0), SERVER_PORT);
        let mut costs = [Cost::default(); 2];
        for (cost, forgery) in costs.iter_mut().zip(Forgery::ALL) {
            *cost = strangers::cost(forgery, from, (&self.server, server), length)?;
        }
        Ok(costs)
    }

    /// A daemon that is the first client.
    fn start_bulk(&self, binary: &Path, folder: &TempDir) -> Result<Daemon> {
        let config = format!(
            "[[tunnel]]\nname = 'mpt0'\naddresses = ['{}/16']\nprivate_key_file = '{}'\n\
             [[tunnel.connection]]\nname = 'server'\npeer = ['{}']\npublic_key = '{}'\n\
             [[tunnel.connection.path]]\nname = 'pair0'\nlocal = '{}'\nremote = '{}'\n",
            inner(Some(0)),
            key_file(folder, "client", &private(Some(0)))?,
            inner(None),
            private(None).public(),
            self.hosts.address(Side::Left, 0),
            self.hosts.address(Side::Right, 0),
        );
        let daemon = Daemon::start_in(&self.hosts.left, &[], "client", &config, binary)?;
        let deadline = Instant::now() + JOIN_LIMIT;
        while daemon.status()?.tunnels[0].connections[0].paths[0].state != "up" {
            ensure!(Instant::now() < deadline, "the bulk flow's client does not get in");
            thread::sleep(TURN);
        }
        Ok(daemon)
    }

    /// The goodput of a TCP flow through the tunnel, in Gbit/s.
    fn goodput(&self, length: Duration, stop: &Stop) -> Result<f64> {
        let hosts = [&self.hosts.left, &self.hosts.right];
        let streams = Streams::start(hosts, inner(None), Transport::Tcp, 1, None)?;
        thread::sleep(WARM_UP);
        let (begin, before) = (Instant::now(), streams.received());
        thread::sleep(length);
        let gigabits = (streams.received() - before) as f64 * 8.0 / 1e9;
        let took = begin.elapsed().as_secs_f64();
        stop.check()?;
        ensure!(gigabits > 0.0, "nothing arrived");
        Ok(gigabits / took)
    }
}

/// The tunnel address of a client, or of the server.
fn inner(client: Option<usize>) -> IpAddr {
    let [.., high, low] = client.map_or(1, |at| at + 2).to_be_bytes();
    IpAddr::from([10, 100, high, low])
}

/// The key of a client, or of the server. They are no secrets.
fn private(client: Option<usize>) -> PrivateKey {
    let mut bytes = [0; 32];
    bytes[8..16].copy_from_slice(&client.map_or(u64::MAX, |at| at as u64).to_be_bytes());
    PrivateKey::new(bytes)
}

fn key_file(folder: &TempDir, name: &str, key: &PrivateKey) -> Result<String> {
    let path = folder.path().join(format!("{name}.key"));
    fs::write(&path, key.to_base64().as_bytes()).context("cannot write a key")?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).context("cannot write a key")?;
    Ok(path.display().to_string())
}

fn write_clients(folder: &TempDir, count: usize) -> Result<()> {
    for at in 0..count {
        let text = format!(
            "public_key = '{}'\naddresses = ['{}']\n",
            private(Some(at)).public(),
            inner(Some(at))
        );
        let file = folder.path().join(format!("peers.d/{at}.toml"));
        fs::write(file, text).context("cannot write the file of a client")?;
    }
    Ok(())
}

/// A client that is nothing but the core and a socket.
struct Client {
    number: usize,
    socket: UdpSocket,
    server: SocketAddr,
    endpoint: Endpoint,
    begin: Instant,
    in_session: bool,
}

impl Client {
    fn new(number: usize, socket: UdpSocket, server: SocketAddr) -> Result<Self> {
        let endpoint = endpoint(number, server, Duration::ZERO)?;
        Ok(Self { number, socket, server, endpoint, begin: Instant::now(), in_session: false })
    }

    fn now(&self) -> mpt_proto::Instant {
        mpt_proto::Instant::ZERO + self.begin.elapsed()
    }

    /// Takes what has come and sends what is due. Returns how many handshakes were answered that it does not know of.
    fn turn(&mut self) -> u64 {
        // All at once would have to wait for each other, and ask again in step.
        if self.begin.elapsed() < self.number as u32 * JOIN_EVERY {
            return 0;
        }
        let mut answers = 0;
        let mut datagram = [0; 2048];
        while let Ok(len) = self.socket.recv(&mut datagram) {
            let now = self.now();
            // A response is what begins with type 4; those to initiations of the flood are for nobody.
            answers += u64::from(len > 8 && datagram[8] >> 4 == RESPONSE && self.in_session);
            let origin = Origin { socket: SocketId(0), remote: self.server, tos: 0 };
            self.endpoint.handle_datagram(now, origin, &mut datagram[..len], &mut Nothing);
        }
        let now = self.now();
        self.endpoint.handle_timeout(now, &mut Nothing);
        while let Some(transmit) = self.endpoint.poll_transmit(now) {
            let mut datagram = vec![0; transmit.size()];
            self.endpoint.emit(now, &transmit, &mut datagram);
            // What is lost is sent again.
            let _ = self.socket.send(&datagram);
        }
        self.in_session |= self.endpoint.connections().any(|(_, it)| it.has_session());
        answers
    }
}

/// The type of a handshake response in the header of extended framing.
const RESPONSE: u8 = 4;

struct Nothing;

impl Sink for Nothing {
    fn deliver(&mut self, _: &[u8]) {}

    fn hold(&mut self, _: &[u8]) -> Option<Held> {
        None
    }

    fn deliver_held(&mut self, _: Held) -> usize {
        0
    }
}

/// The core of a client whose clock is `ahead`.
fn endpoint(number: usize, server: SocketAddr, ahead: Duration) -> Result<Endpoint> {
    let path = PathConfig {
        socket: SocketId(0),
        remote: server,
        weight: 1,
        weight_from_peer: false,
        rate: None,
        price: 0,
        priority: 0,
        pins: Pins::default(),
        refuses: 0,
        failover: None,
        keepalive: Some(KEEPALIVE),
        dead_time: Some(10 * KEEPALIVE),
        status: PathStatus::Available,
    };
    let public: PublicKey = private(None).public();
    let connection = ConnectionConfig {
        peer_kind: PeerKind::Mpt,
        framing: FramingConfig::Sealed,
        peer_keys: Some(PeerKeys { public, preshared: None, invitation: None }),
        peer: vec![inner(None)],
        networks: Vec::new(),
        selector: None,
        key: None,
        checksum: false,
        sequence: true,
        scheduler: SchedulerConfig::Earliest,
        thin_acks: true,
        equalise: true,
        compete: true,
        breaker: true,
        repair: true,
        classes: Vec::new(),
        reorder: ReorderConfig::default(),
        paths: vec![path],
    };
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() + ahead;
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&(number as u64).to_be_bytes());
    seed[8..24].copy_from_slice(&clock.as_nanos().to_be_bytes());
    let ciphers = Ciphers::fastest(Cipher::Aes256Gcm);
    let config = EndpointConfig {
        addresses: vec![Prefix::new(inner(Some(number)), 16).context("a prefix")?],
        connections: vec![connection],
        secret: Secret::new(seed[8..24].try_into().context("16 bytes")?),
        keys: Some(HostKeys::new(private(Some(number)), ciphers, seed, clock)),
    };
    Endpoint::new(&config, mpt_proto::Instant::ZERO).context("settings of a client")
}

/// All clients, in a thread of their own.
struct Crowd {
    shared: Arc<Shared>,
    /// The number and the socket of each.
    sockets: Vec<(usize, UdpSocket)>,
    server: SocketAddr,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    ends: AtomicBool,
    in_session: AtomicU64,
    answers: AtomicU64,
}

impl Crowd {
    fn start(mut clients: Vec<Client>) -> Result<Self> {
        let server = clients.first().context("no clients")?.server;
        let mut sockets = Vec::new();
        for client in &clients {
            client.socket.connect(server).context("no route to the server")?;
            let socket = client.socket.try_clone().context("cannot share a socket")?;
            sockets.push((client.number, socket));
        }
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        let body = move || {
            while !of_thread.ends.load(Ordering::Relaxed) {
                let answers: u64 = clients.iter_mut().map(Client::turn).sum();
                of_thread.answers.fetch_add(answers, Ordering::Relaxed);
                let joined = clients.iter().filter(|client| client.in_session).count();
                of_thread.in_session.store(joined as u64, Ordering::Relaxed);
                thread::sleep(TURN);
            }
        };
        let thread = thread::Builder::new().name("bench-crowd".into()).spawn(body);
        let thread = Some(thread.context("cannot start a thread")?);
        Ok(Self { shared, sockets, server, thread })
    }

    fn in_session(&self) -> usize {
        self.shared.in_session.load(Ordering::Relaxed) as usize
    }

    /// How many responses came to initiations of a flood.
    fn answers(&self) -> u64 {
        self.shared.answers.load(Ordering::Relaxed)
    }

    /// Initiations for as long as a flow is measured, each with the place of the socket that sends it. Each is later than
    /// all before of the same client.
    fn make(&self, options: &Options, repetition: usize) -> Result<Vec<(usize, Vec<u8>)>> {
        let seconds = options.seconds + WARM_UP.as_secs_f64() + 1.0;
        let count = (seconds * options.handshakes as f64) as usize;
        let make = |number: usize| -> Result<(usize, Vec<u8>)> {
            let place = number % self.sockets.len();
            let ahead = 1000 * (repetition + 1) + number / self.sockets.len();
            let ahead = Duration::from_secs(ahead as u64);
            let mut endpoint = endpoint(self.sockets[place].0, self.server, ahead)?;
            let now = mpt_proto::Instant::ZERO + Duration::from_millis(1);
            let transmit = endpoint.poll_transmit(now).context("no initiation")?;
            let mut datagram = vec![0; transmit.size()];
            endpoint.emit(now, &transmit, &mut datagram);
            Ok((place, datagram))
        };
        (0..count).map(make).collect()
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Initiations that are sent at a rate.
struct Flood {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Flood {
    fn start(made: Vec<(usize, Vec<u8>)>, rate: usize, crowd: &Crowd) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let sockets: Vec<_> = crowd.sockets.iter().map(|(_, it)| it.try_clone().ok()).collect();
        let of_thread = Arc::clone(&ends);
        let body = move || {
            let begin = Instant::now();
            for (number, (place, datagram)) in made.into_iter().enumerate() {
                let at = begin + Duration::from_secs_f64(number as f64 / rate as f64);
                thread::sleep(at.saturating_duration_since(Instant::now()));
                if of_thread.load(Ordering::Relaxed) {
                    return;
                }
                if let Some(socket) = &sockets[place] {
                    // What is lost is not counted as answered.
                    let _ = socket.send(&datagram);
                }
            }
        };
        let thread = thread::Builder::new().name("bench-flood".into()).spawn(body).ok();
        Self { ends, thread }
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
