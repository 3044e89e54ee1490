#!/usr/bin/env bash
# Compiles libtokenizers.a, which go build -tags native links: native.sh [FOLDER]
#
# FOLDER is where the library is written; by default, a folder in the user's cache. It is compiled once, in two minutes on
# two cores, from the crate in the Go module github.com/daulet/tokenizers and crates of crates.io.
#
# Prints the command line that builds jenga with it. Requires Go, cargo (Rust 1.82 or later), a C and a C++ compiler, and patch.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export PATH=${PATH:-/usr/local/bin:/usr/bin:/bin}:${CARGO_HOME:-$HOME/.cargo}/bin
module=github.com/daulet/tokenizers

fail() { echo "native.sh: $*" >&2; exit 1; }

[ $# -le 1 ] || fail "usage: native.sh [FOLDER]"
for tool in go patch c++; do
  command -v "$tool" >/dev/null || fail "$tool is missing; on Debian: apt-get install golang patch g++"
done
command -v cargo >/dev/null ||
  fail "cargo, which compiles Rust, is missing: https://rustup.rs has it; on Debian 12: apt-get install cargo-web, later: apt-get install cargo"

folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/jenga/native}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)

# Already compiled from the same files: nothing to do.
cd "$here/.."
go mod download "$module"
source=$(go list -m -f '{{.Dir}}' "$module")
[ -d "$source/crates/tokenizers" ] || fail "the Go module $module has no crate; was it vendored?"
stamp=$( (echo "$source"; cat scripts/native.sh scripts/native/crate.patch) | cksum)
if [ ! -e "$folder/libtokenizers.a" ] || [ "$(cat "$folder/stamp" 2>/dev/null)" != "$stamp" ]; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  cp -r "$source/crates/tokenizers" "$work/crate"
  cp "$source/Cargo.lock" "$work/crate/"
  chmod -R u+w "$work/crate"
  patch --quiet -d "$work/crate" -p1 <scripts/native/crate.patch || fail "crate.patch is not for this version of $module"
  cargo build --quiet --release --lib --manifest-path "$work/crate/Cargo.toml" --target-dir "$work/target" >&2
  mv "$work/target/release/libtokenizers_ffi.a" "$folder/libtokenizers.a"
  echo "$stamp" >"$folder/stamp"
fi
echo "CGO_LDFLAGS=-L$folder go build -tags native ./cmd/jenga"
