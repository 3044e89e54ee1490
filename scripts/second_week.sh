#!/usr/bin/env bash
# The second week of a new user, with the commands of a built jenga: second_week.sh JENGA. Data is written here, models
# are tiny and trained from scratch, all in a temporary folder.
set -euo pipefail
export LC_ALL=C.UTF-8
[ $# = 1 ] || { echo "usage: second_week.sh JENGA" >&2; exit 2; }
jenga=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export HF_HOME=$work/hf JENGA_MODELS='' JENGA_DATA=''

say() { printf -- '-- %s (%ss)\n' "$*" "$SECONDS"; }
fail() { echo "second week: $*" >&2; head -c 4000 out.txt err.txt >&2; exit 1; }
# j ARGUMENT… runs jenga, which succeeds; its output is in out.txt and err.txt.
j() { "$jenga" "$@" >out.txt 2>err.txt || fail "jenga $* exited with $?"; }
out() { grep -qF -- "$1" out.txt || fail "no $1 in the output"; }

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
echo "second week: all passed"
