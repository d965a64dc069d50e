#!/bin/sh
# Fetches Debian's Rust with the standard library of 64-bit ARM, to build for that on a PC where there is no
# rustup to install it. Nothing is installed: all is below cargo's output, in `debian-rust`, some 600 MB.
#
# Debian keeps a recent Rust beside the one of its release, as rustc-web, to build browsers.
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

. contrib/arm64/apt.sh

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
