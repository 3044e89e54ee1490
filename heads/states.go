package heads

import (
	"fmt"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
)

// NewStates returns a head that learns the states of a teacher's encoder, which have so many values for each token: a
// linear projection of the tokens' states is its output, [T D'], and its loss the mean squared error to the teacher's,
// summed over tokens (Jiao et al. 2020, "TinyBERT: Distilling BERT for Natural Language Understanding", equation 8). It
// has no gold labels and predicts nothing: Soft is all that it has.
func NewStates(params nn.Params, width, teacher int) Head {
	return &states{project: nn.NewLinear(params.In("project"), width, teacher), width: teacher}
}

type states struct {
	project *nn.Linear
	width   int // of the teacher's states
}

func (h *states) Logits(_ *nn.Pass, seen nn.Hidden) Logits {
	return LogitsOf(seen, h.project.Apply(seen.States)) // [T D']
}

func (h *states) Units([]corpus.Target) float64 { return 0 }

func (h *states) Loss(*nn.Pass, Logits, []corpus.Target) *nn.Node { return nil }

func (h *states) Predict(logits Logits) []corpus.Prediction {
	panic("heads: states of tokens are no prediction")
}

// Describe implements Objective. Values of an answer are the states of the tokens of an example, window after window.
func (h *states) Describe() Description {
	return Description{Soft: &Soft{Locate: asIs, Units: h.tokens, Loss: h.softLoss}}
}

func (h *states) tokens(answers []*Answer) float64 {
	n := 0
	for _, a := range answers {
		if a != nil {
			n += len(a.Values) / h.width
		}
	}
	return float64(n)
}

func (h *states) softLoss(p *nn.Pass, logits Logits, answers []*Answer, _ float64) *nn.Node {
	rows, d := logits.Rows, h.width
	want, weights := p.Floats(rows.Tokens()*d), make([]float32, rows.Tokens())
	read := make([]int, len(answers)) // values of each example, of the windows before
	any := false
	for b, e := range rows.Example {
		if answers[e] == nil {
			continue
		}
		from, to := rows.Starts[b], rows.Starts[b+1]
		n := (to - from) * d
		if read[e]+n > len(answers[e].Values) {
			panic(fmt.Sprintf("heads: states of %d values for more tokens of %d", len(answers[e].Values), d))
		}
		copy(want[from*d:], answers[e].Values[read[e]:read[e]+n])
		read[e] += n
		for t := from; t < to; t++ {
			weights[t], any = 1, true
		}
	}
	if !any {
		return nil
	}
	target := p.Input(want, rows.Tokens(), d)
	return nn.WeightedSum(nn.SquaredError(logits.Nodes[0], target), weights)
}
