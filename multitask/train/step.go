package train

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
)

// packed is a batch in the form that the model reads.
type packed struct {
	group  int
	batch  *corpus.Batch
	serial uint64 // of its pass
}

// step computes one update.
type step struct {
	training *Training
	state    multitask.State // the weighting's
	all      [][]packed      // the parts of the batches in each shard
	shards   [][]packed      // those of this process
	losses   *stepLosses
	factors  []float64 // of losses; nil: unknown before a forward pass
	squares  []float64 // norms² of the gradients of losses at the encoder's states; nil: not measured
}

// compute computes one update from batches: forward and backward, reduce, clip, update.
func (t *Training) compute(batches []Batch) (Step, error) {
	start := time.Now()
	report := Step{Number: t.state.Step + 1, Of: t.length.Steps}
	all := t.pack(batches)
	s := &step{training: t, state: t.state, all: all, shards: all[t.shards.first:][:t.shards.own]}
	s.state.Rand = rand.New(t.weighing)
	t.exchange.measure()
	t.zero()

	// The labelled units of the whole step come first: a batch's losses are divided by them.
	s.losses = newStepLosses(t.model.Model, groupsOf(batches), all)
	s.squares = t.balance.squares(t.state.Step, len(s.losses.all))
	if err := s.weigh(); err != nil {
		return report, err
	}

	// forward, backward and reduce
	sums, err := s.overShards(s.backwardShard)
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

	report.TaskFactors = s.combine()

	// clip
	norm, factor, err := t.clip()
	if err != nil {
		return report, err
	}
	report.GradientNorm = norm
	report.Losses, report.Loss = s.losses.all, s.losses.total(s.factors)
	report.Loss += t.learned.differentiate(report.Losses)

	// update
	if report.Bad, err = s.findBad(report); err != nil {
		return report, err
	}
	if report.Bad != nil {
		err = t.guard.Skip(report.Bad)
	} else {
		report.Rate, err = s.update(factor, report.Number)
	}
	report.Skipped, report.Time, report.Exchange = t.guard.Skipped(), time.Since(start), t.exchange.report()
	return report, err
}

// update changes all parameters by the step's gradients times factor, and reports the step to what observes it. It
// returns the model's learning rate.
func (s *step) update(factor float32, number int) (rate float64, err error) {
	t := s.training
	if rate, err = t.updateAll(factor, t.schedule.Rate(number)); err != nil {
		return rate, err
	}
	t.guard.Observe(s.losses.all)
	return rate, s.observe()
}

// updateAll changes all parameters by their gradients times factor, at a fraction of the highest learning rates. It
// returns the model's learning rate.
func (t *Training) updateAll(factor float32, fraction float64) (rate float64, err error) {
	rate = t.rate(fraction)
	for _, store := range t.stores {
		if err := store.Update(factor, rate); err != nil {
			return rate, err
		}
	}
	if err := t.exchange.updated(); err != nil {
		return rate, err
	}
	return rate, t.learned.update(fraction)
}

// rate returns the model's learning rate of the next step, for a report that of an optimizer that computes it.
func (t *Training) rate(fraction float64) float64 {
	if computed := t.plan.Optimizer.ComputedRate; computed != nil {
		return computed(t.state.Step + 1)
	}
	return t.plan.Rate * fraction
}

// groupsOf returns the different groups of batches, in their order.
func groupsOf(batches []Batch) []int {
	var groups []int
	for _, b := range batches {
		if !slices.Contains(groups, b.Group) {
			groups = append(groups, b.Group)
		}
	}
	return groups
}

func (t *Training) zero() {
	for _, store := range t.stores {
		store.Zero()
	}
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

// forward runs a batch through the model and returns its heads' losses, nil for heads without labelled units.
func (s *step) forward(b packed) (multitask.Forwarded, []*nn.Node, error) {
	s.training.pass.Reset(b.serial)
	s.training.pass.Training = true
	g := &s.training.model.Groups[b.group]
	a, err := s.training.model.Forward(s.training.pass, g, b.batch)
	if err != nil {
		return a, nil, err
	}
	return a, g.LossNodes(s.training.pass, a, b.batch), nil
}

// backwardShard runs the parts of the batches in one shard forward and backward, and returns its losses and the squared
// norms that it measures. The gradients of the last shard are summed over all.
func (s *step) backwardShard(parts []packed, last bool) ([]float64, error) {
	reducer := s.training.reducer
	reducer.begin(last)
	for i, b := range parts {
		if err := s.backward(b, last && i == len(parts)-1); err != nil {
			return nil, reducer.finish(err)
		}
	}
	if last {
		if err := reducer.finish(nil); err != nil {
			return nil, err
		}
	}
	numbers := append(s.losses.take(), s.squares...)
	clear(s.squares)
	return numbers, nil
}

// setSums sets the losses and the squared norms to their sums over all shards.
func (s *step) setSums(sums []float64) {
	s.losses.setSums(sums)
	if s.squares != nil {
		s.squares = sums[len(s.losses.all):]
	}
}

// backward runs one batch forward and backward, and adds to the gradients and to the sums of the losses. After the last
// batch of the step the gradients are final.
func (s *step) backward(b packed, last bool) error {
	if !s.losses.labelled(b.group) {
		return nil
	}
	a, nodes, err := s.forward(b)
	if err != nil {
		return err
	}
	var totals []total
	if s.factors != nil {
		totals = s.totals(b.group, nodes)
	}
	if err := s.training.pass.Forward(); err != nil {
		return err
	}
	s.losses.add(b.group, nodes)
	if s.factors == nil {
		s.factors = s.training.factors(s.state, s.losses.all)
		totals = s.totals(b.group, nodes)
	}

	border := s.border(a, b)
	if err := s.measureHeads(b, nodes, a, border); err != nil {
		return err
	}
	for i, total := range totals {
		if i > 0 {
			clearAll(border)
		}
		if err := s.backwardFrom(total, a, border, last); err != nil {
			return err
		}
	}
	return nil
}

// border returns zero gradients at the encoder's states, [T D] of each layer; nil where the encoder learns nothing.
func (s *step) border(a multitask.Forwarded, b packed) [][]float32 {
	if s.training.frozen {
		return nil
	}
	d := make([][]float32, len(a.Border))
	for i := range d {
		d[i] = s.training.pass.Floats(len(b.batch.Tokens.IDs) * s.training.model.Encoder.Describe().Width)
	}
	return d
}

func clearAll(d [][]float32) {
	for _, x := range d {
		clear(x)
	}
}

// backwardFrom adds the gradients of one total of a batch. final: no other batch adds to them.
func (s *step) backwardFrom(t total, a multitask.Forwarded, border [][]float32, final bool) error {
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
	if final && t.task < 0 { // gradients by task are summed after all backward passes
		for _, w := range s.training.outside {
			s.training.reducer.ready(w)
		}
		into = into.Observed(s.training.reducer.ready)
	}
	// Heads that pass no gradient to the encoder, such as one that reconstructs its states, leave zeros.
	if slices.ContainsFunc(border, notZero) {
		s.training.model.Encoder.Describe().Backward(s.training.pass, border, into)
	}
	return nil
}

func notZero(d []float32) bool { return slices.ContainsFunc(d, func(v float32) bool { return v != 0 }) }

// total is a loss of a batch that is minimised: of all its tasks, or of one task where gradients are kept by task.
type total struct {
	node *nn.Node
	task int // its index among all tasks; -1: all tasks of the batch
}

// totals returns the losses of a batch that are minimised; none without labelled units.
func (s *step) totals(group int, nodes []*nn.Node) []total {
	factors := s.losses.perUnit(group, s.factors)
	if s.training.plan.Weighting.Combine == nil {
		if node := weightedSum(factors, nodes); node != nil {
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
		if node := weightedSum(factors[:n], nodes[:n]); node != nil {
			all = append(all, total{node, task})
		}
		factors, nodes = factors[n:], nodes[n:]
		task++
	}
	return all
}
