#!/bin/sh
# Builds the programs without libraries and starts each in a folder where there is nothing else; the one for 64-bit ARM
# under QEMU. With a free network namespace (as root, or by user namespaces) the one for this machine also opens a tunnel.
#
# Use: contrib/static/test.sh     Exit code: 0 if they run, 2 if something is missing.
set -eu

cd "$(dirname "$0")/../.."
if ! command -v qemu-aarch64-static >/dev/null && [ "$(uname -m)" != aarch64 ]; then
    echo "test: missing: apt-get install qemu-user-static" >&2
    exit 2
fi
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
trap 'exit 1' HUP INT TERM
cargo xtask static --out "$out" || exit 2

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
for arch in amd64 arm64; do
    program=$out/mpt-$version-$arch
    case "$(uname -m)-$arch" in
        x86_64-amd64 | aarch64-arm64) emulator= ; own=$program ;;
        *) emulator=qemu-aarch64-static ;;
    esac
    is=$($emulator "$program" version)
    [ "$is" = "mpt $version" ] || { echo "test: it says '$is' instead of 'mpt $version'" >&2; exit 1; }
    $emulator "$program" check docs/mpt.toml >/dev/null || [ $? -eq 1 ]
    # Both ends of a handshake are keys: this is what the C code is for.
    [ "$($emulator "$program" genkey | $emulator "$program" pubkey | wc -c)" -eq 45 ]
    echo "test: $program starts"
done

# The daemon: TUN device, sockets, netlink, control socket.
unshare --map-root-user --net --mount --pid --fork --kill-child sh -eu -s "$own" "$out" <<'SCRIPT'
ip link set lo up
cat > "$2/mpt.toml" <<END
control.socket = "$2/control.sock"
[[tunnel]]
name = "mpt0"
addresses = ["10.9.0.1/24"]
[[tunnel.connection]]
name = "peer"
peer = ["10.9.0.2"]
remote = "127.0.0.2"
END
cd "$2"
"$1" run mpt.toml 2> log &
tries=0
until "$1" status --socket "$2/control.sock" > status 2>&1; do
    tries=$((tries + 1))
    [ $tries -lt 100 ] || { cat log >&2; exit 1; }
    sleep 0.1
done
grep 'tunnel mpt0' status
kill $!
wait $!
SCRIPT
echo "test: the daemon runs"
