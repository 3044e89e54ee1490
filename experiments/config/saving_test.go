package config

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/internal/sample"
)

// TestAnotherStrategyBySet replaces the strategy of a file whose options it gives no effect, as a run that is resumed
// may.
func TestAnotherStrategyBySet(t *testing.T) {
	file := filepath.Join(supportDeskFolder(t), "exp.yaml")
	for _, c := range []struct{ was, now string }{
		{"training={save_strategy: steps, save_steps: 5}", "training.save_strategy=epoch"},
		{"training={save_strategy: minutes, save_minutes: 5, save_total_limit: 3}", "training.save_strategy=no"},
		{"training={eval_strategy: steps, eval_steps: 5}", "training.eval_strategy=epoch"},
		{"training={eval_strategy: steps, eval_steps: 5, early_stopping_patience: 2}", "training.eval_strategy=no"},
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
		got := mustRead(t, path).Training
		if !slices.Contains([]string{"training.save_strategy=" + got.SaveStrategy,
			"training.eval_strategy=" + got.EvalStrategy}, c.now) {
			t.Errorf("the file after %s has %q and %q", c.now, got.SaveStrategy, got.EvalStrategy)
		}
	}
}
