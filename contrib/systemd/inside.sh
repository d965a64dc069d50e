#!/bin/sh
# What test-unit.sh runs inside: the package's life from installation to removal.
#
# The left end is the host, with mpt.service as it ships. The right end is a network namespace, with
# mpt@right.service, to which a drop-in gives nothing but that namespace.
set -eu

trap 'status=$?; [ $status = 0 ] || {
    echo "inside: FAILED at: $step"
    systemctl --no-pager --lines=0 status mpt mpt@right || true
    for socket in /run/mpt/control.sock /run/mpt-right/control.sock; do
        [ ! -S "$socket" ] || mpt status --socket "$socket" || true
    done
    journalctl --no-pager --quiet --boot -u mpt -u mpt@right -n 60 || true
}' EXIT

begin() {
    step=$1
    echo "inside: $step"
}

# Fails with what was found where it is not what was wanted.
is() {
    [ "$1" = "$2" ] || { echo "inside: found '$1' instead of '$2'"; return 1; }
}

# Fails if a command succeeds.
not() {
    if "$@" 2>/dev/null; then
        echo "inside: this should have failed: $*"
        return 1
    fi
}

of() {
    systemctl show --property="$2" --value "$1"
}

# Waits until a command succeeds, 60 s at most: this machine is emulated.
await() {
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 300 ] || { echo "inside: not within 60 s: $*"; return 1; }
        sleep 0.2
    done
}

# Fails if not every ping is answered.
flawless() {
    ping -q -W 5 -i 0.05 "$@" > /root/ping 2>&1 || true
    grep -q ' 0% packet loss' /root/ping || { cat /root/ping; return 1; }
}

# Whether both paths are up, by the daemon's own word: what systemd shows may be some seconds old.
up() {
    [ "$(mpt status --json --socket "$1" | grep -c '"state": "up"')" = 2 ]
}

says() {
    of "$1" StatusText | grep -q "$2"
}

begin "installation enables and starts nothing"
dpkg -i /root/mpt.deb > /root/dpkg || { cat /root/dpkg; false; }
is "$(systemctl is-enabled mpt || true)" disabled
systemctl start mpt
is "$(of mpt ActiveState)" inactive
is "$(of mpt ConditionResult)" no

begin "two paths between the host and a namespace"
ip netns add right
for path in one two; do
    number=$([ $path = one ] && echo 1 || echo 2)
    ip link add $path type veth peer name $path netns right
    ip address add 10.$number.0.1/24 dev $path
    ip -n right address add 10.$number.0.2/24 dev $path
    ip link set $path up
    ip -n right link set $path up
done
ip -n right link set lo up

configuration() {
    [ $1 = 1 ] || printf '[control]\nsocket = "/run/mpt-right/control.sock"\n'
    cat <<TOML
[[tunnel]]
name = "mpt0"
addresses = ["10.9.0.$1/24", "fd00:9::$1/64"]
[[tunnel.connection]]
name = "peer"
peer = ["10.9.0.$2", "fd00:9::$2"]
reorder = { max_delay = 1 }
[[tunnel.connection.path]]
name = "one"
interface = "one"
local = "10.1.0.$1"
remote = "10.1.0.$2"
[[tunnel.connection.path]]
name = "two"
interface = "two"
local = "10.2.0.$1"
remote = "10.2.0.$2"
TOML
}
configuration 1 2 > /etc/mpt/mpt.toml
configuration 2 1 > /etc/mpt/right.toml
# As files are kept that hold keys.
chgrp mpt /etc/mpt/mpt.toml /etc/mpt/right.toml
chmod 0640 /etc/mpt/mpt.toml /etc/mpt/right.toml
not setpriv --reuid=65534 --regid=65534 --clear-groups cat /etc/mpt/mpt.toml
mpt check /etc/mpt/mpt.toml
mpt check /etc/mpt/right.toml
mkdir -p /etc/systemd/system/mpt@right.service.d /etc/systemd/system/mpt.service.d
printf '[Service]\nNetworkNamespacePath=/run/netns/right\n' \
    > /etc/systemd/system/mpt@right.service.d/namespace.conf
# The watchdog of a service that nobody waits for in a test.
printf '[Service]\nWatchdogSec=10\n' > /etc/systemd/system/mpt.service.d/watchdog.conf
systemctl daemon-reload

begin "both start in their sandbox and say that they are ready"
systemctl enable --quiet --now mpt mpt@right
for unit in mpt mpt@right; do
    is "$(of $unit ActiveState)/$(of $unit SubState)" active/running
    is "$(of $unit NRestarts)" 0
done
await says mpt "2 of 2 paths up"
await says mpt@right "2 of 2 paths up"
is "$(ip -o link show mpt0 | grep -c UP)" 1

begin "packets pass, small and large, IPv4 and IPv6"
flawless -c 50 10.9.0.2
flawless -c 20 -s 1300 10.9.0.2
flawless -c 20 -s 30000 10.9.0.2
flawless -c 20 fd00:9::2

begin "it reads its configuration by its group, and by nothing else"
is "$(stat -c %U:%G:%a /etc/mpt/mpt.toml)" root:mpt:640
systemctl reload mpt
chmod 0600 /etc/mpt/mpt.toml
not systemctl reload mpt
chmod 0640 /etc/mpt/mpt.toml
is "$(of mpt ActiveState)/$(of mpt SubState)" active/running

begin "the process has one right, a user of its own, and a filter of system calls"
pid=$(of mpt MainPID)
right() { sed -n "s/^$1:[[:space:]]*//p" "/proc/$pid/status"; }
for set in CapEff CapPrm CapBnd; do is "$(right $set)" 0000000000001000; done
for set in CapInh CapAmb; do is "$(right $set)" 0000000000000000; done
is "$(right NoNewPrivs)" 1
is "$(right Seccomp)" 2
[ "$(stat -c %u /proc/$pid)" != 0 ]

begin "an administrator may ask, and others may not"
mpt status | grep -q peer
mpt status --socket /run/mpt-right/control.sock | grep -q peer
not setpriv --reuid=65534 --regid=65534 --clear-groups mpt status

begin "a reload changes nothing that did not change, and loses no packet"
flawless -c 100 10.9.0.2 &
pings=$!
systemctl reload mpt
wait $pings
is "$(of mpt ActiveState)/$(of mpt SubState)" active/running
is "$(of mpt MainPID)" "$pid"

begin "the watchdog hears of it while it lives"
before=$(of mpt WatchdogTimestampMonotonic)
heard() { [ "$(of mpt WatchdogTimestampMonotonic)" -gt "$before" ]; }
await heard
is "$(of mpt NRestarts)" 0

begin "the watchdog ends one that stands still, and it comes back"
kill -STOP "$pid"
restarted() { [ "$(of mpt NRestarts)" = 1 ] && [ "$(of mpt ActiveState)" = active ]; }
await restarted
await up /run/mpt/control.sock
await up /run/mpt-right/control.sock
flawless -c 20 10.9.0.2

begin "an upgrade restarts what runs, and keeps what was changed"
pid=$(of mpt MainPID)
echo '# mine' >> /etc/mpt/mpt.toml.example
dpkg -i /root/mpt.deb > /root/dpkg || { cat /root/dpkg; false; }
is "$(of mpt ActiveState)" active
not is "$(of mpt MainPID)" "$pid" > /dev/null
tail -n 1 /etc/mpt/mpt.toml.example | grep -q '^# mine$'
await up /run/mpt/control.sock
await up /run/mpt-right/control.sock
flawless -c 20 10.9.0.2

begin "a stop is clean and leaves nothing"
systemctl stop mpt mpt@right
for unit in mpt mpt@right; do is "$(of $unit ActiveState)/$(of $unit Result)" inactive/success; done
not ip link show mpt0
not ip -n right link show mpt0
[ ! -e /run/mpt ]
[ ! -e /run/mpt-right ]

begin "removal stops what runs and leaves the configuration"
systemctl start mpt
dpkg -r mpt > /root/dpkg || { cat /root/dpkg; false; }
is "$(of mpt ActiveState)" inactive
not ip link show mpt0
[ ! -e /usr/bin/mpt ]
is "$(ls /etc/mpt | tr '\n' ' ')" "mpt.toml mpt.toml.example right.toml "

begin "purging leaves what the administrator wrote"
dpkg -P mpt > /root/dpkg || { cat /root/dpkg; false; }
is "$(ls /etc/mpt | tr '\n' ' ')" "mpt.toml right.toml "
left=$(ls -d /usr/share/doc/mpt* /usr/share/man/man*/mpt* /usr/share/*/*completions*/*mpt /run/mpt* \
    /usr/lib/sysusers.d/mpt* /lib/systemd/system/mpt* /etc/systemd/system/*.wants/mpt* /var/lib/systemd/*/mpt* \
    /var/lib/private/mpt* 2>/dev/null || true)
is "$left" ""

echo "inside: all passed"
