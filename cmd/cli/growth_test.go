package cli

import (
	"os"
	"strings"
	"testing"
)

// Training has eval_overall of the tasks that it trains, eval that of all, and says so.
func TestEvaluationsNameTheTasksThatWereKept(t *testing.T) {
	rateTest(t)
	status, _, log := call("", "train", "experiment.yaml", "--set", "training.max_steps=4", "--out", "base")
	if status != 0 {
		t.Fatal(log)
	}
	const grown = `model: {base_model: base, keep_tasks: all}
tasks: [{name: other, type: classification, data: {path: mails.csv, text: body, label: team}}]
training: {rehearse: 0, max_steps: 4}
`
	if err := os.WriteFile("grown.yaml", []byte(grown), 0o644); err != nil {
		t.Fatal(err)
	}
	status, trained, log := call("", "train", "grown.yaml", "--out", "grown")
	if status != 0 {
		t.Fatal(log)
	}
	_, after, _ := strings.Cut(trained, "\neval_overall ")
	want := "\neval_overall " + strings.Split(after, ":")[0] +
		" without the tasks that were kept and not trained, team, as in training\n"
	status, out, log := call("", "eval", "grown")
	if status != 0 || !strings.HasSuffix(out, want) {
		t.Errorf("eval: %d, %s%swant %s", status, out, log, want)
	}

	// without kept tasks there is no such line, nor with kept ones that are rehearsed
	status, _, log = call("", "train", "grown.yaml", "--out", "rehearsed", "--set", "training.rehearse=0.5")
	if status != 0 {
		t.Fatal(log)
	}
	for _, run := range []string{"base", "rehearsed"} {
		if status, out, log := call("", "eval", run); status != 0 || strings.Contains(out, "kept") {
			t.Errorf("eval %s: %d, %s%s", run, status, out, log)
		}
	}
}
