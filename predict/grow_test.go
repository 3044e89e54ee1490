package predict

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/internal/sample"
)

// linesOf returns the JSON of a run's predictions for texts, by task.
func linesOf(t *testing.T, run string, texts []string) map[string]string {
	t.Helper()
	opened, err := OpenRun(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	var examples []*corpus.Example
	for _, text := range texts {
		examples = append(examples, &corpus.Example{Text: text})
	}
	predictions, err := opened.answer(t, Form{Rows: true}, examples)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for i, prediction := range predictions {
		if prediction.Err != nil {
			t.Fatal(prediction.Err)
		}
		for task, heads := range prediction.Tasks {
			line, err := json.Marshal(heads)
			if err != nil {
				t.Fatal(err)
			}
			all[task] += fmt.Sprintf("%d %s\n", i, line)
		}
	}
	return all
}

// A task is added to a model with a frozen encoder: whose LoRA was trained, with a fusion that all tasks share, tags
// and tuned thresholds. The others predict the same bytes as before.
func TestKeptTasksPredictTheSameBytes(t *testing.T) {
	path := sample.Small(t, "")
	t.Chdir(filepath.Dir(path))
	var topics, tones strings.Builder
	texts := []string{"", "the fee came late", "a menu does not open, the window hangs!"}
	for i := range 40 {
		text := fmt.Sprintf("the %s of %d %s", []string{"invoice", "window", "fee"}[i%3], i,
			[]string{"came late", "hangs"}[i/3%2])
		texts = append(texts, text)
		fmt.Fprintf(&topics, `{"text": %q, "labels": [%q]}`+"\n", text, []string{"money", "device", "money"}[i%3])
		fmt.Fprintf(&tones, `{"text": %q, "label": %q}`+"\n", text, []string{"calm", "angry"}[i/3%2])
	}
	sample.Write(t, "topics.jsonl", topics.String())
	sample.Write(t, "tones.jsonl", tones.String())
	sample.Write(t, "second.yaml", `model: {base_model: first, lora: {r: 2}}
tasks:
  - {name: team, type: classification, data: {path: mails.jsonl, label: team}}
  - {name: things, type: ner, data: {same_as: team}}
  - {name: topics, type: multi_label, data: {path: topics.jsonl}}
training: {learning_rate: 0.02, num_epochs: 4, batch_size: 8}
`)
	sample.Write(t, "third.yaml", `model: {base_model: second, freeze: all, keep_tasks: all}
tasks:
  - {name: tone, type: classification, data: {path: tones.jsonl}}
training: {learning_rate: 0.02, num_epochs: 4, batch_size: 8}
`)
	trainSmall(t, path, "first", "training.num_epochs=4")
	trainSmall(t, "second.yaml", "second")
	trainSmall(t, "third.yaml", "third")

	before, after := linesOf(t, "second", texts), linesOf(t, "third", texts)
	if len(before) != 3 || len(after) != 4 || after["tone"] == "" {
		t.Fatalf("%d tasks before, %d after, want 3 and 4", len(before), len(after))
	}
	for task, want := range before {
		if after[task] != want {
			t.Errorf("%s predicted\n%swant\n%s", task, after[task], want)
		}
	}
}
