#!/usr/bin/env bash
# Runs the command blocks of README.md and docs/*.md with a built jenga: blocks.sh JENGA [PAGE…]. A block is one of sh or
# console; those of a page run one after the other in a folder with mails.csv, and with runs/quickstart if the page does
# not train it. One below a line <!-- illustration … --> is not run, nor is any of a page that begins with such a line.
# What stands below a command of a console block, or in one without commands, must be in what that command, or the block
# above, prints, but for numbers and white space; … stands for anything.
set -euo pipefail
[ $# -ge 1 ] || { echo "usage: blocks.sh JENGA [PAGE…]" >&2; exit 2; }
binary=$(realpath "$1") repo=$(realpath "$(dirname "$0")/..")
shift
if [ $# -gt 0 ]; then mapfile -t pages < <(realpath "$@"); else pages=("$repo/README.md" "$repo"/docs/*.md); fi
work=$(mktemp -d)
server='' hub=''
trap 'kill $server $hub 2>/dev/null || true; rm -rf "$work"' EXIT
export HF_HOME=$work/hf JENGA_MODELS='' JENGA_DATA='' LC_ALL=C.UTF-8
unset HF_HUB_CACHE HUGGINGFACE_HUB_CACHE HF_TOKEN HF_HUB_OFFLINE TRANSFORMERS_OFFLINE

# jenga is the binary; a server runs until the page ends.
jenga() {
  [ "$1" = serve ] || { "$binary" "$@"; return; }
  "$binary" "$@" 2>"$work/server.log" &
  server=$!
  for _ in {1..100}; do
    curl -fs localhost:8080/readyz >/dev/null && return
    sleep 0.1
  done
  cat "$work/server.log" >&2
  return 1
}
# go does in a clone what takes longer there: the binary is built, and tests that run this script are not run again.
go() {
  case "$*" in
  "run ./cmd/jenga "*) jenga "${@:3}" ;;
  "build -o jenga ./cmd/jenga" | "test ./...") ;;
  *) command go "$@" ;;
  esac
}
masked() { sed -E 's/(-?[0-9][0-9.e+-]*(ms|m|s)?)+/N/g; s/\++//g' | tr -d '[:space:]'; }
# one FILE runs a block; of console it compares what the commands behind `$ `, or the block above, print.
one() {
  local command='the block above' line
  if [[ $1 == *.sh ]]; then
    # shellcheck disable=SC1090
    . "$1" >"$work/out.txt" 2>&1 || { cat "$work/out.txt" >&2; return 1; }
    return
  fi
  while IFS= read -r line; do
    if [[ $line == '$ '* ]]; then
      command=${line:2}
      eval "$command" >"$work/out.txt" 2>&1 || true # an example of a mistake is one
    elif [ "$line" != … ] && [ -n "$line" ]; then
      line=$(masked <<<"${line%%…*}")
      [[ $(masked <"$work/out.txt") == *"$line"* ]] ||
        { printf '%s does not print\n%s\nbut\n' "$command" "$line" >&2; head -c 3000 "$work/out.txt" >&2; return 1; }
    fi
  done <"$1"
}

{
  echo "body,team,tone"
  for n in {1..30}; do
    echo "the invoice of week $n was charged twice,billing,angry"
    echo "how do I add user $n to a group,support,neutral"
  done
} >"$work/mails.csv"
(cd "$work" && "$binary" init mails.csv --out small.yaml >/dev/null && "$binary" train small.yaml --out runs/small --set training.max_steps=3) >/dev/null 2>&1
mkdir "$work/quickstart"
(cd "$work/quickstart" && "$binary" train experiments/quickstart.yaml) >/dev/null 2>&1
(cd "$repo" && command go build -o "$work/hub" ./internal/hub/hubtest/serve)
"$work/hub" "$work/runs/small/best/encoder" >"$work/url" &
hub=$!
for _ in {1..50}; do [ ! -s "$work/url" ] || break; sleep 0.1; done
export HF_ENDPOINT
HF_ENDPOINT=$(cat "$work/url")

ran=0
for page in "${pages[@]}"; do
  rm -rf "$work/page" "$work/blocks"
  mkdir "$work/page" "$work/blocks"
  # The hub of tests has one model. Files that a page shows below their names are written.
  sed 's/distilbert-base-uncased/org\/small/; s/\.\/jenga/jenga/' "$page" | awk -v to="$work" '
    NR <= 3 && /^<!-- illustration/ { whole = 1 }
    whole { next } # to its end: awk that ends early closes the pipe of sed
    /^```$/ && inside { if (file) close(file); inside = 0; file = ""; next }
    inside { if (file) print > file; next }
    /^```/ { inside = 1
      if (/^```(sh|console)$/ && !skip) file = sprintf("%s/blocks/%02d.%s", to, ++n, substr($0, 4))
      else if (name) file = to "/page/" name
      next }
    { skip = /^<!-- illustration/ || (skip && /^$/)
      if ($0 != "") { name = match($0, /`[a-z]+\.(csv|yaml)`[^`]*:$/) ? substr($0, RSTART + 1) : ""; sub(/`.*/, "", name) } }'
  ls "$work"/blocks/* >/dev/null 2>&1 || continue
  echo "-- ${page#"$repo"/} (${SECONDS}s)"
  [ -e "$work/page/mails.csv" ] || cp "$work/mails.csv" "$work/page/"
  grep -q 'train experiments/quickstart' "$page" || cp -r "$work/quickstart/runs" "$work/page/"
  cd "$work/page"
  for block in "$work"/blocks/*; do
    one "$block" >"$work/log" 2>&1 || { echo "blocks of $page: ${block##*/} fails:" >&2; cat "$block" "$work/log" >&2; exit 1; }
    ran=$((ran + 1))
  done
  [ -z "$server" ] || { kill "$server"; wait "$server" 2>/dev/null || true; server=''; }
done
echo "$ran blocks ran"
