package multitask

import (
	"fmt"
	"math"

	"github.com/jenga-nlp/jenga/internal/collective"
	"github.com/jenga-nlp/jenga/nn"
)

// Options are the options of a training that are plain values: keys of the section training, with which docs/parts.md
// describes them by the fields' comments.
type Options struct {
	// peak learning rate, a factor of the optimizer's updates; it rises linearly to it in the warmup, and changes by
	// lr_scheduler then
	Rate float64 `yaml:"learning_rate" range:"(0,)"`
	// peak learning rate of heads and fusion
	HeadRate float64 `yaml:"head_learning_rate,omitempty" range:"(0,)" default:"(learning_rate)"`
	// factor of the learning rate of each layer of the encoder to that of the layer above it; the last layer has
	// learning_rate, the embeddings the smallest rate; 1: all have the same
	LayerDecay float64 `yaml:"layer_decay" range:"(0,1]"`
	// for weight matrices only: with AdamW and Adafactor the fraction, times the learning rate, by which an update
	// shrinks them; with SGD the multiple of them that is added to their gradient
	WeightDecay float64 `yaml:"weight_decay" range:"[0,)"`
	// most examples (texts or pairs, each with all its windows) in a batch
	BatchSize int `yaml:"batch_size" range:"[1,)"`
	// most tokens in a batch, all texts together; 0: no limit
	BatchTokens int `yaml:"batch_tokens" range:"[0,)"`
	// number of passes over the training data
	Epochs int `yaml:"num_epochs" range:"[1,)"`
	// number of updates to make, overrules num_epochs; 0: num_epochs
	MaxSteps int `yaml:"max_steps" range:"[0,)"`
	// number of updates until the peak; overrules warmup_ratio
	WarmupSteps int `yaml:"warmup_steps" range:"[0,)"`
	// fraction of all updates until the peak
	WarmupRatio float64 `yaml:"warmup_ratio" range:"[0,1]"`
	// decay rate of running means of the weights, which follow them by 1 minus it at each update; evaluations judge the
	// means and checkpoints hold them; 0: none
	Average float64 `yaml:"ema" range:"[0,1)"`
	// Euclidean norm of all gradients together above which they are scaled down to it, by max_grad_norm/(norm + 1e-6)
	// as in PyTorch; 0: no clipping
	ClipNorm float64 `yaml:"max_grad_norm" range:"[0,)"`
	// what becomes of a step whose loss or gradient is not finite, or whose loss explodes: an error ends the training,
	// with the task and the texts; or its update is left out with a warning, and 10 such steps in a row end the
	// training
	SkipBadSteps bool `yaml:"on_bad_loss" choice:"stop|skip"`
	// multiple of a head's usual loss above which its loss in a step explodes: of the median of its first 20 steps, or
	// of its running mean (decay rate 0.98) where that is larger; above 1, or 0: none explodes
	LossLimit float64 `yaml:"loss_limit" range:"[0,)"`

	// number of batches whose gradients are summed for one update
	Accumulate int `yaml:"gradient_accumulation_steps" range:"[1,)"`
	// number of parts of each batch, a power of two: each is a forward and a backward pass of its own. The processes of
	// a training that mpirun starts divide them; the model does not depend on the number of processes, but on that of
	// shards
	Shards int `yaml:"shards,omitempty" range:"[1,)" default:"(the number of processes)"`
	// type of the gradients that shards sum: bf16 rounds each shard's and each sum of two, of which processes send half
	// the bytes; moments and parameters stay float32
	RoundGradients bool `yaml:"gradient_dtype" choice:"float32|bf16"`
	// how processes sum gradients: in a tree, whose bits do not depend on their number, or by the MPI library (native),
	// whose order of addition is its own: faster on some networks, but not exact
	NativeSums bool `yaml:"all_reduce" choice:"tree|native"`

	// fraction of batches that are of the tasks that model.keep_tasks names, where the encoder learns: the probability
	// of each batch; 0: these tasks are not trained, and may get worse
	Rehearse float64 `yaml:"rehearse" range:"[0,1)"`

	// of encoder products in training; sums are float32
	BFloat16 bool `yaml:"precision" choice:"float32|bf16"`
	// whether activations are recomputed in the backward pass: less memory, more time
	Recompute bool `yaml:"recompute"`
}

// DefaultOptions are those of a file that names none.
var DefaultOptions = Options{
	Rate: 2e-5, LayerDecay: 1, WeightDecay: 0.01, BatchSize: 16, Epochs: 3, ClipNorm: 1, LossLimit: 1000, Accumulate: 1,
}

// Plan is how a model is trained. Where Options have no layer decay, it is 1; where they have no shards, each of Ranks
// has one.
type Plan struct {
	Options
	Seed uint64
	// UnfreezeEvery is the number of epochs after which each layer of the encoder begins to learn, from the last one
	// down, the embeddings as the lowest; before, fusion and heads learn alone. 0: all learn from the start.
	UnfreezeEvery float64

	Optimizer Optimizer // nil: AdamW
	Curve     nn.Curve  // of the learning rate after the warmup; nil: linear, to 0
	Sampler   Sampler
	Weighting Weighting

	// Ranks are the processes that train one model together, each with its shards of each batch; nil: there is one.
	Ranks *collective.Group

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
