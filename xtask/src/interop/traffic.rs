//! A transfer over TCP in both directions, between two processes in two namespaces.
//!
//! The client sends its bytes and then ends its direction; the server has to find exactly these, and
//! answers with others, which the client has to find. What differs, is missing or is too much fails it.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use anyhow::{Context, bail};

/// Bytes in each direction: nearly two hundred full packets, and many times what a window begins with.
const LEN: usize = 256 * 1024;

/// Silence after which a transfer has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// What the server prints when it can be reached.
pub(super) const LISTENING: &str = "listening";

/// Waits for one client at `address`, which has the port 0 and gets another; prints that one.
pub(super) fn serve(address: SocketAddr) -> anyhow::Result<()> {
    let listener = TcpListener::bind(address).with_context(|| format!("cannot bind {address}"))?;
    println!("{LISTENING} {}", listener.local_addr()?.port());
    let (stream, _) = listener.accept()?;
    patient(&stream)?;
    expect(&stream, b'c').context("the server")?;
    send(&stream, b's').context("the server")
}

/// Sends to the server at `address` and has its answer.
pub(super) fn fetch(address: SocketAddr) -> anyhow::Result<()> {
    let stream = TcpStream::connect_timeout(&address, PATIENCE)
        .with_context(|| format!("cannot connect to {address}"))?;
    patient(&stream)?;
    send(&stream, b'c').context("the client")?;
    expect(&stream, b's').context("the client")
}

fn patient(stream: &TcpStream) -> anyhow::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(())
}

/// The bytes of one direction: all positions differ, so that exchanged packets are detected.
fn bytes(direction: u8) -> Vec<u8> {
    let mut state = u32::from(direction);
    let byte = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..LEN).map(byte).collect()
}

fn send(mut stream: &TcpStream, direction: u8) -> anyhow::Result<()> {
    stream.write_all(&bytes(direction)).context("cannot send")?;
    stream.shutdown(Shutdown::Write).context("cannot end")
}

fn expect(mut stream: &TcpStream, direction: u8) -> anyhow::Result<()> {
    let mut got = Vec::with_capacity(LEN);
    stream.read_to_end(&mut got).with_context(|| format!("after {} of {LEN} bytes", got.len()))?;
    let expected = bytes(direction);
    if got != expected {
        let same = got.iter().zip(&expected).take_while(|(got, expected)| got == expected).count();
        bail!("of {LEN} bytes {} came, right up to {same}", got.len());
    }
    Ok(())
}
