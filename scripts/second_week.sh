#!/usr/bin/env bash
# The second week of a new user, with the commands of a built jenga: second_week.sh JENGA. Data is written here, models
# are tiny and trained from scratch, all in a temporary folder.
set -euo pipefail
export LC_ALL=C.UTF-8
[ $# = 1 ] || { echo "usage: second_week.sh JENGA" >&2; exit 2; }
jenga=$(realpath "$1")
work=$(mktemp -d)
pid=''
trap 'kill -9 $pid 2>/dev/null || true; rm -rf "$work"' EXIT
cd "$work"
export HF_HOME=$work/hf JENGA_MODELS='' JENGA_DATA=''

say() { printf -- '-- %s (%ss)\n' "$*" "$SECONDS"; }
fail() { echo "second week: $*" >&2; head -c 4000 out.txt err.txt >&2; exit 1; }
# j ARGUMENT… runs jenga, which succeeds; its output is in out.txt and err.txt. refuses ARGUMENT… runs it, and it reports
# a mistake. says FILE TEXT… fails unless the file has each text.
j() { "$jenga" "$@" >out.txt 2>err.txt || fail "jenga $* exited with $?"; }
refuses() {
  local got=0
  "$jenga" "$@" >out.txt 2>err.txt || got=$?
  [ "$got" = 1 ] || fail "jenga $* exited with $got, want 1"
}
says() {
  local file=$1 text
  shift
  for text in "$@"; do grep -qF -- "$text" "$file" || fail "no $text in $file"; done
}
out() { says out.txt "$@"; }
err() { says err.txt "$@"; }
# advised PATTERN takes the first text of the last command's output or errors that a regular expression matches into
# $advice. follow COMMAND… runs a command of jenga that contains it, as a shell reads it.
advised() { advice=$(cat out.txt err.txt | grep -oE -- "$1" | awk 'NR == 1') || fail "nothing is advised as $1"; }
jenga() { "$jenga" "$@"; }
follow() { eval "$*" >out.txt 2>err.txt || fail "$* exited with $?"; }

{
  echo "id,body,team,tone"
  for n in {1..40}; do
    echo "a$n,the invoice of week $n was charged twice,billing,angry"
    echo "b$n,how do I add user $n to a group,support,calm"
  done
} >mails.csv
cat >mails.yaml <<'END'
project_name: mails
model: {encoder: {type: transformer, layers: 1, width: 32, heads: 2, feed_forward: 64, max_positions: 48}}
tokenizer: {max_length: 48, train: {vocab_size: 400}}
training: {learning_rate: 1.0e-2, num_epochs: 2}
tasks:
  - {name: team, type: classification, data: {path: mails.csv, text: body, label: team}}
  - {name: tone, type: sentiment, data: {same_as: team, label: tone}}
END

say "an experiment with the schema beside it names it"
j schema
cp out.txt experiment.schema.json
j init mails.csv
[ "$(head -n 1 experiment.yaml)" = '# yaml-language-server: $schema=experiment.schema.json' ] || fail "init does not name the schema"
j check

say "a run that is done is trained on with more epochs"
j train mails.yaml
j train --resume runs/mails --set training.num_epochs=4
grep -q 'num_epochs: 4' runs/mails/experiment.yaml || fail "the run has not the epochs that it was given"
printf 'the invoice was charged twice\nhow do I add a user\n' >new.txt
j predict runs/mails new.txt --task tone
cp out.txt before.txt

say "one of its tasks under another name, without training, predicts the same"
j tasks runs/mails --extract tone --rename tone=mood --out runs/mood
j predict runs/mood new.txt
sed 's/mood/tone/g' out.txt | cmp -s - before.txt || fail "the extracted task predicts otherwise: $(cat before.txt)"
j tasks runs/mood
out mood

say "fusion with a gate for each task, and by concatenation"
for fusion in '{type: attention, scale: gated}' '{type: concat}'; do
  j train mails.yaml --set "model.fusion=$fusion" --out "runs/fusion" --force
  j eval runs/fusion
  out eval_overall
done

say "init gives the reason for its epochs and encoder, and reads files of another delimiter and encoding"
says experiment.yaml 'batch_size: 16' 'num_epochs: 75' 'an epoch has about 4 steps, and a model learns little in fewer than 300' \
  'jenga lr-find' 'no pretrained encoder was found' 'jenga pull'
sed 's/,/;/g' mails.csv >semicolons.csv
j init semicolons.csv --delimiter ';' --out semicolons.yaml
says semicolons.yaml 'delimiter: ;'
j check semicolons.yaml
{ echo "text,label"; for n in {1..20}; do printf '"caf\xe9 %d, 5 \x80",l%d\n' "$n" $((n % 2)); done; } >cp1252.csv
j init cp1252.csv --encoding cp1252 --out cp1252.yaml
says cp1252.yaml 'encoding: cp1252'
j check cp1252.yaml

say "predict and eval read a file of another layout as their error advises"
for command in 'predict runs/mails semicolons.csv' 'eval runs/mails --data tone=semicolons.csv'; do
  # shellcheck disable=SC2086 # the words of the command
  refuses $command
  advised "--set-data '[^']*'"
  follow jenga "$command" "$advice"
done
out eval_overall
sed '1s/body/message/' mails.csv >renamed.csv
refuses predict runs/mails renamed.csv
advised '--set-data text='
follow jenga predict runs/mails renamed.csv "${advice}message"
out 'the invoice of week 40'
refuses eval runs/mails --data tone=nope.csv
err 'task "tone": nope.csv: no such file'

say "the command that train names where the best epoch was the last"
j train mails.yaml --out runs/short
advised 'jenga train --resume runs/short --set training.num_epochs=[0-9]+'
follow "$advice"
says runs/short/experiment.yaml 'num_epochs: 4'

say "checkpoints of tasks share files with best, and can be left out; check expects the disk"
sed 's/^project_name.*/project_name: four/' mails.yaml >four.yaml
for name in kind mood; do
  echo "  - {name: $name, type: classification, data: {same_as: team, label: tone}}" >>four.yaml
done
# named_bytes FOLDER: the sum of the sizes of its files. disk_bytes FOLDER: a file of several names counts once.
# weight_bytes FOLDER: as disk_bytes, of its weights alone.
named_bytes() { find "$1" -type f -printf '%s\n' | awk '{ sum += $1 } END { print sum }'; }
disk_bytes() { du -s --apparent-size --block-size=1 "$1" | cut -f 1; }
weight_bytes() {
  find "$1" -name '*.safetensors' -printf '%i %s\n' | sort -u | awk '{ sum += $2 } END { print sum }'
}
j check four.yaml
out 'disk: at most about'
j check four.yaml --json
expected=$(sed -E 's/.*"disk":\{[^}]*"done":([0-9]+).*/\1/' out.txt)
j train four.yaml
disk=$(disk_bytes runs/four) named=$(named_bytes runs/four) weights=$(weight_bytes runs/four)
echo "   four tasks: $disk bytes on disk, $named in all names; weights $weights, expected at most $expected"
[ $((disk * 3)) -lt $((named * 2)) ] || fail "the checkpoints of tasks do not share files"
[ "$weights" -le "$expected" ] && [ $((weights * 3)) -gt "$expected" ] || fail "check expects other files on disk"
for task in team tone kind mood; do j eval "runs/four/tasks/$task"; done
j train four.yaml --set training.save_task_bests=false --out runs/best_only
[ ! -e runs/best_only/tasks ] || fail "save_task_bests: false keeps checkpoints of tasks"
[ "$(disk_bytes runs/best_only)" -lt "$disk" ] || fail "save_task_bests: false saves nothing"

say "a misspelt run and experiment: did you mean; an output that cannot be written is refused before the work"
refuses predict runs/mail new.txt
advised 'did you mean "[^"]*"'
follow jenga predict "${advice#did you mean }" new.txt
refuses train mail.yaml
err 'did you mean "mails.yaml"'
refuses train mails.yaml --out mails.csv/run
err "mails.csv is a file"
[ ! -s out.txt ] || fail "training began"
refuses predict runs/mails new.txt --out nowhere/out.jsonl
err 'no such folder nowhere'

say "serve prints a URL that answers"
"$jenga" serve runs/mails --listen 127.0.0.1:0 >out.txt 2>err.txt &
pid=$!
url=''
for _ in {1..100}; do
  url=$(grep -oE -m 1 'http://[^ ]+' err.txt || true)
  [ -z "$url" ] || break
  sleep 0.1
done
[ -n "$url" ] || fail "serve prints no URL within 10 s"
status=$(curl -s -o page.txt -w '%{http_code}' "$url") || true
[ "$status" = 200 ] || fail "$url answers with $status"
kill "$pid"
wait "$pid" || fail "serve ends with $?"
echo "second week: all passed in $SECONDS s"
