package bench

import (
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/multitask"
)

// BenchmarkWeightings compares training steps of MiniLM's size that hold a batch of each of three tasks, by several
// weightings, with three steps of a batch each by fixed, in turns on the same batches: the metric ratio is the median
// of its time over theirs, which have three updates. The metric fixed is that over one step of all three by fixed.
func BenchmarkWeightings(b *testing.B) {
	for _, name := range multitask.Weightings().Names() {
		b.Run(name, func(b *testing.B) { compareWeightings(b, name, network(b).Full(2, FullTexts, FullTokens)) })
		b.Run(name+"_short", func(b *testing.B) { compareWeightings(b, name, short(network(b))) })
	}
}

func compareWeightings(b *testing.B, name string, work Work) {
	// trainings, each with weights of its own
	plain, fixed, weighed := threeTasks(b, "fixed"), threeTasks(b, "fixed"), threeTasks(b, name)

	// steps in turns
	var ratios, overFixed []float64
	for i := range b.N + 1 {
		batch := work.Batches[i%len(work.Batches)]
		var all []multitask.Batch
		var three time.Duration
		for g := range 3 {
			all = append(all, multitask.Batch{Group: g, Examples: batch})
			three += update(b, plain, all[g:])
		}
		one, took := update(b, fixed, all), update(b, weighed, all)
		if i > 0 { // the first allocates memory
			ratios = append(ratios, float64(took)/float64(three))
			overFixed = append(overFixed, float64(took)/float64(one))
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(ratios), "ratio")
	b.ReportMetric(median(overFixed), "fixed")
}

// update returns the time of a step on the batches.
func update(b *testing.B, t *multitask.Training, batches []multitask.Batch) time.Duration {
	b.Helper()
	step, err := t.Update(batches)
	if err != nil {
		b.Fatal(err)
	}
	return step.Time
}

// threeTasks returns a training of three tasks, without data, by a weighting with its default options.
func threeTasks(b *testing.B, name string) *multitask.Training {
	b.Helper()
	n := &Network{vocabulary: vocabulary, longest: positions}
	if err := n.build(Sizes[1], "a", "b", "c"); err != nil {
		b.Fatal(err)
	}
	choice, err := multitask.Weightings().FromString(name, "")
	if err != nil {
		b.Fatal(err)
	}
	weighting, err := choice.Build(n.model.WeightingEnv(seed))
	if err != nil {
		b.Fatal(err)
	}
	return training(b, n, multitask.Plan{
		Seed: seed, MaxSteps: 3*b.N + 10, Rate: 2e-5, WeightDecay: 0.01, ClipNorm: 1, Weighting: weighting,
	})
}
