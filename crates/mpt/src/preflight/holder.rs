//! Which process has a port, as far as `/proc` shows it to this user.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

/// The process with a UDP socket that keeps others from `local`, as `NAME (process NUMBER)`.
pub(super) fn of(local: SocketAddr) -> Option<String> {
    let table = if local.is_ipv4() { "udp" } else { "udp6" };
    named(&fs::read_to_string(format!("/proc/thread-self/net/{table}")).ok()?, local)
}

/// The same of a TCP socket that listens.
pub(super) fn of_tcp(local: SocketAddr) -> Option<String> {
    let table = if local.is_ipv4() { "tcp" } else { "tcp6" };
    let table = fs::read_to_string(format!("/proc/thread-self/net/{table}")).ok()?;
    named(&listening(&table), local)
}

/// The lines of sockets that listen, below the first line.
fn listening(table: &str) -> String {
    let listens = |line: &&str| matches!(line.split_whitespace().nth(3), Some("0A" | "st"));
    table.lines().filter(listens).map(|line| format!("{line}\n")).collect()
}

fn named(table: &str, local: SocketAddr) -> Option<String> {
    let inode = inode(table, local)?;
    let process = process_with(&format!("socket:[{inode}]"))?;
    let name = fs::read_to_string(process.join("comm")).ok()?;
    Some(format!("{} (process {})", name.trim(), process.file_name()?.to_str()?))
}

/// The process that has a descriptor which is `what`.
fn process_with(what: &str) -> Option<PathBuf> {
    let processes = fs::read_dir("/proc").ok()?.flatten().map(|entry| entry.path());
    let numbered = processes.filter(|path| {
        path.file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| name.parse::<u32>().is_ok())
    });
    // Those of other users cannot be looked into, and any may be gone meanwhile.
    numbered.into_iter().find(|process| {
        let descriptors = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        descriptors
            .filter_map(|descriptor| fs::read_link(descriptor.path()).ok())
            .any(|target| target.as_os_str() == what)
    })
}

/// The inode of the first socket in a table such as `/proc/net/udp` that keeps others from `local`.
fn inode(table: &str, local: SocketAddr) -> Option<u64> {
    table.lines().skip(1).find_map(|line| {
        let mut fields = line.split_whitespace();
        let (address, port) = fields.nth(1)?.split_once(':')?;
        let address = address_of(address)?;
        let same_port = u16::from_str_radix(port, 16).ok()? == local.port();
        let collides =
            address == local.ip() || address.is_unspecified() || local.ip().is_unspecified();
        // The inode is the tenth field.
        let inode = fields.nth(7)?.parse().ok()?;
        (same_port && collides).then_some(inode)
    })
}

/// An address as the kernel prints it: words of 32 bits, each as the machine has it in memory.
fn address_of(digits: &str) -> Option<IpAddr> {
    let words: Option<Vec<[u8; 4]>> = (0..digits.len())
        .step_by(8)
        .map(|at| u32::from_str_radix(digits.get(at..at + 8)?, 16).ok().map(u32::to_ne_bytes))
        .collect();
    let bytes = words?.concat();
    let v4 = || <[u8; 4]>::try_from(&bytes[..]).ok().map(|bytes| Ipv4Addr::from(bytes).into());
    v4().or_else(|| <[u8; 16]>::try_from(&bytes[..]).ok().map(|bytes| Ipv6Addr::from(bytes).into()))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream, UdpSocket};

    use super::*;

    const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
  17: 0100007F:1292 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 4711 2 0000000000000000 0
  18: 00000000:1293 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 4712 2 0000000000000000 0
";

    #[test]
    #[cfg(target_endian = "little")]
    fn the_first_socket_in_the_way_is_found() {
        for (local, expected) in [
            ("127.0.0.1:4754", Some(4711)),
            ("0.0.0.0:4754", Some(4711)),
            ("127.0.0.2:4754", None),
            ("192.0.2.1:4755", Some(4712)),
            ("192.0.2.1:4756", None),
        ] {
            assert_eq!(inode(TABLE, local.parse().unwrap()), expected, "{local}");
        }
        assert_eq!(
            address_of("00000000000000000000000001000000"),
            Some(Ipv6Addr::LOCALHOST.into())
        );
        assert_eq!(address_of("0100007"), None);
    }

    #[test]
    fn a_process_finds_itself() {
        for any in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(socket) = UdpSocket::bind(any) else { continue };
            let holder = of(socket.local_addr().unwrap()).unwrap();
            assert!(holder.ends_with(&format!("(process {})", std::process::id())), "{holder}");
        }
    }

    #[test]
    fn only_tcp_sockets_that_listen_hold_a_port() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let client = TcpStream::connect(at).unwrap();
        let (served, _) = listener.accept().unwrap();
        let holder = of_tcp(at).unwrap();
        assert!(holder.ends_with(&format!("(process {})", std::process::id())), "{holder}");
        drop(listener);
        assert_eq!(of_tcp(at), None);
        drop((client, served));
    }
}
