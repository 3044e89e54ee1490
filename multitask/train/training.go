// Package train trains a multitask.Model: a Plan says how, a Training makes one step after the other, and a Snapshot
// has all that another Training needs to go on. It reads and writes no files.
package train

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/internal/collective"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/samplers"
	"github.com/jenga-nlp/jenga/multitask/snapshots"
	"github.com/jenga-nlp/jenga/multitask/updates"
	"github.com/jenga-nlp/jenga/nn"
)

// Training trains a model on data, update by update:
//
//	for !t.Done() {
//		if t.Due() {
//			evaluation, err := t.Evaluate(ctx)
//		} else {
//			step, err := t.Step(ctx)
//		}
//	}
//	err := t.Finish(ctx)
//
// Between any two of these calls a Snapshot may be taken: a training that Restores it continues with the same bytes.
type Training struct {
	model    multitask.Cached
	frozen   bool // the encoder learns nothing
	data     []multitask.Data
	plan     Plan
	length   length
	schedule nn.Schedule
	pass     *nn.Pass

	host     *nn.HostStore // of the parameters in the model's tree
	stores   []nn.Store    // host, and that of an encoder with a memory of its own
	learned  *learned      // of the weighting
	shards   shards        // of this process
	numbers  numbers       // of examples, which decide about shards where states are kept
	outside  []*nn.Param   // those of host outside the encoder
	exchange *exchange     // of gradients, with other ranks
	balance  *balance      // of the heads' gradients
	guard    *updates.Guard
	pending  []Warning // about the plan, not returned yet

	unfreezing *updates.Unfreezing // nil: all layers learn from the start
	frozenSum  string              // checksum of the encoder's frozen parameters
	built      map[string]string   // checksums of the fitted parameters before training

	probabilities []samplers.Probability // of the last step's first group; nil: one group, or a sampler without

	fingerprint []snapshots.Setting // what the bytes depend on besides the state; nil: not computed yet

	// A snapshot holds the fields below.
	state     multitask.State
	used      int    // batches
	serial    uint64 // of the pass: number of batches so far
	evaluated int    // the step of the last evaluation
	iterators []*batchIterator
	sampling  *rand.PCG // the sampler's stream
	weighing  *rand.PCG // the weighting's
}

// New returns a training of m on data, data[g] for group g. Without data the caller chooses the batches and calls
// Update, plan.MaxSteps times, in place of Step; the plan's batches, sampler and evaluations have no effect.
func New(m *multitask.Model, data []multitask.Data, plan Plan) (*Training, error) {
	plan.Optimizer = plan.optimizer()
	if plan.Ranks == nil {
		plan.Ranks = collective.Alone()
	}
	t := &Training{
		model: multitask.Cached{Model: m, Ranks: plan.Ranks}, frozen: m.Frozen(), data: data, plan: plan,
		pass:    nn.NewPass(plan.Seed),
		learned: newLearned(plan.Weighting.Learned), state: multitask.State{Last: -1}, shards: plan.shards(),
		sampling: rand.NewPCG(plan.Seed, streamSampler), weighing: rand.NewPCG(plan.Seed, streamWeighting),
	}
	if data == nil {
		if plan.MaxSteps < 1 {
			panic("train: a training without data needs plan.MaxSteps")
		}
		t.length.Steps = plan.MaxSteps
		t.schedule = plan.schedule(plan.MaxSteps)
	} else if err := t.shuffle(); err != nil {
		return nil, err
	}
	t.pending = plan.warnings(t.length.Steps)
	if err := t.startUnfreezing(); err != nil {
		return nil, err
	}
	var err error
	if t.frozenSum, err = sumFrozen(m); err != nil {
		return nil, err
	}
	if t.built, err = fittedOf(m).sums(); err != nil {
		return nil, err
	}
	t.balance, t.guard = newBalance(m, t.frozen), updates.NewGuard(m.HeadNames(), plan.LossLimit, plan.SkipBadSteps)
	if err := t.makeStores(); err != nil {
		return nil, err
	}

	t.model.Mode.Recompute = plan.Recompute
	if plan.BFloat16 && !t.frozen { // heads on frozen states learn from the states that they predict from
		t.model.Mode.Precision = nn.BFloat16
	}
	if data != nil {
		_, bytes := m.Largest(plan.firstSizes(m, t.iterators),
			encoders.Workload{Training: true, Recompute: plan.Recompute})
		t.pass.Reserve(multitask.Reserve(bytes))
		if t.frozen {
			t.model.Cache = multitask.NewCache(m, plan.CacheMemory/4, plan.CacheFile)
			if t.shards.all > 1 {
				t.numbers = numbersOf(data)
			}
		}
	}
	return t, nil
}

func (t *Training) shuffle() (err error) {
	if err := checkStreams(t.model.Model, t.data); err != nil {
		return err
	}
	if t.iterators, err = newBatchIterators(t.model.Model, t.data, t.plan); err != nil {
		return err
	}
	for _, it := range t.iterators {
		t.state.Examples = append(t.state.Examples, len(it.lengths))
		t.state.Batches = append(t.state.Batches, it.count())
	}
	perEpoch := t.plan.perEpoch(t.state.Batches)
	n, err := t.plan.length(perEpoch)
	if err != nil {
		return err
	}
	t.setLength(n)
	return nil
}

func (t *Training) setLength(n length) {
	t.length = n
	t.state.Steps, t.state.Epochs = n.Steps, divideUp(n.Batches, n.PerEpoch)
	t.schedule = t.plan.schedule(n.Steps)
}

// makeStores allocates gradients and the stores of the optimizer's state.
func (t *Training) makeStores() error {
	if err := t.plan.CheckWeighting(t.model.Model); err != nil {
		return err
	}
	tasks := 0
	if t.plan.Weighting.Combine != nil {
		tasks = len(t.model.TaskNames())
	}
	t.host = nn.NewHostStore(t.model.Params.All(), t.plan.optimizer().New(t.plan.WeightDecay))
	if tasks > 0 {
		t.host.SeparateTasks(tasks, t.model.SharedParams())
	}
	if t.shards.own > 1 {
		t.host.SeparateShards(t.shards.own)
	}
	if t.plan.RoundGradients {
		t.host.RoundGradients()
	}
	rates, err := t.plan.rates(t.model.Model)
	if err != nil {
		return err
	}
	t.host.SetRates(rates)
	if t.plan.Average > 0 {
		t.host.Average(t.plan.Average)
	}
	t.stores = []nn.Store{t.host}

	if err := t.makeResidentStore(tasks); err != nil {
		return err
	}
	return t.makeExchange(tasks)
}

// makeResidentStore makes the store of an encoder with a memory of its own that learns, with the gradients of so many
// tasks.
func (t *Training) makeResidentStore(tasks int) error {
	resident := t.model.Encoder.Describe().Resident
	if resident == nil || t.frozen {
		return nil
	}
	if t.shards.all > 1 {
		return errors.New("gradients of an encoder with a memory of its own are not summed over shards")
	}
	if !t.plan.optimizer().Equal(updates.Default().Part) {
		return fmt.Errorf("an encoder with a memory of its own is updated by %v alone", updates.Default().Part)
	}
	if t.plan.RoundGradients {
		return errors.New("gradients of an encoder with a memory of its own are not rounded to bfloat16")
	}
	if t.plan.Average > 0 {
		return errors.New("an encoder with a memory of its own has no running means of its parameters")
	}
	store := resident.Store(t.plan.WeightDecay, tasks)
	if _, ok := store.(nn.TaskStore); tasks > 0 && !ok {
		return errors.New("the encoder does not keep gradients by task, which the weighting combines")
	}
	t.stores = append(t.stores, store)
	return nil
}

// makeExchange makes what the ranks exchange, with the gradients of so many tasks.
func (t *Training) makeExchange(tasks int) (err error) {
	if t.plan.RoundGradients {
		t.plan.Ranks.RoundSums()
	}
	outside, encoder := reducing(t.model.Model, t.host)
	t.outside = outside
	order := slices.Concat(outside, encoder)
	var shared []*nn.Param
	if tasks > 0 { // those of shared parameters are summed task by task
		shared = t.host.Shared()
		order = slices.DeleteFunc(order, func(w *nn.Param) bool { return slices.Contains(shared, w) })
	}
	if t.exchange, err = newExchange(t.plan, t.host, order); err != nil {
		return err
	}
	t.exchange.shared, t.exchange.tasks = bucketsOf(shared), tasks
	return nil
}

func (t *Training) startUnfreezing() (err error) {
	if t.unfreezing, err = updates.NewUnfreezing(t.model.Model, t.plan.UnfreezeEvery); err != nil {
		return err
	}
	if t.unfreezing != nil && t.data == nil {
		return errors.New("layers are unfrozen by epochs of data, of which there is none")
	}
	t.pending = append(t.pending, unfreezingWarnings(t.unfreezing, t.length)...)
	return nil
}
