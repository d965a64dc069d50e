//! The pcapng file format, as far as a capture needs it.
//!
//! A file is a sequence of blocks (draft-ietf-opsawg-pcapng): one that begins a section, one for each
//! interface, one for each packet, and at the end one for each interface with what was counted
//! there. All lengths are padded to 32 bits, all numbers are little-endian, all times are
//! nanoseconds since 1970.

use std::io::{self, Write};
use std::time::Duration;

use crate::emulator::Way;

/// Types of blocks.
const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const STATISTICS: u32 = 5;
const PACKET: u32 = 6;

/// In the section's block it determines the byte order.
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// The length of a section of unknown length.
const UNKNOWN_LENGTH: u64 = u64::MAX;
/// Packets begin with their IP header, of either version (`LINKTYPE_RAW`).
const RAW: u16 = 101;
/// Times are counted in units of ten to the power of minus nine seconds.
const NANOSECONDS: u8 = 9;

/// Options of all blocks.
const END_OF_OPTIONS: u16 = 0;
const COMMENT: u16 = 1;
/// Options of a section.
const SECTION_APPLICATION: u16 = 4;
/// Options of an interface.
const INTERFACE_NAME: u16 = 2;
const INTERFACE_DESCRIPTION: u16 = 3;
const INTERFACE_RESOLUTION: u16 = 9;
/// Options of a packet.
const PACKET_FLAGS: u16 = 2;
/// Options of statistics.
const STATISTICS_START: u16 = 2;
const STATISTICS_END: u16 = 3;
const STATISTICS_RECEIVED: u16 = 4;
const STATISTICS_DROPPED: u16 = 5;
const STATISTICS_DELIVERED: u16 = 8;

/// A packet as it goes to the file.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// The number that [`Writer::interface`] gave.
    pub interface: u32,
    /// When, since 1970.
    pub at: Duration,
    /// Which way.
    pub way: Way,
    /// Its first bytes, from the IP header on.
    pub bytes: &'a [u8],
    /// How long it was before it was cut to `bytes`.
    pub length: u32,
    /// Its comment; none if empty.
    pub comment: &'a str,
}

/// What happened at an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// When the capture began and ended, since 1970.
    pub start: Duration,
    /// See `start`.
    pub end: Duration,
    /// Packets in the file.
    pub written: u64,
    /// Packets that passed, but are not in the file, because something did not keep up.
    pub dropped: u64,
}

/// A file being written.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    interfaces: u32,
    block: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Begins a file.
    ///
    /// # Errors
    ///
    /// Those of `out`, here and below.
    pub fn new(out: W, application: &str) -> io::Result<Self> {
        let mut writer = Self { out, interfaces: 0, block: Vec::new() };
        writer.put(&BYTE_ORDER.to_le_bytes());
        writer.put(&1_u16.to_le_bytes());
        writer.put(&0_u16.to_le_bytes());
        writer.put(&UNKNOWN_LENGTH.to_le_bytes());
        writer.option(SECTION_APPLICATION, application.as_bytes());
        writer.option(END_OF_OPTIONS, &[]);
        writer.end_block(SECTION)?;
        Ok(writer)
    }

    /// Introduces an interface and gives it the next number, counted from 0. `snap` is the most
    /// bytes of a packet that are written.
    ///
    /// # Errors
    ///
    /// See [`new`](Self::new).
    pub fn interface(&mut self, name: &str, description: &str, snap: u32) -> io::Result<u32> {
        self.put(&RAW.to_le_bytes());
        self.put(&0_u16.to_le_bytes());
        self.put(&snap.to_le_bytes());
        self.option(INTERFACE_NAME, name.as_bytes());
        self.option(INTERFACE_DESCRIPTION, description.as_bytes());
        self.option(INTERFACE_RESOLUTION, &[NANOSECONDS]);
        self.option(END_OF_OPTIONS, &[]);
        self.end_block(INTERFACE)?;
        self.interfaces += 1;
        Ok(self.interfaces - 1)
    }

    /// Writes a packet.
    ///
    /// # Errors
    ///
    /// See [`new`](Self::new).
    pub fn packet(&mut self, packet: &Packet<'_>) -> io::Result<()> {
        self.put(&packet.interface.to_le_bytes());
        self.time(packet.at);
        self.put(&length(packet.bytes).to_le_bytes());
        self.put(&packet.length.to_le_bytes());
        self.put(packet.bytes);
        self.pad();
        if !packet.comment.is_empty() {
            self.option(COMMENT, packet.comment.as_bytes());
        }
        let flags = match packet.way {
            Way::In => 1_u32,
            Way::Out => 2,
        };
        self.option(PACKET_FLAGS, &flags.to_le_bytes());
        self.option(END_OF_OPTIONS, &[]);
        self.end_block(PACKET)
    }

    /// Writes what was counted at an interface.
    ///
    /// # Errors
    ///
    /// See [`new`](Self::new).
    pub fn statistics(&mut self, interface: u32, statistics: &Statistics) -> io::Result<()> {
        let Statistics { start, end, written, dropped } = *statistics;
        self.put(&interface.to_le_bytes());
        self.time(end);
        for (code, time) in [(STATISTICS_START, start), (STATISTICS_END, end)] {
            self.option(code, &halves(time).concat());
        }
        for (code, count) in [
            (STATISTICS_RECEIVED, written + dropped),
            (STATISTICS_DROPPED, dropped),
            (STATISTICS_DELIVERED, written),
        ] {
            self.option(code, &count.to_le_bytes());
        }
        self.option(END_OF_OPTIONS, &[]);
        self.end_block(STATISTICS)
    }

    /// Hands everything to where it goes and gives it back.
    ///
    /// # Errors
    ///
    /// See [`new`](Self::new).
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn put(&mut self, bytes: &[u8]) {
        self.block.extend_from_slice(bytes);
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    fn time(&mut self, time: Duration) {
        self.put(&halves(time).concat());
    }

    /// An option; one whose value is longer than 65535 bytes is cut there.
    fn option(&mut self, code: u16, value: &[u8]) {
        let value = &value[..value.len().min(u16::MAX.into())];
        self.put(&code.to_le_bytes());
        self.put(&(length(value) as u16).to_le_bytes());
        self.put(value);
        self.pad();
    }

    /// Writes what was put, with what belongs before and behind it.
    fn end_block(&mut self, kind: u32) -> io::Result<()> {
        let length = (length(&self.block) + 12).to_le_bytes();
        for part in [&kind.to_le_bytes(), &length, self.block.as_slice(), &length] {
            self.out.write_all(part)?;
        }
        self.block.clear();
        Ok(())
    }
}

/// A time in two halves, the upper first, as the format wants it.
fn halves(time: Duration) -> [[u8; 4]; 2] {
    let nanos = time.as_nanos();
    [nanos >> 32, nanos].map(|half| (half as u32).to_le_bytes())
}

/// How long something is. Nothing here comes near the limit.
fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("blocks are far below 4 GiB")
}

#[cfg(test)]
mod tests {
    use pcap_parser::pcapng::{Block, PcapNGOption, parse_block_le};
    use pcap_parser::{Linktype, OptionCode};

    use super::*;

    /// Reads a file with a parser that is not ours.
    fn blocks(mut file: &[u8]) -> Vec<Block<'_>> {
        let mut blocks = Vec::new();
        while !file.is_empty() {
            let (rest, block) = parse_block_le(file).expect("a block");
            blocks.push(block);
            file = rest;
        }
        blocks
    }

    fn value<'a>(options: &'a [PcapNGOption<'_>], code: u16) -> &'a [u8] {
        let found = options.iter().find(|option| option.code == OptionCode(code));
        let option = found.unwrap_or_else(|| panic!("no option {code}"));
        &option.value[..option.len.into()]
    }

    const AT: Duration = Duration::new(1_700_000_000, 123_456_789);

    #[test]
    fn another_reader_finds_what_was_written() {
        let mut writer = Writer::new(Vec::new(), "the lab").unwrap();
        assert_eq!(writer.interface("left fibre", "link fibre at host left", 9).unwrap(), 0);
        assert_eq!(writer.interface("right fibre", "link fibre at host right", 9).unwrap(), 1);
        let packet = Packet {
            interface: 1,
            at: AT,
            way: Way::Out,
            bytes: b"12345",
            length: 1500,
            comment: "lost",
        };
        writer.packet(&packet).unwrap();
        writer.packet(&Packet { way: Way::In, comment: "", bytes: &[], ..packet }).unwrap();
        let end = AT + Duration::from_secs(1);
        writer.statistics(1, &Statistics { start: AT, end, written: 2, dropped: 7 }).unwrap();
        let file = writer.finish().unwrap();

        let blocks = blocks(&file);
        let [
            Block::SectionHeader(section),
            Block::InterfaceDescription(left),
            Block::InterfaceDescription(right),
            Block::EnhancedPacket(first),
            Block::EnhancedPacket(second),
            Block::InterfaceStatistics(statistics),
        ] = blocks.as_slice()
        else {
            panic!("{blocks:?}")
        };
        assert_eq!((section.major_version, section.minor_version), (1, 0));
        assert_eq!(section.section_len, -1);
        assert_eq!(value(&section.options, 4), b"the lab");
        for (interface, name) in [(left, "left fibre"), (right, "right fibre")] {
            assert_eq!((interface.linktype, interface.snaplen), (Linktype::RAW, 9));
            assert_eq!(value(&interface.options, 2), name.as_bytes());
            assert_eq!(interface.if_tsresol, 9);
        }
        assert_eq!(value(&right.options, 3), b"link fibre at host right");

        let resolution = right.ts_resolution().unwrap();
        for packet in [first, second] {
            assert_eq!((packet.if_id, packet.origlen), (1, 1500));
            let (seconds, nanos) = packet.decode_ts(right.ts_offset() as u64, resolution);
            assert_eq!(Duration::new(seconds.into(), nanos), AT);
        }
        assert_eq!((first.caplen, &first.data[..5]), (5, b"12345".as_slice()));
        assert_eq!(value(&first.options, 1), b"lost");
        assert_eq!(value(&first.options, 2), 2_u32.to_le_bytes());
        assert_eq!(second.caplen, 0);
        assert_eq!(value(&second.options, 2), 1_u32.to_le_bytes());
        assert!(second.options.iter().all(|option| option.code != OptionCode(1)));

        assert_eq!(statistics.if_id, 1);
        for (code, count) in [(4, 9_u64), (5, 7), (8, 2)] {
            assert_eq!(value(&statistics.options, code), count.to_le_bytes());
        }
    }

    #[test]
    fn every_length_is_padded_and_written_twice() {
        for len in 0..9 {
            let mut writer = Writer::new(Vec::new(), "x").unwrap();
            writer.interface("i", "", 100).unwrap();
            let before = writer.out.len();
            let bytes = vec![0xff; len];
            let packet = Packet {
                interface: 0,
                at: AT,
                way: Way::In,
                bytes: &bytes,
                length: 9,
                comment: "",
            };
            writer.packet(&packet).unwrap();
            let block = &writer.out[before..];
            assert_eq!(block.len() % 4, 0);
            let told = |at: usize| u32::from_le_bytes(block[at..at + 4].try_into().unwrap());
            assert_eq!((told(4), told(block.len() - 4)), (length(block), length(block)));
            assert_eq!(&block[28..28 + len], bytes);
        }
    }
}
