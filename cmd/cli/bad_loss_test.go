package cli

import (
	"fmt"
	"strings"
	"testing"
)

func TestABadLossNamesTheCommandThatGoesOn(t *testing.T) {
	t.Chdir(t.TempDir())
	var data strings.Builder
	data.WriteString("text,value\n")
	for i := range 160 {
		value := fmt.Sprint(i % 3)
		if i == 21 { // not in the first 20 steps of seed 42
			value = "1e9" // the square of its error explodes
		}
		fmt.Fprintf(&data, "note %d,%s\n", i, value)
	}
	writeFile(t, ".", "a.csv", data.String())
	writeFile(t, ".", "dev.csv", "text,value\nnote,1\nnote 1,2\n")
	writeFile(t, ".", "experiment.yaml", `
project_name: notes
model:
  encoder: {type: transformer, layers: 1, width: 16, heads: 2, feed_forward: 32}
tokenizer: {train: {vocab_size: 200}}
tasks:
  - name: much
    type: regression
    data: {train: a.csv, dev: dev.csv}
    heads: [{type: regression, scale: none}]
training: {batch_size: 4, num_epochs: 2, save_strategy: steps, save_steps: 5}
`)
	status, _, log := call("", "train")
	const goOn = "jenga train --resume runs/notes --set training.on_bad_loss=skip --allow-changes experiment"
	if status != exitMistake || !strings.HasSuffix(log, "; go on by "+goOn+"\n") {
		t.Fatalf("train: status %d, %s\nwant %s", status, log, goOn)
	}
	if status, _, log = call("", strings.Fields(goOn)[1:]...); status != 0 {
		t.Errorf("%s: status %d, %s", goOn, status, log)
	}
}

// TestABadLossBeforeACheckpointNamesTheCommandThatStartsAgain trains with a rate that makes the second step's loss NaN.
func TestABadLossBeforeACheckpointNamesTheCommandThatStartsAgain(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, ".", "mails.csv", mails())
	writeFile(t, ".", "experiment.yaml", smallExperiment)
	status, _, log := call("", "train", "--set", "training.learning_rate=1e30", "--set", "training.warmup_ratio=0")
	const goOn = "start again by jenga train --resume runs/mails --set training.learning_rate=RATE"
	if status != exitMistake || !strings.Contains(log, "step 2: ") ||
		!strings.Contains(log, "ended after step 1 of ") ||
		!strings.HasSuffix(log, "; no checkpoint yet; "+goOn+", with a lower RATE\n") {
		t.Fatalf("train: status %d, %s\nwant %s", status, log, goOn)
	}
	_, args, _ := strings.Cut(strings.Replace(goOn, "RATE", "1e-3", 1), "jenga ")
	if status, _, log = call("", strings.Fields(args)...); status != 0 {
		t.Errorf("%s: status %d, %s", args, status, log)
	}
}
