#!/bin/sh
# Tries the Debian package where it is meant to live: under systemd, in the sandbox of its units.
#
# A minimal Debian is made, and started in QEMU without hardware virtualization. In it, inside.sh installs
# the package, runs mpt.service on the host and mpt@right.service in a network namespace, with two paths
# between them, and checks packets, rights, watchdog, reload, stop, and what is left after removal.
# No privilege is needed where user namespaces are allowed; everything is below cargo's output. On an idle
# machine it takes one to two minutes, and as much again the first time, when Debian is fetched, apart from
# building mpt. It never takes more than eight once the machine is started.
#
# Use: contrib/systemd/test-unit.sh [PACKAGE]      Exit code: 0 passed, 1 failed, 2 something is missing.
# PACKAGE is a .deb for amd64; without one it is made by `cargo xtask deb`. The Debian that was fetched is
# kept as target/unit-test/base.tar: remove it to have a fresh one.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."

missing=
for need in mmdebstrap:mmdebstrap mke2fs:e2fsprogs fakeroot:fakeroot cpio:cpio busybox:busybox-static \
    qemu-system-x86_64:qemu-system-x86 cargo:cargo; do
    PATH=$PATH:/usr/sbin:/sbin command -v "${need%%:*}" >/dev/null || missing="$missing ${need#*:}"
done
if [ -n "$missing" ]; then
    echo "test-unit: missing: apt-get install$missing" >&2
    exit 2
fi
PATH=$PATH:/usr/sbin:/sbin

target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target/unit-test"
cache=$(cd "$target/unit-test" && pwd)
work=$(mktemp -d "$cache/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

package=${1:-}
if [ -z "$package" ]; then
    package=$(cargo xtask deb --arch amd64 | tail -n 1)
fi

# Debian with a kernel whose list of modules is complete. Made under another name, so that one that was
# interrupted is not taken for whole.
if [ ! -e "$cache/base.tar" ]; then
    echo "test-unit: fetching Debian"
    mmdebstrap --quiet --variant=minbase --skip=output/dev \
        --include=systemd-sysv,udev,kmod,iproute2,iputils-ping,init-system-helpers \
        --customize-hook='
            kernel=$(chroot "$1" apt-cache depends linux-image-cloud-amd64 |
                sed -n "s/.*Depends: \(linux-image-[^ ]*\).*/\1/p")
            cd "$1" && chroot "$1" sh -c "cd /tmp && apt-get download $kernel" &&
                dpkg --fsys-tarfile tmp/linux-image-*.deb |
                tar -x --keep-directory-symlink && rm tmp/linux-image-*.deb &&
                chroot "$1" depmod "$(ls "$1/lib/modules")"' \
        bookworm "$cache/part.tar" http://deb.debian.org/debian
    mv "$cache/part.tar" "$cache/base.tar"
fi

# The disk: Debian, the package, and what tries it. Owners are root's only as fakeroot remembers them.
cat > "$work/disk.sh" <<'DISK'
set -eu
mkdir -p "$work/root/dev"
tar -C "$work/root" -xf "$cache/base.tar"
cp "$package" "$work/root/root/mpt.deb"
cp "$here/inside.sh" "$work/root/root/inside.sh"
cat > "$work/root/etc/systemd/system/inside.service" <<'UNIT'
[Unit]
Description=Test of the units
After=multi-user.target
SuccessAction=poweroff-force
FailureAction=poweroff-force
[Service]
Type=oneshot
ExecStart=/bin/sh /root/inside.sh
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS0
Environment=SYSTEMD_COLORS=0 SYSTEMD_PAGER=cat
TimeoutStartSec=400
UNIT
mkdir -p "$work/root/etc/systemd/system/multi-user.target.wants"
ln -s ../inside.service "$work/root/etc/systemd/system/multi-user.target.wants/inside.service"
# Nobody logs in, and nobody else writes to the terminal.
ln -sf /dev/null "$work/root/etc/systemd/system/serial-getty@ttyS0.service"
ln -sf /dev/null "$work/root/etc/systemd/system/getty.target"
mke2fs -q -t ext4 -d "$work/root" "$work/disk" 900M
DISK
work=$work cache=$cache here=$here package=$package fakeroot sh "$work/disk.sh"

# What finds the disk: busybox and the modules in the order of their dependencies.
boot=$work/boot
mkdir -p "$boot/bin" "$boot/modules" "$boot/proc" "$boot/dev" "$boot/root"
cp "$(command -v busybox)" "$boot/bin/busybox"
for applet in sh mount insmod switch_root sleep; do ln -s busybox "$boot/bin/$applet"; done
version=$(ls "$work/root/lib/modules")
modules=$work/root/lib/modules/$version
# Each line has a module and, the nearest first, all that it needs. What is built in has none.
order=
for module in virtio_pci virtio_blk crc32c_generic ext4; do
    line=$(grep "/$module\.ko:" "$modules/modules.dep" || true)
    for file in $(echo "${line#*:}" | tr ' ' '\n' | tac) ${line%%:*}; do
        case " $order " in *" $file "*) ;; *) order="$order $file" ;; esac
    done
done
number=10
for file in $order; do
    cp "$modules/$file" "$boot/modules/$number-$(basename "$file")"
    number=$((number + 1))
done
cat > "$boot/init" <<'INIT'
#!/bin/sh
export PATH=/bin
mount -t proc proc /proc
mount -t devtmpfs dev /dev
for module in /modules/*; do insmod "$module"; done
until mount -t ext4 /dev/vda /root; do sleep 0.1; done
mount -o move /dev /root/dev
exec switch_root /root /sbin/init
INIT
chmod +x "$boot/init"
(cd "$boot" && find . | cpio --create --format=newc --quiet) | gzip -1 > "$work/initrd"
cp "$work/root/boot/vmlinuz-$version" "$work/kernel"
rm -rf "$work/root"

echo "test-unit: starting Debian with systemd"
timeout 480 qemu-system-x86_64 -M q35 -accel tcg,thread=multi -cpu max -smp 2 -m 1024 \
    -nodefaults -nographic -serial stdio -no-reboot \
    -drive file="$work/disk",format=raw,if=virtio,cache=unsafe \
    -kernel "$work/kernel" -initrd "$work/initrd" \
    -append "console=ttyS0 quiet panic=-1 mitigations=off systemd.show_status=0" \
    < /dev/null | sed -u 's/\x1b[][()0-9;?]*[a-zA-Z]//g; s/\r//g' | tee "$work/log"
grep -q "^inside: all passed" "$work/log"
