// Package train trains a multitask.Model: a Plan says how, a Training makes one step after the other, and a Snapshot
// has all that another Training needs to go on. It reads and writes no files.
package train

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jenga-nlp/jenga/encoders"
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
	model    multitask.Cached // as steps read it
	whole    *multitask.Model // as evaluations do
	frozen   bool             // the encoder learns nothing
	data     []multitask.Data // of model
	own      []multitask.Data // of whole
	plan     Plan
	length   length
	schedule nn.Schedule
	pass     *nn.Pass

	host     *nn.HostStore // of the parameters in the model's tree
	stores   []nn.Store    // host, and that of an encoder with a memory of its own
	learned  *learned      // of the weighting; nil: it has no parameters
	shards   shards        // of this process
	numbers  numbers       // of examples, which decide about shards where states are kept
	exchange *exchange     // of gradients, with other ranks; nil: there is one process
	balance  *balance      // of the heads' gradients; nil: not measured
	guard    *guard
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
	whole, own := m, data
	m, data = plan.reads(m, data)
	t := &Training{
		model: multitask.Cached{Model: m, Ranks: plan.Ranks}, frozen: m.Frozen(), data: data, plan: plan,
		whole: whole, own: own, pass: nn.NewPass(plan.Seed),
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
	frozen, err := frozenParams(m)
	if err != nil {
		return nil, err
	}
	if t.frozenSum, err = sumFrozen(frozen); err != nil {
		return nil, err
	}
	if t.built, err = fittedOf(m).sums(); err != nil {
		return nil, err
	}
	t.balance, t.guard = newBalance(m, t.frozen), newGuard(m.HeadNames(), plan.LossLimit, plan.SkipBadSteps)
	if err := t.makeStores(); err != nil {
		return nil, err
	}

	t.model.Mode.Recompute, t.model.Mode.TF32 = plan.Recompute, plan.TF32 && !t.frozen
	if plan.BFloat16 && !t.frozen { // heads on frozen states learn from the states that they predict from
		t.model.Mode.Precision = nn.BFloat16
	}
	if data != nil {
		size, bytes := m.Largest(plan.firstSizes(m, t.iterators),
			encoders.Workload{Training: true, Recompute: plan.Recompute})
		t.pass.Reserve(multitask.Reserve(bytes))
		if err := t.reserve(size.Tokens); err != nil {
			return nil, fmt.Errorf("a batch of %d tokens: %w", size.Tokens, err)
		}
		if t.frozen {
			t.model.Cache = multitask.NewCache(m.Encoder, plan.CacheMemory/4, plan.CacheFile)
			if t.shards.all > 1 {
				t.numbers = numbersOf(data)
			}
		}
	}
	return t, nil
}

// reserve allocates the memory of batches in that of an encoder that has one of its own.
func (t *Training) reserve(tokens int) error {
	resident := t.model.Encoder.Describe().Resident
	if resident == nil || resident.Reserve == nil || t.frozen {
		return nil
	}
	mode := t.model.Mode
	mode.Layers = t.model.Fusion.Describe().Layers
	return resident.Reserve(tokens, mode)
}

func (t *Training) shuffle() (err error) {
	if err := checkStreams(t.whole, t.own); err != nil {
		return err
	}
	if t.iterators, err = newBatchIterators(t.model.Model, t.data, t.plan); err != nil {
		return err
	}
	for _, it := range t.iterators {
		t.state.Examples = append(t.state.Examples, len(it.lengths))
	}
	t.state.Batches = counts(t.iterators)
	n, err := t.plan.length(t.state.Batches)
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

// makeStores allocates gradients and the stores of the optimizer's state.
func (t *Training) makeStores() error {
	if err := t.plan.CheckWeighting(t.model.Model); err != nil {
		return err
	}
	tasks := 0
	if t.plan.Weighting.Combine != nil {
		tasks = len(t.model.TaskNames())
	}
	t.host = nn.NewHostStore(t.model.Params.All(), t.plan.Optimizer.New(t.plan.WeightDecay))
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
	if t.plan.Ranks != nil {
		t.exchange, err = newExchange(t.plan, t.model.Model, t.host, tasks)
	}
	return err
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
	if !t.plan.Optimizer.Equal(updates.Default().Part) {
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

// Event is what a training reports: a Step, an Evaluation or a Warning; who runs it may have others.
type Event interface {
	// Event returns the name of the event in lines of JSON.
	Event() string
}

// Event returns "skipped" for a step without an update.
func (s Step) Event() string {
	if s.Bad != nil {
		return "skipped"
	}
	return "step"
}

// Event returns "eval".
func (Evaluation) Event() string { return "eval" }

// Event returns "warning".
func (Warning) Event() string { return "warning" }

// ErrStop is what observe returns to end training early.
var ErrStop = errors.New("stop")

// Complete makes all remaining steps and evaluations. It reports each Step, Evaluation and Warning to observe, which
// may read the model and end training by an error: ErrStop ends it without an error. A cancelled context ends it too.
func (t *Training) Complete(ctx context.Context, observe func(Event) error) error {
	for !t.Done() {
		var event Event
		var err error
		if t.Due() {
			event, err = t.Evaluate(ctx)
		} else {
			event, err = t.Step(ctx)
		}
		if err != nil {
			return err
		}
		if err := t.report(observe, event); err != nil {
			return ended(err)
		}
	}
	if err := t.Finish(ctx); err != nil {
		return err
	}
	return ended(t.report(observe))
}

func ended(err error) error {
	if errors.Is(err, ErrStop) {
		return nil
	}
	return err
}

// report passes warnings to observe, and then events.
func (t *Training) report(observe func(Event) error, events ...Event) error {
	for _, warning := range t.Warnings() {
		if err := observe(warning); err != nil {
			return err
		}
	}
	for _, event := range events {
		if err := observe(event); err != nil {
			return err
		}
	}
	return nil
}

// Done reports whether only Finish remains to be called.
func (t *Training) Done() bool { return t.state.Step == t.length.Steps && !t.Due() }

// Steps returns the number of steps that the training has.
func (t *Training) Steps() int { return t.length.Steps }

// NextRate returns the learning rate of the next step, before factors for single parameters.
func (t *Training) NextRate() float64 { return t.rate(t.state.Step + 1) }

// rate returns the learning rate of a step, that of the schedule or that which the optimizer computes.
func (t *Training) rate(step int) float64 {
	if computed := t.plan.Optimizer.ComputedRate(); computed != nil {
		return computed(step)
	}
	return t.plan.Rate * t.schedule.Rate(step)
}

// Due reports whether an evaluation comes next.
func (t *Training) Due() bool {
	return t.data != nil && t.evaluated != t.state.Step && t.plan.due(t.state.Step, t.used, t.length)
}

// Step updates the model once, by the next batches.
func (t *Training) Step(ctx context.Context) (Step, error) {
	t.needsData("Step")
	if err := ctx.Err(); err != nil {
		return Step{}, err
	}
	if t.unfreezing != nil {
		t.unfreezing.Apply(float64(t.used) / float64(t.length.PerEpoch))
	}
	batches, err := t.next()
	if err != nil {
		return Step{}, err
	}
	return t.Update(batches)
}

// needsData panics if the caller chooses the batches.
func (t *Training) needsData(method string) {
	if t.data == nil {
		panic("train: " + method + " of a training without data; call Update")
	}
}

// Update updates the model once, by at least one batch that the caller chooses. Where several processes train, all call
// it with the same batches: each runs its part of them.
func (t *Training) Update(batches []Batch) (Step, error) {
	switch {
	case t.state.Step == t.length.Steps:
		panic(fmt.Sprintf("train: step %d of %d", t.state.Step+1, t.length.Steps))
	case len(batches) == 0:
		panic("train: an update without batches")
	}
	start := time.Now()
	if t.exchange != nil {
		t.exchange.measure()
	}
	t.host.UseAverage(false)
	if taught := t.plan.Taught; taught != nil {
		taught.Progress(float64(t.state.Step) / float64(t.length.Steps))
	}
	report, err := t.compute(batches)
	for _, b := range batches {
		multitask.Forget(b.Examples)
	}
	if err != nil {
		return report, fmt.Errorf("step %d: %w", t.state.Step+1, err)
	}
	if t.exchange != nil {
		report.Exchange = t.exchange.report()
	}
	report.Time = time.Since(start)
	t.state.Step++
	t.state.Last = batches[len(batches)-1].Group
	report.Epoch, report.Sampling = t.epoch(), t.probabilities
	return report, nil
}

func (t *Training) epoch() float64 {
	if t.length.PerEpoch == 0 {
		return 0
	}
	epoch := float64(t.used) / float64(t.length.PerEpoch)
	if t.plan.MaxSteps == 0 {
		epoch = min(epoch, float64(t.plan.Epochs)) // the last batches of several groups may be a few more
	}
	return epoch
}

// UseAverage makes the model's parameters hold their running means, if the plan has an Average, until the next update.
// A Snapshot has their own values too.
func (t *Training) UseAverage() { t.host.UseAverage(true) }

// Evaluation is the metrics of the model on dev.
type Evaluation struct {
	Step   int
	Epoch  float64
	Groups []multitask.GroupMetrics
	Fusion map[string][]float32 // figures of the fusion by task, nil where it has none
	// Weighted is the weighted mean of tasks' main metrics by which the caller selects the best model; nil
	// where it has no weights, and when Complete reports the evaluation.
	Weighted *float64 `json:"-"`
}

// Evaluate fits the heads that have a Fitter in Describe, tunes those with a Tuner, and evaluates all groups on dev.
// With the plan's Average the model has the running means of its parameters then, and until the next update.
func (t *Training) Evaluate(ctx context.Context) (Evaluation, error) {
	t.needsData("Evaluate")
	t.UseAverage()
	step := t.state.Step
	if err := t.fit(ctx); err != nil {
		return Evaluation{}, fmt.Errorf("fitting heads after step %d: %w", step, err)
	}
	var groups []multitask.GroupMetrics
	judged := t.judged()
	for g := range judged.Groups {
		metrics, err := judged.TuneAndEvaluate(ctx, &judged.Groups[g], t.own[g].Dev, t.plan.BatchSize,
			t.plan.BatchTokens)
		if err != nil {
			return Evaluation{}, fmt.Errorf("evaluation after step %d: %w", step, err)
		}
		groups = append(groups, metrics)
	}
	t.evaluated = step
	evaluation := Evaluation{Step: step, Epoch: t.epoch(), Groups: groups, Fusion: t.model.FusionFigures()}
	if observe := t.plan.Sampler.ObserveEvaluation; observe != nil {
		observe(groups)
	}
	return evaluation, nil
}

// judged returns the model as evaluations read it.
func (t *Training) judged() multitask.Cached {
	m := t.model
	m.Model = t.whole
	return m
}

func (t *Training) fit(ctx context.Context) error {
	judged := t.judged()
	for g := range judged.Groups {
		err := judged.FitHeads(ctx, &judged.Groups[g], t.own[g].Train, t.plan.BatchSize, t.plan.BatchTokens)
		if err != nil {
			return err
		}
	}
	return nil
}

// Finish fits the heads that have a Fitter in Describe if no evaluation has done so. With the plan's Average the model
// has the running means of its parameters.
func (t *Training) Finish(ctx context.Context) error {
	t.UseAverage()
	if !t.plan.NeverEvaluate || t.data == nil {
		return nil
	}
	return t.fit(ctx)
}

// Close frees what is outside Go's memory: the file of a frozen encoder's states, messages of other ranks, and stores
// that are io.Closers. The results of the training are elsewhere, so that a failure has no consequence.
func (t *Training) Close() {
	if t.model.Cache != nil {
		t.model.Cache.Close()
	}
	if t.exchange != nil {
		t.exchange.close()
	}
	for _, store := range t.stores {
		if c, ok := store.(io.Closer); ok {
			c.Close()
		}
	}
}

// Warnings returns the warnings since the last call. Complete reports them itself.
func (t *Training) Warnings() []Warning { return t.warnings(t.length.Steps) }

// FinalWarnings returns the warnings since the last call of a training that does not go on: those too that would need
// more steps, by the steps that there were.
func (t *Training) FinalWarnings() []Warning { return t.warnings(t.state.Step) }

// warnings returns the warnings since the last call of a training of so many steps.
func (t *Training) warnings(steps int) []Warning {
	all := t.pending
	t.pending = nil
	if cache := t.model.Cache; cache != nil {
		if err := cache.Failure(); err != nil { // the file of a frozen encoder's states was given up
			all = append(all, Warning{err.Error()})
		}
	}
	if t.balance != nil {
		all = append(all, t.balance.warnings(t.state.Step, steps)...)
	}
	return all
}

// FrozenParams is the proof that a training has left the encoder's frozen parameters as they were.
type FrozenParams struct {
	Values        int    // their number
	Before, After string // CRC-32C of their values before and after training, in hexadecimal
}

// CheckFrozen returns the checksums of the encoder's frozen parameters before training and now, or an error if they
// differ.
func (t *Training) CheckFrozen() (FrozenParams, error) {
	proof := FrozenParams{Before: t.frozenSum}
	frozen, err := frozenParams(t.model.Model)
	if err != nil {
		return proof, err
	}
	for _, w := range frozen {
		proof.Values += len(w.Data)
	}
	if proof.After, err = sumFrozen(frozen); err != nil {
		return proof, err
	}
	if proof.After != proof.Before {
		return proof, fmt.Errorf("the encoder's frozen parameters have changed in training: their CRC-32C was %s, it "+
			"is %s", proof.Before, proof.After)
	}
	return proof, nil
}

// frozenParams returns the encoder's parameters that do not learn, which no snapshot holds; those of an encoder with a
// memory of its own are copies.
func frozenParams(m *multitask.Model) ([]*nn.Param, error) {
	if resident := m.Encoder.Describe().Resident; resident != nil {
		if resident.Frozen == nil {
			return nil, nil
		}
		return resident.Frozen()
	}
	learns := func(w *nn.Param) bool { return !w.Frozen }
	return slices.DeleteFunc(slices.Clone(multitask.EncoderParams(m.Params).All()), learns), nil
}

func sumFrozen(frozen []*nn.Param) (sum string, err error) {
	if sum, err = snapshots.Sum(frozen); err != nil {
		err = fmt.Errorf("the encoder's frozen parameters can no longer be read: %w", err)
	}
	return sum, err
}
