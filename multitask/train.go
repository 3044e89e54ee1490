package multitask

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/nn"
)

// Plan is how to train.
type Plan struct {
	Seed        uint64
	Epochs      int
	BatchSize   int  // texts
	BatchTokens int  // tokens a batch may hold; 0: any number
	Accumulate  int  // batches that make one update
	Recompute   bool // the encoder keeps little of a batch and computes the rest again: less memory, more time
	// BFloat16 makes an encoder that learns multiply by its weights in bfloat16 while it is trained. It is judged in
	// float32, as it will answer.
	BFloat16 bool

	Rate        float64 // of learning, at its highest
	WeightDecay float64 // of the parameters that decay
	WarmupRatio float64 // share of all steps in which the rate rises
	WarmupSteps int     // their number; overrules WarmupRatio
	ClipNorm    float64 // the gradient's norm is cut to it; 0: never

	Sampler   Sampler
	Weighting Weighting

	EvaluateEvery int  // steps; 0: at the end of each epoch
	NeverEvaluate bool // not at all

	CacheMemory int64 // bytes of a frozen encoder's states that memory keeps, so that each text is encoded once
	// CacheFile opens an empty file for what is beyond CacheMemory; Train closes it at its end. If it fails, or a write
	// does, training goes on without. nil: what is beyond is encoded each time.
	CacheFile func() (CacheFile, error)
}

// Data is the examples of one group of tasks, their Windows and the numbers of their Targets set.
type Data struct{ Train, Dev []*corpus.Example }

// Step is one update of the parameters.
type Step struct {
	Number, Of   int     // from 1
	Epoch        float64 // epochs done, fractions counted
	Loss         float64 // what was minimised: the sum over heads of weight times mean over labelled units
	Losses       []Loss
	Rate         float64
	GradientNorm float64 // before it was cut
	Tokens       int
	Time         time.Duration
}

// TokensPerSecond is the step's speed, 0 where its time is too short to measure.
func (s Step) TokensPerSecond() float64 {
	if s.Time <= 0 {
		return 0
	}
	return float64(s.Tokens) / s.Time.Seconds()
}

// Evaluation is how the model does on dev.
type Evaluation struct {
	Step   int
	Epoch  float64
	Groups []GroupScore
	Fusion map[string][]float32 // figures of the fusion by task, nil where it has none
}

// ErrStop is what observe returns to end training early.
var ErrStop = errors.New("stop")

// Numbers of the random streams that the plan's seed feeds besides the pass's.
const (
	streamSampler = 1
	streamBatches = 1 << 32 // plus the group's number
)

// Train fits the model to the data, data[g] for group g. It reports each Step, Evaluation and Remark to observe, which
// may look at the model and end training by an error: ErrStop to end it well. A cancelled context ends it too.
func Train(ctx context.Context, m *Model, data []Data, plan Plan, observe func(event any) error) error {
	feeds, err := newFeeds(m, data, plan)
	if err != nil {
		return err
	}
	state := State{Last: -1, Rand: rand.New(rand.NewPCG(plan.Seed, streamSampler))}
	perEpoch := 0
	for _, f := range feeds {
		state.Batches = append(state.Batches, f.count())
		perEpoch += f.count()
	}
	if plan.Epochs > math.MaxInt/perEpoch {
		return fmt.Errorf("training.num_epochs: %d epochs of %d batches are more than can be counted", plan.Epochs, perEpoch)
	}
	all := perEpoch * plan.Epochs
	steps := 1 + (all-1)/plan.Accumulate
	learner := newLearner(m, plan, steps)
	_, bytes := m.Largest(firstSizes(feeds), encoders.Load{Training: true, Recompute: plan.Recompute})
	learner.pass.Reserve(Reserve(bytes))
	if m.Frozen() {
		m.cache = newCache(m, plan.CacheMemory/4, plan.CacheFile)
		defer func() { m.cache.close(); m.cache = nil }()
	}

	drawn := 0 // batches
	for state.Step = 0; state.Step < steps; {
		if err := ctx.Err(); err != nil {
			return err
		}

		// next batches
		var draws []draw
		for range min(plan.Accumulate, all-drawn) {
			if state.Epoch = drawn / perEpoch; drawn%perEpoch == 0 {
				state.Left = append(state.Left[:0], state.Batches...)
			}
			for _, g := range plan.Sampler.Next(state) {
				state.Left[g]--
				state.Last = g
				draws = append(draws, draw{g, corpus.Pack(feeds[g].next())})
			}
			drawn++
		}

		// forward, backward, update
		report, err := learner.step(state, draws)
		if err != nil {
			return fmt.Errorf("step %d: %w", state.Step+1, err)
		}
		state.Step++

		// observe
		report.Epoch = float64(drawn) / float64(perEpoch)
		if err := m.cache.tell(observe); err != nil {
			return ended(err)
		}
		if err := observe(report); err != nil {
			return ended(err)
		}
		if !plan.due(state.Step, steps, drawn, perEpoch) {
			continue
		}
		if err := m.fitAll(ctx, data, plan); err != nil {
			return fmt.Errorf("fitting heads after step %d: %w", state.Step, err)
		}
		scores, err := m.evaluateAll(ctx, data, plan)
		if err != nil {
			return fmt.Errorf("evaluation after step %d: %w", state.Step, err)
		}
		if err := m.cache.tell(observe); err != nil {
			return ended(err)
		}
		if err := observe(Evaluation{Step: state.Step, Epoch: report.Epoch, Groups: scores, Fusion: m.fusionFigures()}); err != nil {
			return ended(err)
		}
	}
	if plan.NeverEvaluate {
		return m.fitAll(ctx, data, plan)
	}
	return nil
}

func ended(err error) error {
	if errors.Is(err, ErrStop) {
		return nil
	}
	return err
}

// due tells whether dev is judged after a step: at the ends of epochs or each EvaluateEvery steps, and after the last.
func (plan Plan) due(step, steps, drawn, perEpoch int) bool {
	switch {
	case plan.NeverEvaluate:
		return false
	case step == steps:
		return true
	case plan.EvaluateEvery > 0:
		return step%plan.EvaluateEvery == 0
	}
	return drawn/perEpoch > (drawn-min(plan.Accumulate, drawn))/perEpoch
}

// schedule is the share of the highest rate that each of so many steps takes.
func (plan Plan) schedule(steps int) nn.Schedule {
	warmup := plan.WarmupSteps
	if warmup == 0 && plan.WarmupRatio > 0 {
		warmup = max(1, int(plan.WarmupRatio*float64(steps)))
	}
	if steps == 1 && warmup <= 1 { // the last step of a run has the rate 0: one that is first too would learn nothing
		return nn.Schedule{Warmup: 1, Steps: 2}
	}
	return nn.Schedule{Warmup: warmup, Steps: steps}
}
