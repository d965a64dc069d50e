#!/bin/sh
# Fetches Debian's Rust with the standard library of 64-bit ARM, to build for that on a PC where there is no
# rustup to install it. Nothing is installed: all is below cargo's output, in `debian-rust`, some 600 MB.
#
# Debian keeps a recent Rust beside the one of its release, as rustc-web, to build browsers. Package lists
# for both architectures are read with a configuration of their own, so the host's apt is not changed.
# Needs: apt-get and dpkg on amd64, and gcc-aarch64-linux-gnu with libc6-dev-arm64-cross to link.
#
# Use: contrib/arm64/fetch-rust.sh     Prints the compiler's place, to be given to `cargo xtask deb
# --arch arm64 --rustc`. Exit code: 0 if it is there.
set -eu

cd "$(dirname "$0")/../.."
target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target/debian-rust"
place=$(cd "$target/debian-rust" && pwd)
work=$(mktemp -d "$place/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

if [ "$(dpkg --print-architecture)" != amd64 ]; then
    echo "fetch-rust: this is for amd64; use rustup elsewhere" >&2
    exit 1
fi

# apt with lists, status and sources of its own.
mkdir -p "$work/lists/partial" "$work/archives/partial" "$work/sources" "$work/packages"
: > "$work/status"
for suite in "debian bookworm" "debian-security bookworm-security"; do
    cat >> "$work/sources/debian.sources" <<SOURCE
Types: deb
URIs: http://deb.debian.org/${suite% *}
Suites: ${suite#* }
Components: main
Architectures: amd64 arm64
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

SOURCE
done
cat > "$work/apt.conf" <<CONF
Dir::State "$work";
Dir::State::status "$work/status";
Dir::Cache "$work";
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$work/sources";
APT::Architectures { "amd64"; "arm64"; };
APT::Sandbox::User "$(id -un)";
CONF
export APT_CONFIG=$work/apt.conf
echo "fetch-rust: reading package lists" >&2
apt-get update -qq >&2

# The library's package is named after its version, and so is that of LLVM.
depends() {
    apt-cache depends "$1" | sed -n "s/^  Depends: \($2[^ ]*\)$/\1/p" | head -n 1
}
library=$(depends libstd-rust-web-dev libstd-rust-web-)
llvm=$(depends "$library" libllvm)
echo "fetch-rust: fetching $library, $llvm and what belongs to them" >&2
(cd "$work/packages" && apt-get download -qq rustc-web "$library" "$llvm" libstd-rust-web-dev \
    libstd-rust-web-dev:arm64 >&2)

rm -rf "$place/root"
for package in "$work"/packages/*.deb; do
    dpkg -x "$package" "$place/root"
done
cat > "$place/rustc" <<RUSTC
#!/bin/sh
LD_LIBRARY_PATH=$place/root/usr/lib/x86_64-linux-gnu exec $place/root/usr/bin/rustc "\$@"
RUSTC
chmod +x "$place/rustc"
"$place/rustc" --version >&2
echo "$place/rustc"
