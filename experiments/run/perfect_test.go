package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/multitask/train"
)

// perfectData are 400 records, of which the field told has the label, and body another; and 400 of words.
func perfectData() map[string]string {
	var texts, words strings.Builder
	for i := range 400 {
		label, other := []string{"red", "blue"}[i%2], []string{"red", "blue"}[i/2%2]
		fmt.Fprintf(&texts, `{"told": "%[1]s %[1]s %[1]s", "body": "%[2]s %[2]s %[2]s", "label": %[1]q, `+
			`"other": %[2]q}`+"\n", label, other)
		fmt.Fprintf(&words, `{"words": [%q, "it"], "tags": ["B-%[1]s", "O"]}`+"\n", label)
	}
	return map[string]string{"a.jsonl": texts.String(), "words.jsonl": words.String()}
}

// perfectWarnings trains tasks, and returns the warnings of the training that speak of 100 %. It ends after a step, or
// not if that is 0.
func perfectWarnings(t *testing.T, r *Run, folder string, end int) (warnings []string) {
	t.Helper()
	_, err := r.Train(context.Background(), folder, func(event train.Event) error {
		if w, ok := event.(train.Warning); ok && strings.Contains(w.Text, "100 %") {
			warnings = append(warnings, w.Text)
		}
		if step, ok := event.(train.Step); ok && step.Number == end {
			return errKilled
		}
		return nil
	})
	if err != nil && !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	return warnings
}

const perfectTraining = "training: {learning_rate: 0.02, batch_size: 4, warmup_ratio: 0.1, num_epochs: 2}\n"

func TestAPerfectScoreAfterTheFirstEpochIsReported(t *testing.T) {
	const told = "data: {path: a.jsonl, text: told, split: {dev: 40, seed: 1}}}\n"
	const body = "data: {path: a.jsonl, text: body, split: {dev: 40, seed: 1}}}\n"
	for name, test := range map[string]struct {
		tasks string
		want  []string // all in one warning; none: no warning
	}{
		"the label is in the text": {"  - {name: a, type: classification, " + told,
			[]string{`dev after epoch 1: task "a": head "a": accuracy is 100 % on 40 examples`, "data: {text: FIELD}",
				"data: {split: {by: FIELD}}"}},
		"the text that is named by the remedy": {"  - {name: a, type: classification, " + body, nil},
		"few examples": {"  - {name: a, type: classification, " +
			strings.Replace(told, "40", "19", 1), nil},
		"one of two tasks": {"  - {name: a, type: classification, " + told + "  - {name: b, type: classification, " +
			strings.Replace(strings.Replace(body, "text: body", "text: body, label: other", 1), "40", "19", 1),
			[]string{`task "a": head "a": accuracy is 100 %`}},
		"one of two tasks on the same texts": {"  - {name: b, type: classification, " + body +
			"  - {name: a, type: classification, data: {same_as: b, label: other}}\n",
			[]string{`task "a": head "a": accuracy is 100 %`}},
		"tags of words": {"  - {name: a, type: ner, data: {path: words.jsonl, split: {dev: 40, seed: 1}}}\n",
			[]string{"100 % on 40 examples", "a word has the same tag in every text", "data: {tags: FIELD}"}},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := prepare(t, test.tasks+perfectTraining, perfectData())
			if err != nil {
				t.Fatal(err)
			}
			got := perfectWarnings(t, r, "run", 0)
			if len(got) != min(1, len(test.want)) {
				t.Fatalf("warnings %q", got)
			}
			for _, want := range test.want {
				if !strings.Contains(got[0], want) {
					t.Errorf("warning %q without %q", got[0], want)
				}
			}
			if len(got) > 0 && strings.Contains(got[0], `"b"`) {
				t.Errorf("warning %q of task b", got[0])
			}
		})
	}
}

func TestAPerfectScoreIsNotReportedAgainOnResume(t *testing.T) {
	task := "  - {name: a, type: classification, data: {path: a.jsonl, text: told, split: {dev: 40, seed: 1}}}\n"
	r, err := prepare(t, task+perfectTraining, perfectData(), "training.eval_strategy=steps",
		"training.eval_steps=80", "training.save_strategy=steps", "training.save_steps=80")
	if err != nil {
		t.Fatal(err)
	}
	if got := perfectWarnings(t, r, "run", 85); len(got) != 1 || !strings.HasPrefix(got[0], "dev after epoch 0.8889:") {
		t.Fatalf("warnings %q", got)
	}
	if got := perfectWarnings(t, resumedRun(t, "run"), "run", 0); len(got) > 0 {
		t.Errorf("warnings %q again", got)
	}
}
