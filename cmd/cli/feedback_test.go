package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/internal/shared"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/tasks"
)

func TestPredictedSpansOfAllScriptsAreTargetsAgain(t *testing.T) {
	trainScripts(t, "a.jsonl", scripts, "  - {name: t, type: ner, data: {train: a.jsonl, dev: a.jsonl}}")
	lines := linesOf(t, predictFile(t, "a.jsonl"))
	want := [][]string{
		{"a Zoë", "b 👩\u200d👩\u200d👧"}, {"b e\u0301cole", "a أغنيةٌ"}, {"a मुंबई में", "b 我想"}, {"b 🇩🇪", "a ❤\ufe0f"},
	}
	if got := predictedSpans(lines, "t"); !reflect.DeepEqual(got, want) {
		t.Fatalf("predicted %q, want %q", got, want)
	}
	for name, made := range map[string]func(line map[string]any) map[string]any{
		"entities.jsonl": func(line map[string]any) map[string]any {
			return map[string]any{"text": line["text"], "entities": taskOf(line, "t")["spans"]}
		},
		"words.jsonl": func(line map[string]any) map[string]any {
			return map[string]any{"words": embedWords(line, "t"), "tags": taskOf(line, "t")["tags"]}
		},
		"both.jsonl": func(line map[string]any) map[string]any {
			return map[string]any{"text": line["text"], "words": embedWords(line, "t"), "tags": taskOf(line, "t")["tags"]}
		},
		"tags.jsonl": func(line map[string]any) map[string]any {
			return map[string]any{"text": line["text"], "tags": taskOf(line, "t")["tags"]}
		},
	} {
		writeFed(t, name, lines, made)
		if name == "words.jsonl" {
			want[2][1] = "b 我 想" // words that are joined by blanks
		}
		checkFed(t, "t", name, want)
		want[2][1] = "b 我想"
	}
	for _, format := range []string{"csv", "tsv"} {
		var texts []map[string]any
		for _, line := range lines {
			texts = append(texts, map[string]any{"text": line["text"]})
		}
		writeFed(t, "in.jsonl", texts, func(line map[string]any) map[string]any { return line })
		writeFile(t, ".", "out."+format, predictFile(t, "in.jsonl", "--format", format, "--offsets", "bytes"))
		checkFed(t, "t", "out."+format, want)
	}
	want[2][1] = "b 我 想"
	writeFile(t, ".", "out.conll", predictFile(t, "a.jsonl", "--format", "conll"))
	checkFed(t, "t", "out.conll", want)
	t.Run("offsets are those of Go and of UTF-16", checkOffsets)
}

// checkOffsets takes the spans and words of predictions out of their texts, by the offsets of each unit.
func checkOffsets(t *testing.T) {
	for unit, slice := range map[string]func(text string, start, end int) string{
		"characters": func(text string, start, end int) string { return string([]rune(text)[start:end]) },
		"bytes":      func(text string, start, end int) string { return text[start:end] },
		"utf16": func(text string, start, end int) string {
			return string(utf16.Decode(utf16.Encode([]rune(text))[start:end]))
		},
	} {
		spans, words := 0, []string{}
		for _, line := range linesOf(t, predictFile(t, "a.jsonl", "--offsets", unit)) {
			text := line["text"].(string)
			at := func(start, end any) string { return slice(text, int(start.(float64)), int(end.(float64))) }
			for _, span := range taskOf(line, "t")["spans"].([]any) {
				s := span.(map[string]any)
				if spans++; at(s["start"], s["end"]) != s["text"] {
					t.Errorf("%s: %v of %q is %q", unit, s, text, at(s["start"], s["end"]))
				}
			}
			for _, word := range taskOf(line, "t")["words"].([]any) {
				words = append(words, at(word.([]any)[0], word.([]any)[1]))
			}
		}
		const want = "Zoë met 👩\u200d👩\u200d👧 in Köln 👍🏽 . \u00e9cole e\u0301cole أغنيةٌ لفيروز ! " +
			"मुंबई में don ' t 我 想 听 歌 。 " +
			"🇩🇪 flag ❤\ufe0f x𝒳\u200dy ½ a b , \" q \" < x >"
		if got := strings.Join(words, " "); spans != 8 || got != want {
			t.Errorf("%s: %d spans, words %q, want %q", unit, spans, got, want)
		}
	}
}

func TestPredictedLabelsAndAnswersAreTargetsAgain(t *testing.T) {
	trainScripts(t, "a.jsonl", scripts, "  - {name: one, type: classification, data: {train: a.jsonl, dev: a.jsonl}}\n"+
		"  - {name: many, type: multi_label, separator: \"|\", data: {train: a.jsonl, dev: a.jsonl, labels: label}}")
	lines := linesOf(t, predictFile(t, "a.jsonl"))
	writeFed(t, "one.jsonl", lines, func(line map[string]any) map[string]any {
		return map[string]any{"text": line["text"], "label": taskOf(line, "one")["label"]}
	})
	checkFed(t, "one", "one.jsonl", nil)
	writeFed(t, "many.jsonl", lines, func(line map[string]any) map[string]any {
		labels := []any{}
		for _, l := range taskOf(line, "many")["labels"].([]any) {
			labels = append(labels, l.(map[string]any)["label"])
		}
		return map[string]any{"text": line["text"], "label": labels}
	})
	checkFed(t, "many", "many.jsonl", nil)
	for _, task := range []string{"one", "many"} {
		writeFile(t, ".", "out.csv", predictFile(t, "a.jsonl", "--format", "csv", "--task", task))
		checkFed(t, task, "out.csv", nil)
	}
}

// Labels of all characters are read again from each format that holds them.
func TestPredictedLabelsOfAnyCharactersAreTargetsAgain(t *testing.T) {
	labels := []string{"new york", `say "no"`, "tab\there", "line\nend", "a,b", "#one", "-DOCSTART-", " lead", "x;y",
		`["z"]`, "'", "é 😀", "end\r"}
	var data, tags strings.Builder
	for i, label := range labels {
		line, err := json.Marshal(map[string]any{"text": fmt.Sprintf("word%d of %d", i, i), "label": label})
		if err != nil {
			t.Fatal(err)
		}
		data.Write(append(line, '\n'))
	}
	trainScripts(t, "a.jsonl", data.String(),
		"  - {name: one, type: classification, data: {train: a.jsonl, dev: a.jsonl}}")
	for _, format := range []string{"csv", "tsv", "parquet"} {
		writeFile(t, ".", "out."+format, predictFile(t, "a.jsonl", "--format", format, "--out", "-"))
		checkFed(t, "one", "out."+format, nil)
	}

	// tags with blanks, for the words of a file that blanks separate
	var names strings.Builder
	for i := range 4 {
		fmt.Fprintf(&names, `{"words": ["in", "city%d"], "tags": ["O", "B-new town"]}`+"\n", i)
		fmt.Fprintf(&tags, "in O\ncity%d O\n\n", i)
	}
	trainScripts(t, "b.jsonl", names.String(), "  - {name: t, type: ner, data: {train: b.jsonl, dev: b.jsonl}}")
	writeFile(t, ".", "b.conll", tags.String())
	writeFile(t, ".", "out.conll", predictFile(t, "b.conll", "--format", "conll"))
	checkFed(t, "t", "out.conll", predictedSpans(linesOf(t, predictFile(t, "b.conll")), "t"))
}

func TestPredictedAnswersAreTargetsAgain(t *testing.T) {
	const text = `{"question": "Wer? 😀", "context": "😀 Zoë 👩‍👩‍👧 wohnt in Köln.", "answers": ["Zoë"]}
{"question": "من؟", "context": "أغنيةٌ لفيروز 😀 هنا", "answers": ["أغنيةٌ"]}
{"question": "क्या? 😀", "context": "𝒳 मुंबई में 我想听歌。", "answers": ["में"]}
`
	trainScripts(t, "a.jsonl", text, "  - {name: qa, type: question_answering, data: {train: a.jsonl, dev: a.jsonl}}")
	for _, unit := range []string{"characters", "bytes", "utf16"} {
		writeFile(t, ".", "out.csv", predictFile(t, "a.jsonl", "--format", "csv", "--offsets", unit))
		checkFed(t, "qa", "out.csv", nil)
	}
	lines := linesOf(t, predictFile(t, "a.jsonl"))
	var texts []string
	writeFed(t, "out.jsonl", lines, func(line map[string]any) map[string]any {
		answer := taskOf(line, "qa")["answer"].(map[string]any)
		texts = append(texts, answer["text"].(string))
		if answer["text"] != cut(line["pair"].(string), answer["start"], answer["end"]) {
			t.Errorf("%v is not in %q", answer, line["pair"])
		}
		return map[string]any{"question": line["text"], "context": line["pair"],
			"answers": []any{map[string]any{"text": answer["text"], "answer_start": answer["start"]}}}
	})
	checkFed(t, "qa", "out.jsonl", nil)
	if got := strings.Join(texts, ", "); got != "Zoë, أغنيةٌ, में" {
		t.Errorf("answers %s", got)
	}
}

func TestTablesHaveTheWordsOfTags(t *testing.T) {
	trainScripts(t, "a.jsonl", scripts,
		"  - {name: t, type: ner, data: {train: a.jsonl, dev: a.jsonl, split_words: clitics}}")
	for _, test := range []struct{ in, want string }{
		{"you don't: \"😀\"\n", "text,words,tags\n" +
			`"you don't: ""😀""","[""you"",""do"",""n't"","":"",""\"""",""😀"",""\""""]",`},
		{`{"words": ["a", "😀"], "id": 1}` + "\n" + `{"text": "don't", "id": 2}`,
			"id,words,tags\n1,\"[\"\"a\"\",\"\"😀\"\"]\","},
		{`{"text": "don't"}` + "\n" + `{"words": ["a", "😀"]}`, "text,words,tags\ndon't,\"[\"\"do\"\",\"\"n't\"\"]\","},
	} {
		status, out, log := call(test.in, "predict", "runs/fed", "--format", "csv")
		if status != 0 || !strings.HasPrefix(out, test.want) {
			t.Errorf("%s: %d %s\n%s, want %s", test.in, status, log, out, test.want)
		}
	}
}

// firstLines copies the first n lines of a file.
func firstLines(t *testing.T, from, name string, n int) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	writeFile(t, ".", name, strings.Join(lines[:min(n, len(lines))], ""))
}

func TestPredictionsOfCorporaAreTargetsAgain(t *testing.T) {
	data := filepath.Join(shared.Dir(t), "data")
	t.Chdir(t.TempDir())
	const words = "type: words, train: {vocab_size: 3000}"
	for _, name := range []string{"seq.in", "seq.out", "label"} {
		firstLines(t, filepath.Join(data, "snips/test", name), "snips/"+name, 150)
	}
	firstLines(t, filepath.Join(data, "wnut17/emerging.dev.conll"), "wnut.conll", 2000)
	firstLines(t, filepath.Join(data, "ud_ewt/en_ewt-ud-test.conllu"), "ud.conllu", 2000)
	asWords := func(task string) func(line map[string]any) map[string]any {
		return func(line map[string]any) map[string]any {
			return map[string]any{"words": line["words"], "tags": taskOf(line, task)["tags"]}
		}
	}

	trainHere(t, "  - {name: slots, type: ner, data: {train: snips, dev: snips}}\n"+
		"  - {name: intent, type: classification, data: {same_as: slots}}", words, 8)
	lines := linesOf(t, predictFile(t, "snips"))
	writeFed(t, "slots.jsonl", lines, func(line map[string]any) map[string]any {
		made := asWords("slots")(line)
		made["label"] = taskOf(line, "intent")["label"]
		return made
	})
	checkFed(t, "intent", "slots.jsonl", nil)
	checkFed(t, "slots", "slots.jsonl", predictedSpans(lines, "slots"))
	writeFile(t, ".", "out.csv", predictFile(t, "snips", "--format", "csv", "--keep", "words"))
	checkFed(t, "intent", "out.csv", nil)
	checkFed(t, "slots", "out.csv", predictedSpans(lines, "slots"))

	trainHere(t, "  - {name: names, type: ner, data: {train: wnut.conll, dev: wnut.conll}}", words, 8)
	lines = linesOf(t, predictFile(t, "wnut.conll"))
	writeFed(t, "names.jsonl", lines, asWords("names"))
	writeFile(t, ".", "out.conll", predictFile(t, "wnut.conll", "--format", "conll"))
	for _, name := range []string{"names.jsonl", "out.conll"} {
		checkFed(t, "names", name, predictedSpans(lines, "names"))
	}

	trainHere(t, "  - {name: pos, type: tagging, data: {train: ud.conllu, dev: ud.conllu}}", words, 4)
	writeFile(t, ".", "out.conllu", predictFile(t, "ud.conllu", "--format", "conllu"))
	checkFed(t, "pos", "out.conllu", nil)
	writeFed(t, "pos.jsonl", linesOf(t, predictFile(t, "ud.conllu")), asWords("pos"))
	checkFed(t, "pos", "pos.jsonl", nil)
}

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
	e, err := config.Read(t.Context(), "runs/fed/experiment.yaml", sets)
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := dataset.Load(t.Context(), e, dataset.Options{}, config.Train)
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
			spansOf := tasks.DescriptionOf(loaded.Tasks[head.Number]).Spans
			for _, s := range spansOf(example.Targets[h].(*outputs.TagsTarget).Tags) {
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

// embedWords returns the words of a line's tags.
func embedWords(line map[string]any, task string) (words []string) {
	for _, word := range taskOf(line, task)["words"].([]any) {
		words = append(words, cut(line["text"].(string), word.([]any)[0], word.([]any)[1]))
	}
	return words
}
