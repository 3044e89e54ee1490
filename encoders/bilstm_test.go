package encoders

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/nn"
)

func TestABiLSTMThatCannotBeOpened(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "encoder")
	e, err := NewBiLSTM(BiLSTMOptions{Embedding: 6, Layers: 2, Hidden: 5}, Site{Vocabulary: 20, Params: nn.NewParams(3).In("encoder")})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.(Saver).Save(folder); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ config, want string }{
		"sizes that are too large":          {`{"model_type":"bilstm","vocab_size":20,"embedding":6,"layers":2,"hidden":1000000000}`, "hidden 1000000000: want sizes above 0"},
		"sizes that are too large together": {`{"model_type":"bilstm","vocab_size":20,"embedding":6,"layers":64,"hidden":8192}`, "a bilstm of this size has 102010060920 parameters; at most 1073741824 are held"},
		"another model":                     {`{"model_type":"bert"}`, `model_type is "bert"; want bilstm`},
		"other sizes":                       {`{"model_type":"bilstm","vocab_size":20,"embedding":6,"layers":2,"hidden":7}`, "has shape"},
		"a smaller vocabulary":              {`{"model_type":"bilstm","vocab_size":19,"embedding":6,"layers":2,"hidden":5}`, "vocab_size is 19, but the tokenizer has 20"},
		"no JSON":                           {`{`, "unexpected end"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(filepath.Join(folder, "config.json"), []byte(c.config), 0o644); err != nil {
				t.Fatal(err)
			}
			_, err := NewBiLSTM(bilstmDefaults, Site{Model: folder, Vocabulary: 20, Params: nn.NewParams(9)})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}
