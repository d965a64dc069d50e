//! TCP or MPTCP streams that want all the room there is.
//!
//! Each stream is two threads that do nothing but write or read blocks of 128 KiB, as iperf3 does,
//! and a counter. There are no time-outs to arm and no clocks to read; a stream ends when its sockets are
//! shut down from outside.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context as _, Result};
use socket2::{SockAddr, Socket};

use super::processors::Processors;
use crate::netns::Namespace;
use crate::topology::Side;
use crate::traffic::tcp::{CUBIC, Transport};

/// Bytes per write and read.
const BLOCK: usize = 128 * 1024;
/// How long two ends may take to find each other. Three losses of a SYN cost 7 s (RFC 6298).
const CONNECT: Duration = Duration::from_secs(10);

/// Streams under way.
#[derive(Debug)]
pub(super) struct Streams {
    /// Keeps listening until the end: a further subflow of MPTCP begins with a separate SYN, which
    /// may arrive after its connection was accepted.
    listener: Socket,
    sockets: Vec<Socket>,
    received: Vec<Arc<AtomicU64>>,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

impl Streams {
    /// Starts `count` streams from the left host to `remote` in the right one, all with CUBIC. Their threads run on the
    /// hosts' processors, if there are any given.
    pub(super) fn start(
        [left, right]: [&Namespace; 2],
        remote: IpAddr,
        transport: Transport,
        count: usize,
        processors: Option<&Processors>,
    ) -> Result<Self> {
        let (listener, port) =
            right.run(|| listen(remote, transport, count)).context("cannot listen")?;
        let address = SocketAddr::new(remote, port);
        let mut streams =
            Self { listener, sockets: Vec::new(), received: Vec::new(), threads: Vec::new() };
        for _ in 0..count {
            let source = left.run(|| connect(address, transport))?;
            let (sink, _) = streams.listener.accept().context("a stream was never accepted")?;
            // The listener's limit is inherited.
            sink.set_read_timeout(None).context("cannot take the time limit from a stream")?;
            streams.add(source, sink, processors.copied())?;
        }
        Ok(streams)
    }

    /// Bytes that have arrived so far, over all streams.
    pub(super) fn received(&self) -> u64 {
        self.received.iter().map(|received| received.load(Ordering::Relaxed)).sum()
    }

    fn add(&mut self, source: Socket, sink: Socket, processors: Option<Processors>) -> Result<()> {
        for socket in [&source, &sink] {
            self.sockets.push(socket.try_clone().context("cannot share a socket")?);
        }
        let received = Arc::new(AtomicU64::new(0));
        self.received.push(Arc::clone(&received));
        let on = move |side| match processors {
            Some(processors) => processors.pin_thread(side),
            None => Ok(()),
        };
        self.spawn("bench-sink", move || on(Side::Right).map(|()| receive(sink, &received)))?;
        self.spawn("bench-source", move || on(Side::Left).map(|()| send(source)))
    }

    fn spawn(
        &mut self,
        name: &str,
        body: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> Result<()> {
        let thread = thread::Builder::new().name(name.into()).spawn(body);
        self.threads.push(thread.context("cannot start a thread")?);
        Ok(())
    }
}

impl Drop for Streams {
    /// Ends all streams: blocked threads are woken, and what is still queued is thrown away.
    fn drop(&mut self) {
        for socket in &self.sockets {
            // One that is closed already needs no shutting down.
            let _ = socket.set_linger(Some(Duration::ZERO));
            let _ = socket.shutdown(Shutdown::Both);
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Listens on a free port.
fn listen(remote: IpAddr, transport: Transport, count: usize) -> io::Result<(Socket, u16)> {
    let listener = transport.socket(remote)?;
    listener.bind(&SocketAddr::new(transport.bound(remote), 0).into())?;
    listener.listen(i32::try_from(count).unwrap_or(i32::MAX))?;
    // On Linux the receive time-out bounds accept as well (socket(7)).
    listener.set_read_timeout(Some(CONNECT))?;
    let address = listener.local_addr()?.as_socket().ok_or(io::ErrorKind::Unsupported)?;
    Ok((listener, address.port()))
}

fn connect(remote: SocketAddr, transport: Transport) -> Result<Socket> {
    let socket = transport.socket(remote.ip()).context("cannot make a socket")?;
    // By option and not by setting of the host: a namespace is not allowed all that the kernel has.
    socket.set_tcp_congestion(CUBIC.as_bytes()).context(
        "the kernel refuses TCP congestion control CUBIC; `modprobe tcp_cubic` may help",
    )?;
    socket
        .connect_timeout(&SockAddr::from(remote), CONNECT)
        .with_context(|| format!("no connection to {remote}"))?;
    Ok(socket)
}

fn receive(mut sink: Socket, received: &AtomicU64) {
    let mut block = vec![0; BLOCK];
    loop {
        match sink.read(&mut block) {
            Ok(0) => return,
            Ok(bytes) => drop(received.fetch_add(bytes as u64, Ordering::Relaxed)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

fn send(mut source: Socket) {
    // Not zero: untouched memory maps to the kernel's single zero page, and copying from a single
    // page is far faster than copying an application's data.
    let block = vec![0x5a; BLOCK];
    loop {
        match source.write(&block) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}
