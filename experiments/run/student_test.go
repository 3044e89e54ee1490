package run

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/checkpoint"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/resume"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/plugin"
)

const fourLayers = "model.encoder.layers=4"

// checkLayersOf compares the encoder of a model with layers of the one in a folder.
func checkLayersOf(t *testing.T, m *multitask.Model, folder string, tokens int, layers []int) {
	t.Helper()
	e := &config.Experiment{Model: config.Model{EncoderOfBase: true}}
	all, closer, err := checkpoint.EncoderParams(e, folder, tokens, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer closer()
	want := map[string][]float32{}
	for _, w := range all {
		want[w.Name] = w.Data
	}
	own := multitask.EncoderParams(m.Params).All()
	for _, w := range own {
		name := w.Name
		for i, from := range layers {
			was, is := fmt.Sprintf(".layer.%d.", i), fmt.Sprintf(".layer.%d.", from)
			if strings.Contains(w.Name, was) {
				name = strings.Replace(w.Name, was, is, 1)
			}
		}
		if want[name] == nil || !slices.Equal(w.Data, want[name]) {
			t.Errorf("layers %v: %s is not %s of %s", layers, w.Name, name, folder)
		}
	}
	if n := len(all) - len(own); n%(4-len(layers)) != 0 || n == 0 {
		t.Errorf("layers %v: %d parameters, of %d", layers, len(own), len(all))
	}
}

func TestAStudentBeginsWithLayersOfARun(t *testing.T) {
	baseRun(t, fourLayers)
	best := filepath.Join("base", runfolder.BestDir, runfolder.EncoderDir)
	path := growing(t, "{encoder: {from: base, layers: [3, 0]}}", `training: {num_epochs: 2, layer_decay: 0.5}
tasks:
  - {name: team, type: classification, data: {path: mails.jsonl, label: team, split: {dev: 0.2}}}
`)
	r := mustPrepare(t, path)
	checkLayersOf(t, r.Model, best, r.Data.Tokenizer.Size(), []int{3, 0})
	if r.Growth != nil || r.experiment().Model.Fusion.Type != "none" {
		t.Errorf("a student continues %+v, with fusion %s", r.Growth, r.experiment().Model.Fusion.Type)
	}
	trained, _ := tensorsOf(t, "base")
	for name, values := range valuesOf(r.Model) {
		isWeight := strings.HasPrefix(name, "heads.") && strings.HasSuffix(name, "weight")
		if isWeight && slices.Equal(values, trained[name]) {
			t.Errorf("%s is that of the run", name)
		}
	}

	// its checkpoint is one of two layers, which names what it was made of
	trainSmall(t, path, "student")
	about, err := checkpoint.Read(t.Context(), filepath.Join("student", runfolder.BestDir), "student")
	if err != nil {
		t.Fatal(err)
	}
	if about.Base == nil || !slices.Equal(about.Base.Layers, []int{3, 0}) ||
		about.Base.CRC32C["model.safetensors"] == "" {
		t.Errorf("base %+v, want layers 3, 0 of %s", about.Base, best)
	}
	text, err := os.ReadFile(filepath.Join("student", runfolder.BestDir, runfolder.EncoderDir, "config.json"))
	if err != nil || !strings.Contains(string(text), `"num_hidden_layers": 2`) {
		t.Errorf("config.json: %s, %v", text, err)
	}

	// a student of the student, and one of a model
	for model, layers := range map[string][]int{
		"{encoder: {from: student/last, layers: [1]}}":               {1},
		"{base_model: student/best/encoder, encoder: {layers: [0]}}": {0},
	} {
		r := mustPrepare(t, growing(t, model, "tokenizer: {max_length: 64}\n"))
		got := len(r.Model.Encoder.Describe().Levels)
		if got != 2 || !slices.Equal(r.experiment().Model.Layers, layers) {
			t.Errorf("%s: %d levels", model, got)
		}
	}
}

// A student whose encoder is frozen has it all the same: it is not that of the files that it was read from.
func TestAFrozenStudentsEncoderIsInItsCheckpoints(t *testing.T) {
	baseRun(t, fourLayers)
	best := filepath.Join("base", runfolder.BestDir, runfolder.EncoderDir)
	for name, model := range map[string]string{
		"frozen":       "{encoder: {from: base, layers: [0, 2]}, freeze: all}",
		"LoRA":         "{encoder: {from: base, layers: [0, 2]}, lora: {per_task: true, r: 2}}",
		"of its layer": "{encoder: {from: base, layers: [0, 2]}, freeze: 2}",
	} {
		path := growing(t, model, "training: {num_epochs: 1}\n")
		r, _ := trainSmall(t, path, name)
		again := mustPrepare(t, growing(t, "{encoder: {from: "+name+", layers: [1]}}", ""))
		warned := slices.ContainsFunc(plugin.Lines(again.Warnings), func(line string) bool {
			return strings.Contains(line, "changes of the encoder of their own (lora: {per_task: true}), which the")
		})
		if warned != (name == "LoRA") {
			t.Errorf("%s: warnings of a student of it: %q", name, plugin.Lines(again.Warnings))
		}
		about, err := checkpoint.Read(t.Context(), filepath.Join(name, runfolder.BestDir), name)
		if err != nil {
			t.Fatal(err)
		}
		if !about.Encoder.Copied() {
			t.Fatalf("%s: the encoder is in %s", name, about.Encoder.Folder)
		}
		if name == "frozen" {
			checkLayersOf(t, r.Model, best, r.Data.Tokenizer.Size(), []int{0, 2})
		}
		if again, err := Refit(t.Context(), name, nil); err != nil || len(again.Model.Encoder.Describe().Levels) != 3 {
			t.Errorf("%s: read again: %v", name, err)
		}

		// without the run that it was made of
		if err := os.Rename("base", "gone"); err != nil {
			t.Fatal(err)
		}
		e, err := config.ReadTrained(filepath.Join(name, runfolder.ExperimentFile))
		if err != nil {
			t.Fatal(err)
		}
		params, closer, err := checkpoint.EncoderParams(e, about.Encoder.Folder, r.Data.Tokenizer.Size(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := closer(); err != nil || len(params) == 0 {
			t.Errorf("%s: %d parameters, %v", name, len(params), err)
		}
		if err := os.Rename("gone", "base"); err != nil {
			t.Fatal(err)
		}
	}
}

// The encoder of a run that has left a base model as it was is in that model's folder.
func TestAStudentOfARunWithAFrozenEncoder(t *testing.T) {
	baseRun(t, fourLayers)
	trainSmall(t, growing(t, "{base_model: base/best/encoder, freeze: all}", "tokenizer: {max_length: 64}\n"+
		"training: {num_epochs: 1}\n"), "frozen")
	path := growing(t, "{encoder: {from: frozen, layers: [1, 3]}}", "training: {num_epochs: 1}\n")
	r := mustPrepare(t, path)
	checkLayersOf(t, r.Model, "base/best/encoder", r.Data.Tokenizer.Size(), []int{1, 3})
	if err := CheckFolder(r.experiment(), "frozen", true); err == nil || !strings.Contains(err.Error(),
		"frozen holds a run that the base model is part of, frozen/best") {
		t.Errorf("in the folder of the run: %v", err)
	}
	flip(t, "base/best/encoder/model.safetensors")
	_, err := ready(mustRead(t, path), config.Train, config.Dev)
	if err == nil || !strings.Contains(err.Error(), "grown.yaml:1:25: model: encoder: from: frozen/best/model.json: "+
		"its frozen encoder's file") {
		t.Errorf("with a damaged base model: %v", err)
	}
}

func TestRunsThatNoStudentIsMadeOf(t *testing.T) {
	baseRun(t, fourLayers)
	student := growing(t, "{encoder: {from: base, layers: [0, 4]}}", "")
	_, err := ready(mustRead(t, student), config.Train, config.Dev)
	if want := "grown.yaml:1:39: model: encoder: layers: there is no layer 4: the model has 4 layers, numbered from " +
		"0 to 3"; err == nil || err.Error() != want {
		t.Errorf("a layer too many: %v, want %s", err, want)
	}
	if err := CheckFolder(mustRead(t, student), "base", true); err == nil || !strings.Contains(err.Error(),
		"base holds a run that the base model is part of") {
		t.Errorf("in the folder of the run: %v", err)
	}

	// an encoder without layers to choose from
	trainSmall(t, growing(t, "{encoder: {type: bilstm, embedding: 8, hidden: 8, layers: 2}}",
		"training: {num_epochs: 1}\n"), "lstm")
	_, err = ready(mustRead(t, growing(t, "{encoder: {from: lstm, layers: [1]}}", "")), config.Train, config.Dev)
	if err == nil || !strings.Contains(err.Error(), `layers: encoder "bilstm" has all layers of its model; leave`) {
		t.Errorf("a BiLSTM: %v", err)
	}
	mustPrepare(t, growing(t, "{encoder: {from: lstm}}", ""))

	// a run that was interrupted, and one that is damaged
	interruptIn(t, "stopped", "mails.yaml", 20, "training.num_epochs=9")
	r := mustPrepare(t, growing(t, "{encoder: {from: stopped, layers: [0]}}", ""))
	if got := plugin.Lines(r.Warnings); !slices.ContainsFunc(got, func(line string) bool {
		return strings.Contains(line, "training of this run was interrupted after step")
	}) {
		t.Errorf("warnings of a student of an interrupted run: %q", got)
	}
	flip(t, filepath.Join("base", runfolder.BestDir, runfolder.EncoderDir, "model.safetensors"))
	_, err = ready(mustRead(t, growing(t, "{encoder: {from: base, layers: [0]}}", "")), config.Train, config.Dev)
	if err == nil || !strings.HasPrefix(err.Error(), "grown.yaml:1:25: model: encoder: from: ") ||
		!strings.Contains(err.Error(), "the file is damaged") {
		t.Errorf("a damaged run: %v", err)
	}
}

func TestAnInterruptedTrainingOfAStudentGoesOnWithTheSameBytes(t *testing.T) {
	baseRun(t, fourLayers)
	for name, model := range map[string]string{
		"learning": "{encoder: {from: base, layers: [2, 0]}}",
		"in part":  "{encoder: {from: base, layers: [1, 3]}, freeze: 1}",
		"frozen":   "{encoder: {from: base, layers: [0, 3]}, freeze: all}",
		"LoRA":     "{encoder: {from: base/last, layers: [3]}, lora: {r: 2}}",
		"by task":  "{encoder: {from: base, layers: [3, 1]}, lora: {per_task: true, r: 2}}",
	} {
		t.Run(name, func(t *testing.T) {
			path := growing(t, model, "training: {learning_rate: 0.02, num_epochs: 3, batch_size: 8, ema: 0.9}\n")
			whole := name + " whole"
			trainSmall(t, path, whole)
			want := result(t, whole)
			for _, first := range []int{2, 5, 9} {
				folder := fmt.Sprintf("%s interrupted %d", name, first)
				trainWithInterruptions(t, path, folder, first)
				checkSameResult(t, name, result(t, folder), want)
			}
		})
	}

	// what is frozen is compared with what it was
	path := growing(t, "{encoder: {from: base, layers: [0, 3]}, freeze: 1}",
		"training: {num_epochs: 3, batch_size: 8}\n")
	interruptIn(t, "changed", path, 6)
	if err := os.RemoveAll("base"); err != nil {
		t.Fatal(err)
	}
	trainSmall(t, "mails.yaml", "base", fourLayers, "training.num_epochs=3", "seed=7")
	found, err := resume.Find(t.Context(), "changed")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Resume(t.Context(), mustRead(t, found.File), found.Point, nil, nil)
	if err == nil {
		_, err = r.Train(t.Context(), "changed", ignore)
	}
	if err == nil || !strings.Contains(err.Error(), "a checksum of the encoder's frozen parameters: was ") {
		t.Errorf("with frozen weights of another run: %v", err)
	}
}
