package train

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/samplers"
	"github.com/jenga-nlp/jenga/multitask/weightings"
	"github.com/jenga-nlp/jenga/nn"
)

// Step is one update of the parameters.
type Step struct {
	Number, Of   int     // from 1
	Epoch        float64 // epochs done, fractions counted
	Loss         float64 // that was minimised: the sum over heads of factor times mean over labelled units
	Losses       []multitask.Loss
	TaskFactors  map[string]float64     // of the tasks' gradients; nil: the weighting does not report them
	Sampling     []samplers.Probability // when the first group was drawn; nil: one group, or a sampler without
	Rate         float64
	GradientNorm float64 // before clipping
	Tokens       int
	Time         time.Duration
	Exchange     *Exchange          // with other ranks; nil: there are none
	Bad          *multitask.BadStep // why the step has no update; nil: it has one
	Skipped      int                // steps so far without an update
}

// TokensPerSecond is the step's speed, 0 where its time is too short to measure.
func (s Step) TokensPerSecond() float64 {
	if s.Time <= 0 {
		return 0
	}
	return float64(s.Tokens) / s.Time.Seconds()
}

type step struct {
	training *Training
	state    multitask.State // the weighting's
	all      [][]packed      // the parts of the batches in each shard
	shards   [][]packed      // those of this process
	losses   *stepLosses
	factors  []float64 // of losses; nil: not known before a forward pass
	squares  []float64 // norms² of the gradients of losses at the encoder's states; nil: not measured
}

// compute computes one update from batches, phase by phase; docs/architecture.md has a table of them.
func (t *Training) compute(batches []Batch) (Step, error) {
	report := Step{Number: t.state.Step + 1, Of: t.length.Steps}
	all := t.pack(batches)
	s := &step{training: t, state: t.state, all: all, shards: all[t.shards.first:][:t.shards.own]}
	s.state.Rand = rand.New(t.weighing)
	for _, store := range t.stores {
		store.Zero()
	}

	// weigh: the labelled units of the whole step come first, since a batch's losses are divided by them
	s.losses = newStepLosses(t.model.Model, groupsOf(batches), all)
	if t.balance != nil && t.state.Step < balanceSteps {
		s.squares = make([]float64, len(s.losses.all))
	}
	if err := s.weigh(); err != nil {
		return report, err
	}

	// forward, backward, reduce
	sums, err := s.overShards(s.runShard)
	if err != nil {
		return report, err
	}
	s.setSums(sums)
	for _, b := range batches {
		for _, e := range b.Examples {
			report.Tokens += e.Tokens()
		}
	}
	t.serial += uint64(len(batches) * t.shards.all)

	// combine
	report.TaskFactors = s.combine()

	// clip
	norm, factor, err := t.clip()
	if err != nil {
		return report, err
	}
	report.GradientNorm = norm

	// find bad losses
	report.Losses, report.Loss = s.losses.all, s.losses.total(s.factors)
	if t.learned != nil {
		report.Loss += t.learned.differentiate(report.Losses)
	}
	if report.Bad, err = s.findBad(report); err != nil {
		return report, err
	}

	// update
	if report.Bad != nil {
		err = t.guard.skip(report.Bad)
	} else {
		report.Rate, err = s.update(factor, report.Number)
	}
	report.Skipped = t.guard.state.Skipped
	return report, err
}

// weigh sets the factors of the losses. Factors that depend on the losses are computed after the forward pass if the
// step has one batch; for several batches, another forward pass of each comes first, with the same dropout.
func (s *step) weigh() error {
	losses := s.losses.all
	if s.training.plan.Weighting.WeighLosses != nil {
		if s.training.shards.all == 1 && len(s.shards[0]) == 1 && s.losses.labelled(s.shards[0][0].group) {
			return nil
		}
		var err error
		if losses, err = s.measure(); err != nil {
			return err
		}
	}
	s.factors = s.training.factors(s.state, losses)
	return nil
}

func (t *Training) factors(s multitask.State, losses []multitask.Loss) []float64 {
	factors := t.plan.Weighting.Factors(s, losses)
	t.checkFactors(len(factors), len(losses), "losses")
	return factors
}

func (t *Training) checkFactors(have, want int, of string) {
	if have != want {
		panic(fmt.Sprintf("train: weighting %q returned %d factors of %d %s", t.plan.Weighting.Type, have, want, of))
	}
}

// measure returns the losses of the step's batches by the current model, over all shards.
func (s *step) measure() ([]multitask.Loss, error) {
	measured := s.losses.empty()
	sums, err := s.overShards(func(parts []packed, _ bool) ([]float64, error) {
		for _, b := range parts {
			if !measured.labelled(b.group) {
				continue
			}
			_, nodes, err := s.build(b)
			if err != nil {
				return nil, err
			}
			if err := s.training.pass.Forward(); err != nil {
				return nil, err
			}
			measured.add(b.group, nodes)
		}
		return measured.take(), nil
	})
	if err != nil {
		return nil, err
	}
	measured.setSums(sums)
	return measured.all, nil
}

// overShards runs the shards of this process one after the other, of which there is one unless the plan has Shards, and
// returns the sums of the numbers of all, of all processes.
func (s *step) overShards(run func(parts []packed, last bool) ([]float64, error)) ([]float64, error) {
	var sums treeSum
	for i, parts := range s.shards {
		numbers, err := run(parts, i == len(s.shards)-1)
		if err != nil {
			return nil, err
		}
		sums.add(numbers)
	}
	numbers := sums.total()
	if x := s.training.exchange; x != nil {
		return numbers, x.sumNumbers(numbers)
	}
	return numbers, nil
}

// runShard runs the parts of the batches in one shard forward and backward, and returns its losses and the squared
// norms that it measures. After the last shard the store has the sum of the gradients of all.
func (s *step) runShard(parts []packed, last bool) ([]float64, error) {
	var err error
	if x := s.training.exchange; x != nil && last {
		err = x.sumDuring(func() error { return s.runBatches(parts, true) })
	} else if err = s.runBatches(parts, last); err == nil {
		s.training.host.EndShard()
	}
	numbers := append(s.losses.take(), s.squares...)
	clear(s.squares)
	return numbers, err
}

func (s *step) runBatches(parts []packed, last bool) error {
	for i, b := range parts {
		if err := s.runBatch(b, last && i == len(parts)-1); err != nil {
			return err
		}
	}
	return nil
}

func (s *step) setSums(sums []float64) {
	s.losses.setSums(sums)
	if s.squares != nil {
		s.squares = sums[len(s.losses.all):]
	}
}

// runBatch runs one batch forward and backward, and adds to the gradients and to the sums of the losses. After the last
// batch of the step the gradients are final.
func (s *step) runBatch(b packed, last bool) error {
	if !s.losses.labelled(b.group) {
		return nil
	}
	a, nodes, err := s.build(b)
	if err != nil {
		return err
	}
	if err := s.training.pass.Forward(); err != nil {
		return err
	}
	s.losses.add(b.group, nodes)
	if s.factors == nil {
		s.factors = s.training.factors(s.state, s.losses.all)
	}

	border := s.border(a, b)
	if err := s.measureHeads(b, nodes, a, border); err != nil {
		return err
	}
	for i, total := range s.totals(b.group, nodes) {
		if i > 0 {
			clearAll(border)
		}
		if err := s.backwardFrom(total, a, border, last); err != nil {
			return err
		}
	}
	return nil
}

// build builds the graph of a batch, and in it the nodes of its heads' losses, nil for heads without labelled units.
func (s *step) build(b packed) (multitask.Graph, []*nn.Node, error) {
	s.training.pass.Reset(b.serial)
	s.training.pass.Training = true
	g := &s.training.model.Groups[b.group]
	a, err := s.training.model.Build(s.training.pass, g, b.batch)
	if err != nil {
		return a, nil, err
	}
	return a, a.LossNodes(s.training.pass, b.batch), nil
}

// total is a loss of a batch that is minimised: of all its tasks, or of one task where gradients are kept by task.
type total struct {
	node *nn.Node
	task int // its index among all tasks; -1: all tasks of the batch
}

// totals returns the losses of a batch that are minimised; none without labelled units.
func (s *step) totals(group int, nodes []*nn.Node) []total {
	factors := s.losses.perUnit(group, s.factors)
	if s.training.plan.Weighting.Combine == nil {
		if node := nn.LinearCombination(factors, nodes); node != nil {
			return []total{{node, -1}}
		}
		return nil
	}
	task := 0
	for g := range group {
		task += len(s.training.model.Groups[g].Tasks)
	}
	var all []total
	for _, part := range s.training.model.Groups[group].Tasks {
		n := len(part.Heads)
		if node := nn.LinearCombination(factors[:n], nodes[:n]); node != nil {
			all = append(all, total{node, task})
		}
		factors, nodes = factors[n:], nodes[n:]
		task++
	}
	return all
}

// border returns zero gradients at the encoder's states, [T D] of each layer; nil where the encoder learns nothing.
func (s *step) border(a multitask.Graph, b packed) [][]float32 {
	if s.training.frozen {
		return nil
	}
	d := make([][]float32, len(a.Border))
	for i := range d {
		d[i] = s.training.pass.Floats(len(b.batch.Tokens.IDs) * s.training.model.Encoder.Describe().Width)
	}
	return d
}

// measureHeads takes each loss of a batch backward alone, as far as the encoder's states, and adds the squared norm of
// its gradient there to s.squares. Parameters receive nothing, and border is zero before and after.
func (s *step) measureHeads(b packed, nodes []*nn.Node, a multitask.Graph, border [][]float32) error {
	if s.squares == nil {
		return nil
	}
	for h, factor := range s.losses.perUnit(b.group, s.factors) {
		if nodes[h] == nil || factor == 0 {
			continue
		}
		if err := s.training.pass.Backward(nodes[h], float32(factor), nn.Gradients{}, a.Border, border); err != nil {
			return err
		}
		square := &s.squares[s.losses.first[b.group]+h]
		for _, d := range border {
			for _, v := range d {
				*square += float64(v) * float64(v)
			}
		}
		clearAll(border)
	}
	return nil
}

func clearAll(d [][]float32) {
	for _, x := range d {
		clear(x)
	}
}

// backwardFrom adds the gradients of one total of a batch. final: no other batch adds to them.
func (s *step) backwardFrom(t total, a multitask.Graph, border [][]float32, final bool) error {
	if t.task >= 0 {
		for _, store := range s.training.stores {
			store.(nn.TaskStore).SelectTask(t.task)
		}
	}
	into := s.training.host.Gradients()
	if border == nil {
		return s.training.pass.Backward(t.node, 1, into, nil, nil)
	}
	if err := s.training.pass.Backward(t.node, 1, into, a.Border, border); err != nil {
		return err
	}
	if x := s.training.exchange; x != nil && final && t.task < 0 { // those by task are summed after all backward passes
		into = x.observe(into)
	}
	// Heads that pass no gradient to the encoder, such as one that reconstructs its states, leave zeros.
	if slices.ContainsFunc(border, notZero) {
		s.training.model.Encoder.Describe().Backward(s.training.pass, border, into)
	}
	return nil
}

func notZero(d []float32) bool { return slices.ContainsFunc(d, func(v float32) bool { return v != 0 }) }

// combine combines the tasks' gradients into one, for a weighting that does so. It returns the factors if
// the weighting reports them.
func (s *step) combine() map[string]float64 {
	w := s.training.plan.Weighting
	if w.Combine == nil {
		return nil
	}

	// the tasks that have labelled units
	labelled := map[string]bool{}
	for _, l := range s.losses.all {
		labelled[l.Task] = labelled[l.Task] || l.Units > 0
	}
	all := s.training.model.TaskNames()
	var tasks []string
	var places []int // in all
	for t, name := range all {
		if labelled[name] {
			tasks, places = append(tasks, name), append(places, t)
		}
	}

	// their dot products
	dots := make([][]float64, len(tasks))
	for i := range dots {
		dots[i] = make([]float64, len(tasks))
	}
	for _, store := range s.training.stores {
		part := store.(nn.TaskStore).Dots()
		for i, t := range places {
			for j, u := range places {
				dots[i][j] += part[t][u]
			}
		}
	}

	// their sum
	combined := w.Combine(s.state, tasks, dots)
	s.training.checkFactors(len(combined), len(tasks), "gradients")
	factors := make([]float64, len(all))
	for i, factor := range combined {
		factors[places[i]] = factor
	}
	for _, store := range s.training.stores {
		store.(nn.TaskStore).Combine(factors)
	}
	if !w.ReportsFactors {
		return nil
	}
	reported := map[string]float64{}
	for i, task := range tasks {
		reported[task] = combined[i]
	}
	return reported
}

// clip returns the norm of all gradients together, and the factor that clips it to the plan's ClipNorm.
func (t *Training) clip() (norm float64, factor float32, err error) {
	sum := 0.0
	for _, store := range t.stores {
		squares, err := store.SumSquares()
		if err != nil {
			return 0, 0, err
		}
		sum += squares
	}
	limit := t.plan.ClipNorm
	if limit == 0 {
		limit = math.Inf(1)
	}
	norm = math.Sqrt(sum)
	return norm, nn.ClipFactor(norm, limit), nil
}

// update changes all parameters by the step's gradients times factor, and reports the step to what observes it. It
// returns the model's learning rate.
func (s *step) update(factor float32, number int) (rate float64, err error) {
	t := s.training
	fraction := t.schedule.Rate(number) // of the highest learning rates
	rate = t.rate(number)
	for _, store := range t.stores {
		if err := store.Update(factor, rate); err != nil {
			return rate, err
		}
	}
	if t.exchange != nil {
		if err := t.exchange.updated(); err != nil {
			return rate, err
		}
	}
	if t.learned != nil {
		if err := t.learned.update(fraction); err != nil {
			return rate, err
		}
	}
	t.guard.observe(s.losses.all)
	return rate, s.observe()
}

// learned is the parameters of a weighting.
type learned struct {
	*weightings.Learned
	store *nn.HostStore
}

func newLearned(w *weightings.Learned) *learned {
	if w == nil {
		return nil
	}
	for _, p := range w.Params {
		p.Decay = false
	}
	return &learned{w, nn.NewHostStore(w.Params, nn.NewAdamW(0))}
}

// update updates the parameters by the gradients from differentiate, at a fraction of their highest rate.
func (l *learned) update(fraction float64) error {
	if _, err := l.store.SumSquares(); err != nil {
		return err
	}
	return l.store.Update(1, l.Rate*fraction)
}

// differentiate computes the gradients for a step's losses, and returns the weighting's own terms of the loss.
func (l *learned) differentiate(losses []multitask.Loss) float64 {
	l.store.Zero()
	return l.Differentiate(losses, l.store.Gradients())
}

// observe passes the step's losses to the sampler and the weighting, its gradients to the balance, and the losses after
// the update to a weighting that reviews them.
func (s *step) observe() error {
	if s.squares != nil {
		s.training.balance.add(s.losses.all, s.squares)
	}
	w := s.training.plan.Weighting
	if observe := s.training.plan.Sampler.Observe; observe != nil {
		state := s.state
		state.Rand = rand.New(s.training.sampling)
		observe(state, s.losses.all)
	}
	if w.Observe != nil {
		w.Observe(s.state, s.losses.all)
	}
	if w.Review == nil {
		return nil
	}
	after, err := s.measure()
	if err != nil {
		return err
	}
	w.Review(s.state, s.losses.all, after)
	return nil
}
