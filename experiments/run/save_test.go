package run

import (
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/checkpoint"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
)

func TestADescriptionHasLabelsAndTokenizer(t *testing.T) {
	base := filepath.Join(t.TempDir(), "base")
	trainSmall(t, sample.Small(t, ""), base, "training.num_epochs=1")
	encoder := filepath.Join(base, runfolder.BestDir, runfolder.EncoderDir)
	for name, sets := range map[string][]string{
		"an encoder in the checkpoint": nil,
		"a frozen encoder elsewhere": {"model.encoder=null", "tokenizer.train=null", "model.base_model=" + encoder,
			"model.freeze=all"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := ready(mustRead(t, sample.Small(t, ""), sets...), config.Train, config.Dev)
			if err != nil {
				t.Fatal(err)
			}
			folder := t.TempDir()
			m, err := r.saved(folder, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Write(t.Context(), folder); err != nil {
				t.Fatal(err)
			}

			read, err := checkpoint.Read(t.Context(), folder, folder)
			if err != nil {
				t.Fatal(err)
			}
			if got := read.Encoder.Copied(); got != (sets == nil) {
				t.Errorf("the encoder is copied: %v", got)
			}
			labels, err := read.Labels()
			if err != nil || len(labels) != len(r.Data.Labels) {
				t.Fatalf("labels of %d heads, %v; want %d", len(labels), err, len(r.Data.Labels))
			}
			for head, want := range r.Data.Labels {
				if got := labels[head]; got == nil || !slices.Equal(got.Names(), want.Names()) {
					t.Errorf("labels of %v are %v, want %v", head, got, want.Names())
				}
			}
			tokenizer, err := corpus.OpenTokenizer(read.Encoder.Folder)
			if err != nil {
				t.Fatal(err)
			}
			text := &corpus.Example{Text: "the invoice was charged twice"}
			got, want := tokenizer.Encode(text, 0), r.Data.Tokenizer.Encode(text, 0)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("tokens %v, want %v", got, want)
			}
		})
	}
}
