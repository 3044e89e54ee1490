package cli

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/jenga-nlp/jenga/internal/shared"
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
			return map[string]any{"words": wordsOf(line, "t"), "tags": taskOf(line, "t")["tags"]}
		},
		"both.jsonl": func(line map[string]any) map[string]any {
			return map[string]any{"text": line["text"], "words": wordsOf(line, "t"), "tags": taskOf(line, "t")["tags"]}
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
}

func TestOffsetsAreThoseOfGoAndOfUTF16(t *testing.T) {
	trainScripts(t, "a.jsonl", scripts, "  - {name: t, type: ner, data: {train: a.jsonl, dev: a.jsonl}}")
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
