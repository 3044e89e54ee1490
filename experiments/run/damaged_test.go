package run

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/resume"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
)

// flip changes one bit of a file.
func flip(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[2*len(data)/3] ^= 4
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestADamagedCheckpointIsAnErrorThatNamesAWholeOne(t *testing.T) {
	folder := interruptedRun(t, 6, "training.save_strategy=steps", "training.save_steps=2",
		"training.save_total_limit=0", "training.num_epochs=4")
	last := filepath.Join(folder, runfolder.LastDir)
	snapshot := filepath.Join(last, runfolder.SnapshotFile)
	kept := filepath.Join(folder, runfolder.CheckpointsDir, "step-5")
	truncate := func(t *testing.T, path string) {
		if err := os.Truncate(path, 1000); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		damage func(t *testing.T, path string)
		file   string
		want   string
	}{
		"a flipped bit of the state":     {flip, snapshot, snapshot + ": snapshot: "},
		"a flipped bit of the model":     {flip, filepath.Join(last, runfolder.TensorsFile), "its CRC-32C is "},
		"a flipped bit of the labels":    {flip, filepath.Join(last, runfolder.ModelFile), last + "/model.json"},
		"a flipped bit of the tokenizer": {flip, filepath.Join(last, "encoder", "tokenizer.json"), "its CRC-32C is "},
		"a truncated state":              {truncate, snapshot, "truncated, or not a safetensors file: its header"},
		"a missing state":                {removeAll, snapshot, snapshot + ": no such file"},
		"a missing folder":               {removeAll, last, last + ": no such folder: it has the state"},
		"a missing model":                {removeAll, filepath.Join(last, runfolder.TensorsFile), "no such file"},
		"missing checksums":              {removeAll, filepath.Join(last, "crc32c.txt"), "txt: no such file"},
		"another version": {func(t *testing.T, path string) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			sample.Write(t, path, strings.Replace(string(data), "jenga snapshot 2", "jenga snapshot 9", 1))
		}, snapshot, `it is of the format "jenga snapshot 9"; this jenga reads "jenga snapshot 2"`},
	} {
		t.Run(name, func(t *testing.T) {
			damaged := filepath.Join(filepath.Dir(folder), name) // the data is at the same relative path
			if err := os.CopyFS(damaged, os.DirFS(folder)); err != nil {
				t.Fatal(err)
			}
			in := func(path string) string { return strings.ReplaceAll(path, folder, damaged) }
			test.damage(t, in(test.file))
			before := sample.Files(t, damaged)
			found, err := resume.Find(t.Context(), damaged)
			if err == nil {
				_, err = Resume(t.Context(), mustRead(t, found.File), found.Point, nil, nil)
			}
			remedy := in(kept) + " is whole: resume from it by argument resume " + in(kept)
			if err == nil || !strings.Contains(err.Error(), in(test.want)) || !strings.Contains(err.Error(), remedy) {
				t.Errorf("error %v, want %s, and %s", err, in(test.want), remedy)
			}
			if got := sample.Files(t, damaged); !maps.Equal(got, before) {
				t.Error("the run folder has changed")
			}

			// what the error says works
			if _, err := resumedRun(t, in(kept)).Train(context.Background(), damaged, ignore); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAnotherRunsStateIsRefused(t *testing.T) {
	path := sample.Small(t, "")
	folder, other := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "run")
	interruptIn(t, folder, path, 6)
	interruptIn(t, other, path, 6, "model.encoder.layers=2")
	from, err := os.ReadFile(filepath.Join(other, runfolder.LastDir, runfolder.SnapshotFile))
	if err != nil {
		t.Fatal(err)
	}
	sample.Write(t, filepath.Join(folder, runfolder.LastDir, runfolder.SnapshotFile), string(from))
	found, err := resume.Find(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	const want = "experiment: model.encoder.layers: was 2, is 1"
	_, err = Resume(t.Context(), mustRead(t, found.File), found.Point, nil, nil)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Resume = %v, want %s", err, want)
	}
}

func TestMetricsThatAreNotTheRunsAreRefused(t *testing.T) {
	folder := interruptedRun(t, 6)
	path := filepath.Join(folder, runfolder.MetricsFile)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		content []byte
		want    string
	}{
		"cut off": {text[:50], "it has 50 bytes, and had "},
		"changed": {bytes.Replace(text, []byte("step"), []byte("stop"), 1), "was changed or damaged"},
	} {
		sample.Write(t, path, string(test.content))
		_, err := resumedRun(t, folder).Train(context.Background(), folder, ignore)
		if err == nil || !strings.Contains(err.Error(), path+": ") || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: Train = %v, want %s", name, err, test.want)
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, test.content) {
			t.Errorf("%s: the file has changed: %v", name, err)
		}
	}
}
