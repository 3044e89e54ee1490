#!/usr/bin/env bash
# Builds docs/*.md into HTML with a search: pages.sh FOLDER [PYTHON]. Without PYTHON, which has what --install installs,
# it makes a virtual environment in a temporary folder. `pages.sh --install PYTHON` installs.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
packages=(mkdocs==1.6.1 mkdocs-material==9.8.1)
usage() { echo "usage: pages.sh FOLDER [PYTHON] | pages.sh --install PYTHON" >&2; exit 2; }
install() { "$1" -m pip -q --disable-pip-version-check install "${packages[@]}"; }
case "${1:-}" in
'') usage ;;
--install) [ $# = 2 ] || usage; install "$2"; exit ;;
esac
out=$(realpath -m "$1") python=${2:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ -z "$python" ]; then
  python3 -m venv "$work/python"
  python=$work/python/bin/python
  install "$python"
fi
# The list of docs/README.md, in sections, is the navigation.
{
  cat "$here/mkdocs.yml"
  echo "docs_dir: $(realpath "$here/../docs")"
  echo "nav:"
  echo "  - README.md"
  awk '/^## / { printf "  - \"%s\":\n", substr($0, 4) }
    match($0, /^- \[[^]]*\]\([^)]*\)/) {
      split(substr($0, 4, RLENGTH - 4), part, /\]\(/); printf "      - \"%s\": %s\n", part[1], part[2] }' "$here/../docs/README.md"
} >"$work/mkdocs.yml"
NO_MKDOCS_2_WARNING=1 "$python" -m mkdocs build --quiet --strict --clean -f "$work/mkdocs.yml" -d "$out"
echo "$out/index.html, or with the search: python3 -m http.server -d $out"
