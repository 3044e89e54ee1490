package bench

import (
	"slices"
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/multitask"
)

// BenchmarkUpdates compares training steps of MiniLM's size by other optimizers, and with running means of the weights,
// with plain ones, in turns on the same batches: the median time of a step is the metric ms, over that of the plain one
// the metric ratio. -benchtime 30x takes 30 steps of each.
func BenchmarkUpdates(b *testing.B) {
	for name, change := range map[string]func(p *multitask.Plan){
		"ema":       func(p *multitask.Plan) { p.Average = 0.999 },
		"sgd":       func(p *multitask.Plan) { p.Optimizer = multitask.SGD{Momentum: 0.9} },
		"adafactor": func(p *multitask.Plan) { p.Optimizer = chosen(b, "adafactor") },
	} {
		b.Run(name, func(b *testing.B) {
			n, err := NewNetwork(Sizes[1], nil)
			if err != nil {
				b.Fatal(err)
			}
			work := n.Full(2)
			plan := multitask.Plan{
				Seed: seed, MaxSteps: b.N + 2, Rate: 2e-5, WeightDecay: 0.01, ClipNorm: 1, Weighting: multitask.Fixed{},
			}
			plain := training(b, n, plan)
			change(&plan)
			changed := training(b, n, plan)

			var times [2][]time.Duration
			for i := range b.N + 1 {
				for t, training := range []*multitask.Training{plain, changed} {
					batch := multitask.Batch{Group: 0, Examples: work.Batches[i%len(work.Batches)]}
					step, err := training.Update([]multitask.Batch{batch})
					if err != nil {
						b.Fatal(err)
					}
					if i > 0 { // the first allocates memory
						times[t] = append(times[t], step.Time)
					}
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(times[1]).Seconds()*1000, "ms")
			b.ReportMetric(float64(median(times[1]))/float64(median(times[0])), "ratio")
		})
	}
}

func training(b *testing.B, n *Network, plan multitask.Plan) *multitask.Training {
	b.Helper()
	t, err := multitask.New(n.model, nil, plan)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(t.Close)
	return t
}

// chosen returns an optimizer with its default options.
func chosen(b *testing.B, name string) multitask.Optimizer {
	b.Helper()
	choice, err := multitask.Optimizers().FromString(name, "")
	if err != nil {
		b.Fatal(err)
	}
	optimizer, err := choice.Build(struct{}{})
	if err != nil {
		b.Fatal(err)
	}
	return optimizer
}

func median(all []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(all))[len(all)/2]
}
