#!/usr/bin/env bash
# Tests internal/kernel on an emulated CPU, for up to twenty minutes: kernel.sh arm64|avx512, from the repository's root
#
# When all tests have passed, passed.txt beside this script gets the checksum of the kernels' files for that CPU: commit it
# with the change of the kernels. kernel.sh --due arm64|avx512 only tells, by its status, whether the tests have to run:
# where passed.txt has another checksum, and for one commit of ten, chosen by its name.
set -euo pipefail
due=
[ "${1:-}" != --due ] || { due=only; shift; }
arch=${1:?kernel.sh [--due] arm64|avx512}
here=scripts/emulated
case $arch in
  arm64) goarch=arm64 ;;
  avx512) goarch=amd64 ;;
  *) echo "kernel.sh: unknown architecture \"$arch\"; want arm64 or avx512" >&2; exit 2 ;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# the files that the test binary is made of, the modules that it imports, and Go's version
files=$(GOARCH=$goarch CGO_ENABLED=0 go list -f '{{range .GoFiles}}{{.}}
{{end}}{{range .SFiles}}{{.}}
{{end}}{{range .HFiles}}{{.}}
{{end}}{{range .TestGoFiles}}{{.}}
{{end}}{{range .XTestGoFiles}}{{.}}
{{end}}' ./internal/kernel | sort)
modules=$(GOARCH=$goarch CGO_ENABLED=0 go list -deps -test -f '{{with .Module}}{{.Path}} {{if .Main}}{{.GoVersion}}{{else}}{{.Version}}{{end}}{{end}}' \
  ./internal/kernel | sort -u)
sum=$({ cd internal/kernel && cat $files && echo "$modules"; } | sha256sum | cut -d' ' -f1)
line="$arch $sum"

if [ "$due" ]; then
  ! grep -qxF "$line" $here/passed.txt || [ $((0x$(git rev-parse --short=8 HEAD) % 10)) = 0 ]
  exit
fi
GOARCH=$goarch CGO_ENABLED=0 go test -c -o "$work/kernel.test" ./internal/kernel
(cd internal/kernel && JENGA_EMULATED_SECONDS=1200 ../../scripts/emulated_test.sh "$arch" "$work/kernel.test" -test.short)
{ grep -v "^$arch " $here/passed.txt || true; echo "$line"; } | sort >"$work/passed"
cp "$work/passed" $here/passed.txt
