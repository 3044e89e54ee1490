package checkpoint

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/runfolder"
)

func TestACopiedEncoderLiesWithinItsCheckpoint(t *testing.T) {
	for folder, within := range map[string]bool{"encoder": true, "../encoder": false, "/etc": false, "": false} {
		best := filepath.Join(t.TempDir(), runfolder.BestDir)
		if err := os.Mkdir(best, 0o777); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(best, runfolder.ModelFile)
		text := `{"format": 1, "encoder": {"folder": "` + folder + `"}}`
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := runfolder.WriteChecksums(t.Context(), best); err != nil {
			t.Fatal(err)
		}

		about, err := Read(t.Context(), best, filepath.Dir(best))
		want := path + `: encoder folder "` + folder + `" is out of the checkpoint`
		switch {
		case within && (err != nil || about.Encoder.Folder != filepath.Join(best, folder)):
			t.Errorf("%q: Read = %q, %v", folder, about.Encoder.Folder, err)
		case !within && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: Read = %q, %v, want %s", folder, about.Encoder.Folder, err, want)
		}
	}
}

// An encoder out of the checkpoint is one whose files have sums: without any, whatever lies there would be read.
func TestAFrozenEncoderWithoutSumsIsRefused(t *testing.T) {
	for _, folder := range []string{"/etc", "..", "../../other/best/encoder", "encoder", ""} {
		run := t.TempDir()
		best := filepath.Join(run, runfolder.BestDir)
		if err := os.Mkdir(best, 0o777); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(best, runfolder.ModelFile)
		text := `{"format": 1, "encoder": {"folder": "` + folder + `", "sha256": {}, "crc32c": {}}}`
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := runfolder.WriteChecksums(t.Context(), best); err != nil {
			t.Fatal(err)
		}
		want := path + `: encoder: sha256 is empty; want the sum of each file of the frozen encoder in "` + folder + `"`
		if _, err := Read(t.Context(), best, run); err == nil || err.Error() != want {
			t.Errorf("%q: error %v, want %s", folder, err, want)
		}
	}
}

func TestADamagedModelFileIsToldByItsSum(t *testing.T) {
	best := filepath.Join(t.TempDir(), runfolder.BestDir)
	if err := os.Mkdir(best, 0o777); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(best, runfolder.ModelFile)
	const text = `{"format": 1, "encoder": {"folder": "encoder"}}`
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := runfolder.WriteChecksums(t.Context(), best); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text[:20]), 0o666); err != nil {
		t.Fatal(err)
	}
	_, err := Read(t.Context(), best, filepath.Dir(best))
	var damage *runfolder.Damage
	if !errors.As(err, &damage) || !strings.Contains(err.Error(), runfolder.ModelFile) {
		t.Errorf("Read of a part of model.json: %v, want its damage", err)
	}
}
