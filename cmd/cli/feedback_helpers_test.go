package cli

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/outputs"
)

// scripts are texts with characters of more than one byte, of more than one code unit of UTF-16, and of no width, with
// entities.
const scripts = `{"text": "Zoë met 👩\u200d👩\u200d👧 in Köln 👍🏽.", "label": "ü😀,", "entities": [` +
	`{"start": 0, "end": 3, "label": "a"}, {"start": 8, "end": 13, "label": "b"}]}
{"text": "\u00e9cole e\u0301cole أغنيةٌ لفيروز!", "label": "ü😀,", "entities": [` +
	`{"start": 6, "end": 12, "label": "b"}, {"start": 13, "end": 19, "label": "a"}]}
{"text": "मुंबई में don't 我想听歌。", "label": "की", "entities": [` +
	`{"start": 0, "end": 9, "label": "a"}, {"start": 16, "end": 18, "label": "b"}]}
{"text": "🇩🇪 flag ❤\ufe0f x𝒳\u200dy ½ a\u00a0b, \"q\" <x>", "label": "की", "entities": [` +
	`{"start": 0, "end": 2, "label": "b"}, {"start": 8, "end": 10, "label": "a"}]}
`

// trainScripts trains a model on a file of data in a folder of its own until it knows the examples.
func trainScripts(t *testing.T, name, text, tasks string) {
	t.Helper()
	t.Chdir(t.TempDir())
	writeFile(t, ".", name, text)
	trainHere(t, tasks, "train: {vocab_size: 400}", 100)
}

// trainHere trains a small model on the files of the working directory.
func trainHere(t *testing.T, tasks, tokenizer string, epochs int) {
	t.Helper()
	writeFile(t, ".", "experiment.yaml", fmt.Sprintf(`
project_name: fed
model:
  encoder: {type: transformer, layers: 1, width: 32, heads: 2, feed_forward: 32}
tokenizer: {max_length: 64, %s}
tasks:
%s
training: {learning_rate: 1.0e-2, batch_size: 8, num_epochs: %d}
`, tokenizer, tasks, epochs))
	if status, _, log := call("", "train", "--force"); status != 0 {
		t.Fatal(log)
	}
}

// predictFile returns the predictions for a file of data.
func predictFile(t *testing.T, name string, flags ...string) string {
	t.Helper()
	status, out, log := call("", append([]string{"predict", "runs/fed", name}, flags...)...)
	if status != 0 {
		t.Fatal(log)
	}
	return out
}

// taskOf returns the prediction of the first head of a task.
func taskOf(line map[string]any, task string) map[string]any {
	return line["tasks"].(map[string]any)[task].(map[string]any)[task].(map[string]any)
}

// checkFed requires that a file that was made of the run's predictions is data of the task, of which all predictions
// are right, and whose spans are the given ones: label and text, by line; nil for a task without spans.
func checkFed(t *testing.T, task, name string, spans [][]string) {
	t.Helper()
	status, out, log := call("", "eval", "runs/fed", "--task", task, "--data", task+"="+name, "--json")
	if status != 0 {
		t.Fatalf("%s: %s", name, log)
	}
	var metrics struct {
		Tasks map[string]struct {
			Heads map[string]map[string]any
		}
	}
	if err := json.Unmarshal([]byte(out), &metrics); err != nil {
		t.Fatal(err, out)
	}
	right := 0
	for _, metric := range []string{"accuracy", "span_f1", "f1_micro", "exact_match"} {
		if value, ok := metrics.Tasks[task].Heads[task][metric]; ok {
			right++
			if value != 1.0 {
				t.Errorf("%s: %s %v of its own predictions, want 1: %s", name, metric, value, out)
			}
		}
	}
	if right == 0 {
		t.Errorf("%s: no metric in %s", name, out)
	}
	if spans == nil {
		return
	}
	if got := targetSpans(t, task, name); !reflect.DeepEqual(got, spans) {
		t.Errorf("%s: the targets are %q, want %q", name, got, spans)
	}
}

// targetSpans reads a file as training data of the run's experiment, and returns the label and text of its spans.
func targetSpans(t *testing.T, task, name string) [][]string {
	t.Helper()
	data, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	sets := []string{"tasks." + task + ".data.train=" + data, "tasks." + task + ".data.dev=" + data}
	e, err := config.Read("runs/fed/experiment.yaml", sets)
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := dataset.Load(e, config.Train)
	if err != nil {
		t.Fatal(err)
	}
	var all [][]string
	for _, example := range loaded.Groups[0].Examples[config.Train] {
		spans := []string{}
		for h, head := range loaded.Heads(&loaded.Groups[0]) {
			if head.Task.Name != task {
				continue
			}
			finder := loaded.Tasks[head.Number].(outputs.SpanFinder)
			for _, s := range finder.Spans(example.Targets[h].(*outputs.TagsTarget).Tags) {
				text := example.Text[example.Words[s.Start].Start:example.Words[s.End-1].End]
				spans = append(spans, s.Label+" "+text)
			}
		}
		all = append(all, spans)
	}
	return all
}

// predictedSpans returns the label and text of the spans of lines of predictions.
func predictedSpans(lines []map[string]any, task string) [][]string {
	var all [][]string
	for _, line := range lines {
		spans := []string{}
		for _, span := range taskOf(line, task)["spans"].([]any) {
			s := span.(map[string]any)
			spans = append(spans, s["label"].(string)+" "+s["text"].(string))
		}
		all = append(all, spans)
	}
	return all
}

// writeFed writes a line of data for each line of predictions.
func writeFed(t *testing.T, name string, lines []map[string]any, made func(line map[string]any) map[string]any) {
	t.Helper()
	var all strings.Builder
	for _, line := range lines {
		text, err := json.Marshal(made(line))
		if err != nil {
			t.Fatal(err)
		}
		all.Write(append(text, '\n'))
	}
	writeFile(t, ".", name, all.String())
}

// cut returns the part of a text between two offsets in characters.
func cut(text string, start, end any) string {
	return string([]rune(text)[int(start.(float64)):int(end.(float64))])
}

// wordsOf returns the words of a line's tags.
func wordsOf(line map[string]any, task string) (words []string) {
	for _, word := range taskOf(line, task)["words"].([]any) {
		words = append(words, cut(line["text"].(string), word.([]any)[0], word.([]any)[1]))
	}
	return words
}
