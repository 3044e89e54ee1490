package multitask

import (
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
)

// stepLosses holds the losses of one step: one for each head of each group that has a batch.
type stepLosses struct {
	all   []Loss
	group map[int][]Loss // subslices of all
	first map[int]int    // index of a group's first loss in all
	sums  treeSum        // of the losses, of the shards that have ended
}

// newStepLosses counts the labelled units of the groups of a step, in the shards of all processes, so that the weight
// of each batch in the mean is known before it runs.
func newStepLosses(m *Model, groups []int, shards [][]packed) *stepLosses {
	s := &stepLosses{group: map[int][]Loss{}, first: map[int]int{}}
	byGroup := map[int][]*corpus.Batch{}
	for _, b := range slices.Concat(shards...) {
		byGroup[b.group] = append(byGroup[b.group], b.batch)
	}
	for _, g := range groups {
		s.first[g] = len(s.all)
		s.all = append(s.all, m.Groups[g].losses(byGroup[g]...)...)
	}
	for g, first := range s.first {
		s.group[g] = s.all[first : first+len(m.Groups[g].Heads())]
	}
	return s
}

// endShard ends a shard, whose losses are summed alone.
func (s *stepLosses) endShard() {
	sums := make([]float64, len(s.all))
	for i := range s.all {
		sums[i], s.all[i].Sum = s.all[i].Sum, 0
	}
	s.sums.add(sums)
}

// setSums sets the losses to their sums over all shards.
func (s *stepLosses) setSums(sums []float64) {
	for i := range s.all {
		s.all[i].Sum = sums[i]
	}
}

// labelled reports whether a group has any labelled units.
func (s *stepLosses) labelled(group int) bool {
	return slices.ContainsFunc(s.group[group], func(l Loss) bool { return l.Units > 0 })
}

// perUnit returns the factors of a group's losses, which are sums, in the loss that is minimised.
func (s *stepLosses) perUnit(group int, factors []float64) []float64 {
	perUnit := make([]float64, len(s.group[group]))
	for h, l := range s.group[group] {
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
			s.group[group][h].Sum += valueOf(node)
		}
	}
}

// valueOf returns the value of a loss after a forward pass.
func valueOf(loss *nn.Node) float64 { return float64(nn.Values(loss)[0]) }

// total stores the factors in the losses, and returns the weighted sum of their means.
func (s *stepLosses) total(factors []float64) float64 {
	sum := 0.0
	for i := range s.all {
		s.all[i].Factor = factors[i]
		sum += factors[i] * s.all[i].Mean()
	}
	return sum
}

// empty returns a copy of the losses with sums of zero.
func (s *stepLosses) empty() *stepLosses {
	again := &stepLosses{all: slices.Clone(s.all), group: map[int][]Loss{}, first: s.first}
	for i := range again.all {
		again.all[i].Sum = 0
	}
	for g, first := range s.first {
		again.group[g] = again.all[first : first+len(s.group[g])]
	}
	return again
}
