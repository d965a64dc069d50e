#!/usr/bin/env python3
"""GRE-in-UDP frames (RFC 8086) as scapy makes them: what MPT writes and reads is compared with these.

Prints frames.txt, whose head describes its columns. Needs scapy (Debian: python3-scapy).
"""

import sys

try:
    from scapy.layers.inet import IP, UDP
    from scapy.layers.inet6 import IPv6
    from scapy.layers.l2 import GRE
except ImportError as error:
    print(f"frames.py: {error}: apt-get install python3-scapy", file=sys.stderr)
    sys.exit(3)

PORT = 4754
KEYS = [0, 7, 0xDEADBEEF, 0xFFFFFFFF]
# The first numbers of a connection, and places where arithmetic goes wrong.
SEQUENCES = [0, 1, 2, 5]
EXTREMES = [0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]
# Bytes in the inner UDP datagram: none, odd, even, and a full packet that is odd in all.
LENGTHS = [0, 1, 22]
FULL = 1369
NOT_ECT, ECT_1, ECT_0, CE = range(4)
# Best effort, expedited forwarding, and with congestion notification: AF41, CS6.
TYPES = [0x00, 0xB8, 0x88 | ECT_0, 0xC0 | ECT_1]

HEAD = """\
# Made by frames.py with scapy: whole outer IP packets, each from the first host to the second.
# outer, inner: IP versions. C: whether there is a GRE checksum. K, S: key and sequence number, or -.
# tos: type of service or traffic class of the outer header. delivered: what comes out at the other
# end, or = for the inner packet as it is in the frame.
# outer inner C K S tos frame delivered"""


def ip(version, host, tos):
    """An IP header from host 1 to host 2 of a network, with everything set that has a say in its bytes."""
    if version == 4:
        addresses = [f"10.{host}.0.{end}" for end in (1, 2)]
        return IP(src=addresses[0], dst=addresses[1], tos=tos, id=0, flags="DF", ttl=64)
    addresses = [f"fd00:{host}::{end}" for end in (1, 2)]
    return IPv6(src=addresses[0], dst=addresses[1], tc=tos, fl=0, hlim=64)


def inner_packet(version, length, tos):
    """A UDP datagram in the tunnel. Its payload counts, and does not end with the zeros of padding."""
    payload = bytes((number + 1) % 256 for number in range(length))
    return ip(version, 9, tos) / UDP(sport=5001, dport=9) / payload


def frame(outer, packet, checksum, key, sequence, tos):
    """The packet in GRE, in UDP, in IP."""
    gre = GRE(proto=0x0800 if isinstance(packet, IP) else 0x86DD)
    if checksum:
        gre.chksum_present = 1
    if key is not None:
        gre.key_present = 1
        gre.key = key
    if sequence is not None:
        gre.seqnum_present = 1
        gre.sequence_number = sequence
    return ip(outer, 0, tos) / UDP(sport=PORT, dport=PORT) / gre / packet


def line(outer, inner, checksum, key, sequence, tos, length, sent_tos=None, delivered_tos=None):
    """A line of the file: `sent_tos` where the outer header was marked on the way."""
    inner_tos = tos if sent_tos is None else sent_tos
    packet = inner_packet(inner, length, inner_tos)
    made = bytes(frame(outer, packet, checksum, key, sequence, tos))
    delivered = "="
    if delivered_tos is not None:
        delivered = bytes(inner_packet(inner, length, delivered_tos)).hex()
    optional = ["-" if value is None else str(value) for value in (key, sequence)]
    return " ".join(
        [str(outer), str(inner), str(int(checksum)), *optional, str(tos), made.hex(), delivered]
    )


def lines():
    """All lines but the head."""
    turn = 0

    def next_of(values):
        return values[turn % len(values)]

    for outer in (4, 6):
        for inner in (4, 6):
            for options in range(8):
                checksum, with_key, with_sequence = (bool(options & bit) for bit in (4, 2, 1))
                for length in LENGTHS:
                    key = next_of(KEYS) if with_key else None
                    sequence = next_of(SEQUENCES) if with_sequence else None
                    yield line(outer, inner, checksum, key, sequence, next_of(TYPES), length)
                    turn += 1
            # Everything at once in a full packet.
            yield line(outer, inner, True, 7, 3, 0, FULL)
            for sequence in EXTREMES:
                yield line(outer, inner, True, 7, sequence, 0, 1)
            # A router has met congestion: RFC 6040, section 4.2.
            for sent in (ECT_0, ECT_1):
                tos = 0xB8
                yield line(outer, inner, True, 7, 0, tos | CE, 1, tos | sent, tos | CE)


if __name__ == "__main__":
    print(HEAD)
    for one in lines():
        print(one)
