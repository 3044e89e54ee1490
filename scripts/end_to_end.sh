#!/usr/bin/env bash
# Runs the commands of a built jenga: end_to_end.sh JENGA WORK. WORK is an empty folder.
set -euo pipefail
jenga=$1 work=$2
cd "$work"
say() { printf -- '-- %s\n' "$*"; }
fail() { echo "end to end: $*" >&2; exit 1; }
# status WANT COMMAND... fails unless the command exits with status WANT.
status() {
  local want=$1 got=0
  shift
  "$@" >out.txt 2>err.txt || got=$?
  [ "$got" = "$want" ] || { cat err.txt >&2; fail "$* exited with $got, want $want"; }
}

say "version, help, parts"
"$jenga" version
status 0 "$jenga"
grep -q quickstart out.txt || fail "jenga without arguments does not name the quickstart"
status 0 "$jenga" parts head linear
grep -q dropout out.txt || fail "parts head linear lists no dropout"

# A minute on two cores, as processor time, which other load changes less than elapsed time.
say "the quickstart trains within 120 s of processor time, twice to the same bytes, with one thread and with two"
TIMEFORMAT='%R %U %S'
took=$({ time "$jenga" train experiments/quickstart.yaml --json >events.jsonl 2>err.txt; } 2>&1) || { cat err.txt >&2; fail "the quickstart does not train"; }
read -r clock user system <<<"$took"
echo "trained in $clock s, $user and $system s of processor time"
awk -v user="$user" -v sys="$system" 'BEGIN { exit !(user + sys <= 120) }' || fail "the quickstart took $user and $system s of processor time, want 120 at most"
tail -n 1 events.jsonl
"$jenga" train experiments/quickstart.yaml --out again --threads 1 --json >/dev/null 2>&1
diff -r runs/quickstart/best again/best || fail "two runs of the quickstart differ"

say "its metrics on test"
"$jenga" eval runs/quickstart --split test
"$jenga" eval runs/quickstart --split test --json >metrics.json
metric() { # TASK METRIC: the first of this name after the task's head
  grep -o "\"$1\":{\"heads\":{\"$1\":{.*" metrics.json | grep -o "\"$2\":[0-9.e-]*" | sed '1!d; s/.*://'
}
at_least() { awk -v got="$1" -v want="$2" 'BEGIN { exit !(got != "" && got + 0 >= want) }' || fail "$3 is $1, want $2"; }
at_least "$(metric claim_type accuracy)" 0.90 "claim type's accuracy on test"
at_least "$(metric entities span_f1)" 0.85 "entity F1 on test"

say "predict, embed, tokenize"
echo 'Please refund my cardioectomy at Lakemoor Clinic, 240 euros.' | "$jenga" predict runs/quickstart >prediction.json
grep -q '"tasks"' prediction.json || fail "predict writes no tasks"
printf 'fine\n{"text": \nfine again\n' >lines.txt
status 1 "$jenga" predict runs/quickstart lines.txt
[ "$(wc -l <out.txt)" = 3 ] || fail "predict skips lines"
grep -q '"error":"line 2' out.txt || fail "predict does not name the bad line"
echo 'Please refund my cardioectomy' | "$jenga" embed runs/quickstart | grep -q '"vector"' || fail "embed writes no vector"
echo 'Please refund my cardioectomy' | "$jenga" tokenize runs/quickstart | grep -q '"offsets"' || fail "tokenize writes no offsets"

say "init writes an experiment that trains"
{ echo "body,team"; for i in {1..30}; do echo "this is mail $i,team$((i % 3))"; done; } >mails.csv
JENGA_MODELS='' HF_HUB_CACHE=$PWD/none "$jenga" init mails.csv
grep -q '# team: 3 labels in 30 records' experiment.yaml || fail "init does not give the reason of a task"
status 1 "$jenga" init mails.csv # the file is there
"$jenga" check
"$jenga" train --set training.max_steps=2 2>/dev/null
rm -r experiment.yaml mails.csv runs/mails

say "mistakes"
status 2 "$jenga" train --no-such-flag
status 2 "$jenga" frain
status 1 "$jenga" train nowhere.yaml
status 1 "$jenga" train experiments/quickstart.yaml # the folder has a run
status 1 "$jenga" check experiments/quickstart.yaml --set training.num_epoch=2
grep -q num_epochs err.txt || fail "no suggestion for a misspelt key"
status 1 "$jenga" eval nowhere

status 1 env JENGA_KERNEL=axv2 "$jenga" version
grep -q 'JENGA_KERNEL=axv2: this processor has no kernel of that name; it has plain' err.txt || fail "the error of an unknown kernel does not list the available ones"

say "training that cannot write its first file leaves an empty folder"
status 1 bash -c "ulimit -f 1; '$jenga' train experiments/quickstart.yaml --out full"
[ -z "$(ls full)" ] || fail "training that could not start left $(ls full)"

say "killed at any moment, the run folder has a complete model or none"
# endless FOLDER starts training that does not end before it is stopped; its process is $pid.
endless() {
  "$jenga" train experiments/quickstart.yaml --out "$1" --force --set training.num_epochs=10000 >/dev/null 2>err.txt &
  pid=$!
}
for after in 1 2 4 6; do
  endless killed
  sleep "$after"
  kill -9 "$pid" || fail "training ended before it was killed: $(cat err.txt)"
  wait "$pid" 2>/dev/null || true
  models=$(ls -d killed/{best,best.old,last,last.old}/model.json 2>/dev/null || true)
  evaluations=$(grep -c '"event":"eval"' killed/metrics.jsonl 2>/dev/null || true)
  if [ -n "$models" ]; then
    "$jenga" eval killed >/dev/null || fail "a killed run cannot be read: it has $models"
  elif [ "${evaluations:-0}" -gt 1 ]; then # the first may be written before its model
    fail "a killed run has $evaluations evaluations, but no model"
  fi
done

say "teachers are trained first; what is killed there goes on to the same bytes"
taught="--set training.teachers=alone --set training.num_epochs=1 --set training.save_strategy=steps --set training.save_steps=20"
"$jenga" check experiments/quickstart.yaml $taught | grep -q '^teachers: 3 tasks, 3 of them trained first' || fail "check names no teachers"
"$jenga" train experiments/quickstart.yaml --out taught --json $taught >events.jsonl 2>err.txt || { cat err.txt >&2; fail "no training with teachers"; }
[ "$(grep -c '"event":"teacher"' taught/metrics.jsonl)" = 3 ] || fail "metrics.jsonl does not name three teachers"
for after in 1 2 3 4 5 6 20 60 120; do
  timeout -s KILL "$after" "$jenga" train experiments/quickstart.yaml --out parts --resume $taught >/dev/null 2>err.txt && break
done
diff -r taught/best parts/best || fail "a killed training with teachers has another model: $(cat err.txt)"
for teacher in claim_type urgency entities; do
  diff -r "taught/teachers/$teacher/best" "parts/teachers/$teacher/best" || fail "a killed teacher has another model"
done

say "interrupted training exits with 130"
endless stopped
for _ in {1..600}; do
  grep -q '"event":"step"' stopped/metrics.jsonl 2>/dev/null && break
  sleep 0.1
done
kill -INT "$pid" || fail "training ended before it was interrupted: $(cat err.txt)"
got=0
wait "$pid" || got=$?
[ "$got" = 130 ] || fail "interrupted training exited with $got, want 130"
echo "end to end: all passed"
