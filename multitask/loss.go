package multitask

import (
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
)

// Loss is the loss of one head.
type Loss struct {
	Task, Head string
	Weight     float64 // of the head, from the experiment
	Factor     float64 // of its mean in the loss that a step minimised; 0 in evaluations
	Sum        float64 // over the labelled units
	Units      float64 // number of labelled units
}

// Mean returns the mean loss of a labelled unit, 0 without labelled units.
func (l Loss) Mean() float64 {
	if l.Units == 0 {
		return 0
	}
	return l.Sum / l.Units
}

// HeadName returns the name of the loss's head.
func (l Loss) HeadName() HeadName { return HeadName{l.Task, l.Head} }

// losses returns a Loss for each head of a group, with the number of labelled units in batches.
func (g *Group) losses(batches ...*corpus.Batch) []Loss {
	var all []Loss
	for _, task := range g.Tasks {
		for _, head := range task.Heads {
			l := Loss{Task: task.Name, Head: head.Name, Weight: head.Weight}
			for _, batch := range batches {
				l.Units += head.Head.Units(gold(batch.Examples, len(all)))
			}
			all = append(all, l)
		}
	}
	return all
}

// lossNodes returns the node of each head's loss over the batch, nil without labelled units.
func (g *Group) lossNodes(p *nn.Pass, a forwarded, batch *corpus.Batch) []*nn.Node {
	var nodes []*nn.Node
	for h, head := range g.Heads() {
		nodes = append(nodes, head.Head.Loss(p, a.logits[h], gold(batch.Examples, h)))
	}
	return nodes
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
