#!/bin/sh
# Fetches a Debian kernel for `cargo xtask interop`, where this machine's own has no GRE over FOU.
#
# The package is only unpacked, below cargo's output in interop/kernel, some 110 MB: nothing is installed,
# and no privilege is needed. Needs: apt-get with its lists, and dpkg.
#
# Use: contrib/interop/fetch-kernel.sh     Exit code: 0 if it is there.
set -eu

cd "$(dirname "$0")/../.."
target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target/interop"
place=$(cd "$target/interop" && pwd)
[ ! -e "$place/kernel" ] || exit 0
work=$(mktemp -d "$place/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# The package without a version in its name depends on the one that has the kernel.
find_package() {
    LC_ALL=C apt-cache depends linux-image-cloud-amd64 2>/dev/null |
        sed -n 's/.*Depends: \(linux-image-[^ ]*\).*/\1/p' | head -n 1
}
package=$(find_package)
# An image may come without apt's lists.
if [ -z "$package" ] && [ "$(id -u)" = 0 ]; then
    apt-get update -qq || true
    package=$(find_package)
fi
if [ -z "$package" ]; then
    echo "fetch-kernel: apt knows no linux-image-cloud-amd64; apt-get update may help" >&2
    exit 1
fi
(cd "$work" && apt-get download -qq "$package")
dpkg -x "$work"/linux-image-*.deb "$work/kernel"
# Under its name only when it is whole.
mv "$work/kernel" "$place/kernel"
