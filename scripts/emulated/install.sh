#!/usr/bin/env bash
# Installs on Debian 12, as root, what scripts/emulated_test.sh requires: install.sh arm64|avx512...
#
# avx512 requires Bochs, which emulates a whole PC, and a Linux kernel to boot on it. Debian 12's Bochs is 2.7, without bf16
# and AMX, and its Linux 6.1 does not boot on Bochs, so both come from Debian 13: the kernel as a binary, Bochs as source,
# which compiles in two minutes on two cores, because Debian 13's binary requires its C library and includes the slow debugger.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export DEBIAN_FRONTEND=noninteractive PATH=${PATH:-/usr/sbin:/usr/bin:/sbin:/bin}
dir=${JENGA_EMULATOR_DIR:-/usr/local/lib/jenga/emulator}

fail() { echo "install.sh: $*" >&2; exit 1; }

install_arm64() { apt-get install -qy --no-install-recommends qemu-user >/dev/null; }

install_avx512() {
  # Already installed from the same files: nothing to compile.
  local stamp; stamp=$(cat "$here/install.sh" "$here/bochs.patch" | sha256sum)
  apt-get install -qy --no-install-recommends bochsbios vgabios isolinux syslinux-common xorriso cpio busybox-static >/dev/null
  [ "$(cat "$dir/stamp" 2>/dev/null)" != "$stamp" ] || return 0
  apt-get install -qy --no-install-recommends g++ make patch xz-utils >/dev/null

  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  cd "$work"

  # Package lists of Debian 13 from the mirror that this machine uses, kept separate from the machine's own lists.
  local mirror
  # shellcheck disable=SC2016 # apt-get expands REPO_URI
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Codename: bookworm' | head -1)
  [ -n "$mirror" ] || fail "no mirror of Debian 12 (bookworm) among apt's sources; add one"
  printf '%s %s trixie main\n' deb "$mirror" deb-src "$mirror" >sources.list
  mkdir -p lists/partial cache/archives/partial
  local trixie=(-q -o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::Lists=$work/lists"
    -o "Dir::Cache=$work/cache" -o APT::Sandbox::User=root)
  apt-get "${trixie[@]}" update >/dev/null

  # Only the two archives are required: their checksums are in the signed lists, so a mirror without the .dsc suffices.
  apt-get "${trixie[@]}" source --download-only bochs >source.log 2>&1 || true
  tar xf bochs_3.0+dfsg.orig.tar.xz 2>/dev/null || { cat source.log >&2; fail "no source of Bochs 3.0 at $mirror"; }
  local linux; linux=$(apt-cache "${trixie[@]}" depends linux-image-cloud-amd64 | awk '/Depends: linux-image-/ { print $2; exit }')
  apt-get "${trixie[@]}" download "${linux:?no linux-image-cloud-amd64 in Debian 13}" >/dev/null
  dpkg-deb -x linux-image-*.deb linux

  cd bochs-3.0
  patch --quiet -p1 <"$here/bochs.patch" || fail "bochs.patch is not for this version of Bochs"
  {
    ./configure --with-nogui --disable-plugins --disable-docbook --disable-xpm --disable-readline --enable-all-optimizations \
      --enable-x86-64 --enable-cpu-level=6 --enable-avx --enable-evex --enable-amx --enable-protection-keys \
      --enable-pci --enable-cdrom CFLAGS=-O2 CXXFLAGS='-O2 -fno-strict-aliasing'
    make -j"$(nproc)" bochs
  } >build.log 2>&1 || { tail -30 build.log >&2; fail "Bochs does not compile"; }

  mkdir -p "$dir"
  install bochs "$dir/bochs"
  install -m 644 "$work"/linux/boot/vmlinuz-* "$dir/linux"
  echo "$stamp" >"$dir/stamp"
}

[ $# -gt 0 ] || fail "usage: install.sh arm64|avx512..."
apt-get -q update >/dev/null
for arch; do
  case $arch in
    arm64 | avx512) "install_$arch" ;;
    *) fail "unknown architecture \"$arch\"; want arm64 or avx512" ;;
  esac
done
