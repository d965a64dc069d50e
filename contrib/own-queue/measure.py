#!/usr/bin/env python3
"""How long packets wait in the host's own queue where an interface has a shaper.

usage: sudo measure.py MPT [--framing extended|plain|none] [--congestion reno|cubic] [--flows N] [--seconds N] [--tbf ARGS]

Two network namespaces, joined by a veth pair whose left end has `tc qdisc add dev w0 root tbf rate 20mbit burst 16k latency 1s`, and
the program MPT in both. TCP flows run from left to right through the tunnel, and beside them 50 small UDP packets per second that are
echoed. Framing `none` does without a tunnel. Needs ip and tc; everything that it makes goes when it ends.
"""

import argparse
import ctypes
import os
import socket
import statistics
import struct
import subprocess
import tempfile
import threading
import time

CLONE_NEWNET = 0x40000000
TCP_CONGESTION = 13

CONFIG = """[control]
socket = "{folder}/{name}.sock"
[[tunnel]]
name = "mpt0"
addresses = ["{own}/24"]
[[tunnel.connection]]
name = "c"
peer = ["{peer}"]
framing = "{framing}"
[[tunnel.connection.path]]
name = "p"
interface = "w0"
remote = "{remote}"
"""


def run(command):
    return subprocess.run(command.split(), check=True, capture_output=True, text=True).stdout


def within(host, work, *arguments):
    """Does something in a thread of its own in a host."""

    def body():
        file = os.open(f"/run/netns/{host}", os.O_RDONLY)
        if ctypes.CDLL(None, use_errno=True).setns(file, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
        os.close(file)
        work(*arguments)

    thread = threading.Thread(target=body, daemon=True)
    thread.start()
    return thread


def start_tunnel(arguments, hosts, folder):
    ends = [("10.9.0.1", "10.9.0.2", "192.0.2.2"), ("10.9.0.2", "10.9.0.1", "192.0.2.1")]
    daemons = []
    for host, (own, peer, remote) in zip(hosts, ends):
        values = {"folder": folder, "name": host, "own": own, "peer": peer, "remote": remote}
        with open(f"{folder}/{host}.toml", "w") as file:
            file.write(CONFIG.format(framing=arguments.framing, **values))
        command = ["ip", "netns", "exec", host, arguments.mpt, "run", f"{folder}/{host}.toml"]
        with open(f"{folder}/{host}.log", "w") as log:
            daemons.append(subprocess.Popen(command, stdout=log, stderr=log))
    ask = [arguments.mpt, "status", "--json", "--socket", f"{folder}/{hosts[0]}.sock"]
    end = time.monotonic() + 10
    while '"up"' not in subprocess.run(ask, capture_output=True, text=True).stdout:
        if time.monotonic() > end:
            raise SystemExit(open(f"{folder}/{hosts[0]}.log").read())
        time.sleep(0.1)
    time.sleep(1)
    return daemons


def echo(server):
    while True:
        data, sender = server.recvfrom(2000)
        server.sendto(data, sender)


def serve(received):
    listener = socket.create_server(("0.0.0.0", 7001))
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("0.0.0.0", 7000))
    threading.Thread(target=echo, args=(server,), daemon=True).start()

    def take(connection):
        while data := connection.recv(1 << 16):
            received[0] += len(data)

    while True:
        threading.Thread(target=take, args=(listener.accept()[0],), daemon=True).start()


def ping(there, trips, end):
    client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    client.connect((there, 7000))
    client.setblocking(False)
    sent = []
    due = time.monotonic()
    while time.monotonic() < end:
        if time.monotonic() >= due:
            sent.append(time.monotonic())
            client.send(struct.pack("!I", len(sent) - 1) + bytes(52))
            due += 0.02
        try:
            number = struct.unpack("!I", client.recv(2000)[:4])[0]
            trips.append((sent[number], time.monotonic() - sent[number]))
        except BlockingIOError:
            time.sleep(0.0005)


def send(there, congestion, end):
    client = socket.socket()
    client.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, congestion.encode())
    client.connect((there, 7001))
    while time.monotonic() < end:
        client.send(bytes(1 << 16))


def backlog(host):
    """Bytes in the queue of the shaper."""
    text = run(f"ip netns exec {host} tc -s qdisc show dev w0").split("backlog ")[1].split("b")[0]
    scale = {"K": 1024, "M": 1 << 20}.get(text[-1])
    return float(text[:-1]) * scale if scale else float(text)


def measure(arguments, hosts, there):
    received, trips, queue = [0], [], []
    within(hosts[1], serve, received)
    time.sleep(0.5)
    begin = time.monotonic() + 2
    end = begin + arguments.seconds
    pings = within(hosts[0], ping, there, trips, end)
    time.sleep(2)
    for _ in range(arguments.flows):
        within(hosts[0], send, there, arguments.congestion, end)
    while time.monotonic() < begin + 2:
        time.sleep(0.01)
    before, since = received[0], time.monotonic()
    while time.monotonic() < end:
        queue.append(backlog(hosts[0]))
        time.sleep(0.1)
    goodput = (received[0] - before) * 8e-6 / (time.monotonic() - since)
    pings.join()
    for name, first, last in (("before", 0, begin), ("first 2 s", begin, begin + 2), ("after", begin + 2, end)):
        part = sorted(trip * 1000 for at, trip in trips if first <= at < last)
        at = lambda share: part[min(len(part) - 1, int(len(part) * share))]
        print(f"{name:9}  round trips: median {at(0.5):.1f}, 99 % {at(0.99):.1f}, longest {part[-1]:.1f} ms")
    print(f"after      goodput {goodput:.1f} Mbit/s; in the shaper: mean {statistics.mean(queue) / 1e3:.1f}, most {max(queue) / 1e3:.1f} kB")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mpt")
    parser.add_argument("--framing", default="extended")
    parser.add_argument("--congestion", default="reno")
    parser.add_argument("--flows", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=12)
    parser.add_argument("--tbf", default="rate 20mbit burst 16k latency 1s")
    arguments = parser.parse_args()
    hosts = [f"own-queue-{os.getpid()}-{side}" for side in "lr"]
    daemons = []
    try:
        for host in hosts:
            run(f"ip netns add {host}")
        run(f"ip -n {hosts[0]} link add w0 type veth peer name w0 netns {hosts[1]}")
        for host, address in zip(hosts, ("192.0.2.1/24", "192.0.2.2/24")):
            run(f"ip -n {host} address add {address} dev w0")
            run(f"ip -n {host} link set w0 up")
        run(f"ip netns exec {hosts[0]} tc qdisc add dev w0 root tbf {arguments.tbf}")
        with tempfile.TemporaryDirectory() as folder:
            there = "192.0.2.2"
            if arguments.framing != "none":
                there = "10.9.0.2"
                daemons = start_tunnel(arguments, hosts, folder)
            measure(arguments, hosts, there)
            for daemon in daemons:
                daemon.terminate()
                daemon.wait()
    finally:
        for daemon in daemons:
            daemon.kill()
            daemon.wait()
        for host in hosts:
            subprocess.run(["ip", "netns", "delete", host], check=False)


if __name__ == "__main__":
    main()
