package run

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/multitask/train"
)

// BenchmarkStream compares training steps of MiniLM's size on examples that are streamed with steps on the same
// examples in memory, in turns: the metric ratio is the median of the time of a step, reading included, over that of
// the step in memory before it. -benchtime 30x takes 30 steps of each.
func BenchmarkStream(b *testing.B) {
	b.Setenv("XDG_CACHE_HOME", b.TempDir())
	r := rand.New(rand.NewPCG(1, 2))
	var lines strings.Builder
	for range 20_000 { // texts of about as many words as those of SST
		var words []string
		for range 8 + r.IntN(24) {
			words = append(words, fmt.Sprintf("w%c%c", 'a'+r.IntN(26), 'a'+r.IntN(26)))
		}
		fmt.Fprintf(&lines, `{"text": %q, "label": "%d"}`+"\n", strings.Join(words, " "), r.IntN(2))
	}
	folder := sample.Folder(b, map[string]string{"a.jsonl": lines.String(), "exp.yaml": `
model: {encoder: {type: transformer, layers: 6, width: 384, heads: 12, feed_forward: 1536}}
tasks: [{name: mood, type: classification, data: {train: a.jsonl, split: {dev: 100}}}]
training: {batch_size: 32}
`})
	var trainings []*train.Training
	for _, stream := range []string{"false", "true"} {
		sets := []string{"tasks.mood.data.stream=" + stream}
		e, err := config.Read(b.Context(), filepath.Join(folder, "exp.yaml"), sets)
		if err != nil {
			b.Fatal(err)
		}
		ready, err := ready(e, config.Train, config.Dev)
		if err != nil {
			b.Fatal(err)
		}
		training, err := train.New(ready.Model, ready.data(), ready.plan)
		if err != nil {
			b.Fatal(err)
		}
		defer training.Close()
		trainings = append(trainings, training)
	}

	var ratios []float64
	for i := range b.N + 1 {
		var took [2]time.Duration
		for t, training := range trainings {
			start := time.Now()
			if _, err := training.Step(b.Context()); err != nil {
				b.Fatal(err)
			}
			took[t] = time.Since(start)
		}
		if i > 0 { // the first allocates memory
			ratios = append(ratios, took[1].Seconds()/took[0].Seconds())
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(slices.Sorted(slices.Values(ratios))[len(ratios)/2], "ratio")
}
