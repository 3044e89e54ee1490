package merge

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/jenga-nlp/jenga/internal/safetensors"
	"github.com/jenga-nlp/jenga/internal/shared"
	"github.com/jenga-nlp/jenga/internal/trained"
)

// Tasks of the runs.
const (
	teams  = trained.Teams
	things = "  - {name: things, type: ner, " + trained.Mails
	both   = teams + "  - {name: word, type: ner, data: {same_as: team}}\n"
)

func TestMain(m *testing.M) { os.Exit(shared.RunTests(m)) }

// encoderOf returns the values of an encoder's file, by name.
func encoderOf(t *testing.T, folder string) map[string][]float32 {
	t.Helper()
	file, err := safetensors.Open(filepath.Join(folder, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	values := map[string][]float32{}
	for _, info := range file.Tensors() {
		if values[info.Name], err = file.Floats(info.Name); err != nil {
			t.Fatal(err)
		}
	}
	return values
}

// mergeInto merges runs into a folder and returns the figures of their heads.
func mergeInto(t *testing.T, folder string, o Options, runs []string, renames ...Rename) []Figure {
	t.Helper()
	m, err := Open(t.Context(), runs, o, renames, "")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	figures, err := m.Before(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Write(t.Context(), folder, false, nil); err != nil {
		t.Fatal(err)
	}
	if err := After(context.Background(), figures, folder); err != nil {
		t.Fatal(err)
	}
	return figures
}
