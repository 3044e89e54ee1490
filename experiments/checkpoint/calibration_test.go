package checkpoint

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
)

func FuzzReadCalibration(f *testing.F) {
	good := calibrationFile{Format: calibrationFormat, Checkpoint: "0123abcd", Heads: []HeadCalibration{{
		Task: "team", Head: "team", Labels: []string{"a", "b"}, Temperature: 2, Sets: &ConformalSets{Alpha: 0.1},
	}}}
	good.CRC32C = good.sum()
	text, err := json.Marshal(good)
	if err != nil {
		f.Fatal(err)
	}
	folder := f.TempDir()
	sample.Write(f, filepath.Join(folder, runfolder.CalibrationFile), string(text))
	if all, stale, err := ReadCalibration(folder, "0123abcd"); err != nil || stale || len(all) != 1 {
		f.Fatalf("the file as it is written: %v, stale %v, error %v", all, stale, err)
	}
	f.Add(text)
	f.Add([]byte(`{"format": 1, "heads": [{"labels": ["a"], "sigmoids": [{"a": 1e300}], "sets": {}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		folder := t.TempDir()
		sample.Write(t, filepath.Join(folder, runfolder.CalibrationFile), string(text))
		all, stale, err := ReadCalibration(folder, "0123abcd")
		if err == nil && !stale {
			for _, head := range all {
				head.Fitted()
			}
			if _, stale, err := ReadCalibration(folder, "another"); err != nil || !stale {
				t.Errorf("of another checkpoint: stale %v, error %v; want it to be stale", stale, err)
			}
		}
	})
}
