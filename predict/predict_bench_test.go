package predict

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/internal/shared"
)

// BenchmarkPredictMoreHeads measures the time of several heads relative to one, in alternation: the metric ratio, of
// the least times.
func BenchmarkPredictMoreHeads(b *testing.B) {
	dir := shared.Dir(b)
	b.Setenv("JENGA_DATA", filepath.Join(dir, "data"))
	b.Setenv("JENGA_MODELS", filepath.Join(dir, "models"))
	for _, c := range []struct{ heads, texts int }{{12, 32}, {4, 1}} {
		b.Run(fmt.Sprintf("heads=%d/texts=%d", c.heads, c.texts), func(b *testing.B) {
			one, data := headsModel(b, 1)
			many, _ := headsModel(b, c.heads)
			texts := data.Groups[0].Examples[config.Train][:c.texts]
			least := [2]time.Duration{1 << 62, 1 << 62}
			for b.Loop() {
				for i, p := range []*Model{one, many} {
					examples := make([]*corpus.Example, len(texts))
					for k, e := range texts {
						examples[k] = &corpus.Example{Text: e.Text}
					}
					start := time.Now()
					if _, err := p.PredictExamples(b.Context(), Form{}, examples...); err != nil {
						b.Fatal(err)
					}
					least[i] = min(least[i], time.Since(start))
				}
			}
			b.ReportMetric(float64(least[1])/float64(least[0]), "ratio")
			b.ReportMetric(float64(least[0].Microseconds())/1e3, "ms/one")
		})
	}
}

// headsModel returns a model with some untrained linear heads for the intents of SNIPS, and its data.
func headsModel(b *testing.B, heads int) (*Model, *dataset.Dataset) {
	var list []string
	for i := range heads {
		list = append(list, fmt.Sprintf("{name: h%d}", i))
	}
	text := "model: {base_model: minilm-l6}\ntokenizer: {max_length: 128}\ntasks:\n  - name: intent\n    type: " +
		"classification\n" +
		"    data: {train: snips/train, dev: snips/valid}\n    heads: [" + strings.Join(list, ", ") + "]\n"
	path := filepath.Join(b.TempDir(), "heads.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		b.Fatal(err)
	}
	e, err := config.Read(b.Context(), path, nil)
	if err != nil {
		b.Fatal(err)
	}
	run, err := ready(e, config.Train)
	if err != nil {
		b.Fatal(err)
	}
	return run.asked(b), run.Data
}
