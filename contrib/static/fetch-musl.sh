#!/bin/sh
# Fetches the headers of musl for 64-bit ARM, which C code of a static program is compiled with on a PC. Nothing is
# installed: they are below cargo's output, in `musl-arm64`. Needs: apt-get and dpkg.
#
# Use: contrib/static/fetch-musl.sh     Prints the folder of the headers. Exit code: 0 if they are there.
set -eu

cd "$(dirname "$0")/../.."
target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target/musl-arm64"
place=$(cd "$target/musl-arm64" && pwd)
headers=$place/usr/include/aarch64-linux-musl
if [ ! -e "$headers/stdlib.h" ]; then
    work=$(mktemp -d "$place/work.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    trap 'exit 1' HUP INT TERM
    . contrib/arm64/apt.sh
    (cd "$work/packages" && apt-get download -qq musl-dev:arm64 >&2)
    dpkg -x "$work"/packages/musl-dev_*_arm64.deb "$place"
fi
echo "$headers"
