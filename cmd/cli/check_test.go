package cli

import (
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/docs"
	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/experiments/memory"
	"github.com/jenga-nlp/jenga/experiments/run"
)

func TestCheckCountsLabelledExamples(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, ".", "mails.csv", "body,team,size\nso good,a,1\nso bad,,2\nso fair,b,\n")
	writeFile(t, ".", "experiment.yaml", `
project_name: mails
model: {encoder: {type: transformer, layers: 1, width: 16, heads: 2, feed_forward: 32}}
tokenizer: {train: {vocab_size: 200}}
tasks:
  - {name: team, type: classification, data: {train: mails.csv, dev: mails.csv, text: body, label: team}}
  - {name: size, type: regression, data: {same_as: team, value: size}}
`)
	const want = `task  head  output     split  examples  labelled  labels
team  team  one label  train  3         2         2
team  team  one label  dev    3         2         2
size  size  a number   train  3         2         -
size  size  a number   dev    3         2         -
`
	status, out, log := call("", "check")
	if status != 0 || !strings.HasPrefix(out, want) {
		t.Errorf("check: %d\n%s%s\nwant\n%s", status, out, log, want)
	}
	for _, line := range []string{"\n3 steps, 3 evaluations\n", "\nmemory: about ", "\ntime: about ",
		" measured steps), beside what its disk takes to sync checkpoints\n", "\nno errors\n"} {
		if !strings.Contains(out, line) {
			t.Errorf("no %q in\n%s", line, out)
		}
	}
	if entries, err := os.ReadDir("."); err != nil || len(entries) != 2 {
		t.Errorf("after check the folder has %v, %v; want two files", entries, err)
	}

	// as JSON
	status, out, log = call("", "check", "--json")
	var got checked
	if err := json.Unmarshal([]byte(out), &got); status != 0 || err != nil || strings.Count(out, "\n") != 1 {
		t.Fatalf("check --json: %d, %v\n%s%s", status, err, out, log)
	}
	size := got.Tasks[1].Heads[0]
	if want := (dataset.Counts{Examples: 3, Labelled: 2}); size.Output != "a number" || size.Splits["dev"] != want {
		t.Errorf("head size: %+v, want %+v of dev", size, want)
	}
	if got.Steps != 3 || got.Measured != 3 || got.Seconds == nil || *got.Seconds <= 0 || got.Memory.Total == 0 ||
		got.Memory.Parts["weights"] == 0 || got.Parameters == 0 || len(got.Warnings) == 0 {
		t.Errorf("got %s, want steps, time, memory and warnings", out)
	}
}

func TestATrainingThatDoesNotFitIsAnErrorOfACheck(t *testing.T) {
	tooLarge := errors.New("exp.yaml:3: a batch needs 9 GiB, the machine has 2 GiB")
	expected := run.Expectation{Steps: 3, Memory: memory.Estimate{Weights: 9 << 30}}
	for _, asJSON := range []bool{false, true} {
		var fits, not strings.Builder
		if err := writeChecked(&fits, asJSON, checked{}, expected, nil); err != nil {
			t.Error(err)
		}
		if err := writeChecked(&not, asJSON, checked{}, expected, tooLarge); err != tooLarge {
			t.Errorf("JSON %v: %v, want %v", asJSON, err, tooLarge)
		}
		var got checked
		if !asJSON {
			if fits.String() != not.String()+"no errors\n" ||
				!strings.Contains(not.String(), "memory: about 9.00 GiB") {
				t.Errorf("%s\nand, where it does not fit,\n%s", &fits, &not)
			}
		} else if err := json.Unmarshal([]byte(not.String()), &got); err != nil || got.Error != tooLarge.Error() ||
			got.Steps != 3 || got.Seconds != nil || strings.Contains(fits.String(), `"error"`) {
			t.Errorf("%v: %s\nand, where it fits, %s", err, &not, &fits)
		}
	}
}

func TestThePageDescribesTheObjectOfACheck(t *testing.T) {
	text, _ := docs.Command("check")
	for _, field := range reflect.VisibleFields(reflect.TypeFor[checked]()) {
		if key, _, _ := strings.Cut(field.Tag.Get("json"), ","); !strings.Contains(text, `"`+key+`"`) {
			t.Errorf("docs/commands.md does not describe %q", key)
		}
	}
}
