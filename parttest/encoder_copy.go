package parttest

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/nn"
)

// checkCopy compares what an encoder has saved with what a copy saves after the parameters have changed.
func checkCopy(t *testing.T, e encoder, saved string) {
	from, ok := e.Encoder.(encoders.CopySaver)
	if !ok {
		return
	}
	saver := from.Copy(new(nn.Copies))
	for _, w := range e.params {
		values := slices.Clone(w.Data)
		for i := range w.Data {
			w.Data[i]++
		}
		w.Changed()
		defer func() { copy(w.Data, values); w.Changed() }()
	}
	folder := filepath.Join(t.TempDir(), "copy")
	if err := saver.Save(folder); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"config.json", "model.safetensors"} {
		want, err := os.ReadFile(filepath.Join(saved, name))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(folder, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s of a copy is not what the encoder has saved: %v", name, err)
		}
	}
}
