package run

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/plugin"
)

// streamFiles are the data of TestStreamsTrainTheSameModel.
func streamFiles() map[string]string {
	r := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("the bill was too high and came very late again; nobody at (the) desk knew why it " +
		"did-not match, so I asked Zoë")
	files := map[string]*strings.Builder{}
	for _, name := range []string{"mails.jsonl", "part-1.jsonl", "part-2.jsonl", "flats.csv", "tags.conll",
		"spans.jsonl", "faq.jsonl"} {
		files[name] = &strings.Builder{}
	}
	files["flats.csv"].WriteString("text,price,place\n")
	for i := range 90 {
		var text []string
		for range 1 + r.IntN(12) {
			text = append(text, words[r.IntN(len(words))])
		}
		all, label := strings.Join(text, " "), []string{"good", "bad", "fair"}[r.IntN(3)]
		line := fmt.Sprintf(`{"text": %q, "label": %q, "who": "c%d"}`+"\n", all, label, i%11)
		if i%13 == 0 {
			line = fmt.Sprintf("\n"+`{"text": %q, "who": "c%d"}`+"\n", all, i%11)
		}
		files["mails.jsonl"].WriteString(line)
		files[fmt.Sprintf("part-%d.jsonl", 1+i/50)].WriteString(line)
		fmt.Fprintf(files["flats.csv"], "\"%s\nsecond line\",%d.%d,%s\n", all, r.IntN(900), r.IntN(9), label)
		for _, word := range text {
			fmt.Fprintf(files["tags.conll"], "%s\t%s\n", strings.Trim(word, ";,-()"),
				[]string{"O", "B-x", "I-x"}[r.IntN(3)])
		}
		files["tags.conll"].WriteString("\n")
		if i%3 == 0 { // words that choose how the others are split
			tags := strings.TrimSuffix(strings.Repeat(`"O", `, len(text)-1), ", ")
			tags = strings.TrimSuffix(`"B-thing", `+tags, ", ")
			fmt.Fprintf(files["spans.jsonl"], `{"words": ["%s"], "tags": [%s]}`+"\n", strings.Join(text, `", "`), tags)
		} else {
			fmt.Fprintf(files["spans.jsonl"], `{"text": %q, "entities": [{"start": 0, "end": %d, "label": "thing"}]}`,
				all, len([]rune(text[0])))
			files["spans.jsonl"].WriteString("\n")
		}
		fmt.Fprintf(files["faq.jsonl"], `{"question": "what", "context": %q, "answers": [%q]}`+"\n", all,
			text[len(text)-1])
	}
	texts := map[string]string{}
	for name, b := range files {
		texts[name] = b.String()
	}
	return texts
}

// TestStreamsTrainTheSameModel: the same experiment with and without stream has the same bytes of weights, metrics but
// for times, splits and warnings.
func TestStreamsTrainTheSameModel(t *testing.T) {
	const more = "}\n  - {name: "
	for name, tasks := range map[string]string{
		"a split by groups":  "mood, type: sentiment, data: {train: mails.jsonl, split: {dev: 0.2, by: who}STREAM}",
		"a stratified split": "mood, type: classification, data: {train: mails.jsonl, split: {dev: 20}STREAM}",
		"a limit":            "mood, type: sentiment, data: {train: mails.jsonl, dev: mails.jsonl, limit: 41STREAM}",
		"several files":      "mood, type: classification, data: {train: \"part-*.jsonl\", dev: mails.jsonlSTREAM}",
		"numbers in a table": "price, type: regression, data: {train: flats.csv, value: priceSTREAM}, " +
			"heads: [{name: price, type: regression, scale: standard}]",
		"several tasks a text": "price, type: regression, data: {train: flats.csv, value: priceSTREAM}" +
			more + "place, type: classification, data: {same_as: price, label: place}",
		"tags":               "tags, type: ner, data: {train: tags.conllSTREAM}, heads: [{name: tags, type: crf}]",
		"words and entities": "spans, type: ner, data: {train: spans.jsonl, split: {dev: 0.1}STREAM}",
		"windows":            "faq, type: question_answering, long: windows, stride: 2, data: {train: faq.jsonlSTREAM}",
		"one of two tasks": "mood, type: classification, data: {train: mails.jsonl, split: {dev: 0.2}STREAM}" +
			more + "price, type: regression, data: {train: flats.csv, value: price}",
		"hidden tokens": "texts, type: mlm, data: {train: mails.jsonlSTREAM}",
	} {
		t.Run(name, func(t *testing.T) {
			tasks = "  - {name: " + tasks + "}\n"
			memory := trainedBytes(t, strings.ReplaceAll(tasks, "STREAM", ""))
			stream := trainedBytes(t, strings.ReplaceAll(tasks, "STREAM", ", stream: true"))
			compareBytes(t, stream, memory)

			// a second start has an index
			again, passes := trainedAgain(t)
			compareBytes(t, again, memory)
			for _, pass := range passes {
				if strings.Contains(pass, "first pass") || strings.Contains(pass, "encoding") {
					t.Errorf("%s, though there is an index", pass)
				}
			}
		})
	}
}

func compareBytes(t *testing.T, got, want map[string]string) {
	t.Helper()
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s differs:\n%.2000s\nwant\n%.2000s", name, got[name], want[name])
		}
	}
}

// trainedBytes returns what a training of tasks leaves, and its warnings.
func trainedBytes(t *testing.T, tasks string) map[string]string {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	sample.Tasks(t, tasks+"training: {num_epochs: 2, batch_size: 8, batch_tokens: 60, learning_rate: 1.0e-3}\n",
		streamFiles())
	all, passes := trainedAgain(t)
	if streams := len(passes) > 0; streams != strings.Contains(tasks, "stream: true") {
		t.Fatalf("passes %q", passes)
	}
	return all
}

// trainedAgain trains the experiment of trainedBytes, and returns the passes too.
func trainedAgain(t *testing.T) (all map[string]string, passes []string) {
	t.Helper()
	e, err := config.Read(t.Context(), "exp.yaml", []string{"tokenizer.max_length=16"})
	if err != nil {
		t.Fatal(err)
	}
	ready, err := Prepare(t.Context(), e, func(name string) func(done, of int) {
		passes = append(passes, name)
		return func(int, int) {}
	}, config.Train, config.Dev)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ready.Train(t.Context(), "run", ignore); err != nil {
		t.Fatal(err)
	}
	for _, group := range ready.Data.Groups {
		if group.Stream == nil {
			continue
		}
		if _, err := group.Stream.At(0); !errors.Is(err, os.ErrClosed) {
			t.Errorf("an example after training: error %v, want %v", err, os.ErrClosed)
		}
	}
	all = sample.Files(t, filepath.Join("run", runfolder.BestDir))
	splits, _ := os.ReadFile(filepath.Join("run", runfolder.SplitsFile))
	slices.SortFunc(ready.Warnings, plugin.CompareWarnings)
	all["splits"], all["warnings"] = string(splits), strings.Join(plugin.Lines(ready.Warnings), "\n")
	return all, passes
}

func TestAnIndexThatDoesNotFitIsMadeAnew(t *testing.T) {
	const tasks = "  - {name: mood, type: sentiment, data: {train: mails.jsonl, split: {dev: 0.2}, stream: true}}\n"
	want := trainedBytes(t, tasks)
	indexes, err := filepath.Glob(filepath.Join(os.Getenv("XDG_CACHE_HOME"), "jenga", "streams", "*"))
	if err != nil || len(indexes) != 1 {
		t.Skipf("the cache of this system has %q, %v", indexes, err)
	}
	index, err := os.ReadFile(indexes[0])
	if err != nil {
		t.Fatal(err)
	}
	reads := func(what string) {
		t.Helper()
		got, passes := trainedAgain(t)
		compareBytes(t, got, want)
		if !slices.Contains(passes, "first pass over mails.jsonl, KiB") {
			t.Errorf("%s: passes %q, want all", what, passes)
		}
	}

	// every byte changed
	r := rand.New(rand.NewPCG(3, 4))
	for range 10 {
		damaged := slices.Clone(index)
		damaged[r.IntN(len(damaged))] ^= 1 << r.IntN(8)
		sample.Write(t, indexes[0], string(damaged))
		reads("a bit is flipped")
	}
	sample.Write(t, indexes[0], string(index[:len(index)/2]))
	reads("the index is truncated")

	// another training file
	sample.Write(t, "mails.jsonl", strings.Replace(streamFiles()["mails.jsonl"], "good", "poor", 1))
	got, passes := trainedAgain(t)
	if len(passes) == 0 || got["warnings"] == want["warnings"] && got["model.json"] == want["model.json"] {
		t.Errorf("passes %q over a changed file", passes)
	}
}
