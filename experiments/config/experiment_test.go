package config

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/multitask"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/multitask/samplers"
	"github.com/jenga-nlp/jenga/multitask/weightings"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/tasks"
)

// supportDesk has two tasks on the same texts, and values in all sections.
const supportDesk = `
project_name: support-desk
seed: 7
model:
  base_model: models/distil
  dropout: 0.2
  freeze: 2
  fusion: {type: attention, hidden_size: 64, scale: residual}
tokenizer: {max_length: 64, truncation: true}
tasks:
  - name: intent
    type: classification
    data: {train: data/train.csv, dev: data/dev.csv, text: utterance, header: false, columns: [label, utterance],
	delimiter: ";", encoding: latin1}
    labels: [music, film, 3]
    heads:
      - {name: intent, weight: 0.5}
      - {name: urgency, type: mlp, labels: [low, high], num_labels: 2, dropout: 0.3}
  - name: slots
    type: ner
    data: {same_as: intent, tags: slots}
training:
  learning_rate: 5e-5
  num_epochs: 2
  sampling: uniform
  weighting: {type: fixed}
  metric_for_best_model: eval_slots_slots_span_f1
  output_dir: runs/desk
`

func supportDeskFolder(t testing.TB) string {
	return sample.Folder(t, map[string]string{"exp.yaml": supportDesk}, "models/distil/config.json", "data/train.csv",
		"data/dev.csv")
}

func mustRead(t testing.TB, path string, sets ...string) *Experiment {
	t.Helper()
	e, err := Read(t.Context(), path, sets)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestReadReturnsEveryValue(t *testing.T) {
	dir := supportDeskFolder(t)
	e := mustRead(t, filepath.Join(dir, "exp.yaml"))
	if len(e.Warnings) > 0 || e.JengaNLP {
		t.Errorf("warnings %q, of Jenga-NLP's shape %v; want none", e.Warnings, e.JengaNLP)
	}
	if e.ProjectName != "support-desk" || e.Seed != 7 {
		t.Errorf("project_name %q, seed %d", e.ProjectName, e.Seed)
	}
	m := e.Model
	if m.BaseModel.Name != filepath.Join(dir, "models/distil") || m.Dropout != 0.2 || !m.DropoutSet ||
		m.Freeze.Always != "2" || m.Encoder.Type != "transformer" || m.Fusion.Type != "attention" {
		t.Errorf("model %+v", m)
	}
	if got, want := e.Tokenizer, (Tokenizer{MaxLength: 64}); got != want {
		t.Errorf("tokenizer %+v, want %+v", got, want)
	}
	intent, slots := e.Tasks[0], e.Tasks[1]
	if intent.Name != "intent" || intent.Part.Type != "classification" ||
		!slices.Equal(intent.Labels, []string{"music", "film", "3"}) {
		t.Errorf("first task %+v", intent)
	}
	if h := intent.Heads[0]; h.Name != "intent" || h.Part.Type != "linear" || h.Weight != 0.5 {
		t.Errorf("first head %+v", h)
	}
	if h := intent.Heads[1]; h.Part.Type != "mlp" || h.Weight != 1 || h.NumLabels != 2 ||
		!slices.Equal(h.Labels, []string{"low", "high"}) {
		t.Errorf("second head %+v", h)
	}
	if len(slots.Heads) != 1 || slots.Heads[0].Name != "slots" || slots.Heads[0].Part.Type != "linear" {
		t.Errorf("a task without heads has %+v, want one linear head with the task's name", slots.Heads)
	}
	d := slots.Data
	if d.SameAs != "intent" || d.Train != intent.Data.Train || d.Dev != intent.Data.Dev || d.Split != (Split{}) {
		t.Errorf("data of the second task %+v, want the files of the first", d)
	}
	if want := map[string]string{"text": "utterance", "tags": "slots"}; !reflect.DeepEqual(d.Format.Fields, want) ||
		d.Format.Delimiter != ";" || !d.Format.NoHeader {
		t.Errorf("format of the second task %+v, want the first's with fields %v", d.Format, want)
	}
	r := e.Training
	if r.Rate != 5e-5 || r.Epochs != 2 || r.BatchSize != 16 || r.Sampling.Type != "uniform" ||
		r.Selection.Metric != "eval_slots_slots_span_f1" || !r.Selection.Higher {
		t.Errorf("training %+v", r)
	}
}

func TestDefaults(t *testing.T) {
	dir := sample.Folder(t, map[string]string{"claims.yaml": `
model: {encoder: {type: transformer}}
tasks: [{name: kind, type: classification, data: {train: train.jsonl}}]
`}, "train.jsonl")
	e := mustRead(t, filepath.Join(dir, "claims.yaml"))
	if e.ProjectName != "claims" || e.Seed != 42 {
		t.Errorf("project_name %q, seed %d; want the file's name and 42", e.ProjectName, e.Seed)
	}
	if got, want := e.Tokenizer, (Tokenizer{MaxLength: 128, Type: WordPieces,
		Train: Vocabulary{VocabSize: 8000, Lowercase: true}}); got != want {
		t.Errorf("tokenizer %+v, want %+v", got, want)
	}
	if !e.Model.DropoutSet || e.Model.Dropout != 0.1 || e.Model.Freeze.Always != "none" ||
		e.Model.Fusion.Type != "none" {
		t.Errorf("model %+v", e.Model)
	}
	if got, want := e.Tasks[0].Data.Split, (Split{Dev: 0.1, Seed: 42}); got != want {
		t.Errorf("split %+v, want %+v", got, want)
	}
	training := e.Training
	training.Sampling, training.Weighting = plugin.Choice[samplers.Env, samplers.Sampler]{},
		plugin.Choice[weightings.Env, weightings.Weighting]{}
	want := Training{
		Options: multitask.Options{Rate: 2e-5, LayerDecay: 1, WeightDecay: 0.01, BatchSize: 16, Epochs: 3, ClipNorm: 1,
			LossLimit: 1000, Accumulate: 1, TeacherWeight: 0.5, Temperature: 1},
		EvalStrategy: "epoch", EvalSteps: 500,
		SaveStrategy: "epoch", SaveSteps: 500, SaveMinutes: 30, SaveTotalLimit: 1, TaskBests: true,
		LoadBestModelAtEnd: true, Selection: report.Selection{Metric: "eval_overall", Higher: true},
		CacheMemory: 2048, Teachers: "none", TeacherAnswers: "float32", Match: "none", Device: "auto", LoggingSteps: 10,
	}
	training.Optimizer, training.Scheduler = want.Optimizer, want.Scheduler
	if e.Training.Optimizer.Type != "adamw" || e.Training.Scheduler.Type != "linear" {
		t.Errorf("optimizer %s and schedule %s by default", e.Training.Optimizer.Type, e.Training.Scheduler.Type)
	}
	if !reflect.DeepEqual(training, want) || e.Training.Sampling.Type != "proportional" ||
		e.Training.Weighting.Type != "fixed" {
		t.Errorf("training\n     %+v\nwant %+v", training, want)
	}
}

// plain returns e without places and sections, and with absolute paths.
func plain(t *testing.T, e *Experiment) Experiment {
	t.Helper()
	c := *e
	c.Path, c.Warnings, c.root = "", nil, nil
	file := func(f *File) {
		f.Place, f.section = plugin.Place{}, nil
		if f.Name != "" {
			f.Name = absolute(t, f.Name)
		}
	}
	file(&c.Model.BaseModel)
	c.Model.Encoder.Place, c.Model.Fusion.Place = plugin.Place{}, plugin.Place{}
	c.Training.Sampling.Place, c.Training.Weighting.Place = plugin.Place{}, plugin.Place{}
	c.Training.Optimizer.Place, c.Training.Scheduler.Place = plugin.Place{}, plugin.Place{}
	if c.Training.OutputDir != "" {
		c.Training.OutputDir = absolute(t, c.Training.OutputDir)
	}
	c.Tasks = slices.Clone(c.Tasks)
	for i := range c.Tasks {
		task := &c.Tasks[i]
		task.Place, task.Part.Place = plugin.Place{}, plugin.Place{}
		for _, f := range task.Data.files() {
			file(f)
		}
		if formats := task.Data.Formats; formats != nil {
			task.Data.Formats = map[string]corpus.Format{}
			for name, format := range formats {
				task.Data.Formats[absolute(t, name)] = format
			}
		}
		task.Heads = slices.Clone(task.Heads)
		for h := range task.Heads {
			task.Heads[h].Place, task.Heads[h].Part.Place = plugin.Place{}, plugin.Place{}
		}
	}
	return c
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWrittenFileIsReadAsTheSameExperiment(t *testing.T) {
	dir := supportDeskFolder(t)
	os.WriteFile(filepath.Join(dir, "jenga.yaml"), []byte(jengaNLPFile), 0o666)
	os.WriteFile(filepath.Join(dir, "scratch.yaml"), []byte(`
model: {encoder: {type: transformer, layers: 2}, fusion: attention}
tokenizer: {train: {vocab_size: 500, lowercase: no}}
tasks:
  - name: kind
    type: classification
    data: {path: data/train.csv, split: {dev: 100, test: 0.25, seed: 3}, limit: 50, label: kind,
	labels: {"2 b": second}, quote: none}
    heads: [{name: "no"}, {name: 2 b}]
    label_maps: {"no": {0: "yes", 1: "~", 10: "a: b"}}
  - {name: all, type: tagging, data: {train: data/train.csv, split: {dev: 0}, tags: {all: t}}}
  - name: own
    type: classification
    data: {train: {path: data/train.csv, header: true, encoding: cp1252}, dev: {path: data/dev.csv, delimiter: "|"},
      header: false, columns: [a, b]}
  - {name: answer, type: question_answering, long: truncate, data: {train: data/train.csv}}
  - {name: other answer, type: question_answering, stride: 20, data: {train: data/train.csv}}
  - {name: whole, type: classification, long: windows, data: {train: data/train.csv}}
`), 0o666)
	os.WriteFile(filepath.Join(dir, "plain.yaml"), []byte(`
model: {base_model: models/distil}
tasks: [{name: kind, type: classification, data: {train: data/train.csv}}]
training: {eval_strategy: steps, eval_steps: 7}
`), 0o666)
	for _, file := range []string{"exp.yaml", "scratch.yaml", "jenga.yaml", "plain.yaml"} {
		e := mustRead(t, filepath.Join(dir, file))
		run := filepath.Join(t.TempDir(), "runs", "desk")
		if err := os.MkdirAll(run, 0o777); err != nil {
			t.Fatal(err)
		}
		written, err := os.Create(filepath.Join(run, "experiment.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Write(written, run); err != nil {
			t.Fatal(err)
		}
		if err := written.Close(); err != nil {
			t.Fatal(err)
		}
		again := mustRead(t, written.Name())

		want, got := plain(t, e), plain(t, again)
		want.JengaNLP = false // the written file has our keys
		for i := range want.Tasks {
			for h := range want.Tasks[i].Heads {
				if e.JengaNLP {
					want.Tasks[i].Heads[h].NumLabels = 0
				}
			}
		}
		if !reflect.DeepEqual(got, want) {
			text, _ := os.ReadFile(written.Name())
			t.Errorf("%s is written as\n%sand reads\n     %+v\nwant %+v", file, text, got, want)
		}
	}
}

func TestTooLargeOrMissingFiles(t *testing.T) {
	dir := sample.Folder(t, map[string]string{"nested.yaml": "model: " + strings.Repeat("[", 10<<20), "a.csv": "a\n"})
	nested, data := filepath.Join(dir, "nested.yaml"), filepath.Join(dir, "a.csv")
	for path, want := range map[string]string{
		nested:                             nested + ": 10485767 bytes; an experiment file has at most 1048576",
		filepath.Join(dir, "nowhere.yaml"): filepath.Join(dir, "nowhere.yaml") + ": no such file",
		data: data + " is data by its name; want an experiment file, which jenga init " + data +
			" writes for it",
		dir: dir + " is a folder; want an experiment file, such as " +
			filepath.Join(dir, "experiment.yaml"),
	} {
		if _, err := Read(t.Context(), path, nil); err == nil || err.Error() != want {
			t.Errorf("Read: %v, want %s", err, want)
		}
	}
}

func TestChoicesBuild(t *testing.T) {
	dir := supportDeskFolder(t)
	file := filepath.Join(dir, "exp.yaml")
	e := mustRead(t, file)
	if _, err := e.Tasks[1].Part.Build(tasks.Env{Name: "slots", Heads: []string{"slots"},
		Split: corpus.Splitter(corpus.SplitWhitespace, nil)}); err != nil {
		t.Error(err)
	}
	sample.Write(t, file, strings.Replace(supportDesk, "base_model: models/distil",
		"encoder: {type: transformer, max_positions: 9}", 1))
	_, err := mustRead(t, file).Model.Encoder.Build(encoders.Env{MaxLength: 64, Vocabulary: 10,
		Params: nn.NewParams(1)})
	if want := file + `:5:12: encoder "transformer": max_positions is 9, but max_length is 64`; err == nil ||
		err.Error() != want {
		t.Errorf("Build: %v, want %s", err, want)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(supportDesk), "training.num_epochs=1")
	f.Add([]byte(jengaNLPFile), "tasks.calls.heads.tone.type=mlp")
	bad, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range bad {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, "model.fusion=none")
	}
	f.Fuzz(func(t *testing.T, data []byte, set string) {
		e, err := decode(t.Context(), "exp.yaml", data, []string{set}, false)
		if err != nil {
			return
		}
		var first, second strings.Builder
		if err := e.Write(&first, "."); err != nil {
			t.Fatal(err)
		}
		again, err := decode(t.Context(), "exp.yaml", []byte(first.String()), nil, false)
		if err != nil {
			t.Fatalf("what was written as\n%s\nis not read: %v", first.String(), err)
		}
		if err := again.Write(&second, "."); err != nil {
			t.Fatal(err)
		}
		if first.String() != second.String() {
			t.Errorf("written as\n%s\nand then as\n%s", first.String(), second.String())
		}
	})
}

func TestCacheFileIsAFolderOrTrueOrFalse(t *testing.T) {
	path := sample.Small(t, "")
	folder := filepath.Dir(path)
	for _, test := range []struct {
		value, folder string
		none          bool
	}{
		{"true", "", false},
		{"false", "", true},
		{folder, folder, false},
	} {
		e, err := Read(t.Context(), path, []string{"training.cache_file=" + test.value})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // as read, and as read again from the file in the run folder
			if e.Training.CacheFolder != test.folder || e.Training.NoCacheFile != test.none {
				t.Errorf("cache_file: %s is folder %q, none: %v", test.value, e.Training.CacheFolder,
					e.Training.NoCacheFile)
			}
			var text strings.Builder
			if err := e.Write(&text, folder); err != nil {
				t.Fatal(err)
			}
			if e, err = decode(t.Context(), filepath.Join(folder, runfolder.ExperimentFile), []byte(text.String()), nil,
				true); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// What predict --out and errors write has the labels that result, which are read again.
func TestLabelsThatAreMappedAgainGiveAWarning(t *testing.T) {
	const end = `: what predict --out and errors write would change when it is read as data; want names that are ` +
		`read as themselves`
	for keys, want := range map[string]string{
		"data: {path: a.csv, clean: {map: {a: b, b: c}}}": `exp.yaml:5:64: warning: task "t": data: clean: labels ` +
			`that result are themselves read as others, "b" as "c"`,
		"data: {path: a.csv, clean: {lower: true, map: {a: B}}}": `exp.yaml:5:64: warning: task "t": data: clean: ` +
			`labels that result are themselves read as others, "B" as "b"`,
		"label_maps: {t: {0: '1', 1: '2', 2: '3', 3: '4', 4: '5'}}, data: {path: a.csv}": `exp.yaml:5:53: warning: ` +
			`task "t": label_maps: t: labels that result are themselves read as others, "1" as "2", "2" as "3", "3" ` +
			`as "4", 1 other`,
		"label_maps: {t: {0: no, 1: yes}}, data: {path: a.csv, clean: {map: {yes: y}}}": `exp.yaml:5:53: warning: ` +
			`task "t": label_maps: t: labels that result are themselves read as others, "yes" as "y"`,
		"label_maps: {t: {0: '0', 1: x}}, data: {path: a.csv, clean: {trim: true, map: {a: b, c: '', d: b}}}": "",
		"data: {path: a.csv, clean: {lower: true, map: {a: b, b: b}}}":                                        "",
	} {
		sample.Tasks(t, "  - {name: t, type: classification, "+keys+"}\n", map[string]string{"a.csv": "text,label\n"})
		var got []string
		for _, warning := range mustRead(t, "exp.yaml").Warnings {
			got = append(got, warning.String())
		}
		if want != "" {
			want += end
		}
		if text := strings.Join(got, "\n"); text != want {
			t.Errorf("%s:\n%s\nwant\n%s", keys, text, want)
		}
	}
}

func TestPlaceOfAKey(t *testing.T) {
	const set = "training.batch_size=9"
	file := filepath.Join(supportDeskFolder(t), "exp.yaml")
	e := mustRead(t, file, set)
	for key, want := range map[string]plugin.Place{
		"seed":                               {File: file, Line: 3, Col: 7},
		"tokenizer.max_length":               {File: file, Line: 9, Col: 25},
		"tokenizer.type":                     {File: file, Line: 9, Col: 12}, // the section that lacks it
		"tasks.intent.data.split.dev":        {File: file, Line: 13, Col: 11},
		"tasks.intent.heads.urgency.dropout": {File: file, Line: 18, Col: 81},
		"training.batch_size":                {File: set, Argument: "set"},
		"logging.service":                    {File: file, Line: 2, Col: 1},
		"tasks.nobody.data":                  {File: file, Line: 11, Col: 3},
	} {
		if got := e.Place(key); got != want {
			t.Errorf("Place(%q) = %v, want %v", key, got, want)
		}
	}
	if got, want := (&Experiment{Path: file}).Place("seed"), (plugin.Place{File: file}); got != want {
		t.Errorf("of an experiment that was not read: %v, want %v", got, want)
	}
}

// A name is what namePattern, which editors check by, matches.
func TestANameIsWhatItsPatternMatches(t *testing.T) {
	pattern := regexp.MustCompile(namePattern)
	for _, text := range []string{"", "a", "_", "-", "a-", "a ", " a", "a b", "日本", "é", "a/b", "a.b", "a\n", "a\xff",
		strings.Repeat("é", 64), strings.Repeat("é", 65), strings.Repeat("a", 63) + " "} {
		if isName(text) != pattern.MatchString(text) {
			t.Errorf("isName(%q) = %v", text, isName(text))
		}
	}
}
