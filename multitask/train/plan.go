package train

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/jenga-nlp/jenga/internal/collective"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/samplers"
	"github.com/jenga-nlp/jenga/multitask/updates"
	"github.com/jenga-nlp/jenga/multitask/weightings"
	"github.com/jenga-nlp/jenga/nn"
)

// Plan is how a model is trained. Where Options have no layer decay, it is 1; where they have no shards, each of Ranks
// has one.
type Plan struct {
	multitask.Options
	Seed uint64
	// UnfreezeEvery is the number of epochs after which each layer of the encoder begins to learn, from the last one
	// down, the embeddings as the lowest; before, fusion and heads learn alone. 0: all learn from the start.
	UnfreezeEvery float64

	Optimizer updates.Optimizer // without a Rule: updates.Default
	Schedule  updates.Schedule  // of the learning rate after the warmup
	Sampler   samplers.Sampler
	Weighting weightings.Weighting
	// Taught is what steps read where tasks have teachers, in place of the model's groups and their data; nil: none
	// has.
	Taught *multitask.Taught

	// Ranks are the processes that train one model together, each with its shards of each batch; nil: there is one.
	Ranks *collective.Group

	EvaluateEvery int  // steps; 0: at the end of each epoch
	NeverEvaluate bool // no evaluation at all

	CacheMemory int64 // bytes of a frozen encoder's states that are kept in memory, so that each text is encoded once
	// CacheFile opens an empty file for states that exceed CacheMemory; Close closes it. If it or a write fails,
	// training continues without the file. nil: states that exceed CacheMemory are computed each time.
	CacheFile func() (multitask.CacheFile, error)
}

// Numbers of the random streams of the plan's seed, besides the pass's.
const (
	streamSampler   = 1
	streamWeighting = 2
	streamBatches   = 1 << 32 // plus the group's number
)

// length is the length of a training, in batches and updates. Snapshots have it in JSON.
type length struct {
	PerEpoch int // batches of all groups
	Groups   int // batches that the sampler names at once
	Rounds   int // times that the sampler is called for an update
	Batches  int // of all updates
	Steps    int // updates
}

// length returns the length of a training in which the examples of each group make so many batches an epoch.
func (plan Plan) length(batches []int) (length, error) {
	perEpoch := plan.perEpoch(batches)
	n := length{PerEpoch: perEpoch, Groups: plan.Sampler.AtOnce()}

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

func (n length) stepsFor(batches int) int {
	if batches <= 0 {
		return 0
	}
	return divideUp(divideUp(batches, n.Groups), n.Rounds)
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

// perEpoch returns the number of batches of an epoch in which the examples of each group make so many.
func (plan Plan) perEpoch(batches []int) int {
	if of := plan.Sampler.PerEpoch; of != nil {
		return of(batches)
	}
	n := 0
	for _, of := range batches {
		n += of
	}
	return n
}

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

// reads returns the model and the data as steps read them.
func (plan Plan) reads(m *multitask.Model, data []multitask.Data) (*multitask.Model, []multitask.Data) {
	if plan.Taught == nil {
		return m, data
	}
	return plan.Taught.Model(m), plan.Taught.Data
}

func (plan Plan) schedule(steps int) nn.Schedule {
	warmup := plan.WarmupSteps
	if warmup == 0 && plan.WarmupRatio > 0 {
		warmup = max(1, int(plan.WarmupRatio*float64(steps)))
	}
	if steps == 1 && warmup <= 1 { // the last step of a run has rate 0: a run of one step would learn nothing
		warmup, steps = 1, 2
	}
	return nn.Schedule{Warmup: warmup, Steps: steps, Curve: plan.Schedule.Curve}
}

// RangeTest returns the plan with a number of steps in which the rate grows exponentially from one to another, that of
// heads in proportion, and without what else changes rates, weights or losses over a run, or ends one that diverges.
// It has no teachers, who would have to be trained first.
func (plan Plan) RangeTest(from, to float64, steps int) Plan {
	plan.MaxSteps, plan.NeverEvaluate = steps, true
	plan.Rate, plan.HeadRate = to, plan.HeadRate/plan.Rate*to
	plan.Schedule.Curve, plan.WarmupSteps, plan.WarmupRatio = growth{from / to}, 0, 0
	plan.UnfreezeEvery, plan.Average, plan.Taught = 0, 0, nil
	plan.LossLimit, plan.SkipBadSteps = 0, false
	return plan
}

// growth is the curve of the rate of a range test, as a fraction of the last one.
type growth struct{ first float64 }

// At implements nn.Curve.
func (g growth) At(done, of int) float64 { return math.Pow(g.first, float64(of-done)/float64(of-1)) }

func (plan Plan) optimizer() updates.Optimizer {
	if plan.Optimizer.Rule == nil {
		return updates.Default()
	}
	return plan.Optimizer
}

// rates returns the factors of the learning rates of parameters whose rate is not the plan's.
func (plan Plan) rates(m *multitask.Model) (map[*nn.Param]float64, error) {
	outside := 1.0
	if plan.HeadRate != 0 {
		outside = plan.HeadRate / plan.Rate
	}
	return updates.RateFactors(m, outside, cmp.Or(plan.LayerDecay, 1))
}

// CheckWeighting returns an error if the plan's weighting cannot be used with the model.
func (plan Plan) CheckWeighting(m *multitask.Model) error {
	if plan.Weighting.Combine == nil || !m.Frozen() || slices.ContainsFunc(m.SharedParams(),
		(*nn.Param).Learns) {
		return nil
	}
	return fmt.Errorf("it combines the tasks' gradients of the parameters that they share, and none of those learns; "+
		"want a model.freeze that leaves some of the encoder to learn, or weighting: %s",
		weightings.Registry().Default())
}

// CheckLayerDecay returns an error if the plan's LayerDecay cannot be used with the model.
func (plan Plan) CheckLayerDecay(m *multitask.Model) error {
	_, err := plan.rates(m)
	return err
}

// CheckUnfreezing returns an error if the plan's UnfreezeEvery cannot be used with the model.
func (plan Plan) CheckUnfreezing(m *multitask.Model) error {
	_, err := updates.NewUnfreezing(m, plan.UnfreezeEvery)
	return err
}

// Warning is an event: a sentence about the run for its user.
type Warning struct{ Text string }

// digits returns how many decimals tell 1-1/n from 1.
func digits(n int) int { return int(math.Ceil(math.Log10(float64(n)))) }

// warnings returns warnings of rates that fit no training of so many steps.
func (plan Plan) warnings(steps int) []Warning {
	var all []Warning
	warmup := plan.schedule(steps).Warmup
	if warmup > steps && plan.optimizer().ComputedRate() == nil {
		all = append(all, Warning{fmt.Sprintf("training: warmup_steps: the learning rate rises over %d steps, the "+
			"training has %d: it reaches %.3g", warmup, steps, plan.Rate*plan.schedule(steps).Rate(steps))})
	}
	if span := math.Round(1 / (1 - plan.Average)); plan.Average > 0 && span > float64(steps) {
		all = append(all, Warning{fmt.Sprintf("training: ema: %v averages over about %.0f steps, the training has %d: "+
			"the model is mostly that of its start; want a smaller number, such as %.*f", plan.Average, span, steps,
			digits(steps), max(0, 1-10/float64(steps)))})
	}
	return all
}

func unfreezingWarnings(u *updates.Unfreezing, n length) []Warning {
	if u == nil {
		return nil
	}
	var all []Warning
	for _, text := range u.Warnings(float64(n.Batches-1) / float64(n.PerEpoch)) {
		all = append(all, Warning{text})
	}
	return all
}
