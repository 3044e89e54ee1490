package run

import (
	"path/filepath"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/checkpoint"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
)

// A checkpoint with an encoder that learned names the base model that it was trained from, as it was before training.
func TestACheckpointNamesItsBaseModel(t *testing.T) {
	from := filepath.Join(t.TempDir(), "base")
	trainSmall(t, sample.Small(t, ""), from, "training.max_steps=2")
	encoder := filepath.Join(from, runfolder.BestDir, runfolder.EncoderDir)
	want, err := runfolder.CRC32C(t.Context(), filepath.Join(encoder, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	read := func(folder string) checkpoint.Description {
		about, err := checkpoint.Read(t.Context(), filepath.Join(folder, runfolder.BestDir), folder)
		if err != nil {
			t.Fatal(err)
		}
		return about
	}
	if about := read(from); about.Base != nil {
		t.Errorf("an encoder from scratch has the base model %v", about.Base)
	}
	for freeze, named := range map[string]bool{"none": true, "embeddings": true, "all": false} {
		folder := filepath.Join(t.TempDir(), "run")
		trainSmall(t, sample.Small(t, ""), folder, "training.max_steps=2", "model.base_model="+encoder,
			"model.encoder=null", "tokenizer.train=null", "model.freeze="+freeze)
		base := read(folder).Base
		if (base != nil) != named {
			t.Errorf("freeze %s: base model %v", freeze, base)
		}
		if base != nil && (base.CRC32C["model.safetensors"] != want || base.CRC32C["config.json"] == "" ||
			base.Folder != encoder) {
			t.Errorf("freeze %s: base model %v, want %s with %s", freeze, base, encoder, want)
		}
	}
}
