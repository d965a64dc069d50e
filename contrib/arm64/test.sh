#!/bin/sh
# Builds the Debian package for 64-bit ARM on a PC, and starts its program under QEMU.
#
# The compiler is cargo's own if it has the standard library of that architecture, and otherwise
# Debian's, which fetch-rust.sh fetches. Needs no privilege; takes three to six minutes, mostly of building.
#
# Use: contrib/arm64/test.sh     Exit code: 0 if the program runs, 2 if something is missing.
set -eu

cd "$(dirname "$0")/../.."
missing=
for need in cargo:cargo dpkg-deb:dpkg aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu \
    qemu-aarch64-static:qemu-user-static; do
    command -v "${need%%:*}" >/dev/null || missing="$missing ${need#*:}"
done
[ -e /usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1 ] || missing="$missing libc6-dev-arm64-cross"
if [ -n "$missing" ]; then
    echo "test: missing: apt-get install$missing" >&2
    exit 2
fi

set -- --arch arm64
if ! ls "$(rustc --print target-libdir --target aarch64-unknown-linux-gnu)"/libstd-* >/dev/null 2>&1; then
    rustc=${CARGO_TARGET_DIR:-target}/debian-rust/rustc
    [ -x "$rustc" ] || contrib/arm64/fetch-rust.sh
    set -- "$@" --rustc "$rustc"
fi
package=$(cargo xtask deb "$@" | tail -n 1)

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
trap 'exit 1' HUP INT TERM
dpkg-deb -x "$package" "$root"
emulated() {
    qemu-aarch64-static -L /usr/aarch64-linux-gnu "$root/usr/bin/mpt" "$@"
}
is="$(emulated version)"
of="mpt $(dpkg-deb -f "$package" Version | sed 's/-.*//')"
[ "$is" = "$of" ] || { echo "test: it says '$is' instead of '$of'" >&2; exit 1; }
emulated check "$root/etc/mpt/mpt.toml.example"
[ "$(dpkg-deb -f "$package" Architecture)" = arm64 ]
echo "test: $package starts"
