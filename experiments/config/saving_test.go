package config

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/internal/sample"
)

// TestAnotherSaveStrategyBySet replaces the strategy of a file whose options it gives no effect, as a run that is
// resumed may.
func TestAnotherSaveStrategyBySet(t *testing.T) {
	file := filepath.Join(supportDeskFolder(t), "exp.yaml")
	for _, c := range []struct{ was, now string }{
		{"training={save_strategy: steps, save_steps: 5}", "training.save_strategy=epoch"},
		{"training={save_strategy: minutes, save_minutes: 5, save_total_limit: 3}", "training.save_strategy=no"},
	} {
		path := file
		for _, set := range []string{c.was, c.now} {
			e := mustRead(t, path, set)
			path = filepath.Join(filepath.Dir(file), "run.yaml")
			var text strings.Builder
			if err := e.Write(&text, filepath.Dir(path)); err != nil {
				t.Fatal(err)
			}
			sample.Write(t, path, text.String())
		}
		if got := mustRead(t, path).Training.SaveStrategy; !strings.HasSuffix(c.now, "="+got) {
			t.Errorf("the file after %s has %q", c.now, got)
		}
	}
}
