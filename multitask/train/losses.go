package train

import (
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/weightings"
	"github.com/jenga-nlp/jenga/nn"
)

// learned is the parameters of a weighting; nil: it has none.
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
	if l == nil {
		return nil
	}
	if _, err := l.store.SumSquares(); err != nil {
		return err
	}
	return l.store.Update(1, l.Rate*fraction)
}

// differentiate computes the gradients for a step's losses, and returns the weighting's own terms of the loss.
func (l *learned) differentiate(losses []multitask.Loss) float64 {
	if l == nil {
		return 0
	}
	l.store.Zero()
	return l.Differentiate(losses, l.store.Gradients())
}

// stepLosses holds the losses of one step: one for each head of each group that has a batch.
type stepLosses struct {
	all   []multitask.Loss
	first map[int]int // index of a group's first loss in all
	heads map[int]int // number of a group's losses
}

// newStepLosses counts the labelled units of the groups of a step, in the shards of all processes, so that the weight
// of each batch in the mean is known before it runs.
func newStepLosses(m *multitask.Model, groups []int, shards [][]packed) *stepLosses {
	s := &stepLosses{first: map[int]int{}, heads: map[int]int{}}
	byGroup := map[int][]*corpus.Batch{}
	for _, b := range slices.Concat(shards...) {
		byGroup[b.group] = append(byGroup[b.group], b.batch)
	}
	for _, g := range groups {
		of := m.Groups[g].Losses(byGroup[g]...)
		s.first[g], s.heads[g] = len(s.all), len(of)
		s.all = append(s.all, of...)
	}
	return s
}

// group returns the losses of a group; none for one without a batch.
func (s *stepLosses) group(g int) []multitask.Loss { return s.all[s.first[g]:][:s.heads[g]] }

func (s *stepLosses) take() []float64 {
	sums := make([]float64, len(s.all))
	for i := range s.all {
		sums[i], s.all[i].Sum = s.all[i].Sum, 0
	}
	return sums
}

func (s *stepLosses) setSums(sums []float64) {
	for i := range s.all {
		s.all[i].Sum = sums[i]
	}
}

func (s *stepLosses) labelled(group int) bool {
	return slices.ContainsFunc(s.group(group), func(l multitask.Loss) bool { return l.Units > 0 })
}

// perUnit returns the factors of a group's losses, which are sums, in the loss that is minimised.
func (s *stepLosses) perUnit(group int, factors []float64) []float64 {
	perUnit := make([]float64, len(s.group(group)))
	for h, l := range s.group(group) {
		if l.Units > 0 {
			perUnit[h] = factors[s.first[group]+h] / l.Units
		}
	}
	return perUnit
}

// add adds the values of a group's losses after a forward pass.
func (s *stepLosses) add(group int, nodes []*nn.Node) {
	for h, node := range nodes {
		if node != nil {
			s.group(group)[h].Sum += multitask.LossValue(node)
		}
	}
}

// total stores the factors in the losses, and returns the weighted sum of their means.
func (s *stepLosses) total(factors []float64) float64 {
	sum := 0.0
	for i := range s.all {
		s.all[i].Factor = factors[i]
		sum += factors[i] * s.all[i].Mean()
	}
	return sum
}

func (s *stepLosses) empty() *stepLosses {
	again := &stepLosses{slices.Clone(s.all), s.first, s.heads}
	again.take()
	return again
}

// weightedSum returns the scalar Σ factors[i]·nodes[i] over the nodes that are not nil; nil if all are.
func weightedSum(factors []float64, nodes []*nn.Node) *nn.Node {
	factors, nodes = slices.Clone(factors), slices.Clone(nodes)
	for i := len(nodes) - 1; i >= 0; i-- {
		if nodes[i] == nil {
			factors, nodes = slices.Delete(factors, i, i+1), slices.Delete(nodes, i, i+1)
		}
	}
	if len(nodes) == 0 {
		return nil
	}
	return nn.Operation{
		Name: "weighted sum of losses",
		Forward: func(in [][]float32, out []float32) {
			for i, factor := range factors {
				out[0] += float32(factor) * in[i][0]
			}
		},
		Backward: func(_ [][]float32, _, dOut []float32, dIn [][]float32) {
			for i, factor := range factors {
				if dIn[i] != nil {
					dIn[i][0] += float32(factor) * dOut[0]
				}
			}
		},
	}.Apply(nodes...)
}
