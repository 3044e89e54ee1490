#!/usr/bin/env bash
# Runs a Go test binary for another CPU, emulated: emulated_test.sh ARCH BINARY [ARG...]
#
#   CGO_ENABLED=0 go test -c -o kernel.test ./internal/kernel && scripts/emulated_test.sh avx512 kernel.test -test.short
#
# ARCH  arm64   64-bit Arm with NEON, by qemu-user
#       avx512  x86 with AVX-512 F, BW, CD, DQ, VL, BF16 and AMX with BF16 (an Intel Sapphire Rapids), by Bochs, which boots its
#               own Linux with one CPU and 1 GiB of memory: BINARY must be linked statically. The folder testdata of the
#               current folder is copied, and GODEBUG and GOMAXPROCS are passed on. The emulated clock counts instructions:
#               benchmarks mean nothing there, and deadlines expire late.
#
# Prints the binary's output and exits with its status, or with 124 after JENGA_EMULATED_SECONDS (600 unless set).
# scripts/emulated/install.sh ARCH installs what it requires.
set -euo pipefail
export PATH=${PATH:-/usr/local/bin:/usr/bin:/bin}
here=$(cd "$(dirname "$0")" && pwd)
dir=${JENGA_EMULATOR_DIR:-/usr/local/lib/jenga/emulator}
seconds=${JENGA_EMULATED_SECONDS:-600}

fail() { echo "emulated_test.sh: $*" >&2; exit 2; }

# need FILE PACKAGE fails where a file of a package is missing.
need() { [ -e "$1" ] || fail "$1 is missing; install $2: $here/emulated/install.sh $arch, as root"; }

[ $# -ge 2 ] || fail "usage: emulated_test.sh arm64|avx512 BINARY [ARG...]"
arch=$1 binary=$2
shift 2
[ -f "$binary" ] || fail "$binary: no such file; make it with go test -c"
[[ $seconds =~ ^[1-9][0-9]*$ ]] || fail "JENGA_EMULATED_SECONDS is \"$seconds\"; want a whole number of seconds"
binary=$(realpath "$binary")

# machine prints the ELF header's number of the CPU that the binary is for: 62 is x86-64, 183 is arm64.
machine() { od -An -tu2 -j18 -N2 "$binary" | tr -d ' '; }

run_arm64() {
  need /usr/bin/qemu-aarch64 "Debian's package qemu-user"
  [ "$(machine)" = 183 ] || fail "$binary is not for arm64; build it with GOARCH=arm64"
  ulimit -v $((8 << 20)) # KiB
  exec timeout -k 5 "$seconds" /usr/bin/qemu-aarch64 "$binary" "$@"
}

run_avx512() {
  need "$dir/bochs" "Bochs 3.0"
  need "$dir/linux" "a Linux kernel"
  need /usr/share/bochs/BIOS-bochs-latest "Debian's package bochsbios"
  need /usr/share/vgabios/vgabios.bin "Debian's package vgabios"
  need /usr/lib/ISOLINUX/isolinux.bin "Debian's package isolinux"
  need /usr/lib/syslinux/modules/bios/ldlinux.c32 "Debian's package syslinux-common"
  need /usr/bin/xorriso "Debian's package xorriso"
  need /usr/bin/cpio "Debian's package cpio"
  need /bin/busybox "Debian's package busybox-static"
  [ "$(machine)" = 62 ] || fail "$binary is not for x86-64; build it with GOARCH=amd64"

  work=$(mktemp -d)
  vm=
  trap '[ -z "$vm" ] || kill "$vm" 2>/dev/null; rm -rf "$work"' EXIT
  trap 'exit 143' INT TERM

  # The root folder: busybox, the binary, and an init that runs it, with its output on the second serial port and its status
  # on the first, the console.
  mkdir -p "$work"/root/{bin,dev,proc,sys,test,tmp} "$work/cd"
  cp /bin/busybox "$work/root/bin/"
  cp "$binary" "$work/root/test.bin"
  [ ! -d testdata ] || cp -rL testdata "$work/root/test/"
  cat >"$work/root/init" <<INIT
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin HOME=/tmp TMPDIR=/tmp ${GODEBUG:+GODEBUG=${GODEBUG@Q}} ${GOMAXPROCS:+GOMAXPROCS=${GOMAXPROCS@Q}}
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
stty -F /dev/ttyS1 -onlcr
ip link set lo up
cd /test
/test.bin ${*@Q} </dev/null >/dev/ttyS1 2>&1
echo "exit status \$?"
poweroff -f
INIT
  chmod +x "$work/root/init"
  (cd "$work/root" && find . | cpio -o -H newc --quiet) >"$work/cd/initrd"

  # A CD that boots Linux. hpet=disable: with Bochs's HPET, Linux's clock stops.
  cp "$dir/linux" /usr/lib/ISOLINUX/isolinux.bin /usr/lib/syslinux/modules/bios/ldlinux.c32 "$work/cd/"
  cat >"$work/cd/isolinux.cfg" <<'CFG'
default linux
label linux
  kernel linux
  append initrd=initrd console=ttyS0,115200 loglevel=4 hpet=disable mitigations=off tsc=reliable
CFG
  xorriso -as mkisofs -quiet -o "$work/cd.iso" -b isolinux.bin -c boot.cat -no-emul-boot -boot-load-size 4 -boot-info-table \
    "$work/cd" 2>"$work/log" || { cat "$work/log" >&2; fail "xorriso cannot write the CD image"; }

  # Bochs also writes to its log from a signal handler, which deadlocks if a write is in progress: only fatal errors are
  # logged. ips, instructions a second, is the rate of the emulated clock. la57 is left out because Bochs does not keep its
  # state over system management mode, which Linux enters to enable ACPI.
  cat >"$work/bochsrc" <<RC
cpu: model=sapphire_rapids, count=1, exclude_features="la57", ips=50000000
memory: guest=1024, host=1024
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/vgabios/vgabios.bin
display_library: nogui
ata0-master: type=cdrom, path=$work/cd.iso, status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev=$work/console
com2: enabled=1, mode=file, dev=$work/output
log: $work/log
panic: action=fatal
error: action=ignore
info: action=ignore
RC
  touch "$work/console" "$work/output"
  timeout -k 5 "$seconds" "$dir/bochs" -q -f "$work/bochsrc" </dev/null >/dev/null 2>&1 &
  vm=$!
  tail -f -s 0.2 --pid="$vm" -c +1 "$work/output" &
  local tail=$! ended=0 status
  wait "$vm" || ended=$?
  vm=
  wait "$tail"

  # Bochs itself exits with 1 when the machine is powered off; the status that init wrote is the result.
  status=$(tr -d '\r' <"$work/console" | sed -n 's/^exit status \([0-9]*\)$/\1/p' | tail -1)
  [ -z "$status" ] || exit "$status"
  tail -n 30 "$work/console" "$work/log" >&2 || true
  [ "$ended" != 124 ] || { echo "emulated_test.sh: not finished after $seconds s; raise JENGA_EMULATED_SECONDS" >&2; exit 124; }
  fail "the emulated machine stopped without an exit status"
}

case $arch in
  arm64 | avx512) "run_$arch" "$@" ;;
  *) fail "unknown architecture \"$arch\"; want arm64 or avx512" ;;
esac
