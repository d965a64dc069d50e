#!/usr/bin/env bash
# Makes the pictures of docs/images again, from what the programs show on this machine: `web.png` (the web page), `watch.png`
# (`mpt status --watch`), `demo.png` (`cargo demo`) and `report.png` (the head of a report of the lab).
#
# Use: contrib/pictures/make.sh [web|watch|demo|report]...     all of them by default; five minutes after the build
#
# Needs what the lab needs, and chromium, pngquant, tmux, python3 and the font DejaVu Sans Mono.
# Exit code: 0 if they are made, 1 if one failed, 2 if something is missing.
set -euo pipefail
cd "$(dirname "$0")/../.."

for program in chromium pngquant tmux python3; do
    command -v $program >/dev/null || { echo "pictures: missing: apt-get install $program" >&2; exit 2; }
done
images=$PWD/docs/images here=$PWD/contrib/pictures
work=$(mktemp -d) terminal=mpt-pictures-$$
lab= running=
finish() {
    [ -z "$running" ] || kill $running 2>/dev/null || true
    tmux -L $terminal kill-server 2>/dev/null || true
    [ -z "$lab" ] || { kill "$lab" 2>/dev/null && wait "$lab" || true; }
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' HUP INT TERM

cargo build --quiet --release --package mpt --package mpt-lab
programs=$(cargo metadata --format-version 1 --no-deps | python3 -c 'import json,sys;print(json.load(sys.stdin)["target_directory"])')/release

# A page as a picture of this size, WIDTH,HEIGHT, and by this scale.
shoot() {
    HOME=$work chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars \
        --no-first-run --disable-background-networking --user-data-dir="$work/profile" \
        --force-device-scale-factor="${4:-1}" --window-size="$2" --screenshot="$images/$3" "file://$1" >"$work/chromium" 2>&1 ||
        { cat "$work/chromium" >&2; return 1; }
    shrink "$3"
}

# A palette of up to 256 colours makes a picture a third as large. `cargo xtask tidy` refuses one above 200 kB.
shrink() {
    pngquant --quality 70-98 --speed 1 --strip --force --output "$images/$1" "$images/$1"
    echo "pictures: docs/images/$1, $(stat -c %s "$images/$1") bytes"
}

# What a terminal shows now, as a picture.
shoot_terminal() {
    tmux -L $terminal capture-pane -e -p >"$work/captured"
    size=$(python3 "$here/terminal.py" <"$work/captured" 2>&1 >"$work/terminal.html")
    shoot "$work/terminal.html" "$size" "$1"
}

open_terminal() {
    tmux -L $terminal -f /dev/null new-session -d -x "$1" -y "$2" "$3"
}

# Waits until a command succeeds, for a number of seconds.
until_it() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ $SECONDS -lt $end ] || { echo "pictures: not within its time: $*" >&2; return 1; }
        sleep 0.2
    done
}

web() {
    MPT_NO_SKIP=1 MPT_PICTURE=$images/web.png cargo test --quiet --package mpt --test tunnel web_page_shows
    shrink web.png
}

demo() {
    # It names itself as it can be called from this folder, which is as in a clone of the repository.
    mkdir -p "$work/target/release"
    cp "$programs/mpt" "$programs/mpt-lab" "$work/target/release"
    open_terminal 100 70 "tput civis; cd '$work' && target/release/mpt-lab demo && touch over; exec cat"
    until_it 240 test -e "$work/over"
    shoot_terminal demo.png
    tmux -L $terminal kill-server
}

watch() {
    cat >"$work/experiment.toml" <<'END'
title = "Two uplinks"
question = "What does the live view show?"
[[link]]
name = "fibre"
rate_mbps = 40
delay_ms = 5
[[link]]
name = "lte"
rate_mbps = 20
delay_ms = 15
loss = 0.002
[tunnel]
framing = "extended"
scheduler = "earliest"
END
    "$programs/mpt-lab" up "$work/experiment.toml" --name pictures >"$work/up" 2>&1 &
    lab=$!
    until_it 30 grep -q 'Ctrl-C ends it' "$work/up"
    socket=$(sed -n 's/.* status --socket \([^ ]*\) .*left.*/\1/p' "$work/up")
    # In place of the shell that starts it, so that it is what ends.
    inside() { exec "$programs/mpt-lab" shell "$1" --lab pictures -- python3 -c "$2" >/dev/null 2>&1; }
    inside right '
import socket
listener = socket.create_server(("10.9.0.2", 9000))
connection = listener.accept()[0]
while connection.recv(1 << 20): pass' &
    running=$!
    inside left '
import socket, time
while True:
    try:
        connection = socket.create_connection(("10.9.0.2", 9000))
        break
    except OSError:
        time.sleep(0.1)
end = time.monotonic() + 60
while time.monotonic() < end: connection.sendall(bytes(1 << 16))' &
    running+=" $!"
    open_terminal 112 19 "$programs/mpt status --watch --socket $socket"
    # The flow has found what both links carry.
    is_fast() { tmux -L $terminal capture-pane -p | grep -q 'out 5[4-9]\.[0-9] Mbit'; }
    until_it 40 is_fast
    shoot_terminal watch.png
    tmux -L $terminal kill-server
}

report() {
    # The report names the command as it was given.
    (cd "$work" && "$programs/mpt-lab" run electronics-2025-figure-8 --quick --out results) >"$work/run" 2>&1 ||
        { cat "$work/run" >&2; return 1; }
    "$programs/mpt-lab" report "$work/results" >/dev/null
    # As far as the first table.
    shoot "$work/results/report.html" 1100,2110 report.png 0.7
}

for picture in "${@:-web watch demo report}"; do
    for one in $picture; do
        case $one in
            web | watch | demo | report) $one ;;
            *) echo "pictures: there is no $one: there are web, watch, demo, report" >&2; exit 2 ;;
        esac
    done
done
