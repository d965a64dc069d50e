#!/bin/sh
# Runs the lab's tests of netem under a kernel that has it, for machines whose own has not.
#
# A Debian kernel is started in QEMU without hardware virtualization, with an initial file system that
# holds the test program and four kernel modules. No privilege is needed; it takes about 15 s and
# touches nothing outside a temporary folder. Needs: cargo, qemu-system-x86_64, cpio, a static
# busybox, and apt-get and dpkg to fetch the kernel, or KERNEL, a folder in which a Debian kernel
# package has been unpacked (with dpkg -x).
#
# Use: contrib/netem/test-in-qemu.sh [NAME OF TESTS]     Exit code: 0 if all tests passed.
set -eu

cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tests=${1:-netem}

test_program=$(cargo test --package mpt-lab --test lab --no-run --message-format=json |
    sed -n 's/.*"executable":"\([^"]*\/lab-[^"]*\)".*/\1/p')

if [ -z "${KERNEL:-}" ]; then
    KERNEL=$work/kernel
    package=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: \(linux-image-[^ ]*\).*/\1/p')
    (cd "$work" && apt-get download "$package" && dpkg -x "$package"_*.deb kernel)
fi

# The root: busybox, the program with its libraries, the modules in the order of their dependencies.
root=$work/root
mkdir -p "$root/bin" "$root/modules" "$root/proc" "$root/sys" "$root/dev" "$root/tmp"
cp "$(command -v busybox)" "$root/bin/busybox"
for applet in sh mount insmod mkdir mknod poweroff; do
    ln -s busybox "$root/bin/$applet"
done
cp "$test_program" "$root/bin/lab-tests"
ldd "$test_program" | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p; s/^[[:space:]]*\(\/[^ ]*\) .*/\1/p' |
    while read -r library; do
        mkdir -p "$root/$(dirname "$library")"
        cp -L "$library" "$root/$library"
    done
for module in drivers/net/tun drivers/net/veth net/sched/sch_tbf net/sched/sch_netem; do
    cp "$KERNEL"/lib/modules/*/kernel/$module.ko "$root/modules/"
done
cat > "$root/init" <<INIT
#!/bin/sh
export PATH=/bin MPT_NO_SKIP=all
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
mkdir -p /dev/net
[ -e /dev/net/tun ] || mknod /dev/net/tun c 10 200
for module in /modules/*; do insmod "\$module"; done
lab-tests --color never $tests && echo "all tests passed"
poweroff -f
INIT
chmod +x "$root/init"
(cd "$root" && find . | cpio --create --format=newc --quiet) | gzip -1 > "$work/initrd"

timeout 600 qemu-system-x86_64 -M q35 -accel tcg,thread=single -cpu max -smp 1 -m 768 \
    -nodefaults -nographic -serial stdio -no-reboot \
    -kernel "$KERNEL"/boot/vmlinuz-* -initrd "$work/initrd" \
    -append "console=ttyS0 quiet panic=-1 mitigations=off" < /dev/null | tee "$work/log"
grep -q "^all tests passed" "$work/log"
