#!/usr/bin/env bash
# Tests internal/kernel on an emulated CPU: kernel.sh arm64|avx512, from the repository's root
#
# All tests run, for up to twenty minutes, unless passed.txt beside this script has the checksum of the kernels' files for
# that CPU: then they have passed there. They also run for one commit of ten, chosen by its name. Otherwise the tests of a
# few loops show that emulator and kernels still start. When all tests have passed, passed.txt gets the checksum: commit it
# with the change of the kernels.
set -euo pipefail
arch=${1:?kernel.sh arm64|avx512}
here=scripts/emulated
case $arch in
  arm64) goarch=arm64 ;;
  avx512) goarch=amd64 ;;
  *) echo "kernel.sh: unknown architecture \"$arch\"; want arm64 or avx512" >&2; exit 2 ;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# the files that the test binary is made of, and how it is run
files=$(GOARCH=$goarch CGO_ENABLED=0 go list -f '{{range .GoFiles}}{{.}}
{{end}}{{range .SFiles}}{{.}}
{{end}}{{range .HFiles}}{{.}}
{{end}}{{range .TestGoFiles}}{{.}}
{{end}}{{range .XTestGoFiles}}{{.}}
{{end}}' ./internal/kernel | sort)
sum=$({ cd internal/kernel && cat $files && cat ../../go.mod; } | sha256sum | cut -d' ' -f1)
line="$arch $sum"

tests=(-test.short)
if grep -qxF "$line" $here/passed.txt && [ $((0x$(git rev-parse --short=8 HEAD) % 10)) != 0 ]; then
  echo "$arch: all tests of these kernels have passed there; a few run now"
  tests+=(-test.run '^TestGELU|^TestProductsSumInAscendingOrder$')
fi
GOARCH=$goarch CGO_ENABLED=0 go test -c -o "$work/kernel.test" ./internal/kernel
(cd internal/kernel && JENGA_EMULATED_SECONDS=1200 ../../scripts/emulated_test.sh "$arch" "$work/kernel.test" "${tests[@]}")
{ grep -v "^$arch " $here/passed.txt || true; echo "$line"; } | sort >"$work/passed"
cp "$work/passed" $here/passed.txt
