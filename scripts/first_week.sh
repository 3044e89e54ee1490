#!/usr/bin/env bash
# The first week of a new user, with the commands of a built jenga: first_week.sh JENGA. Data is written here, models
# are tiny and trained from scratch, all in a temporary folder. Each check prints what it is about.
set -euo pipefail
export LC_ALL=C.UTF-8 # ${#text} counts characters
[ $# = 1 ] || { echo "usage: first_week.sh JENGA" >&2; exit 2; }
jenga=$(realpath "$1") repo=$(realpath "$(dirname "$0")/..")
work=$(mktemp -d)
pid='' hub=''
trap 'kill -9 $pid $hub 2>/dev/null || true; rm -rf "$work"' EXIT
cd "$work"
export HF_HOME=$work/hf JENGA_MODELS='' JENGA_DATA=''
unset HF_HUB_CACHE HUGGINGFACE_HUB_CACHE HF_TOKEN HF_HUB_OFFLINE TRANSFORMERS_OFFLINE

say() { printf -- '-- %s (%ss)\n' "$*" "$SECONDS"; }
# fail MESSAGE… also prints what the last command wrote.
fail() {
  echo "first week: $*" >&2
  printf 'its output:\n%s\nits errors:\n%s\n' "$(head -c 4000 out.txt)" "$(head -c 4000 err.txt)" >&2
  exit 1
}
# status WANT COMMAND… fails unless the command exits with status WANT; its output is in out.txt and err.txt.
status() {
  local want=$1 got=0
  shift
  "$@" >out.txt 2>err.txt || got=$?
  [ "$got" = "$want" ] || fail "$* exited with $got, want $want"
}
# j ARGUMENT… runs jenga, which succeeds; refuses ARGUMENT… runs it, and it reports a mistake in a file or data.
j() { status 0 "$jenga" "$@"; }
refuses() { status 1 "$jenga" "$@"; }
out() { for text in "$@"; do grep -qF -- "$text" out.txt || fail "no $text in the output"; done; }
err() { for text in "$@"; do grep -qF -- "$text" err.txt || fail "no $text in the errors"; done; }
lacks() { ! grep -qF -- "$2" "$1" || fail "$1 has $2"; }
count() { # count WANT FILE PATTERN: as many lines match
  local got
  got=$(grep -c -- "$3" "$2" || true)
  [ "$got" = "$1" ] || fail "$got lines of $2 match $3, want $1"
}
same() { cmp -s "$1" "$2" || fail "$1 and $2 differ: $(diff "$1" "$2" | head -5)"; }
# perfect: eval --json judged predictions that were fed back as data, which must be right.
perfect() { grep -qF '"span_f1":1,' out.txt || fail "predictions fed back are not the model's own targets"; }
# experiment NAME TASK… writes NAME.yaml with a tiny encoder and the tasks, an entry of YAML each.
experiment() {
  local name=$1
  shift
  {
    echo "project_name: $name"
    echo "model: {encoder: {type: transformer, layers: 1, width: 32, heads: 2, feed_forward: 64, max_positions: 48,"
    echo "  initializer_range: 0.1}}"
    echo "tokenizer: {max_length: 48, train: {vocab_size: 400}}"
    echo "training: {learning_rate: 1.0e-2, num_epochs: 6}"
    echo "tasks:"
    for task in "$@"; do echo "  - {$task}"; done
  } >"$name.yaml"
}
# endless FOLDER ARGUMENT… starts training that does not end before it is stopped, and waits for its first checkpoint.
endless() {
  local folder=$1
  shift
  "$jenga" train teams.yaml --out "$folder" --set training.num_epochs=1000000 "$@" >out.txt 2>err.txt &
  pid=$!
  for _ in {1..300}; do
    [ ! -e "$folder/best/model.json" ] || return 0
    sleep 0.1
  done
  fail "training has no checkpoint within 30 s"
}

say "the data: mails.csv sorted by team, and names in six scripts"
{
  echo "id,body,team,tone,amount"
  i=0
  for topic in "invoice,billing" "password,support" "parcel,shipping"; do
    for n in {1..40}; do
      i=$((i + 1)) tone=angry end="a disaster"
      [ $((n % 2)) = 0 ] || tone=calm end="a question"
      echo "m$i,\"My ${topic%,*}, number $n, is $end\",${topic#*,},$tone,$((n % 20)).5"
    done
  done
} >mails.csv
for person in Zoë Amina राहुल 王芳 سلمى Bob; do
  for place in Köln Oslo दिल्ली 北京 القاهرة Fez; do
    for before in "😀 " "Well, " "今天 " ""; do
      start=${#before} end=$((${#before} + ${#person}))
      printf '{"id":"%s","text":"%s","entities":[{"start":%d,"end":%d,"label":"person"},' "$person-$place" \
        "$before$person lives in $place." "$start" "$end"
      printf '{"start":%d,"end":%d,"label":"place"}]}\n' $((end + 10)) $((end + 10 + ${#place}))
    done
  done
done >names.jsonl
for place in Oslo Köln Fez 北京; do
  for person in Bob Zoë Amina Eve सीता; do
    printf '%s\tB-person\ndoes\tO\nn'"'"'t\tO\nlive\tO\nin\tO\n%s\tB-place\n.\tO\n\n' "$person" "$place"
    printf 'It\tO\nis\tO\n%s\tB-person\n'"'"'s\tO\n%s\tB-place\n😀\tO\n\n' "$person" "$place"
  done
done >news.conll

say "init writes experiments for CSV, JSON lines and CoNLL that pass check and train"
for file in mails.csv names.jsonl news.conll; do
  name=${file%.*}
  j init "$file" --out "init_$name.yaml"
  grep -q 'jenga pull' "init_$name.yaml" || fail "init does not say what pull would add"
  j check "init_$name.yaml"
  out "no errors"
  j train "init_$name.yaml" --out "runs/init_$name"
done

say "a model of the hub that is not there names the command; pull gets it, and check finds it"
experiment base "name: team, type: classification, data: {path: mails.csv, text: body, label: team}"
sed -i -e 's/^model: .*/model: {base_model: org\/small}/' -e '/^  initializer_range/d' \
  -e 's/, train: {vocab_size: 400}//' base.yaml
refuses check base.yaml
err '"jenga pull org/small" downloads it'
(cd "$repo" && go build -o "$work/serve" ./internal/hub/hubtest/serve)
./serve runs/init_names/best/encoder >url.txt &
hub=$!
for _ in {1..50}; do [ ! -s url.txt ] || break; sleep 0.1; done
export HF_ENDPOINT
HF_ENDPOINT=$(cat url.txt)
j pull org/small
[ -e "$(cat out.txt)/model.safetensors" ] || fail "pull does not print the model's folder"
refuses pull org/large
err 'has no model "org/large"'
j check base.yaml
kill "$hub"
j train base.yaml # from the cache: nobody answers now

say "the README's experiment for a CSV, with the small model in place of distilbert-base-uncased"
awk '/^```/ { inside = 0 } inside { print } /^```yaml/ { inside = 1 }' "$repo/README.md" |
  awk '/^project_name: mails/ { on = 1 } /^model:/ && seen++ { exit } on { print }' >experiment.yaml
grep -q 'same_as: team' experiment.yaml || fail "README.md has no experiment of mails.csv"
small=(--set model.base_model=org/small --set tokenizer.max_length=48)
j check "${small[@]}"
j train "${small[@]}"
printf 'My card was charged twice\nHow do I add a user?\n' >new.txt
j predict runs/mails new.txt
count 2 out.txt '"team":{"team":{"label":.*"tone":{"tone":{"label":'

say "offsets are characters in data, predict and tokenize; --offsets has bytes and utf16"
experiment names "name: names, type: ner, data: {path: names.jsonl, split: {dev: 0.2}}"
j train names.yaml
printf '😀 Zoë lives in 北京.\n' >line.txt
j predict runs/names line.txt
out '"label":"person","start":2,"end":5,"text":"Zoë"' '"label":"place","start":15,"end":17,"text":"北京"'
j predict runs/names line.txt --offsets bytes
out '"label":"person","start":5,"end":9,"text":"Zoë"' '"label":"place","start":19,"end":25,"text":"北京"'
j predict runs/names line.txt --offsets utf16
out '"label":"person","start":3,"end":6,"text":"Zoë"' '"label":"place","start":16,"end":18,"text":"北京"'
j tokenize runs/names line.txt
out '"offsets":[[0,0],[0,1],[2,5],[6,11]'
j tokenize runs/names line.txt --offsets bytes
out '"offsets":[[0,0],[0,4],[5,9],[10,15]'
status 2 "$jenga" predict runs/names line.txt --offsets runes
err characters
for command in predict tokenize; do
  j "$command" --help
  out "Unicode code points"
done

say "words with their offsets stand beside tags of plain text, and not beside given words"
j predict runs/names line.txt
out '"words":[[0,1],[2,5],[6,11],[12,14],[15,16],[16,17],[17,18]],' \
  '"tags":["O","B-person","O","O","B-place","I-place","O"]'
echo '{"words":["Zoë","lives","in","Köln","."]}' >words.jsonl
j predict runs/names words.jsonl
out '"tags":["B-person","O","O","B-place","O"]'
lacks out.txt '"words":[['

say "predictions fed back as data give the same targets: JSON lines with emoji, Arabic, Hindi and Chinese"
j predict runs/names names.jsonl --keep none --out predicted.jsonl
sed -E 's/^\{"line":[0-9]+,"text":("([^"\\]|\\.)*"),.*"spans":(\[[^]]*\]).*$/{"text":\1,"entities":\3}/' \
  predicted.jsonl >fed.jsonl
count 144 fed.jsonl '"entities":\[{"label"'
j eval runs/names --data names=fed.jsonl --json
perfect

say "... and CoNLL in, CoNLL out, of a model trained on given words, which splits plain text as its data does"
experiment news "name: news, type: ner, data: {path: news.conll}"
j train news.yaml
grep -q 'split_words: clitics' runs/news/experiment.yaml || fail "the run does not record how it splits words"
j predict runs/news news.conll --format conll --out fed.conll
cut -f 1 news.conll >want.txt
cut -f 1 fed.conll >got.txt
same want.txt got.txt
j eval runs/news --data news=fed.conll --json
perfect
echo "Bob doesn't live in Köln." >line.txt
j predict runs/news line.txt
out '"words":[[0,3],[4,8],[8,11],[12,16],[17,19],[20,24],[24,25]]'
lacks err.txt "agree with those of the training data"
j train news.yaml --out runs/punctuation --set tasks.news.data.split_words=punctuation
err "split_words: punctuation, which agrees with the words of the training data by F1"
j predict runs/punctuation line.txt
count 1 err.txt "agree with those of the training data"

say "a long text: null for words that were not read, the number of tokens lost; a pair is an error in its line"
{ printf 'Bob lives in Oslo. %.0s' {1..20}; echo; echo 'Zoë lives in Fez.'; } >long.txt
j predict runs/names long.txt
out '"truncated":54,' # of 100 words, each a token, 48 - 2 are read
count 1 out.txt '"tags":\["[^]]*"\(,null\)\{54\}\]'
count 1 out.txt '"truncated":0,'
err "1 of 2 texts has more than 48 tokens and is truncated"
echo '{"text":"Bob","pair":"Zoë","id":7}' >pair.jsonl
refuses predict runs/names pair.jsonl
out '"error":"line 1: a pair of texts' '"id":7'

say "predict reads a CSV as the run's data is read; id and line, --keep, --task, --top, --out and stdin"
experiment mails \
  "name: team, type: classification, data: {path: mails.csv, text: body, label: team, split: {dev: 0.2}}" \
  "name: tone, type: classification, data: {same_as: team, label: tone}"
j train mails.yaml --force # in place of the README's
j predict runs/mails mails.csv
count 120 out.txt '^{"line":[0-9]*,"id":"m[0-9]*","text":"My [^"]*","truncated":0,.*"tasks":{"team":'
count 1 out.txt '^{"line":2,"id":"m1","text":"My invoice, number 1, is a question"'
j predict runs/mails mails.csv --keep none
lacks out.txt '"id"'
j predict runs/mails mails.csv --keep tone --task team --top 3 --out top.jsonl
[ ! -s out.txt ] || fail "--out writes to stdout too"
count 120 top.jsonl '"truncated":0,"tone":"[a-z]*","tasks":{"team":{"team":{'
count 120 top.jsonl '"top":\[{[^}]*},{[^}]*},{[^}]*}\]}}}}$'
echo '{"body":"My parcel, number 3","id":3,"tasks":"mine","line":9}' | "$jenga" predict runs/mails - >out.txt 2>err.txt
out '"line":1' '"id":3' '"text":"My parcel, number 3"' '"input":{"line":9,"tasks":"mine"}'

say "CSV in, CSV out: the input's columns and rows, the predictions in the columns of the labels"
sed -E 's/,(billing|support|shipping),(calm|angry),/,,,/' mails.csv >unlabelled.csv
j predict runs/mails unlabelled.csv --format csv --out labelled.csv
head -n 1 labelled.csv >header.txt
head -n 1 mails.csv >want.txt
same want.txt header.txt
count 120 labelled.csv '^m[0-9]*,"My [^"]*",[a-z]*,[a-z]*,[0-9.]*$'
j eval runs/mails --data team=labelled.csv --json
count 1 out.txt '"team":{"accuracy":1,.*"tone":{"accuracy":1,'
count 1 out.txt '^{"split":"labelled.csv"'
j eval runs/mails --data team=mails.csv
count 1 out.txt '^mails.csv:$'

say "files as they are: semicolons, no header, cp1252, nested JSON, overlapping entities, a dev file of its own kind"
sed 's/,\([^,]*\),\([^,]*\),\([^,]*\)$/;\1;\2;\3/; s/,/;/; 1s/,/;/' mails.csv >semicolons.csv
experiment one "name: team, type: classification, data: {path: semicolons.csv, text: body, label: team}"
refuses check one.yaml
err 'delimiter: ";" divides it into 5 columns'
count 1 err.txt 'semicolons.csv:'
j check one.yaml --set 'tasks.team.data.delimiter=";"'
sed 1d mails.csv >headless.csv
experiment one "name: team, type: classification, data: {path: headless.csv, text: body, label: team}"
refuses check one.yaml
err "header: false with columns: [NAME, …]"
count 1 err.txt 'headless.csv:'
experiment one "name: team, type: classification, data: {train: mails.csv,
    dev: {path: headless.csv, header: false, columns: [id, body, team, tone, amount]}, text: body, label: team}"
j check one.yaml
err "120 of 120 texts of dev are in train too"
{ echo "text,label"; for n in {1..20}; do printf '"caf\xe9 %d, 5 \x80",l%d\n' "$n" $((n % 2)); done; } >cp1252.csv
experiment one "name: one, type: classification, data: {path: cp1252.csv}"
refuses check one.yaml
err 'encoding: cp1252 reads it as in "café'
j train one.yaml --set tasks.one.data.encoding=cp1252 --out runs/cp1252
j predict runs/cp1252 cp1252.csv
out '"text":"café 1, 5 €"'
for n in {1..20}; do echo "{\"user\":{\"input\":\"mail $n\"},\"kind\":{\"is\":\"k$((n % 2))\"}}"; done >nested.jsonl
experiment one "name: one, type: classification, data: {path: nested.jsonl, text: user.imput, label: kind.is}"
refuses check one.yaml
err 'did you mean "user.input"'
j check one.yaml --set tasks.one.data.text=user.input
for n in {1..20}; do
  printf '{"text":"Bank of %d","entities":[{"start":0,"end":4,"label":"a"},' "$n"
  echo '{"start":0,"end":7,"label":"b"}]}'
done >overlap.jsonl
experiment one "name: one, type: ner, data: {path: overlap.jsonl}"
refuses check one.yaml
err "overlap: longest or first"
for which in longest first; do
  j check one.yaml --set "tasks.one.overlap=$which"
  err "left out (overlap: $which): 20"
done

say "limit takes a sample with each label; the run lists which lines are in which split"
experiment teams "name: team, type: classification, data: {path: mails.csv, text: body, label: team, split: {dev: 0.2}}"
j check teams.yaml --set tasks.team.data.limit=9
grep -qE '^team +team +one label +train +9 +9 +3$' out.txt || fail "a limit of 9 loses labels"
err "limit: 9 of the 96 training examples of mails.csv are used (seed 42, stratified by label)"
j train teams.yaml --set tasks.team.data.limit=9 --out runs/limit
count 1 runs/limit/splits.jsonl '"split":"train",.*"lines":\[\([0-9]*,\)\{8\}[0-9]*\]'
count 1 runs/limit/splits.jsonl '"split":"dev",.*"lines":\[\([0-9]*,\)\{23\}[0-9]*\]'
{ head -n 21 mails.csv; } >onelabel.csv
refuses check teams.yaml --set tasks.team.data.path=onelabel.csv
err 'task "team"' 'want at least 2 labels, have ["billing"]' 'onelabel.csv'

say "doubtful labels: a warning of each kind with its count, in check, check --json and train"
{
  echo "text,label"
  for n in {1..20}; do echo "text $n,spam"; echo "other $n,ham"; done
  for n in {1..5}; do echo "a $n,NaN"; echo "b $n,n/a"; echo "c $n,Spam"; echo "d $n,ham "; done
  printf 'text 1,ham\ne,None\nf,null\n ,spam\n'
} >doubtful.csv
{ echo "text,label"; for n in {1..10}; do echo "text $n,spam"; echo "other $n,ham"; done; } >seen.csv
experiment doubtful "name: one, type: classification, data: {train: doubtful.csv, dev: seen.csv}"
doubts=("20 of 20 texts of dev are in train too" "different labels for the same text: 1 text"
  "differ only in white space, case, quotation marks" "may stand for a missing value" "1 of 64 texts of train is empty")
j check doubtful.yaml
err "${doubts[@]}"
count 5 err.txt '^warning: '
j check doubtful.yaml --json
out "${doubts[@]}" '"steps":' '"memory":{"total":' '"seconds":'
j train doubtful.yaml
err "${doubts[@]}"

say "numbers are standardised unless scale: none, of which a warning says what it does to other heads"
experiment numbers "name: team, type: classification, data: {path: mails.csv, text: body, label: team}" \
  "name: amount, type: regression, data: {same_as: team, value: amount}"
j check numbers.yaml
lacks err.txt gradient
j check numbers.yaml --set tasks.amount.heads.amount.scale=none
err gradient "scale: standard"

say "the terminal: at 80 columns all metrics, errors apart, names that say how they are averaged"
j train numbers.yaml
names="accuracy precision_macro recall_macro f1_macro pearson spearman rmse mae"
if script -qec true /dev/null >/dev/null 2>&1; then
  script -qec "stty cols 80; '$jenga' eval runs/numbers 2>/dev/null" /dev/null | tr -d '\r' >out.txt
  awk 'length($0) > 80 { exit 1 }' out.txt || fail "a line is longer than 80 columns"
else
  echo "NOT RUN at 80 columns: no script(1) of util-linux"
  j eval runs/numbers
fi
for name in $names "errors, not in %" "eval_overall" "the mean of each head"; do out "$name"; done

say "wrong usage: suggestions, plural forms, --threads 0, --version, completion"
status 2 "$jenga" train --outt x
err 'did you mean "--out"'
status 2 "$jenga" version --threads 0
err "--threads 0: want a number from 1 on"
j --version
out "jenga "
status 2 "$jenga" eval
err "an argument is missing"
for shell in bash zsh fish powershell; do j completion "$shell"; done
j completion bash
bash -n out.txt || fail "the completion of bash is no script"
j completion --help
out "source <(jenga completion bash)"
j parts section training
out "gradient_accumulation_steps"

say "a second training into the same folder is refused while the first runs, and kill -9 frees it"
endless locked
refuses train teams.yaml --out locked --force
err "another training writes to it, process $pid on"
kill -9 "$pid"
wait "$pid" 2>/dev/null || true
j eval locked
err "interrupted"
j train teams.yaml --out locked --force
j eval locked
lacks err.txt interrupted

say "Ctrl-C exits with 130 and says what survives; --json ends with an event; eval says that the run was cut short"
endless stopped --json
mv err.txt stopped.txt
kill -INT "$pid"
got=0
wait "$pid" || got=$?
[ "$got" = 130 ] || fail "interrupted training exited with $got, want 130"
grep -qE 'best so far: epoch [0-9]+ in stopped/best' stopped.txt err.txt ||
  fail "it does not say what survives: $(tail -n 3 stopped.txt)"
tail -n 1 out.txt | grep -q '^{"event":"interrupted".*"checkpoint":"stopped/best"' ||
  fail "the last event: $(tail -n 1 out.txt)"
j eval stopped
err "training of this run was interrupted after step"

say "a flipped byte of a checkpoint is an error that names the file"
file=runs/names/best/encoder/model.safetensors
byte=$(od -An -tu1 -j3000 -N1 "$file")
printf "\\x$(printf %x $((byte ^ 1)))" | dd of="$file" bs=1 seek=3000 conv=notrunc status=none
refuses predict runs/names line.txt
err "$file: its CRC-32C is" "damaged"
[ ! -s out.txt ] || fail "a damaged model predicts"
refuses eval runs/names

echo "first week: all passed in $SECONDS s"
