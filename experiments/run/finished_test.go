package run

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/plugin"
)

func TestABaseRunThatIsNotFinishedIsAWarning(t *testing.T) {
	baseRun(t)
	file := growing(t, "{base_model: base, freeze: all, keep_tasks: all}", "")
	for _, warning := range plugin.Lines(mustPrepare(t, file).Warnings) {
		if bytes.Contains([]byte(warning), []byte("finishes it")) {
			t.Errorf("of a run that is finished: warning %q", warning)
		}
	}

	// as a signal leaves it
	metrics := filepath.Join("base", runfolder.MetricsFile)
	text, err := os.ReadFile(metrics)
	if err != nil {
		t.Fatal(err)
	}
	text = append(text[:bytes.LastIndex(text, []byte(`{"event":"done"`))],
		`{"event":"interrupted","step":5,"of":12,"checkpoint":null,"resume":"base/last"}`+"\n"...)
	if err := os.WriteFile(metrics, text, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, snapshot := range []bool{false, true} {
		want := "base: warning: training of this run was interrupted after step 9 of 12"
		if snapshot {
			want += "; argument resume base finishes it"
			file := filepath.Join("base", runfolder.LastDir, runfolder.SnapshotFile)
			if err := os.WriteFile(file, nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := plugin.Lines(mustPrepare(t, file).Warnings); !slices.Contains(got, want) {
			t.Errorf("warnings %q, want %q", got, want)
		}
	}
}
