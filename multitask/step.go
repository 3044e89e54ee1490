package multitask

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/nn"
)

// packed is a batch in the form that the model reads.
type packed struct {
	group  int
	batch  *corpus.Batch
	serial uint64 // of its pass
}

// step is the state of one update while it is computed.
type step struct {
	*Training
	state   State // the weighting's
	batches []packed
	losses  *stepLosses
	factors []float64  // of losses; nil: unknown before a forward pass
	reduced *reduction // nil: a single process
}

// take computes one step on batches: forward and backward, reduce, clip, update.
func (t *Training) take(batches []Batch) (Step, error) {
	start := time.Now()
	report := Step{Number: t.state.Step + 1, Of: t.length.steps}
	s := &step{Training: t, state: t.state, batches: t.pack(batches)}
	s.state.Rand = rand.New(t.weighing)
	t.zero()

	// The labelled units of the whole step come first: a batch's losses are divided by them.
	var err error
	if s.losses, err = newStepLosses(t.model.Model, s.batches, t.plan.Reducer); err != nil {
		return report, err
	}
	if err := s.weigh(); err != nil {
		return report, err
	}

	// forward and backward
	for i, b := range s.batches {
		if t.plan.Reducer != nil && i == len(s.batches)-1 {
			s.reduced = newReduction(t.plan.Reducer, t.reducing, t.host)
		}
		if err := s.backward(b); err != nil {
			return report, err
		}
		report.Tokens += len(b.batch.Tokens.IDs)
	}
	t.serial += uint64(len(s.batches))

	// reduce
	if err := s.reduce(); err != nil {
		return report, err
	}
	s.combine()

	// clip
	var factor float32
	report.GradientNorm, factor = t.clip()
	report.Losses, report.Loss = s.losses.all, s.losses.total(s.factors)
	report.Loss += t.learned.differentiate(report.Losses)
	if err := report.check(); err != nil {
		return report, err
	}

	// update
	report.Rate = s.update(factor, t.schedule.Rate(report.Number))
	if err := s.observe(); err != nil {
		return report, err
	}

	report.Time = time.Since(start)
	return report, nil
}

// update changes all parameters by their gradients times factor, at a fraction of the highest learning rates. It
// returns the model's learning rate.
func (s *step) update(factor float32, fraction float64) (rate float64) {
	rate = s.plan.Rate * fraction
	for _, store := range s.stores {
		store.Update(factor, rate)
	}
	s.learned.update(fraction)
	return rate
}

// check returns an error if the gradient or the loss is not finite.
func (s Step) check() error {
	for _, f := range []struct {
		name  string
		value float64
	}{{"gradient", s.GradientNorm}, {"loss", s.Loss}} {
		if math.IsNaN(f.value) || math.IsInf(f.value, 0) {
			return fmt.Errorf("the %s is not finite; a lower training.learning_rate may help", f.name)
		}
	}
	return nil
}

// pack returns batches in the form that the model reads, after heads have changed them.
func (t *Training) pack(batches []Batch) []packed {
	all := make([]packed, len(batches))
	for i, b := range batches {
		serial := t.serial + 1 + uint64(i)
		batch := t.model.Groups[b.Group].prepared(corpus.Pack(b.Examples), func(example int) rand.Source {
			return rand.NewPCG(nn.Key(t.plan.Seed, serial, hiding), uint64(example))
		})
		all[i] = packed{b.Group, batch, serial}
	}
	return all
}

func (t *Training) zero() {
	for _, store := range t.stores {
		store.Zero()
	}
}

// clip returns the norm of all gradients together, and the factor that clips it to the plan's ClipNorm.
func (t *Training) clip() (norm float64, factor float32) {
	sum := 0.0
	for _, store := range t.stores {
		sum += store.SumSquares()
	}
	limit := t.plan.ClipNorm
	if limit == 0 {
		limit = math.Inf(1)
	}
	norm = math.Sqrt(sum)
	return norm, nn.ClipFactor(norm, limit)
}

// forward runs a batch through the model and returns its heads' losses, nil for heads without labelled units.
func (s *step) forward(b packed) (forwarded, []*nn.Node, error) {
	s.pass.Reset(b.serial)
	s.pass.Training = true
	g := &s.model.Groups[b.group]
	a, err := s.model.forward(s.pass, g, b.batch)
	if err != nil {
		return a, nil, err
	}
	return a, g.lossNodes(s.pass, a, b.batch), nil
}

// backward runs one batch forward and backward, and adds to the gradients and to the sums of the losses.
func (s *step) backward(b packed) error {
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
	if err := s.pass.Forward(); err != nil {
		return err
	}
	s.losses.add(b.group, nodes)
	if s.factors == nil {
		s.factors = s.plan.Weighting.(LossWeighting).WeighLosses(s.state, s.losses.all)
		totals = s.totals(b.group, nodes)
	}

	border := s.border(a, b)
	for i, total := range totals {
		if i > 0 {
			clearAll(border)
		}
		if err := s.backwardFrom(total, a, border, i == len(totals)-1); err != nil {
			return err
		}
	}
	return nil
}

// border returns zero gradients at the encoder's states, [T D] of each layer; nil where the encoder learns nothing.
func (s *step) border(a forwarded, b packed) [][]float32 {
	if s.frozen {
		return nil
	}
	d := make([][]float32, len(a.border))
	for i := range d {
		d[i] = s.pass.Floats(len(b.batch.Tokens.IDs) * s.model.Encoder.Describe().Width)
	}
	return d
}

func clearAll(d [][]float32) {
	for _, x := range d {
		clear(x)
	}
}

// backwardFrom adds the gradients of one total of a batch. last is true for the batch's last total.
func (s *step) backwardFrom(t total, a forwarded, border [][]float32, last bool) error {
	if t.task >= 0 {
		for _, store := range s.stores {
			store.(nn.TaskStore).SelectTask(t.task)
		}
	}
	into := s.host.Gradients()
	if border == nil {
		return s.pass.Backward(t.node, 1, into, nil, nil)
	}
	if err := s.pass.Backward(t.node, 1, into, a.border, border); err != nil {
		return err
	}
	if s.reduced != nil && last && t.task < 0 { // gradients by task are summed after all backward passes
		s.reduced.readyOutside(EncoderParams(s.model.Params))
		into = into.Observed(s.reduced.ready)
	}
	// Heads that pass no gradient to the encoder, such as one that reconstructs its states, leave zeros.
	if slices.ContainsFunc(border, notZero) {
		s.model.Encoder.(encoders.Trainable).Backward(s.pass, border, into)
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
	if _, byTask := s.plan.Weighting.(GradientWeighting); !byTask {
		if node := weightedSum(factors, nodes); node != nil {
			return []total{{node, -1}}
		}
		return nil
	}
	task := 0
	for g := range group {
		task += len(s.model.Groups[g].Tasks)
	}
	var all []total
	for _, part := range s.model.Groups[group].Tasks {
		n := len(part.Heads)
		if node := weightedSum(factors[:n], nodes[:n]); node != nil {
			all = append(all, total{node, task})
		}
		factors, nodes = factors[n:], nodes[n:]
		task++
	}
	return all
}
