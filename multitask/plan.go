package multitask

import (
	"fmt"
	"math"

	"github.com/jenga-nlp/jenga/nn"
)

// Plan is how to train.
type Plan struct {
	Seed        uint64
	Epochs      int
	MaxSteps    int  // updates, after which training ends whatever Epochs says; 0: by epochs
	BatchSize   int  // texts
	BatchTokens int  // tokens a batch may hold; 0: any number
	Accumulate  int  // batches that make one update, of each group that the sampler names at once
	Recompute   bool // the encoder keeps little of a batch and computes the rest again: less memory, more time
	// BFloat16 makes an encoder that learns multiply by its weights in bfloat16 while it is trained. It is evaluated in
	// float32, as it will predict.
	BFloat16 bool

	Rate        float64 // of learning, at its highest
	WeightDecay float64 // of the parameters that decay
	WarmupRatio float64 // share of all steps in which the rate rises
	WarmupSteps int     // their number; overrules WarmupRatio
	ClipNorm    float64 // the gradient's norm is cut to it; 0: never

	Sampler   Sampler
	Weighting Weighting
	Reducer   nn.Reducer // sums over the processes that train together; nil: there is one

	EvaluateEvery int  // steps; 0: at the end of each epoch
	NeverEvaluate bool // not at all

	CacheMemory int64 // bytes of a frozen encoder's states that memory keeps, so that each text is encoded once
	// CacheFile opens an empty file for what is beyond CacheMemory; Close closes it. If it fails, or a write does,
	// training goes on without. nil: what is beyond is encoded each time.
	CacheFile func() (CacheFile, error)
}

// length is how long a plan trains.
type length struct {
	perEpoch int // batches of all groups
	groups   int // batches that the sampler names at once
	rounds   int // times that the sampler is called for an update
	batches  int // of all updates
	steps    int // updates
}

// length returns how long the plan trains where all groups' examples make so many batches.
func (plan Plan) length(perEpoch int) (length, error) {
	n := length{perEpoch: perEpoch, groups: 1}
	if s, ok := plan.Sampler.(MultiSampler); ok {
		n.groups = s.Groups()
	}

	// by epochs
	if plan.MaxSteps == 0 {
		if plan.Epochs > math.MaxInt/perEpoch {
			return n, fmt.Errorf("training.num_epochs: %d epochs of %d batches are more than can be counted",
				plan.Epochs, perEpoch)
		}
		n.batches = perEpoch * plan.Epochs
		rounds := divideUp(n.batches, n.groups)
		n.rounds = min(plan.Accumulate, rounds)
		n.steps = divideUp(rounds, n.rounds)
		return n, nil
	}

	// by updates, none of which takes more than all epochs have
	n.steps = plan.MaxSteps
	n.rounds = min(plan.Accumulate, divideUp(perEpoch*min(plan.Epochs, math.MaxInt/perEpoch), n.groups))
	if n.rounds > math.MaxInt/n.steps/n.groups {
		return n, fmt.Errorf("training.max_steps: %d updates of %d batches are more than can be counted",
			n.steps, n.rounds)
	}
	n.batches = n.steps * n.rounds * n.groups
	return n, nil
}

// divideUp is a/b, rounded up, of numbers above 0.
func divideUp(a, b int) int { return 1 + (a-1)/b }

// due tells whether dev is judged after a step, when so many batches are used up: at the ends of epochs or each
// EvaluateEvery steps, and after the last.
func (plan Plan) due(step, used int, n length) bool {
	switch {
	case plan.NeverEvaluate || step == 0:
		return false
	case step == n.steps:
		return true
	case plan.EvaluateEvery > 0:
		return step%plan.EvaluateEvery == 0
	}
	before := 0
	if n.rounds <= used/n.groups {
		before = used - n.rounds*n.groups
	}
	return used/n.perEpoch > before/n.perEpoch
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
