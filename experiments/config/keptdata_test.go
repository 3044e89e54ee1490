package config

import (
	"bytes"
	"os"
	"reflect"
	"strings"
	"testing"
)

// rewriteBase replaces text in the experiment file of the run, and then writes the file as a training writes it.
func rewriteBase(t *testing.T, replace ...string) {
	t.Helper()
	const file = "run/experiment.yaml"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.NewReplacer(replace...).Replace(string(text))
	if err := os.WriteFile(file, []byte(changed), 0o666); err != nil {
		t.Fatal(err)
	}
	e, err := ReadTrained(file)
	if err != nil {
		t.Fatal(err)
	}
	var written bytes.Buffer
	if err := e.Write(&written, "run"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, written.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
}

// Keys of data that a kept task has in the experiment replace those of the run; the others stay.
func TestDataOfAKeptTaskReplacesTheKeysOfTheRun(t *testing.T) {
	const banking = "tasks:\n  - {name: banking, type: classification, data: {train: new.jsonl, dev: new.jsonl}}\n"
	for _, c := range []struct{ keep, data, want string }{
		{"intent", "{limit: 100}", "train: data/a.jsonl, dev: data/a.jsonl, limit: 100, label: what, text: body"},
		{"intent", "null", "train: data/a.jsonl, dev: data/a.jsonl, label: what, text: body"},
		{"intent", "{train: new.jsonl}", "train: new.jsonl, dev: data/a.jsonl, label: what, text: body"},
		{"intent", "{path: new.jsonl, question: q}", "path: new.jsonl, question: q, label: what"},
		{"intent", "{text: [a]}", `exp.yaml:5:45: task "intent": data: text: want a column's name, have a list`},
		{"intent", "{limit: -1}", "exp.yaml:5:46: task \"intent\": data: limit: want"},
		{"intent", "{train: gone.jsonl}", `exp.yaml:5:46: task "intent": gone.jsonl: no such file`},
		{"intent", "{path: new.jsonl, split: {dev: 0.3}}", "path: new.jsonl, dev: 0.3, label: what, text: body"},
		{"intent", "{split: {dev: 0.3}}", "train: data/a.jsonl, dev: 0.3, label: what, text: body"},
		{"intent", "{split: {test: 0.3}}", "train: data/a.jsonl, dev: data/a.jsonl, test: 0.3"},
		{"intent", "{dev: new.jsonl, split: {dev: 0.3}}", `task "intent": data: split: dev: data has a dev file`},
		{"intent", "{same_as: banking}", "same_as: banking, label: what"},
		// of a task that reads the texts of intent in the run
		{"slots", "{limit: 100}", "train: data/a.jsonl, dev: data/a.jsonl, limit: 100, tags: bio, text: body"},
		{"slots", "{tags: iob}", "same_as: intent, tags: iob"},
		{"slots", "{path: new.jsonl, tags: iob}", "path: new.jsonl, tags: iob, text: body"},
		{"slots", "{same_as: banking}", "same_as: banking, tags: bio"},
		// of a file that is divided
		{"tone", "{path: new.jsonl}", "path: new.jsonl, dev: 0.4, seed: 5"},
		{"tone", "{path: new.jsonl, split: {dev: 0.5}}", "path: new.jsonl, dev: 0.5, seed: 5"},
		{"tone", "{train: new.jsonl, dev: data/a.jsonl}", "train: new.jsonl, dev: data/a.jsonl"},
		{"tone", "{limit: 7}", `: task "tone": ../data/gone.jsonl: no such file`},
	} {
		baseFiles(t)
		rewriteBase(t, "gone.jsonl}", "gone.jsonl, split: {dev: 0.4, seed: 5}}")
		more := banking
		if c.keep == "slots" {
			more += "  - {name: intent, keep: true}\n"
		}
		more = "training: {rehearse: 0.2}\n" + more + "  - {name: " + c.keep + ", keep: true, data: " + c.data + "}\n"
		e, err := grown(t, "{base_model: run}", more)
		switch {
		case err == nil:
			checkData(t, e, c.keep+" "+c.data, c.want)
		case !strings.Contains(err.Error(), c.want):
			t.Errorf("%s %s: error %v\nwant %s", c.keep, c.data, err, c.want)
		}
	}
}

// How long texts are truncated or split belongs to the data: a task has that of its texts.
func TestAKeptTaskReadsLongTextsAsItsDataDoes(t *testing.T) {
	for _, c := range []struct {
		task, data, long string
		windows          bool
	}{
		{"intent", "{same_as: banking}", "", false},
		{"intent", "{train: new.jsonl}", "", true},
		{"slots", "{train: new.jsonl}", "", true}, // intent, whose texts it reads in the run, has windows
		{"slots", "{train: new.jsonl}", "long: truncate, ", false},
		{"slots", "{tags: iob}", "", true}, // intent is dropped
		{"intent", "{limit: 5}", "long: truncate, ", false},
	} {
		baseFiles(t)
		rewriteBase(t, "data: {train", "long: windows\n    stride: 8\n    data: {train")
		e, err := grown(t, "{base_model: run}", "training: {rehearse: 0.2}\ntasks:\n"+
			"  - {name: banking, type: classification, data: {train: new.jsonl, dev: new.jsonl}}\n"+
			"  - {name: "+c.task+", keep: true, "+c.long+"data: "+c.data+"}\n")
		if err != nil {
			t.Errorf("%s %s%s: %v", c.task, c.long, c.data, err)
			continue
		}
		if got := e.Tasks[1].Windowing; got.Windows != c.windows || c.windows && got.Stride != 8 {
			t.Errorf("%s %s%s: %+v, want windows: %v", c.task, c.long, c.data, got, c.windows)
		}
	}
}

// checkData checks that the data of the last task has keys, as they are written, and no same_as beside.
func checkData(t *testing.T, e *Experiment, what, keys string) {
	t.Helper()
	last := len(e.Tasks) - 1
	written, err := e.TaskText(last)
	if err != nil {
		t.Fatal(err)
	}
	data, _, _ := strings.Cut(written[strings.Index(written, "data:"):], "heads:")
	for _, want := range strings.Split(keys, ", ") {
		if !strings.Contains(data, want+"\n") {
			t.Errorf("%s: no %q in %s", what, want, data)
		}
	}
	if e.Tasks[last].Data.SameAs != "" && !strings.Contains(keys, "same_as") {
		t.Errorf("%s: same_as in %s", what, data)
	}
}

func TestTasksThatAreKeptAndContinuedAreMistakes(t *testing.T) {
	baseFiles(t)
	_, err := grown(t, "{base_model: run, freeze: all, keep_tasks: [tone]}",
		"tasks:\n  - {name: mood, from: tone, type: sentiment, data: {train: new.jsonl}}\n")
	want := `exp.yaml:1:52: model: keep_tasks: task "tone" of the run is continued by "mood" in tasks (from)`
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v\nwant %s", err, want)
	}

	// LoRA that the file does not have itself
	text, err := os.ReadFile("run/experiment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	own := strings.Replace(string(text), "fusion:", "lora: {per_task: true, r: 4}, fusion:", 1)
	if err := os.WriteFile("run/experiment.yaml", []byte(own), 0o666); err != nil {
		t.Fatal(err)
	}
	_, err = grown(t, "{base_model: run, keep_tasks: all}", "training: {rehearse: 0.2}\n")
	want = "exp.yaml:2:22: training: rehearse: no effect: this experiment has lora: {per_task: true} of the run run"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v\nwant %s", err, want)
	}
}

// The file of a run is read as the same experiment, also where keys of the base run have their defaults again.
func TestDataOfAKeptTaskIsReadAsItWasWritten(t *testing.T) {
	for _, data := range []string{
		"{limit: 0}", "{limit: null, stream: false}", "{path: new.csv, header: true}", "{split: {dev: 0.1, by: null}}",
		"{split: {dev: 0}}", "{text: null}", "{train: new.csv, dev: new.csv}", "{delimiter: null, split_words: null}",
		"{question: q}", "{}", "{train: new.csv, dev: new.csv, split: {test: 0.3}}",
	} {
		baseFiles(t)
		text, err := os.ReadFile("run/experiment.yaml")
		if err != nil {
			t.Fatal(err)
		}
		own := strings.Replace(string(text), "../data/gone.jsonl}", "../new.csv, limit: 5, stream: true, "+
			"header: false, columns: [text, label], delimiter: ;, text: body, split_words: ends, "+
			"split: {dev: 0.4, test: 0.0, seed: 5, by: label}}", 1)
		for path, text := range map[string]string{"run/experiment.yaml": own, "new.csv": "a;b\n"} {
			if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		e := mustGrow(t, "{base_model: run}", "training: {rehearse: 0.2}\ntasks:\n"+
			"  - {name: banking, type: classification, data: {train: new.jsonl, dev: new.jsonl}}\n"+
			"  - {name: tone, keep: true, data: "+data+"}\n")
		var written, again strings.Builder
		if err := e.Write(&written, "."); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("again.yaml", []byte(written.String()), 0o666); err != nil {
			t.Fatal(err)
		}
		same, err := Read("again.yaml", nil)
		if err != nil {
			t.Errorf("%s: %v in\n%s", data, err, &written)
			continue
		}
		if err := same.Write(&again, "."); err != nil || again.String() != written.String() {
			t.Errorf("%s: %v, written again:\n%s\nwant\n%s", data, err, &again, &written)
		}
		a, b := e.Tasks[1].Data, same.Tasks[1].Data
		if a.Limit != b.Limit || a.Stream != b.Stream || a.Split != b.Split || a.SplitWords != b.SplitWords ||
			!reflect.DeepEqual(a.Format, b.Format) {
			t.Errorf("%s: read again as %+v, want %+v", data, b, a)
		}
	}
}
