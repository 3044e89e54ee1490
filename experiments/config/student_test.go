package config

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/internal/sample"
)

// An encoder that is made of layers of a run's takes nothing else of the run but its length; what is written is the
// same experiment, and opens without the run.
func TestAStudentHasLayersOfARunsEncoder(t *testing.T) {
	baseFiles(t)
	for model, want := range map[string]struct {
		folder, from string
		layers       []int
	}{
		"{encoder: {from: run, layers: [0, 2]}}":                               {"best/encoder", "run", []int{0, 2}},
		"{encoder: {from: run/best, layers: [3]}}":                             {"best/encoder", "run/best", []int{3}},
		"{encoder: {from: run}}":                                               {"best/encoder", "run", nil},
		"{encoder: {type: transformer, from: run, layers: [1, 0]}}":            {"best/encoder", "run", []int{1, 0}},
		"{base_model: run/weights, encoder: {layers: [1]}}":                    {"weights", "", []int{1}},
		"{base_model: run/weights, encoder: {type: transformer, layers: [1]}}": {"weights", "", []int{1}},
	} {
		if err := os.MkdirAll("run/weights", 0o777); err != nil {
			t.Fatal(err)
		}
		e := mustGrow(t, model, "")
		m := e.Model
		if m.BaseModel.Name != filepath.Join("run", want.folder) || m.From != filepath.FromSlash(want.from) ||
			!slices.Equal(m.Layers, want.layers) || m.BaseRun != nil || (m.FromRun != nil) != (m.From != "") {
			t.Errorf("%s: %+v", model, m)
		}
		if m.Fusion.Type != "none" || m.From != "" && e.Tokenizer.MaxLength != 48 {
			t.Errorf("%s: fusion %s, max_length %d; want none and that of the run", model, m.Fusion.Type,
				e.Tokenizer.MaxLength)
		}

		checkWritten(t, e)
	}
	if _, err := grown(t, "{base_model: run, encoder: {layers: [0]}}", ""); err == nil ||
		!strings.Contains(err.Error(), "exp.yaml:1:44: model: encoder: layers: base_model is a run, whose heads read "+
			"all of its layers; want encoder: {from: run, layers: …} in its place") {
		t.Errorf("layers of a base run: %v", err)
	}
	e := mustGrow(t, "{encoder: {from: run}}", "", "model.encoder.layers=[2]", "model.encoder.from=run/best")
	if e.Model.From != filepath.Join("run", "best") || !slices.Equal(e.Model.Layers, []int{2}) {
		t.Errorf("--set: %+v", e.Model)
	}
}

// checkWritten writes an experiment to a run folder, and reads it there, at last without the run that it names.
func checkWritten(t *testing.T, e *Experiment) {
	t.Helper()
	m := e.Model
	var text bytes.Buffer
	if err := os.MkdirAll("student", 0o777); err != nil {
		t.Fatal(err)
	}
	if err := e.Write(&text, "student"); err != nil {
		t.Fatal(err)
	}
	sample.Write(t, "student/experiment.yaml", text.String())
	again, err := Read(t.Context(), "student/experiment.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := again.Model; n.From != m.From || !slices.Equal(n.Layers, m.Layers) ||
		n.BaseModel.Name != m.BaseModel.Name || n.EncoderOfBase != m.EncoderOfBase {
		t.Errorf("written as %s, which is read as %+v", &text, n)
	}
	var second bytes.Buffer
	if err := again.Write(&second, "student"); err != nil || second.String() != text.String() {
		t.Errorf("%v, written as %s, then as %s", err, &text, &second)
	}
	if err := os.Rename("run", "gone"); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadTrained("student/experiment.yaml"); err != nil {
		t.Errorf("without the run: %v", err)
	}
	if err := os.Rename("gone", "run"); err != nil {
		t.Fatal(err)
	}
}

func TestEvenLayers(t *testing.T) {
	for _, c := range []struct {
		n, of int
		want  []int
	}{
		{3, 6, []int{0, 2, 5}}, {1, 6, []int{0}}, {2, 6, []int{0, 5}}, {6, 6, []int{0, 1, 2, 3, 4, 5}},
		{6, 12, []int{0, 2, 4, 6, 8, 11}}, {4, 12, []int{0, 3, 7, 11}}, {1, 1, []int{0}},
	} {
		if got := EvenLayers(c.n, c.of); !slices.Equal(got, c.want) {
			t.Errorf("EvenLayers(%d, %d) = %v, want %v", c.n, c.of, got, c.want)
		}
	}
}
