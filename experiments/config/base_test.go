package config

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/encoders"
)

// baseFiles writes a run of the tasks intent and slots, on the same texts, and tone, to run, and its data but that of
// tone, in a new working directory.
func baseFiles(t *testing.T) {
	t.Helper()
	t.Setenv("JENGA_DATA", "")
	t.Setenv("JENGA_MODELS", "")
	t.Chdir(t.TempDir())
	for path, text := range map[string]string{
		"data/a.jsonl": "", "new.jsonl": "",
		"run/metrics.jsonl":   "",
		"run/best/model.json": `{"format": 1, "encoder": {"folder": "encoder"}, "tasks": []}`,
		"run/experiment.yaml": `model: {encoder: {type: transformer}, fusion: {type: attention, scale: residual}}
tokenizer: {max_length: 48, train: {vocab_size: 200}}
tasks:
  - name: intent
    type: classification
    data: {train: ../data/a.jsonl, dev: ../data/a.jsonl, label: what, text: body}
    heads: [{name: intent, type: mlp, hidden: 7}]
  - {name: slots, type: ner, data: {same_as: intent, tags: bio}}
  - {name: tone, type: sentiment, data: {path: ../data/gone.jsonl}}
`,
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// grown reads an experiment with a model section and more, whose task is banking.
func grown(t *testing.T, model, more string, sets ...string) (*Experiment, error) {
	t.Helper()
	text := "model: " + model + "\n" + more
	if !strings.Contains(more, "tasks:") {
		text += "tasks:\n  - {name: banking, type: classification, data: {train: new.jsonl, dev: new.jsonl}}\n"
	}
	if err := os.WriteFile("exp.yaml", []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return Read(t.Context(), "exp.yaml", sets)
}

func mustGrow(t *testing.T, model, more string, sets ...string) *Experiment {
	t.Helper()
	e, err := grown(t, model, more, sets...)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func namesOf(tasks []Task) []string {
	var all []string
	for _, task := range tasks {
		all = append(all, task.Name)
	}
	return all
}

func TestABaseRunGivesEncoderFusionLengthAndTasks(t *testing.T) {
	baseFiles(t)
	e := mustGrow(t, "{base_model: run, freeze: all, keep_tasks: all}", "")
	if got, want := e.Model.BaseModel.Name, filepath.Join("run", "best", "encoder"); got != want {
		t.Errorf("encoder %s, want %s", got, want)
	}
	if e.Tokenizer.MaxLength != 48 || e.Model.Fusion.Type != "attention" {
		t.Errorf("max_length %d, fusion %s; want those of the run", e.Tokenizer.MaxLength, e.Model.Fusion.Type)
	}
	if got, want := namesOf(e.Tasks), []string{"banking"}; !slices.Equal(got, want) {
		t.Errorf("trained %v, want %v", got, want)
	}
	if got, want := namesOf(e.Kept), []string{"intent", "slots", "tone"}; !slices.Equal(got, want) {
		t.Fatalf("kept %v, want %v", got, want)
	}
	if head := e.Kept[0].Heads[0]; head.Part.Type != "mlp" || e.Kept[0].From != "intent" {
		t.Errorf("kept %+v, want the run's mlp", e.Kept[0])
	}
	if d := e.Kept[0].Data; d.Train.Name != filepath.Join("data", "a.jsonl") || d.Format.Fields["text"] != "body" {
		t.Errorf("data %+v, want that of the run", d)
	}

	// what is written is the same experiment, and opens without the base run
	for _, gone := range []bool{false, true} {
		var text bytes.Buffer
		if err := os.MkdirAll("grown", 0o777); err != nil {
			t.Fatal(err)
		}
		if err := e.Write(&text, "grown"); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("grown/experiment.yaml", text.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
		if gone {
			if err := os.RemoveAll("run"); err != nil {
				t.Fatal(err)
			}
			opened, err := ReadTrained("grown/experiment.yaml")
			if err != nil {
				t.Fatal(err)
			}
			if len(opened.Tasks) != 4 || len(opened.Kept) != 0 || opened.Tasks[2].Data.SameAs != "intent" {
				t.Errorf("opened %+v", opened)
			}
			continue
		}
		again, err := Read(t.Context(), "grown/experiment.yaml", nil)
		if err != nil {
			t.Fatal(err)
		}
		var second bytes.Buffer
		if err := again.Write(&second, "grown"); err != nil || second.String() != text.String() {
			t.Errorf("%v: written again:\n%s\nwant\n%s", err, &second, &text)
		}
	}
}

func TestKeptTasksAreRenamedAndTheirTextsStayTheirs(t *testing.T) {
	baseFiles(t)
	e := mustGrow(t, "{base_model: run, freeze: all}", `tasks:
  - {name: banking, type: classification, data: {same_as: tags}}
  - {name: also, type: sentiment, data: {same_as: tags}}
  - {name: tags, from: slots, keep: yes}
`)
	if len(e.Kept) != 1 || e.Kept[0].Name != "tags" || e.Kept[0].From != "slots" {
		t.Fatalf("kept %+v, want tags from slots", e.Kept)
	}
	// intent, whose files it reads, is dropped: the data has them, without the column of the intents
	d := e.Kept[0].Data
	if d.SameAs != "" || d.Train.Name != filepath.Join("data", "a.jsonl") || d.Format.Fields["label"] != "" ||
		d.Format.Fields["text"] != "body" || d.Format.Fields["tags"] != "bio" {
		t.Errorf("data %+v", d)
	}
	// the tasks that are trained do not wait for the texts of one that is not
	if got := e.Tasks[0].Data; got.SameAs != "" || got.Train.Name != d.Train.Name {
		t.Errorf("data of banking %+v", got)
	}
	if got := e.Tasks[1].Data.SameAs; got != "banking" || len(e.Groups()) != 1 {
		t.Errorf("also reads the texts of %q, in groups %v", got, e.Groups())
	}
}

func TestATaskThatIsKeptWithoutTheTagsOfItsTextsIsAWarning(t *testing.T) {
	for keep, want := range map[string]int{"[intent]": 1, "[tone]": 0, "[slots]": 0, "[intent, slots]": 0, "all": 0} {
		baseFiles(t)
		e := mustGrow(t, "{base_model: run, freeze: all, keep_tasks: "+keep+"}", "")
		const text = `task "intent" is kept without "slots"`
		if len(e.Warnings) != want || want > 0 && !strings.Contains(e.Warnings[0].String(), text) {
			t.Errorf("%s: warnings %q, want %d", keep, e.Warnings, want)
		}
	}
}

func TestRehearsedTasksAreTrained(t *testing.T) {
	baseFiles(t)
	e := mustGrow(t, "{base_model: run, keep_tasks: [intent, slots]}", "training: {rehearse: 0.2}\n")
	if got, want := namesOf(e.Tasks), []string{"banking", "intent", "slots"}; !slices.Equal(got, want) {
		t.Errorf("trained %v, want %v", got, want)
	}
	if e.Model.Freeze.Always != encoders.FreezeNone || len(e.Kept) != 0 {
		t.Errorf("kept %v", namesOf(e.Kept))
	}
	e = mustGrow(t, "{base_model: run, keep_tasks: all}", "training: {rehearse: 0}\n")
	if got, want := namesOf(e.Kept), []string{"intent", "slots", "tone"}; !slices.Equal(got, want) {
		t.Errorf("without rehearsal kept %v, want %v", got, want)
	}
	var text bytes.Buffer
	if err := e.Write(&text, "grown"); err != nil || !strings.Contains(text.String(), "rehearse: 0") {
		t.Errorf("%v: %s has no rehearse: 0", err, &text)
	}
}

func TestMistakesOfABaseRun(t *testing.T) {
	const banking = "\n  - {name: banking, type: classification, data: {train: new.jsonl, dev: new.jsonl}}\n"
	for _, c := range []struct{ model, more, want string }{
		{"{base_model: run, keep_tasks: [intnt], freeze: all}", "",
			`exp.yaml:1:39: model: keep_tasks: no task of the base run "intnt"; did you mean "intent"?`},
		{"{base_model: run, keep_tasks: [tone, tone], freeze: all}", "", `keep_tasks: duplicate "tone"`},
		{"{base_model: run, keep_tasks: some, freeze: all}", "",
			`keep_tasks: want all, or a list of tasks of the run, have text "some"`},
		{"{base_model: run, keep_tasks: all}", "",
			`task "intent" is kept, but the encoder learns, so that it gets worse; want training.rehearse: 0.2`},
		{"{base_model: run, keep_tasks: all, freeze: all}", "training: {rehearse: 0.5}\n",
			"exp.yaml:2:22: training: rehearse: no effect: with freeze: all"},
		{"{base_model: run, keep_tasks: all}", "training: {rehearse: 1}\n",
			"training: rehearse: want a number in [0, 1), have 1"},
		{"{base_model: run, keep_tasks: all}", "training: {rehearse: -0.1}\n", "rehearse: want a number in [0, 1)"},
		{"{base_model: run}", "training: {rehearse: 0.2}\n", "training: rehearse: no task of the run is kept"},
		{"{encoder: {type: transformer}}", "training: {rehearse: 0.2}\n", "training: rehearse: there is no base run"},
		{"{encoder: {type: transformer}, keep_tasks: all}", "",
			"exp.yaml:1:51: model: keep_tasks: there is no base_model; want a run folder"},
		{"{base_model: data, keep_tasks: all}", "", "model: keep_tasks: base_model is no run; want a run folder"},
		{"{base_model: data}", "tasks:\n  - {name: a, from: b, type: classification, data: {train: new.jsonl}}\n",
			`exp.yaml:3:5: task "a": from and keep are for tasks of a run: base_model is no run`},
		// a base run that is gone
		{"{base_model: gone}", "tasks:" + banking + "  - {name: tone, keep: true}\n",
			`model: base_model: no run "gone": keep of a task is of a run, `},
		// of the data of the base run
		{"{base_model: run, keep_tasks: all}", "training: {rehearse: 0.2}\n",
			filepath.Join("run", "experiment.yaml") + `:9:48: task "tone": ../data/gone.jsonl: no such file`},
		{"{base_model: run, freeze: all}", "tasks:" + banking + "  - {name: x, from: tne, keep: true}\n",
			`exp.yaml:4:5: task "x": no task of the base run "tne"; did you mean "tone"?`},
		{"{base_model: run, freeze: all}", "tasks:" + banking + "  - {name: tne, keep: true}\n",
			`task "tne": no task of the base run "tne"`},
		{"{base_model: run, freeze: all}", "tasks:\n  - {name: tone, keep: true}\n",
			"all tasks are kept, so that nothing is trained"},
		{"{base_model: run, freeze: all}", "tasks:" + banking + "  - {name: x, from: tone, keep: true}\n" +
			"  - {name: tone, keep: true}\n", `task "x" continues the run's task "tone" too`},
		{"{base_model: run, freeze: all, keep_tasks: [tone]}", "tasks:" + banking + "  - {name: tone, keep: true}\n",
			`model: keep_tasks: task "tone" is in tasks too`},
		{"{base_model: run, keep_tasks: all, freeze: all}", "tokenizer: {max_length: 64}\n",
			"exp.yaml:2:25: tokenizer: max_length: the kept tasks read texts of 48 tokens; leave it out"},
		{"{base_model: run, keep_tasks: all, lora: {r: 2}}", "", "or model.lora: {per_task: true}"},
		{"{base_model: run, keep_tasks: all, lora: {per_task: true}, freeze: all}", "",
			"exp.yaml:1:49: model: lora: freeze: all leaves nothing to learn"},
		{"{base_model: run, fusion: mix}", "",
			"model: fusion: it is not that of the run run, attention; leave it out"},
		{"{base_model: run, fusion: {type: attention, scale: length}}", "", "model: fusion: it is not that of the run"},
	} {
		baseFiles(t)
		_, err := grown(t, c.model, c.more)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: error %v\nwant %s", c.model, c.more, err, c.want)
		}
	}
}

// The tasks of a run with LoRA by task have changes of their own, which other options cannot take over.
func TestLoRAByTaskIsThatOfTheBaseRun(t *testing.T) {
	const other = "have other changes of their own, of rank 4"
	for more, want := range map[string]string{
		"":                               "",
		", lora: {per_task: true, r: 4}": "",
		", lora: {per_task: true, r: 8}": other,
		", lora: {r: 4}":                 other,
		", lora: {per_tsk: true, r: 4}":  `model: lora has no option "per_tsk"; it takes alpha, per_task`,
		", freeze: all": "exp.yaml:1:51: model: freeze: the tasks of the run run have changes of their own " +
			"(lora: {per_task: true}), beside which the weights are frozen; leave freeze out",
	} {
		baseFiles(t)
		text, err := os.ReadFile("run/experiment.yaml")
		if err != nil {
			t.Fatal(err)
		}
		own := strings.Replace(string(text), "fusion:", "lora: {per_task: true, r: 4}, fusion:", 1)
		if err := os.WriteFile("run/experiment.yaml", []byte(own), 0o666); err != nil {
			t.Fatal(err)
		}
		model := "{base_model: run, keep_tasks: all" + more + "}"
		switch e, err := grown(t, model, ""); {
		case want == "" && err == nil && e.Model.LoRA.PerTask && e.Model.LoRA.Rank == 4 && len(e.Kept) == 3:
		case want != "" && err != nil && strings.Contains(err.Error(), want):
		default:
			t.Errorf("%s: error %v, want %q", model, err, want)
		}
	}
}

func TestMistakesInTheFilesOfABaseRun(t *testing.T) {
	for file, text := range map[string][2]string{
		"run/best/model.json": {`{"encoder": {"folder": "../../../etc"}}`, "out of the checkpoint"},
		"run/experiment.yaml": {"tasks: [", "run/experiment.yaml:1: not YAML"},
	} {
		baseFiles(t)
		if err := os.WriteFile(file, []byte(text[0]), 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := grown(t, "{base_model: run, keep_tasks: all, freeze: all}", "")
		if err == nil || !strings.Contains(filepath.ToSlash(err.Error()), text[1]) {
			t.Errorf("%s: error %v, want %s", file, err, text[1])
		}
	}

	baseFiles(t)
	if err := os.RemoveAll("run/best"); err != nil {
		t.Fatal(err)
	}
	_, err := grown(t, "{base_model: run, keep_tasks: all, freeze: all}", "")
	if want := "exp.yaml:1:21: model: base_model: run: a run without a checkpoint"; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
}

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
		{"intent", "{}", "train: data/a.jsonl, dev: data/a.jsonl, label: what, text: body"},
		{"intent", "null", `:5:38: task "intent": data: want a value, or leave the key out for that of the run`},
		{"intent", "{split: {by: ~}}", `:5:51: task "intent": data: split: by: want a value, or leave the key out`},
		{"intent", "{train: new.jsonl}", "train: new.jsonl, dev: data/a.jsonl, label: what, text: body"},
		{"intent", "{path: new.jsonl, question: q}", "path: new.jsonl, question: q, label: what"},
		{"intent", "{text: [a]}", `exp.yaml:5:45: task "intent": data: text: want a column's name, have a list`},
		{"intent", "{limit: -1}", "exp.yaml:5:46: task \"intent\": data: limit: want"},
		{"intent", "{train: gone.jsonl}", `exp.yaml:5:46: task "intent": gone.jsonl: no such file`},
		{"intent", "{path: new.jsonl, split: {dev: 0.3}}", "path: new.jsonl, dev: 0.3, label: what, text: body"},
		{"intent", "{split: {dev: 0.3}}", "train: data/a.jsonl, dev: 0.3, label: what, text: body"},
		{"intent", "{split: {test: 0.3}}", "train: data/a.jsonl, dev: data/a.jsonl, test: 0.3"},
		{"intent", "{dev: new.jsonl, split: {dev: 0.3}}", `task "intent": data: split: dev: data has a dev file`},
		{"intent", "{test: new.jsonl, path: new.jsonl}", `:5:45: task "intent": data: test: unexpected beside path`},
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

func TestAKeptTaskHasNoDevWhereTheRunHasNone(t *testing.T) {
	baseFiles(t)
	rewriteBase(t, "gone.jsonl}", "gone.jsonl, split: {dev: 0}}")
	e := mustGrow(t, "{base_model: run}", "training: {rehearse: 0.2}\ntasks:\n"+
		"  - {name: banking, type: classification, data: {train: new.jsonl, dev: new.jsonl}}\n"+
		"  - {name: tone, keep: true, data: {path: new.jsonl}}\n")
	if got := e.Tasks[1].Data.Split; got != (Split{}) {
		t.Errorf("split %+v, want none", got)
	}
}

// A kept task takes over what its entry leaves out, also beside keys of its part.
func TestAKeptTaskTakesOverPartHeadsAndLabels(t *testing.T) {
	baseFiles(t)
	rewriteBase(t, "type: ner,", "type: ner, scheme: io, overlap: longest, labels: [A, B], heads: [{name: s, "+
		"type: linear, dropout: 0.3}], label_maps: {s: {0: A, 1: B}},")
	for _, c := range []struct{ entry, want, without string }{
		{"", "scheme: io; overlap: longest; labels: [A, B]; 0: A; dropout: 0.3", "?"},
		{", overlap: error", "scheme: io; overlap: error; labels: [A, B]", "longest"},
		{", scheme: auto", "scheme: auto; overlap: longest", "?"},
		{", type: ner", "scheme: io; overlap: longest; labels: [A, B]; 1: B", "?"},
		{", labels: [C]", "labels: [C]; dropout: 0.3; 0: A", "[A, B]"},
		{", label_maps: {s: {0: C}}", "labels: [A, B]; 0: C", "1: B"},
		{", label_maps: {h: {0: C}}, heads: [{name: h}]", "name: h", "0.3"},
	} {
		e := mustGrow(t, "{base_model: run}", "training: {rehearse: 0.2}\ntasks:\n"+
			"  - {name: banking, type: classification, data: {train: new.jsonl, dev: new.jsonl}}\n"+
			"  - {name: slots, keep: true"+c.entry+"}\n")
		text, err := e.TaskText(1)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range strings.Split(c.want, "; ") {
			if !strings.Contains(text, want+"\n") {
				t.Errorf("%q: no %q in %s", c.entry, want, text)
			}
		}
		if strings.Contains(text, c.without) {
			t.Errorf("%q: %q in %s", c.entry, c.without, text)
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
		"{limit: 0}", "{limit: 0, stream: false}", "{path: new.csv, header: true}", "{split: {dev: 0.1, by: text}}",
		"{split: {dev: 0}}", "{text: label}", "{train: new.csv, dev: new.csv}", "{split_words: auto}",
		"{question: q}", "{}", "{train: new.csv, dev: new.csv, split: {dev: 0}}",
		"{train: new.csv, dev: new.csv, split: {test: 0.3}}",
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
		same, err := Read(t.Context(), "again.yaml", nil)
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

func TestABaseRunThatIsGoneIsOneMistake(t *testing.T) {
	baseFiles(t)
	_, err := grown(t, "{base_model: gone, keep_tasks: all}", "training: {rehearse: 0.2}\n")
	const want = `exp.yaml:1:21: model: base_model: no run "gone": model.keep_tasks is of a run, whose weights and ` +
		"options are read again from its folder, also where training is resumed; put the folder back, or name its " +
		"new place as model.base_model"
	if err == nil || err.Error() != want {
		t.Errorf("error %v\nwant %s", err, want)
	}
}
