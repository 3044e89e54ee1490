package bench

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/train"
	"github.com/jenga-nlp/jenga/multitask/updates"
	"github.com/jenga-nlp/jenga/multitask/weightings"
)

// BenchmarkUpdates compares training steps of MiniLM's size by other optimizers, and with running means of the weights,
// with plain ones, in turns on the same batches: the metric ms is the median time of a step, the metric ratio the
// median of that over the plain step before it. -benchtime 30x takes 30 steps of each.
func BenchmarkUpdates(b *testing.B) {
	for name, change := range map[string]func(p *train.Plan){
		"ema":       func(p *train.Plan) { p.Average = 0.999 },
		"ema_short": func(p *train.Plan) { p.Average = 0.999 },
		"sgd":       func(p *train.Plan) { p.Optimizer = updates.Of("sgd", updates.SGD{Momentum: 0.9}) },
		"adafactor": func(p *train.Plan) { p.Optimizer = chosen(b, "adafactor") },
	} {
		b.Run(name, func(b *testing.B) {
			n := network(b)
			work := n.Full(2, TextTokens)
			if strings.HasSuffix(name, "_short") {
				work = short(n)
			}
			plan := train.Plan{
				Options: multitask.Options{MaxSteps: b.N + 2, Rate: 2e-5, WeightDecay: 0.01, ClipNorm: 1},
				Seed:    seed,
			}
			plain := training(b, n, plan)
			change(&plan)
			changed := training(b, network(b), plan) // its own weights

			inTurns(b, work, stepsOn(b, plain, work), stepsOn(b, changed, work))
		})
	}
}

// BenchmarkTeachers compares training steps of MiniLM's size on texts that have a gold label and a teacher's answer in
// memory, the reading of answers included, with those on the same texts without answers, as BenchmarkUpdates does.
func BenchmarkTeachers(b *testing.B) {
	full := func(n *Network) Work { return n.Full(2, TextTokens) }
	for name, texts := range map[string]func(n *Network) Work{"full": full, "short": short} {
		b.Run(name, func(b *testing.B) {
			n, other := network(b), network(b) // each with its own weights
			work := texts(n)
			plan := train.Plan{
				Options: multitask.Options{MaxSteps: b.N + 2, Rate: 2e-5, WeightDecay: 0.01, ClipNorm: 1},
				Seed:    seed,
			}
			plain := training(b, n, plan)
			taught := &multitask.Taught{Lesson: &heads.Lesson{Temperature: 2}, Start: 0.5}
			taught.Together(other.model, []multitask.Data{{Train: slices.Concat(work.Batches...)}}, []int{0},
				nil, func(multitask.HeadName) bool { return true }, nil)
			data := taught.Data[0]
			data.Answers = uniformAnswers(len(data.Train))
			plan.Taught, taught.Data = taught, nil // the batches are chosen here
			learning := training(b, other, plan)

			size := len(work.Batches[0])
			inTurns(b, work, stepsOn(b, plain, work), func(batch int) time.Duration {
				var numbers []int
				for i := range size {
					numbers = append(numbers, batch*size+i)
				}
				examples := multitask.Pick(data.Train, numbers)
				start := time.Now()
				if err := data.Answered(examples, numbers); err != nil {
					b.Fatal(err)
				}
				return time.Since(start) + update(b, learning, []train.Batch{{Examples: examples}})
			})
		})
	}
}

// answers has one for each example of a head for one label.
type answers []heads.Answer

func uniformAnswers(examples int) answers {
	all := make(answers, examples)
	for i := range all {
		all[i].Values = slices.Repeat([]float32{1 / float32(len(labels))}, len(labels))
	}
	return all
}

// Answer implements multitask.Answers.
func (a answers) Answer(_, number int, _ *corpus.Example, t *heads.Taught) error {
	t.Answer = &a[number]
	return nil
}

// inTurns takes b.N steps of two trainings in turns, each on the batch of w with a number, and reports the median
// milliseconds of the second one's steps, and the median of their times over those of the first one's.
func inTurns(b *testing.B, w Work, plain, changed func(batch int) time.Duration) {
	b.Helper()
	var times, ratios []float64
	for i := range b.N + 1 {
		at := i % len(w.Batches)
		before, took := plain(at), changed(at)
		if i > 0 { // the first allocates memory
			times = append(times, took.Seconds()*1000)
			ratios = append(ratios, float64(took)/float64(before))
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(times), "ms")
	b.ReportMetric(median(ratios), "ratio")
}

// stepsOn returns a step of a training on the batch of w with a number.
func stepsOn(b *testing.B, t *train.Training, w Work) func(batch int) time.Duration {
	return func(batch int) time.Duration { return update(b, t, []train.Batch{{Examples: w.Batches[batch]}}) }
}

// short returns batches of 32 texts of 12 random tokens, about as many as those of SNIPS have.
func short(n *Network) Work {
	r := rand.New(rand.NewPCG(seed, 3))
	var w Work
	for range 3 {
		var batch []*corpus.Example
		for range 32 {
			batch = append(batch, n.random(r, 12))
		}
		w.add(batch)
	}
	return w
}

func network(b *testing.B) *Network {
	b.Helper()
	n, err := NewNetwork(sizes["minilm"], nil, "bench") // MiniLM's
	if err != nil {
		b.Fatal(err)
	}
	return n
}

func training(b *testing.B, n *Network, plan train.Plan) *train.Training {
	b.Helper()
	t, err := train.New(n.model, nil, plan)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(t.Close)
	return t
}

// chosen returns an optimizer with its default options.
func chosen(b *testing.B, name string) updates.Optimizer {
	b.Helper()
	choice, err := updates.Optimizers().FromString(name, "")
	if err != nil {
		b.Fatal(err)
	}
	optimizer, err := choice.Build(struct{}{})
	if err != nil {
		b.Fatal(err)
	}
	return optimizer
}

func median(all []float64) float64 {
	return slices.Sorted(slices.Values(all))[len(all)/2]
}

// BenchmarkWeightings compares training steps of MiniLM's size that hold a batch of each of three tasks, by several
// weightings, with three steps of a batch each by fixed, in turns on the same batches: the metric ratio is the median
// of its time over theirs, which have three updates. The metric fixed is that over one step of all three by fixed.
func BenchmarkWeightings(b *testing.B) {
	for _, name := range weightings.Registry().Names() {
		b.Run(name, func(b *testing.B) { compareWeightings(b, name, network(b).Full(2, TextTokens)) })
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
		var all []train.Batch
		var three time.Duration
		for g := range 3 {
			all = append(all, train.Batch{Group: g, Examples: batch})
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
func update(b *testing.B, t *train.Training, batches []train.Batch) time.Duration {
	b.Helper()
	step, err := t.Update(batches)
	if err != nil {
		b.Fatal(err)
	}
	return step.Time
}

// threeTasks returns a training of three tasks, without data, by a weighting with its default options.
func threeTasks(b *testing.B, name string) *train.Training {
	b.Helper()
	n, err := NewNetwork(sizes["minilm"], nil, "a", "b", "c")
	if err != nil {
		b.Fatal(err)
	}
	choice, err := weightings.Registry().FromString(name, "")
	if err != nil {
		b.Fatal(err)
	}
	weighting, err := choice.Build(weightings.EnvOf(n.model, seed))
	if err != nil {
		b.Fatal(err)
	}
	return training(b, n, train.Plan{
		Options: multitask.Options{MaxSteps: 3*b.N + 10, Rate: 2e-5, WeightDecay: 0.01, ClipNorm: 1},
		Seed:    seed, Weighting: weighting,
	})
}
