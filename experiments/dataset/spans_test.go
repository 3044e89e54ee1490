package dataset

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/internal/shared"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/plugin"
)

// caseFile returns a file of the cases beside the repository.
func caseFile(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(shared.Dir(t), "cases", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// spansOf returns the spans of the training examples of the first task, each example once: PER=Ada Byron, LOC=Paris; …
func spansOf(t *testing.T, data *Dataset) string {
	t.Helper()
	group := &data.Groups[0]
	examples := group.Examples[config.Train]
	if group.Stream != nil {
		examples = nil
		for n := range group.Stream.Lengths() {
			e, err := group.Stream.At(n)
			if err != nil {
				t.Fatal(err)
			}
			examples = append(examples, e)
		}
	}
	var all []string
	for _, e := range examples {
		text := "?"
		if e.Targets[0] != nil {
			text = spanText(e)
		}
		if !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return strings.Join(all, "; ")
}

func spanText(e *corpus.Example) string {
	var spans []string
	for i, tag := range outputs.As[outputs.TagsTarget](e.Targets[0]).Tags {
		position, label, _ := strings.Cut(tag, "-")
		word := e.Text[e.Words[i].Start:e.Words[i].End]
		switch {
		case tag == "O":
		case position == "I" || position == "E":
			spans[len(spans)-1] += " " + word
		default:
			spans = append(spans, label+"="+word)
		}
	}
	return strings.Join(spans, ", ")
}

// loadSpans loads the training file of a task of spans in memory and, if it can be streamed, as a stream, and compares
// what both give.
func loadSpans(t *testing.T, files map[string]string, file, keys string) (spans string, err error) {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	load := func(stream string) (string, error) {
		data, err := load(t, fmt.Sprintf("  - {name: names, type: ner, data: {train: %q, split: {dev: 0}%s%s}}\n", file,
			keys, stream), files)
		if err != nil {
			return "", err
		}
		defer data.Close()
		return spansOf(t, data), nil
	}
	spans, err = load("")
	if extension := filepath.Ext(file); extension == ".jsonl" || extension == ".csv" || extension == ".conllu" {
		streamed, streamErr := load(", stream: true")
		if streamed != spans || fmt.Sprint(err) != fmt.Sprint(streamErr) {
			t.Errorf("streamed: %s, %v; in memory: %s, %v", streamed, streamErr, spans, err)
		}
	}
	return spans, err
}

// TestOffsetsAreComparedWithTheTextOfSpans reads offsets in each unit, as tools write them, without and with the key
// that the error names.
func TestOffsetsAreComparedWithTheTextOfSpans(t *testing.T) {
	for name, test := range map[string]struct{ text, want, unit, spans string }{
		"UTF-16, with text": {caseFile(t, "utf16-offsets/utf16.jsonl"),
			`entity 1: characters 9 to 12 are "da ", not "Ada"`, "utf16",
			"PER=Ada, LOC=Rome; PER=Bob, LOC=Oslo; PER=Eve, LOC=Lima; PER=Kim, LOC=Bern"},
		"bytes, with surface": {
			entities("Zoë met Åsa", `{"begin": 9, "end": 13, "surface": "Åsa", "type": "PER"}`) +
				entities("Bo met Al", `{"begin": 7, "end": 9, "surface": "Al", "type": "PER"}`),
			`a.jsonl:1: task "names": entity 1: characters 9 to 13 of a text of 11`, "bytes", "PER=Åsa; PER=Al"},
		"bytes, without text": {entities("Zoë met Åsa", `{"start": 9, "end": 13, "label": "PER"}`),
			`entity 1: characters 9 to 13 of a text of 11`, "bytes", "PER=Åsa"},
		"UTF-16 of Label Studio": {
			entities("👍 Eve ran", `{"value": {"start": 3, "end": 6, "text": "Eve", "labels": ["PER"]}}`),
			`entity 1: characters 3 to 6 are "ve ", not "Eve"`, "utf16", "PER=Eve"},
		"words of GLiNER": {
			`{"words": ["Ada", "Byron", "saw", "Rome"], "entities": [[0, 1, "PER"], [3, 3, "LOC"]]}` + "\n",
			`entity 2: characters 3 to 3 of a text of 18`, "words", "PER=Ada Byron, LOC=Rome"},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"a.jsonl": test.text}
			_, err := loadSpans(t, files, "a.jsonl", "")
			hint := "data: {offsets: " + test.unit + "} reads them"
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), hint) {
				t.Fatalf("error %v, want %s and %s", err, test.want, hint)
			}
			spans, err := loadSpans(t, files, "a.jsonl", ", offsets: "+test.unit)
			if err != nil || spans != test.spans {
				t.Errorf("spans %s, %v, want %s", spans, err, test.spans)
			}
		})
	}
}

func entities(text, list string) string {
	return fmt.Sprintf(`{"text": %q, "entities": [%s]}`+"\n", text, list)
}

func TestOffsetsThatFitInNoUnitNameNone(t *testing.T) {
	for name, test := range map[string]struct{ text, keys, want string }{
		"another word": {`{"text": "Ada ran", "entities": [{"start": 4, "end": 7, "text": "Ada", "label": "PER"}]}`, "",
			`characters 4 to 7 are "ran", not "Ada"`},
		"within a character": {`{"text": "Zoë ran", "entities": [{"start": 0, "end": 3, "label": "PER"}]}`,
			", offsets: bytes", "bytes 0 to 3: 3 is within a character"},
		"half of a pair": {`{"text": "😀 ran", "entities": [{"start": 1, "end": 3, "label": "PER"}]}`,
			", offsets: utf16", "UTF-16 units 1 to 3: 1 is within a character"},
		"words that there are not": {`{"text": "Ada ran", "entities": [[0, 0, "PER"]]}`, ", offsets: words",
			"offsets: words, but no words"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := loadSpans(t, map[string]string{"a.jsonl": test.text + "\n"}, "a.jsonl", test.keys)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %s", err, test.want)
			}
			if name == "another word" && strings.Contains(err.Error(), "reads them") {
				t.Errorf("the error names a unit: %v", err)
			}
		})
	}
}

func TestStartsOfAnswersAreComparedWithTheContext(t *testing.T) {
	answer := func(context, text string, begin int) string {
		return fmt.Sprintf(`{"question": "who", "context": %q, "answers": [{"text": %q, "answer_start": %d}]}`+"\n",
			context, text, begin)
	}
	for name, test := range map[string]struct{ text, want, unit string }{
		"bytes": {answer("Zoë saw Åsa", "Åsa", 9) + answer("Al ran", "ran", 3),
			`answer 1 is "Åsa", but the context has "sa" at character 9; the answer first is at 8`, "bytes"},
		"UTF-16": {answer("👍👍 Eve ran", "Eve", 5),
			`answer 1 is "Eve", but the context has "e ran" at character 5; the answer first is at 3`, "utf16"},
		"no unit":        {answer("Al ran", "Al", 3), `answer 1 is "Al", but the context has "ran" at character 3`, ""},
		"behind the end": {answer("Zoë saw Åééé", "éé", 13), `answer 1 begins at "13"; want a character of`, "bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"a.jsonl": test.text}
			task := "  - {name: who, type: question_answering, data: {train: a.jsonl, split: {dev: 0}KEYS}}\n"
			_, err := load(t, strings.ReplaceAll(task, "KEYS", ""), files)
			if err == nil || !strings.Contains(err.Error(), test.want) ||
				strings.Contains(err.Error(), "reads them") != (test.unit != "") {
				t.Fatalf("error %v, want %s, and unit %q", err, test.want, test.unit)
			}
			if test.unit == "" {
				return
			}
			if hint := "data: {offsets: " + test.unit + "} reads them"; !strings.Contains(err.Error(), hint) {
				t.Errorf("error %v, want %s", err, hint)
			}
			if _, err = load(t, strings.ReplaceAll(task, "KEYS", ", offsets: "+test.unit), files); err != nil {
				t.Errorf("offsets: %s: %v", test.unit, err)
			}
		})
	}
}

const info = `{"features": {"label": {"names": ["bad", "good"], "_type": "ClassLabel"}, "text": {"dtype": ` +
	`"string", "_type": "Value"}, "tags": [{"names": ["O", "B-PER"], "_type": "ClassLabel"}]}}`

func labelLines(values ...string) string {
	var all strings.Builder
	for _, v := range values {
		fmt.Fprintf(&all, `{"text": "so it was", "label": %s}`+"\n", v)
	}
	return all.String()
}

// integers are tasks on files with integers, of which info may have names, and the labels or the error that they have.
// The text of a.parquet is that of a case.
func integers() map[string]struct{ file, text, info, task, want string } {
	const classify, tag = "type: classification, data: {FILE}", "type: ner, data: {FILE}"
	return map[string]struct{ file, text, info, task, want string }{
		"parquet": {"a.parquet", "", "", "type: ner, data: {FILE, words: tokens, tags: ner_tags}",
			"B-LOC B-PER I-PER O"},
		"parquet, numbers named by the experiment": {"a.parquet", "", "", "type: tagging, label_maps: " +
			"{mood: {0: no, 1: first, 2: more, 5: place}}, data: {FILE, words: tokens, tags: ner_tags}",
			"first more no place"},
		"a file beside jsonl": {"a.jsonl", labelLines("0", "1", "-1", "1"), info, classify, "bad good"},
		"names and numbers":   {"a.jsonl", labelLines("0", `"good"`, `"1"`), info, classify, "bad good"},
		"beside csv":          {"a.csv", "text,label\nso,0\nno,1\nso it,\n", info, classify, "bad good"},
		"tags of csv":         {"a.csv", "words,tags\nso it,0 1\nno,1\n", info, tag, "B-PER O"},
		"tags as JSON in csv": {"a.csv", "words,tags\nso it,\"[0, 1]\"\nno,[1]\n", info, tag, "B-PER O"},
		"a number without a name": {"a.jsonl", labelLines("0", "2"), info, classify, `a.jsonl:2: task "mood": ` +
			`field "label": label 2 has no name; the classes are 0 to 1, "bad", "good", in `},
		"names that are numbers": {"a.jsonl", labelLines("0", "1", "1"),
			`{"features": {"label": {"names": ["1", "2"], "_type": "ClassLabel"}}}`, classify, "1 2"},
		"numbers as pandas writes them": {"a.csv", "text,label\nso,0.0\nno,1.0\n", info, classify, "bad good"},
		"a number is a number": {"a.jsonl", labelLines("0", "1", "1"), info,
			"type: regression, data: {FILE, value: label}", ""},
		"labels of the experiment": {"a.jsonl", labelLines("0", "1"), info,
			"type: classification, labels: ['0', '1'], data: {FILE}", "0 1"},
		"names that are not JSON": {"a.jsonl", labelLines("0"), "{", classify,
			"dataset_info.json, which has the names of labels: the record ends early; correct it, or remove it"},
		"another dataset's names": {"a.jsonl", labelLines("0", "1"),
			`{"features": {"other": {"names": ["x"], "_type": "ClassLabel"}}}`, classify, "0 1"},
	}
}

// TestNamesOfLabelsInTheDataAreRead reads integers of which the parquet file, or a file beside the data, has the names.
func TestNamesOfLabelsInTheDataAreRead(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	parquet := caseFile(t, "ner-integers/ner.parquet")
	for name, test := range integers() {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{test.file: test.text}
			if test.file == "a.parquet" {
				files[test.file] = parquet
			}
			if test.info != "" {
				files["dataset_info.json"] = test.info
			}
			task := strings.ReplaceAll(test.task, "FILE", "train: "+test.file+", split: {dev: 0}STREAM")
			task = "  - {name: mood, " + task + "}\n"
			for _, stream := range []string{"", ", stream: true"} {
				if stream != "" && test.file == "a.parquet" {
					continue
				}
				data, err := load(t, strings.ReplaceAll(task, "STREAM", stream), files)
				got := ""
				if err != nil {
					got = err.Error()
				} else {
					for _, labels := range data.Labels {
						got = strings.Join(slices.Sorted(slices.Values(labels.Names())), " ")
					}
				}
				if got != test.want && (err == nil || !strings.Contains(got, test.want)) {
					t.Errorf("%s: labels or error\n%s\nwant\n%s", stream, got, test.want)
				}
			}
		})
	}
}

// A name that is none leaves no example unlabelled, and each remedy that the error names reads the file.
func TestNamesOfLabelsThatAreNone(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	const class, tags = "classification", "words,tags\nso it,0 1\nno,2\n"
	lists := strings.ReplaceAll(labelLines("[0, 2]", "[1]"), "label", "labels")
	const none, unknown = "the name of label 1 is ", "label 1 has no name"
	for name, test := range map[string]struct{ kind, file, text, names, want string }{
		"null":              {class, "a.jsonl", labelLines("0", "2", "0"), `"neg", null, "pos"`, none + "null"},
		"empty":             {class, "a.csv", "text,label\na,0\nb,1\nc,2\n", `"a", "", "c"`, none + "an empty text"},
		"blank":             {"ner", "a.csv", tags, `"O", " ", "B-X"`, none + "an empty text"},
		"a number":          {"tagging", "a.csv", tags, `"O", 1, "B-X"`, none + "a number"},
		"a list":            {class, "a.jsonl", labelLines("0", "1", "2"), `"a", ["b"], null`, none + "a list"},
		"twice":             {"ner", "a.csv", tags, `"O", "B-X", "O"`, `label 2 is "O", as that of label 0`},
		"several labels":    {"multi_label", "a.jsonl", lists, `"a", null, "c"`, none + "null"},
		"of another file":   {class, "a.jsonl", labelLines("0", "1", "2"), `"a"`, unknown},
		"of another's tags": {"ner", "a.csv", tags, `"O"`, unknown},
	} {
		info := strings.ReplaceAll(`{"features": {"label": NAMES, "labels": [NAMES], "tags": [NAMES]}}`, "NAMES",
			`{"names": [`+test.names+`], "_type": "ClassLabel"}`)
		for _, stream := range []string{"", ", stream: true"} {
			t.Run(name+stream, func(t *testing.T) {
				files := map[string]string{test.file: test.text, "dataset_info.json": info}
				task := fmt.Sprintf("  - {name: mood, type: %s, data: {train: %s, split: {dev: 0}%s}", test.kind,
					test.file, stream)
				_, err := load(t, task+"}\n", files)
				for _, want := range []string{
					test.want, "dataset_info.json; label_maps: {HEAD: {0: NAME, 1: NAME, …}} beside type names",
					"if that file is not of this data, remove it",
				} {
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Fatalf("error\n%v\nwant\n%s", err, want)
					}
				}

				data, err := load(t, task+", label_maps: {mood: {0: O, 1: B-Q, 2: I-Q}}}\n", files)
				if err != nil {
					t.Fatalf("with label_maps: %v", err)
				}
				if text := strings.Join(plugin.Lines(data.Warnings), "\n"); strings.Contains(text, "no label") {
					t.Error(text)
				}
				if test.kind == "ner" {
					return // without the file numbers are no tags of spans
				}
				delete(files, "dataset_info.json")
				if _, err := load(t, task+"}\n", files); err != nil {
					t.Errorf("without the file: %v", err)
				}
			})
		}
	}
}

// spanLines are lines of JSON with a span each, to whose start and end numbers are added.
func spanLines(start, end int) string {
	var lines strings.Builder
	for _, place := range []string{"Rome", "Oslo", "Bonn"} {
		fmt.Fprintf(&lines, `{"text": "Ada ran to %[1]s now", "entities": [{"start": %[2]d, "end": %[3]d, "label": `+
			`"PER", "text": "Ada"}, {"start": %[4]d, "end": %[5]d, "label": "LOC", "text": %[1]q}]}`+"\n", place, start,
			3+end,
			11+start, 15+end)
	}
	return lines.String()
}

// A list of missing values for all fields leaves offsets and answers alone, however a file has them.
func TestMissingValuesOfAllFieldsAreNoOffsets(t *testing.T) {
	const columns, spans = `{"start": [0], "end": [3], "label": ["PER"]}`, "PER=Ada; PER=Bob"
	lines := func(field, value string) string {
		value = fmt.Sprintf("%q: %s}", field, value)
		return rows(1, `{"text": "Ada %d", `+value) + rows(1, `{"text": "Bob %d", `+value)
	}
	cells := func(value string) string {
		return "text,entities\n" + rows(1, "Ada %d,"+value) + rows(1, "Bob %d,"+value)
	}
	for name, test := range map[string]struct{ file, text, keys, want string }{
		"columns":         {"a.jsonl", lines("entities", columns), "missing: [0]", spans},
		"of another name": {"a.jsonl", lines("spans", columns), "entities: spans, missing: [0, 3]", spans},
		"a cell":          {"a.csv", cells(`"` + strings.ReplaceAll(columns, `"`, `""`) + `"`), "missing: [0]", spans},
		"a Python cell": {"a.csv", cells(`"{'start': [0], 'end': [3], 'label': ['PER']}"`), "missing: [0, PER]",
			spans},
		"objects": {"a.jsonl", lines("entities", `[{"start": 0, "end": 3, "label": "PER"}]`), "missing: [0]", spans},
		"a whole value": {"a.jsonl", lines("entities", columns) + `{"text": "x", "entities": "-"}` + "\n",
			"missing: [0, '-']", spans + "; ?"},
		"a list of a value": {"a.jsonl", lines("entities", columns) + `{"text": "x", "entities": ["-"]}` + "\n",
			"missing: ['-']", spans + "; ?"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := loadSpans(t, map[string]string{test.file: test.text}, test.file, ", "+test.keys)
			if err != nil || got != test.want {
				t.Errorf("spans %s, %v, want %s", got, err, test.want)
			}
		})
	}
	for name, answers := range map[string]string{
		"columns": `{"text": ["Ada", "Ada"], "answer_start": [11, 0]}`,
		"a cell":  `"{'text': ['Ada'], 'answer_start': [0]}"`,
		"objects": `[{"text": "Ada", "answer_start": 0}]`,
		"texts":   `["0", "Ada"]`,
	} {
		var targets [2]string
		for i, keys := range []string{"", ", missing: [0, 11]"} {
			data, err := load(t, "  - {name: qa, type: question_answering, data: {train: a.jsonl, split: {dev: 0}"+keys+
				"}}\n", map[string]string{"a.jsonl": `{"question": "who?", "context": "Ada saw 0, Ada", "answers": ` +
				answers + "}\n"})
			if err != nil {
				t.Errorf("answers as %s: %v", name, err)
				continue
			}
			targets[i] = fmt.Sprintf("%+v", data.Groups[0].Examples[config.Train][0].Targets[0])
		}
		if targets[0] != targets[1] {
			t.Errorf("answers as %s: target %s, want %s", name, targets[1], targets[0])
		}
	}
}

// spanForms are training files as tools write them, the keys of data that read them, and the spans they have.
func spanForms() map[string]struct{ file, text, keys, want string } {
	const person = "PER=Ada Byron, LOC=Rome"
	return map[string]struct{ file, text, keys, want string }{
		"JSON in CSV": {"a.csv", "CASE spans-in-csv/ent_json.csv", "", "PER=Ada, LOC=Paris; ; PER=Bob; LOC=Rome"},
		"lists in CSV": {"a.csv", "body,spans\nAda Byron saw Rome,\"[[0, 9, \"\"PER\"\"], [14, 18, " +
			"\"\"LOC\"\"]]\"\nNo,[]\nNot read,\n",
			", text: body, entities: spans", person + "; ; ?"},
		"Python in CSV": {"a.csv", "text,entities\nAda Byron saw Rome,\"[{'start': 0, 'end': 9, 'label': 'PER', " +
			"'sure': True, " +
			"'by': None}, {'start': 14, 'end': 18, 'label': \"\"LOC\"\"}]\"\nNo,[]\n", "", person + "; "},
		"tuples of Python in CSV": {"a.csv", "text,entities\nAda Byron saw Rome,\"[(0, 9, 'PER'), (14, 18, " +
			"'LOC',)]\"\nNo,[]\n",
			"", person + "; "},
		"doccano": {"a.jsonl", "CASE doccano/label.jsonl", ", entities: label",
			"PER=Ada Byron, LOC=Paris; LOC=Rome; ; PER=Bob, PER=Eve, LOC=Oslo"},
		"doccano with relations": {"a.jsonl", `{"text": "Ada Byron saw Rome", "entities": [{"id": 1, "label": "PER", ` +
			`"start_offset": 0, "end_offset": 9}, {"id": 2, "label": "LOC", "start_offset": 14, "end_offset": 18}], ` +
			`"relations": []}` + "\n", "", person},
		"Prodigy": {"a.jsonl", `{"text": "Ada Byron saw Rome", "_input_hash": 7, "tokens": [{"text": "Ada", ` +
			`"start": 0, "end": 3,` +
			` "id": 0}], "spans": [{"start": 0, "end": 9, "token_start": 0, "token_end": 1, "label": "PER"}, ` +
			`{"start": 14, ` +
			`"end": 18, "token_start": 3, "token_end": 3, "label": "LOC"}], "answer": "accept"}` + "\n", ", " +
			"entities: spans",
			person},
		"spaCy and Rasa": {"a.jsonl", `{"text": "Ada Byron saw Rome", "ents": [[0, 9, "PER"], {"start": 14, ` +
			`"end": 18, "value": ` +
			`"the capital", "entity": "LOC"}]}` + "\n", ", entities: ents", person},
		"offset and length": {"a.jsonl", `{"text": "Ada Byron saw Rome", "entities": [{"offset": 0, "length": 9, ` +
			`"category": ` +
			`"PER", "text": "Ada Byron"}, {"offset": 14, "length": 4, "category": "LOC"}]}` + "\n", "", person},
		"a label first": {"a.jsonl", `{"text": "Ada Byron saw Rome", "entities": [["PER", 0, 9], ["LOC", 14, 18]]}` +
			"\n", "", person},
		"columns of datasets": {"a.jsonl", `{"text": "Ada Byron saw Rome", "entities": {"start": [0, 14], "end": [9, ` +
			`18], "label": ["PER", "LOC"]}}` + "\n" + `{"text": "No", "entities": {"start": [], "end": [], "label": ` +
			`[]}}` + "\n", "", person + "; "},
		"own text in another case": {"a.jsonl", `{"text": "Zoe\u0308 Byron saw Rome", "entities": [{"start": 0, ` +
			`"end": 10, "label": "PER", "text": "zo\u00eb byron"}]}` + "\n", "", "PER=Zoe\u0308 Byron"},
		"inclusive ends": {"a.jsonl", spanLines(0, -1), "", "a.jsonl: task \"names\": an end is the last character " +
			"of a span here; want the one after it: add 1 to each end"},
		"offsets from 1": {"a.jsonl", spanLines(1, 1), "", "offsets count from 1 here; want them from 0: take 1 from " +
			"each start and end"},
		"offsets from 1, inclusive ends": {"a.jsonl", spanLines(1, 0), "", "want them from 0: take 1 from each start"},
		"offsets in the paragraph": {"a.jsonl", strings.ReplaceAll(spanLines(0, 0), "Ada ran", "Before it. Ada ran"),
			"", `a.jsonl:1: task "names": entity 1: characters 0 to 3 are "Bef", not "Ada"`},
		"MASSIVE": {"a.jsonl", "CASE massive/m.jsonl", ", text: utt, entities: annot_utt", "time=noon, date=june " +
			"first; artist_name=blur, time=nine; …"},
		"brackets": {"a.csv", "text,slots\nwake me at nine,wake me at [time : nine]\nplay it,play it\nwake " +
			"[x],[act : wake] [x]\n",
			", entities: slots", "time=nine; ; act=wake"},
		"brackets of another text": {"a.csv", "text,slots\nwake me at nine,wake at [time : ten]\n", ", entities: slots",
			`field "entities" is a text: time "ten" is not once in the rest of the text, "wake me at nine"`},
		"GLiNER": {"a.jsonl", `{"tokenized_text": ["Ada", "Byron", "saw", "Rome"], "ner": [[0, 1, "PER"], [3, 3, ` +
			`"LOC"]]}` + "\n",
			", words: tokenized_text, entities: ner, offsets: words", person},
		"MISC of CoNLL-U": {"a.conllu", "1\tAda\tAda\tPROPN\t_\t_\t0\troot\t_\tNER=B-PER|X=1\n" +
			"2\tByron\t_\t_\t_\t_\t1\t_\t_\t" +
			"SpaceAfter=No|NER=I-PER\n3\tran\t_\t_\t_\t_\t1\t_\t_\tNER=O\n\n", ", tags: MISC.NER", "PER=Ada Byron"},
	}
}

func TestSpansAreReadAsToolsWriteThem(t *testing.T) {
	for name, test := range spanForms() {
		t.Run(name, func(t *testing.T) {
			text := test.text
			if of, is := strings.CutPrefix(text, "CASE "); is {
				text = caseFile(t, of)
			}
			got, err := loadSpans(t, map[string]string{test.file: text}, test.file, test.keys)
			if err != nil {
				got = err.Error()
			}
			if begin, _, more := strings.Cut(test.want, "…"); more && strings.HasPrefix(got, begin) {
				got = test.want
			}
			if got != test.want && (err == nil || !strings.Contains(got, test.want)) {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}
