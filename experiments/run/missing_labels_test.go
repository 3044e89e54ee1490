package run

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/multitask/samplers"
	"github.com/jenga-nlp/jenga/multitask/weightings"
)

// halfLabelled are records of two labels and a number, each of which is missing in half of the records: absent, null or
// empty. dev has no record with the label of tone.
func halfLabelled() map[string]string {
	r := rand.New(rand.NewPCG(1, 2))
	files := map[string]string{}
	for name, n := range map[string]int{"train.jsonl": 60, "dev.jsonl": 20, "other.jsonl": 30} {
		var lines strings.Builder
		for i := range n {
			fmt.Fprintf(&lines, `{"text": "note %d %s"`, i, strings.Repeat("a ", i%5))
			for field, value := range map[string]string{
				"team": []string{`"x"`, `"y"`, `"z"`}[i%3], "tone": []string{`"good"`, `"bad"`}[i%2],
				"much": fmt.Sprint(i % 7),
			} {
				switch {
				case field == "tone" && name == "dev.jsonl":
					fmt.Fprintf(&lines, `, %q: null`, field)
				case r.IntN(2) == 0:
					fmt.Fprintf(&lines, `, %q: %s`, field, value)
				case field != "much" && r.IntN(2) == 0:
					fmt.Fprintf(&lines, `, %q: %s`, field, []string{`null`, `""`}[r.IntN(2)])
				}
			}
			lines.WriteString("}\n")
		}
		files[name] = lines.String()
	}
	return files
}

// twoHeads are a task of two heads, one of another type on the same texts, and one on other texts.
const twoHeads = `  - name: mail
    type: classification
    data: {train: train.jsonl, dev: dev.jsonl, label: {team: team, tone: tone}}
    heads: [{name: team}, {name: tone}]
  - {name: much, type: regression, data: {same_as: mail, value: much}}
  - {name: other, type: classification, data: {train: other.jsonl, dev: dev.jsonl, label: team}}
`

func TestLabelsMayBeMissingAnywhere(t *testing.T) {
	var settings []string
	for _, name := range weightings.Registry().Names() {
		settings = append(settings, "training.weighting="+name)
	}
	for _, name := range samplers.Registry().Names() {
		settings = append(settings, "training.sampling="+name)
	}
	for _, set := range settings {
		t.Run(set, func(t *testing.T) {
			for _, batch := range []string{"1", "8"} { // steps without a label of any head, and of most
				r, err := prepare(t, twoHeads, halfLabelled(), set, "training.batch_size="+batch,
					"training.num_epochs=2", "training.logging_steps=1", "training.learning_rate=0.01")
				if err != nil {
					t.Fatal(err)
				}
				folder := filepath.Join(t.TempDir(), "run")
				if _, err := r.Train(context.Background(), folder, ignore); err != nil {
					t.Fatal(err)
				}
				checkEvaluations(t, sample.Files(t, folder)[runfolder.MetricsFile])
			}
		})
	}
}

// checkEvaluations checks the metrics of a head with labels and of one without in dev.
func checkEvaluations(t *testing.T, metrics string) {
	t.Helper()
	evaluations := 0
	for line := range strings.Lines(metrics) {
		var e struct {
			Event string
			Tasks map[string]struct {
				Heads map[string]map[string]any
			}
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if e.Event != "eval" {
			continue
		}
		evaluations++
		heads := e.Tasks["mail"].Heads
		if _, have := heads["team"]["accuracy"]; !have || len(heads["tone"]) > 0 {
			t.Errorf("metrics %v, want those of team and none of tone", heads)
		}
	}
	if evaluations != 2 {
		t.Errorf("%d evaluations, want 2", evaluations)
	}
}

func TestAHeadWithoutLabelsInTrainIsAnError(t *testing.T) {
	files := halfLabelled()
	labelled := files["train.jsonl"]
	for value, want := range map[string]string{
		`""`:   `task "mail": head "tone" has no label in its training data, train.jsonl`,
		`null`: `field "tone" for label.tone is empty in every record`,
	} {
		first := `{"text": "note", "team": "x", "tone": ` + value + `, "much": 1}` + "\n"
		files["train.jsonl"] = first + regexp.MustCompile(`"tone": [^,}]+`).ReplaceAllString(labelled, `"tone": `+value)
		_, err := prepare(t, twoHeads, files)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Prepare = %v, want %s", err, want)
		}
	}
}
