package multitask

import (
	"fmt"
	"math"

	"github.com/jenga-nlp/jenga/internal/collective"
	"github.com/jenga-nlp/jenga/nn"
)

// Plan holds the options of a training.
type Plan struct {
	Seed        uint64
	Epochs      int
	MaxSteps    int  // number of updates, overrides Epochs; 0: by epochs
	BatchSize   int  // texts
	BatchTokens int  // tokens a batch may hold; 0: any number
	Accumulate  int  // batches per update, of each group that the sampler names at once
	Recompute   bool // the encoder keeps few activations and computes the others again: less memory, more time
	// BFloat16 makes an encoder that learns multiply by its weights in bfloat16 while it is trained. Evaluation is in
	// float32, as prediction is.
	BFloat16 bool

	Rate        float64 // the highest learning rate
	WeightDecay float64 // of the parameters that decay
	WarmupRatio float64 // fraction of all steps in which the rate rises
	WarmupSteps int     // number of these steps; overrides WarmupRatio
	ClipNorm    float64 // gradients are clipped to this norm; 0: never
	LayerDecay  float64 // factor of the rate of each layer of the encoder to that of the layer above; 0: 1
	HeadRate    float64 // the highest learning rate outside the encoder; 0: Rate
	// LossLimit is the multiple of a head's usual loss above which its loss in a step explodes, which is as bad as one
	// that is not finite; 0: none. The update of a step with a bad loss is left out with SkipBadSteps, and ends the
	// training by a *BadStep without.
	LossLimit    float64
	SkipBadSteps bool
	// UnfreezeEvery is the number of epochs after which each layer of the encoder begins to learn, from the last one
	// down, the embeddings as the lowest; before, fusion and heads learn alone. 0: all learn from the start.
	UnfreezeEvery float64

	Average   float64   // decay rate of running means of the parameters, which are evaluated and kept; 0: none
	Optimizer Optimizer // nil: AdamW
	Curve     nn.Curve  // of the learning rate after the warmup; nil: linear, to 0

	Sampler   Sampler
	Weighting Weighting

	// Ranks are the processes that train one model together, each with its shards of each batch; nil: there is one.
	Ranks *collective.Group
	// Shards is the number of shards of each batch, a power of two and at least the number of ranks. The bytes of a
	// training depend on it, but not on the number of ranks. 0: as many as ranks.
	Shards int
	// RoundGradients rounds the gradients of each shard, and the sum of each two, to bfloat16, of which ranks send half
	// the bytes.
	RoundGradients bool
	// NativeSums makes the ranks' own library sum gradients, in its own order: bytes depend on the number of ranks.
	NativeSums bool

	EvaluateEvery int  // steps; 0: at the end of each epoch
	NeverEvaluate bool // no evaluation at all

	CacheMemory int64 // bytes of a frozen encoder's states that are kept in memory, so that each text is encoded once
	// CacheFile opens an empty file for states that exceed CacheMemory; Close closes it. If it or a write fails,
	// training continues without the file. nil: states that exceed CacheMemory are computed each time.
	CacheFile func() (CacheFile, error)
}

// length is the length of a training, in batches and updates. Snapshots have it in JSON.
type length struct {
	PerEpoch int // batches of all groups
	Groups   int // batches that the sampler names at once
	Rounds   int // times that the sampler is called for an update
	Batches  int // of all updates
	Steps    int // updates
}

// length returns the length of the training where the examples of all groups make perEpoch batches.
func (plan Plan) length(perEpoch int) (length, error) {
	n := length{PerEpoch: perEpoch, Groups: 1}
	if s, ok := plan.Sampler.(MultiSampler); ok {
		n.Groups = s.Groups()
	}

	// by epochs
	if plan.MaxSteps == 0 {
		if plan.Epochs > math.MaxInt/perEpoch {
			return n, fmt.Errorf("training.num_epochs: %d epochs of %d batches overflow an integer; want fewer epochs",
				plan.Epochs, perEpoch)
		}
		n.Batches = perEpoch * plan.Epochs
		n.Rounds = min(plan.Accumulate, divideUp(n.Batches, n.Groups))
		n.Steps = n.stepsFor(n.Batches)
		return n, nil
	}

	// by updates, none of which takes more than all epochs have
	n.Steps = plan.MaxSteps
	n.Rounds = min(plan.Accumulate, divideUp(perEpoch*min(plan.Epochs, math.MaxInt/perEpoch), n.Groups))
	if n.Rounds > math.MaxInt/n.Steps/n.Groups {
		return n, fmt.Errorf("training.max_steps: %d updates of %d batches overflow an integer; want fewer updates",
			n.Steps, n.Rounds)
	}
	n.Batches = n.Steps * n.Rounds * n.Groups
	return n, nil
}

// stepsFor returns the number of updates that read so many batches.
func (n length) stepsFor(batches int) int {
	if batches <= 0 {
		return 0
	}
	return divideUp(divideUp(batches, n.Groups), n.Rounds)
}

// Length returns the numbers of updates and evaluations of a training in which the examples of all groups make perEpoch
// batches.
func (plan Plan) Length(perEpoch int) (steps, evaluations int, err error) {
	n, err := plan.length(perEpoch)
	if err != nil {
		return 0, 0, err
	}
	return n.Steps, plan.evaluations(n), nil
}

// evaluations returns the number of steps after which dev is due.
func (plan Plan) evaluations(n length) int {
	perStep := n.Rounds * n.Groups // batches
	switch {
	case plan.NeverEvaluate:
		return 0
	case plan.EvaluateEvery > 0:
		return divideUp(n.Steps, plan.EvaluateEvery)
	case perStep >= n.PerEpoch: // an epoch ends in each step
		return n.Steps
	}
	return (n.Steps-1)*perStep/n.PerEpoch + 1 // and after the last step
}

// divideUp returns a/b, rounded up, for positive a and b.
func divideUp(a, b int) int { return 1 + (a-1)/b }

// due reports whether dev is evaluated after a step, when used batches have been used: at the end of each epoch or
// every EvaluateEvery steps, and after the last.
func (plan Plan) due(step, used int, n length) bool {
	switch {
	case plan.NeverEvaluate || step == 0:
		return false
	case step == n.Steps:
		return true
	case plan.EvaluateEvery > 0:
		return step%plan.EvaluateEvery == 0
	}
	before := 0
	if n.Rounds <= used/n.Groups {
		before = used - n.Rounds*n.Groups
	}
	return used/n.PerEpoch > before/n.PerEpoch
}

// schedule returns the schedule of the learning rate for so many steps.
func (plan Plan) schedule(steps int) nn.Schedule {
	warmup := plan.WarmupSteps
	if warmup == 0 && plan.WarmupRatio > 0 {
		warmup = max(1, int(plan.WarmupRatio*float64(steps)))
	}
	curve := plan.Curve
	if curve == nil {
		curve = nn.LinearCurve{}
	}
	if steps == 1 && warmup <= 1 { // the last step of a run has rate 0: a run of one step would learn nothing
		return nn.Schedule{Warmup: 1, Steps: 2, Curve: curve}
	}
	return nn.Schedule{Warmup: warmup, Steps: steps, Curve: curve}
}
