package model

import (
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
)

// unsaved is a trainable encoder that cannot be saved.
type unsaved struct {
	encoders.Encoder
	files []string // that it was read from
}

func (e unsaved) Describe() encoders.Description {
	return encoders.Description{Files: e.files, Backward: func(*nn.Pass, [][]float32, nn.Gradients) {}}
}

func TestAnEncoderWithoutSaverMustBeFrozen(t *testing.T) {
	for _, test := range []struct {
		name, path string
		encoder    encoders.Encoder
		frozen     bool
		want       string
	}{
		{"from scratch", "", unsaved{}, false, "is trained from scratch, but cannot be saved"},
		{"trained", "base", unsaved{}, false, "is trained, but cannot be saved"},
		{"frozen", "base", unsaved{files: []string{"base/config.json"}}, true, ""},
		{"frozen, of unknown files", "base", unsaved{}, true, "can neither be saved nor list"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := &multitask.Model{Encoder: test.encoder, Params: nn.NewParams(1)}
			m.Params.In("encoder").Zeros("w", 2).Frozen = test.frozen
			err := checkSaves(m, test.path)
			if (err == nil) != (test.want == "") || err != nil && !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("checkSaves = %v, want %q", err, test.want)
			}
		})
	}
}

// assembled writes an experiment of the given tasks and data files, and builds its model in their folder.
func assembled(t *testing.T, tasks string, files map[string]string, sets ...string) (*Assembled, error) {
	t.Helper()
	sample.Tasks(t, tasks, files)
	e, err := config.Read(t.Context(), "exp.yaml", sets)
	if err != nil {
		t.Fatal(err)
	}
	data, err := dataset.Load(t.Context(), e, dataset.Options{}, config.Train, config.Dev)
	if err != nil {
		return nil, err
	}
	return New(data)
}

func TestEqualTargetsHaveADeviationOfOne(t *testing.T) {
	tenth := `{"text": "so good", "value": 0.1}` + "\n"
	built, err := assembled(t, "  - {name: much, type: regression, data: {train: a.jsonl}, heads: [{type: "+
		"regression, scale: standard}]}\n", map[string]string{"a.jsonl": tenth + tenth + tenth})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range built.Model.Params.All() {
		if strings.HasSuffix(w.Name, "unit") && !slices.Equal(w.Data, []float32{0.1, 1}) {
			t.Errorf("mean and deviation of the numbers are %v, want 0.1 and 1", w.Data)
		}
	}
}

// The encoder alone knows its layers and its width.
func TestAnOptionThatTheEncoderCannotHaveHasItsOwnPlace(t *testing.T) {
	for set, want := range map[string]string{
		"model.freeze=30": `argument set model.freeze=30: model: freeze: "30" is not known; available: none, `,
		"model.lora.r=99": "argument set model.lora.r=99: model: lora: r is 99; want a rank from 1 to the width, ",
	} {
		_, err := assembled(t, "  - {name: mood, type: classification, data: {train: a.jsonl}}\n",
			map[string]string{"a.jsonl": `{"text": "so good", "label": "good"}` + "\n"}, set)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", set, err, want)
		}
	}
}

// recording is options of an encoder on a device, which is made by the test's function.
type recording struct{}

var record func(encoders.Env) (encoders.Encoder, error)

func init() {
	encoders.Register("recording", recording{}, func(_ recording, env encoders.Env) (encoders.Encoder, error) {
		return record(env)
	})
}

// onDevice is an encoder that is frozen and computes on a device.
type onDevice struct {
	encoders.Encoder
	device string
}

func (e onDevice) Describe() encoders.Description {
	return encoders.Description{Width: 4, Files: []string{"a"}, Device: e.device,
		Save: func(*nn.Copies) func(string) error { return nil }}
}

func TestTheEncoderIsMadeOnTheDevice(t *testing.T) {
	encoders.CUDA = func() ([]string, error) { return []string{"A"}, nil }
	t.Cleanup(func() { encoders.CUDA = nil })
	const task = "  - {name: mood, type: classification, data: {train: a.jsonl}}\n"
	files := map[string]string{"a.jsonl": `{"text": "so good", "label": "good"}` + "\n" +
		`{"text": "so bad", "label": "bad"}` + "\n"}
	for _, c := range []struct {
		sets  []string
		asked string // of the encoder
		gets  string // which computes on it
		want  string // of the error
	}{
		{nil, "auto", "", ""},
		{nil, "auto", "cuda:0", ""},
		{[]string{"training.device=cpu"}, "cpu", "", ""},
		{[]string{"training.device=cuda"}, "cuda:0", "cuda:0", ""},
		{[]string{"training.ema=0.9"}, "cpu", "", ""},
		{[]string{"training.device=cuda:1"}, "cuda:1", "", `argument set training.device=cuda:1: training: device: ` +
			`encoder "recording" runs on the processor only; want device: cpu`},
	} {
		asked := ""
		record = func(env encoders.Env) (encoders.Encoder, error) {
			asked = env.Device
			return onDevice{device: c.gets}, nil
		}
		built, err := assembled(t, task, files, append(slices.Clone(c.sets), "model.encoder=recording")...)
		switch {
		case asked != c.asked:
			t.Errorf("%q: Env.Device is %q, want %q", c.sets, asked, c.asked)
		case c.want != "" && (err == nil || err.Error() != c.want):
			t.Errorf("%q: %v, want %s", c.sets, err, c.want)
		case c.want == "" && (err != nil || built.Model.Encoder.Describe().Device != c.gets):
			t.Errorf("%q: %v, want an encoder on %q", c.sets, err, c.gets)
		}
	}

	// encoders that know nothing of devices
	want := `argument set training.device=cuda:0: training: device: encoder "bilstm" runs on the processor only; ` +
		"want device: cpu"
	if _, err := assembled(t, task, files, "training.device=cuda:0", "model.encoder=bilstm"); err == nil ||
		err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if _, err := assembled(t, task, files, "model.encoder=bilstm"); err != nil {
		t.Errorf("auto: %v", err)
	}
}

func TestOptionsWithoutEffectGiveAWarning(t *testing.T) {
	for _, test := range []struct {
		task string
		sets []string
		want string
	}{
		{"", []string{"training.recompute=true"}, ""},
		{"", []string{"training.recompute=true", "model.freeze=all"},
			"training: recompute has no effect: a frozen encoder keeps nothing of a batch"},
		{"", []string{"training.cache_memory=2048", "training.cache_file=true"}, ""},
		{"", []string{"training.cache_memory=100"}, "training: cache_memory has no effect: the encoder learns"},
		{"", []string{"training.cache_file=false"}, "training: cache_file has no effect: the encoder learns"},
		{"", []string{"training.cache_file=/tmp"}, "training: cache_file has no effect: the encoder learns"},
		{"", []string{"training.cache_memory=100", "model.freeze=all"}, "freezes random weights"},
		{"", []string{"training.warmup_steps=2", "training.warmup_ratio=0.1"},
			"training: warmup_ratio has no effect: warmup_steps: 2 overrules it"},
		{"", []string{"training.learning_rate=5"}, "training: learning_rate: 5 is larger than any that usually trains"},
		{"", []string{"model.freeze=embeddings", "model.lora.r=2"},
			"model: freeze: embeddings has no effect: with lora nothing else of the encoder learns"},
		{"", []string{"model.freeze=embeddings"}, "model: freeze: embeddings freezes random weights"},
		{"", []string{"model.freeze=1"}, "model: freeze: 1 freezes random weights"},
		{"", []string{"model.lora.r=2"}, "model: lora freezes random weights"},
		{"", []string{"model.encoder={type: bilstm, embedding: 8, layers: 1, hidden: 8}"}, ""},
		{"", []string{"training.recompute=true", "model.encoder={type: bilstm, embedding: 8, layers: 1, hidden: 8}"},
			`training: recompute has no effect: encoder "bilstm" keeps all of a batch`},
		{", label_maps: {mood: {0: good, 1: bad, 2: awful}}", []string{"seed=1"},
			`task "mood": head "mood": label_maps: no training example has label 2, "awful"`},
	} {
		built, err := assembled(t, "  - {name: mood, type: classification, data: {train: a.jsonl}"+test.task+"}\n",
			map[string]string{"a.jsonl": `{"text": "so good", "label": "good"}` + "\n" +
				`{"text": "so bad", "label": "bad"}` + "\n"}, test.sets...)
		if err != nil {
			t.Fatalf("%v: %v", test.sets, err)
		}
		warnings := strings.Join(plugin.Lines(built.Warnings), "\n")
		if strings.Contains(warnings, "has no effect") && test.want == "" || !strings.Contains(warnings, test.want) {
			t.Errorf("%v%s: warnings %q, want %q", test.sets, test.task, warnings, test.want)
		}
	}
}

func TestTrainingCountsEveryLabel(t *testing.T) {
	lines := ""
	for _, label := range []string{"bad", "good", "bad", "bad"} {
		lines += `{"text": "so so", "label": "` + label + `"}` + "\n"
	}
	built, err := assembled(t, "  - {name: mood, type: classification, data: {train: a.jsonl, dev: a.jsonl}, "+
		"labels: [bad, good]}\n", map[string]string{"a.jsonl": lines})
	if err != nil {
		t.Fatal(err)
	}
	got := built.Data.Statistics(multitask.HeadName{Task: "mood", Head: "mood"})
	if got.Units != 4 || !slices.Equal(got.Counts, []int{3, 1}) {
		t.Errorf("%d units of which %v have a label, want 4 of which 3 are bad and 1 is good", got.Units, got.Counts)
	}
}
