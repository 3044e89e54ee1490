package run

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/internal/sample"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
)

// streamFiles are the data of TestStreamsTrainTheSameModel.
func streamFiles() map[string]string {
	r := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("the bill was too high and came very late again; nobody at (the) desk knew why it did-not match, so I asked Zoë")
	files := map[string]*strings.Builder{}
	for _, name := range []string{"mails.jsonl", "part-1.jsonl", "part-2.jsonl", "flats.csv", "tags.conll", "spans.jsonl",
		"faq.jsonl"} {
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
			fmt.Fprintf(files["tags.conll"], "%s\t%s\n", strings.Trim(word, ";,-()"), []string{"O", "B-x", "I-x"}[r.IntN(3)])
		}
		files["tags.conll"].WriteString("\n")
		if i%3 == 0 { // words that choose how the others are split
			tags := strings.TrimSuffix(strings.Repeat(`"O", `, len(text)-1), ", ")
			tags = strings.TrimSuffix(`"B-thing", `+tags, ", ")
			fmt.Fprintf(files["spans.jsonl"], `{"words": ["%s"], "tags": [%s]}`+"\n", strings.Join(text, `", "`), tags)
		} else {
			fmt.Fprintf(files["spans.jsonl"], `{"text": %q, "entities": [{"start": 0, "end": %d, "label": "thing"}]}`+"\n", all,
				len([]rune(text[0])))
		}
		fmt.Fprintf(files["faq.jsonl"], `{"question": "what", "context": %q, "answers": [%q]}`+"\n", all, text[len(text)-1])
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
	for name, tasks := range map[string]string{
		"a split by groups":    "  - {name: mood, type: classification, data: {train: mails.jsonl, split: {dev: 0.2, by: who}STREAM}}\n",
		"a stratified split":   "  - {name: mood, type: classification, data: {train: mails.jsonl, split: {dev: 20}STREAM}}\n",
		"a limit":              "  - {name: mood, type: classification, data: {train: mails.jsonl, dev: mails.jsonl, limit: 41STREAM}}\n",
		"several files":        "  - {name: mood, type: classification, data: {train: \"part-*.jsonl\", dev: mails.jsonlSTREAM}}\n",
		"numbers in a table":   "  - {name: price, type: regression, data: {train: flats.csv, value: priceSTREAM}, heads: [{name: price, type: regression, scale: standard}]}\n",
		"several tasks a text": "  - {name: price, type: regression, data: {train: flats.csv, value: priceSTREAM}}\n  - {name: place, type: classification, data: {same_as: price, label: place}}\n",
		"tags":                 "  - {name: tags, type: ner, data: {train: tags.conllSTREAM}, heads: [{name: tags, type: crf}]}\n",
		"words and entities":   "  - {name: spans, type: ner, data: {train: spans.jsonl, split: {dev: 0.1}STREAM}}\n",
		"windows":              "  - {name: faq, type: question_answering, long: windows, stride: 2, data: {train: faq.jsonlSTREAM}}\n",
		"one of two tasks": "  - {name: mood, type: classification, data: {train: mails.jsonl, split: {dev: 0.2}STREAM}}\n" +
			"  - {name: price, type: regression, data: {train: flats.csv, value: price}}\n",
		"hidden tokens": "  - {name: texts, type: mlm, data: {train: mails.jsonlSTREAM}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			memory := trainedBytes(t, strings.ReplaceAll(tasks, "STREAM", ""))
			stream := trainedBytes(t, strings.ReplaceAll(tasks, "STREAM", ", stream: true"))
			for name := range memory {
				if stream[name] != memory[name] {
					t.Errorf("%s differs:\n%.2000s\nwant\n%.2000s", name, stream[name], memory[name])
				}
			}
		})
	}
}

// trainedBytes returns what a training of tasks leaves, and its warnings.
func trainedBytes(t *testing.T, tasks string) map[string]string {
	t.Helper()
	sample.Tasks(t, tasks+"training: {num_epochs: 2, batch_size: 8, batch_tokens: 60, learning_rate: 1.0e-3}\n", streamFiles())
	e, err := config.Read("exp.yaml", []string{"tokenizer.max_length=16"})
	if err != nil {
		t.Fatal(err)
	}
	ready, err := Prepare(e, config.Train, config.Dev)
	if err != nil {
		t.Fatal(err)
	}
	if streams := ready.Data.Groups[0].Stream != nil; streams != strings.Contains(tasks, "stream: true") {
		t.Fatalf("streams: %v", streams)
	}
	if _, err := ready.Train(t.Context(), "run", func(any) error { return nil }); err != nil {
		t.Fatal(err)
	}
	all := sample.Files(t, filepath.Join("run", runfolder.BestDir))
	splits, _ := os.ReadFile(filepath.Join("run", runfolder.SplitsFile))
	slices.Sort(ready.Warnings)
	all["splits"], all["warnings"] = string(splits), strings.Join(ready.Warnings, "\n")
	return all
}
