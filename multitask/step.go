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

// learner updates a model step by step.
type learner struct {
	model     *Model
	plan      Plan
	steps     int
	schedule  nn.Schedule
	params    []*nn.Param
	gradients nn.Gradients
	optimizer *nn.AdamW
	pass      *nn.Pass
	serial    uint64 // of the pass: batches seen
}

func newLearner(m *Model, plan Plan, steps int) *learner {
	params := m.Params.All()
	l := &learner{
		model:     m,
		plan:      plan,
		steps:     steps,
		schedule:  plan.schedule(steps),
		params:    params,
		gradients: nn.NewGradients(params),
		optimizer: nn.NewAdamW(plan.WeightDecay),
		pass:      nn.NewPass(plan.Seed),
	}
	l.pass.Recompute = plan.Recompute
	l.pass.BFloat16 = plan.BFloat16 && !m.Frozen() // heads on frozen states learn from those that they will answer by
	return l
}

// draw is a batch of one group.
type draw struct {
	group int
	batch *corpus.Batch
}

// step takes batches forward and backward and updates the parameters once.
func (l *learner) step(state State, draws []draw) (Step, error) {
	start := time.Now()
	report := Step{Number: state.Step + 1, Of: l.steps}
	l.gradients.Zero()

	// forward and backward
	for i, d := range draws {
		serial := l.serial + 1 + uint64(i)
		draws[i].batch = l.model.Groups[d.group].prepared(d.batch, func(example int) rand.Source {
			return rand.NewPCG(nn.Key(l.plan.Seed, serial, hiding), uint64(example))
		})
	}
	losses := newStepLosses(l.model, draws)
	factors := l.plan.Weighting.Weigh(state, losses.all)
	for _, d := range draws {
		l.serial++
		if err := l.backward(d, losses, factors); err != nil {
			return report, err
		}
		report.Tokens += len(d.batch.Tokens.IDs)
	}

	// update
	limit := l.plan.ClipNorm
	if limit == 0 {
		limit = math.Inf(1)
	}
	norm, factor, moved := nn.Clip(l.params, l.gradients, limit)
	report.GradientNorm = norm
	report.Losses, report.Loss = losses.all, losses.total(factors)
	for _, f := range []struct {
		name  string
		value float64
	}{{"gradient", norm}, {"loss", report.Loss}} {
		if math.IsNaN(f.value) || math.IsInf(f.value, 0) {
			return report, fmt.Errorf("the %s is not finite; a lower training.learning_rate may help", f.name)
		}
	}
	report.Rate = l.plan.Rate * l.schedule.Rate(report.Number)
	// What the step's loss does not depend on, as a head whose task was not drawn, is left alone, decay and momentum too,
	// as PyTorch leaves a parameter without a gradient.
	l.optimizer.Step(moved, l.gradients, factor, report.Rate)

	report.Time = time.Since(start)
	return report, nil
}

// backward takes one batch forward and backward: it adds to the gradients and to the sums of the losses.
func (l *learner) backward(d draw, losses *stepLosses, factors []float64) error {
	if !slices.ContainsFunc(losses.group[d.group], func(l Loss) bool { return l.Units > 0 }) {
		return nil // nothing is labelled
	}
	l.pass.Reset(l.serial)
	l.pass.Training = true
	g := &l.model.Groups[d.group]
	a, err := l.model.forward(l.pass, g, d.batch)
	if err != nil {
		return err
	}
	nodes := g.lossNodes(l.pass, a, d.batch)
	total := weightedSum(losses.shares(d.group, factors), nodes)
	if err := l.pass.Forward(); err != nil {
		return err
	}
	losses.add(d.group, nodes)
	if total == nil {
		return nil // nothing is labelled
	}

	trainable, learns := l.model.Encoder.(encoders.Trainable)
	if !learns || l.model.cache != nil {
		return l.pass.Backward(total, 1, l.gradients, nil, nil)
	}
	dBorder := make([][]float32, len(a.border)) // [T D] each
	for i := range dBorder {
		dBorder[i] = l.pass.Floats(len(d.batch.Tokens.IDs) * l.model.Encoder.Width())
	}
	if err := l.pass.Backward(total, 1, l.gradients, a.border, dBorder); err != nil {
		return err
	}
	// Heads that leave the encoder as it is, as one that rebuilds its states, send nothing back.
	if slices.ContainsFunc(dBorder, notZero) {
		trainable.Backward(l.pass, dBorder, l.gradients)
	}
	return nil
}

func notZero(d []float32) bool { return slices.ContainsFunc(d, func(v float32) bool { return v != 0 }) }

// stepLosses holds the losses of one step: one for each head of each group that takes part.
type stepLosses struct {
	all   []Loss
	group map[int][]Loss // part of all
	first map[int]int    // where that begins
}

// newStepLosses counts the labelled units of a step, so that each batch's share of the mean is known before it runs.
func newStepLosses(m *Model, draws []draw) *stepLosses {
	s := &stepLosses{group: map[int][]Loss{}, first: map[int]int{}}
	batches := map[int][]*corpus.Batch{}
	for _, d := range draws {
		batches[d.group] = append(batches[d.group], d.batch)
	}
	for _, d := range draws {
		if _, have := s.first[d.group]; have {
			continue
		}
		s.first[d.group] = len(s.all)
		s.all = append(s.all, m.Groups[d.group].losses(batches[d.group]...)...)
	}
	for g, first := range s.first {
		s.group[g] = s.all[first : first+len(m.Groups[g].Heads())]
	}
	return s
}

// shares is what a group's losses, which are sums, are multiplied with to give their part of what is minimised.
func (s *stepLosses) shares(group int, factors []float64) []float64 {
	shares := make([]float64, len(s.group[group]))
	for h, l := range s.group[group] {
		if l.Units > 0 {
			shares[h] = factors[s.first[group]+h] / l.Units
		}
	}
	return shares
}

// add adds the values of a group's losses after a forward pass.
func (s *stepLosses) add(group int, nodes []*nn.Node) {
	for h, node := range nodes {
		if node != nil {
			s.group[group][h].Sum += float64(nn.Values(node)[0])
		}
	}
}

// total is what the step minimised.
func (s *stepLosses) total(factors []float64) float64 {
	sum := 0.0
	for i, l := range s.all {
		sum += factors[i] * l.Mean()
	}
	return sum
}
