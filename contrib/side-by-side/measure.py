#!/usr/bin/env python3
"""Tunnels that differ in their settings, side by side: all of them stand at once, and one TCP flow uses them in turn.

usage: sudo measure.py MPT [--wire] [--rounds N] [--seconds N] [--pin CPUS] NAME=FRAMING[,SCHEDULER[,THREADS]] ...

For example, sealed over extended framing, with the sending daemon, the receiving daemon, the sender and the receiver on these processors:

    measure.py target/release/mpt --wire --pin 0,1,0,1 extended=extended sealed=sealed

Two network namespaces, joined by a veth pair for each tunnel; with --wire, without segmentation offload. Ratios to the first tunnel
are taken within each round; medians, and in brackets the least and the greatest. Seconds are processor seconds for a gigabit of
payload. Needs ip, and with --wire ethtool; everything that it makes goes when it ends.
"""

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time

TCP_CONGESTION = 13
BLOCK = 128 * 1024
TICKS = os.sysconf("SC_CLK_TCK")
LEFT, RIGHT = f"mptL{os.getpid()}", f"mptR{os.getpid()}"

CONFIG = """[control]
socket = "{folder}/{name}-{side}.sock"
[[tunnel]]
name = "t{number}"
addresses = ["10.8.{number}.{own}/24"]
{private}
[[tunnel.connection]]
name = "c"
peer = ["10.8.{number}.{other}"]
local_port = {port}
remote_port = {port}
framing = "{framing}"
scheduler = "{scheduler}"
{public}
[[tunnel.connection.path]]
name = "p"
local = "10.9.{number}.{own}"
remote = "10.9.{number}.{other}"
"""


def run(*command, stdin=None):
    done = subprocess.run(command, input=stdin, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def inside(namespace, *command, **options):
    return subprocess.Popen(["ip", "netns", "exec", namespace, *command], **options)


def ticks(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def link(number, wire):
    """One pair of interfaces."""
    name = f"v{number}"
    run("ip", "-n", LEFT, "link", "add", name, "type", "veth", "peer", "name", name, "netns", RIGHT)
    for namespace, host in ((LEFT, 1), (RIGHT, 2)):
        if wire:
            off = ["tso", "off", "gso", "off", "tx-udp-segmentation", "off", "gro", "on"]
            run("ip", "netns", "exec", namespace, "ethtool", "-K", name, *off)
        run("ip", "-n", namespace, "link", "set", name, "addrgenmode", "none", "up")
        run("ip", "-n", namespace, "addr", "add", f"10.9.{number}.{host}/24", "dev", name)


def daemons(mpt, folder, keys, number, name, framing, scheduler="weighted", threads="1"):
    """Both daemons of a tunnel; the sending one first."""
    started = []
    for side, namespace, own, other in (("left", LEFT, 1, 2), ("right", RIGHT, 2, 1)):
        peer = "right" if side == "left" else "left"
        sealed = framing == "sealed"
        private = f'private_key_file = "{folder}/{side}.key"' if sealed else ""
        public = f'public_key = "{keys[peer]}"' if sealed else ""
        path = f"{folder}/{name}-{side}.toml"
        with open(path, "w") as file:
            file.write(CONFIG.format(port=4754 + number, **locals()))
        log = open(f"{folder}/{name}-{side}.log", "w")
        environment = dict(os.environ, MPT_THREADS=threads)
        started.append(inside(namespace, mpt, "run", path, stderr=log, env=environment))
    for _ in range(100):
        ping = inside(LEFT, "ping", "-c1", "-W1", f"10.8.{number}.2", stdout=subprocess.DEVNULL)
        if ping.wait() == 0:
            return started
        time.sleep(0.1)
    sys.exit(f"no tunnel {name}: " + open(f"{folder}/{name}-left.log").read())


def serve():
    """Receives flows, and answers each with gigabits and seconds."""
    server = socket.create_server(("0.0.0.0", 5001))
    print("ready", flush=True)
    block = memoryview(bytearray(BLOCK))
    while True:
        flow, _ = server.accept()
        count, begin = 0, time.monotonic()
        while taken := flow.recv_into(block):
            count += taken
        flow.sendall(f"{count * 8 / 1e9} {time.monotonic() - begin}".encode())
        flow.close()


def send(address, seconds):
    flow = socket.socket()
    flow.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"cubic")
    flow.connect((address, 5001))
    block, end = os.urandom(BLOCK), time.monotonic() + float(seconds)
    while time.monotonic() < end:
        flow.sendall(block)
    flow.shutdown(socket.SHUT_WR)
    print(flow.recv(100).decode())


def figure(values):
    return f"{statistics.median(values):.3f} [{min(values):.2f} - {max(values):.2f}]"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mpt")
    parser.add_argument("--wire", action="store_true")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--pin", type=lambda text: text.split(","))
    parser.add_argument("tunnels", nargs="+", metavar="NAME=FRAMING[,SCHEDULER[,THREADS]]")
    options = parser.parse_args()
    if options.pin and len(options.pin) != 4:
        parser.error("--pin takes four processors")
    names = [tunnel.split("=")[0] for tunnel in options.tunnels]
    started, results = [], {name: [] for name in names}
    with tempfile.TemporaryDirectory() as folder:
        try:
            for namespace in (LEFT, RIGHT):
                run("ip", "netns", "add", namespace)
                run("ip", "-n", namespace, "link", "set", "lo", "up")
            keys = {}
            for side in ("left", "right"):
                private = run(options.mpt, "genkey")
                with open(os.open(f"{folder}/{side}.key", os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
                    file.write(private + "\n")
                keys[side] = run(options.mpt, "pubkey", stdin=private)
            pairs = []
            for number, tunnel in enumerate(options.tunnels, 1):
                name, settings = tunnel.split("=")
                link(number, options.wire)
                pair = daemons(options.mpt, folder, keys, number, name, *settings.split(","))
                started.extend(pair)
                pairs.append(pair)
            on = [["taskset", "-c", cpu] for cpu in options.pin] if options.pin else [[]] * 4
            for pair in pairs if options.pin else []:
                for daemon, cpu in zip(pair, options.pin):
                    run("taskset", "-a", "-p", "-c", cpu, str(daemon.pid))
            sink = inside(RIGHT, *on[3], sys.executable, __file__, "--serve", stdout=subprocess.PIPE)
            started.append(sink)
            sink.stdout.readline()
            for round_number in range(options.rounds):
                turns = list(enumerate(zip(names, pairs), 1))
                for number, (name, pair) in turns if round_number % 2 == 0 else turns[::-1]:
                    before = [ticks(daemon.pid) for daemon in pair]
                    flow = [*on[2], sys.executable, __file__, "--send", f"10.8.{number}.2", str(options.seconds)]
                    gigabits, seconds = map(float, run("ip", "netns", "exec", LEFT, *flow).split())
                    used = [(ticks(daemon.pid) - then) / TICKS / gigabits for daemon, then in zip(pair, before)]
                    results[name].append((gigabits / seconds, *used))
        finally:
            for process in started:
                process.terminate()
                process.wait()
            for namespace in (LEFT, RIGHT):
                subprocess.run(["ip", "netns", "del", namespace], check=False)
    for name in names:
        rate, sending, receiving = (statistics.median(values) for values in zip(*results[name]))
        pairs = list(zip(results[name], results[names[0]]))
        over = [figure([own[part] / first[part] for own, first in pairs]) for part in (0, 1)]
        print(f"{name}: {rate:.2f} Gbit/s, sending {sending:.4f} s, receiving {receiving:.4f} s; "
              f"over {names[0]}: rate {over[0]}, sending time {over[1]}")


if sys.argv[1:2] == ["--serve"]:
    serve()
elif sys.argv[1:2] == ["--send"]:
    send(*sys.argv[2:])
else:
    main()
