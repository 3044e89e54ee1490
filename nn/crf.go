package nn

import (
	"fmt"
	"math"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// CRF is a linear-chain conditional random field (Lafferty et al. 2001). With logits e [N L] of the words, the tags y
// of a chain of n words have the probability
//
//	exp(start[y_1] + Σ_t e[t, y_t] + Σ_t transitions[y_t, y_t+1] + end[y_n]) / Z
//
// where Z is the sum of the same over all sequences of tags. Such sums are taken in log space: logits of any size
// neither overflow nor underflow.
type CRF struct {
	Transitions *Param // [L L] from a tag to the next
	Start, End  *Param // [L]
	// Constraints are the allowed transitions; all others have probability 0. nil allows all.
	Constraints *Transitions
}

// NewCRF makes the parameters "transitions", "start" and "end", from normal(0, 0.02).
func NewCRF(params Params, labels int, constraints *Transitions) *CRF {
	if constraints != nil && constraints.tags != labels {
		panic(fmt.Sprintf("nn: CRF of %d tags with transitions of %d", labels, constraints.tags))
	}
	return &CRF{
		Transitions: params.Normal("transitions", 0.02, labels, labels),
		Start:       params.Normal("start", 0.02, labels),
		End:         params.Normal("end", 0.02, labels),
		Constraints: constraints,
	}
}

// Chain is the words of one example that have logits.
type Chain struct {
	Rows []int // of the logits, word after word; at least one
	Gold []int // tag of each; negative where it is unknown: any tag may be the gold one
	// Gaps mark words without logits: Gaps[t] before word t, Gaps[N] after the last, [N+1].
	// Constraints do not hold for the transition across a gap. nil: no gaps.
	Gaps []bool
}

// withoutGold is the chain with all its tags unknown.
func (c Chain) withoutGold() Chain { c.Gold = nil; return c }

// check panics if the chain does not fit logits [rows labels].
func (c Chain) check(rows, labels int) {
	n := len(c.Rows)
	if n == 0 || len(c.Gold) != n || c.Gaps != nil && len(c.Gaps) != n+1 {
		panic(fmt.Sprintf("nn: CRF of a chain of %d words, %d tags and %d gaps", n, len(c.Gold), len(c.Gaps)))
	}
	for i, r := range c.Rows {
		if r < 0 || r >= rows || c.Gold[i] >= labels {
			panic(fmt.Sprintf("nn: CRF of row %d and tag %d, of %d and %d", r, c.Gold[i], rows, labels))
		}
	}
}

// Loss returns the sum over chains of -log p(gold), a scalar: logits [N L].
func (c *CRF) Loss(logits *Node, chains []Chain) *Node {
	labels := c.Start.Shape[0]
	rows := rowsOf("CRF", logits, labels)
	for _, chain := range chains {
		chain.check(rows, labels)
	}
	return Operation{
		Name: "CRF", Params: []*Param{c.Transitions, c.Start, c.End},
		Forward: func(in [][]float32, out []float32) {
			m := newLattice(in[1], in[2], in[3], c.Constraints)
			losses := make([]float64, len(chains))
			kernel.Parallel(len(chains), 1, func(i, _ int) {
				_, logZ := m.alphas(in[0], chains[i].withoutGold())
				_, logGold := m.alphas(in[0], chains[i])
				losses[i] = logZ - logGold
			})
			sum := 0.0
			for _, loss := range losses {
				sum += loss
			}
			out[0] = float32(sum)
		},
		// The gradient of log Z is how often each tag and transition is expected, over all sequences; that of
		// log p(gold) is the same over those that agree with the gold tags.
		Backward: func(in [][]float32, _, dOut []float32, dIn [][]float32) {
			m := newLattice(in[1], in[2], in[3], c.Constraints)
			counts := make([]crfCounts, len(chains))
			kernel.Parallel(len(chains), 1, func(i, _ int) {
				counts[i] = newCRFCounts(len(chains[i].Rows), labels)
				m.count(&counts[i], in[0], chains[i].withoutGold(), 1)
				m.count(&counts[i], in[0], chains[i], -1)
			})
			for i, n := range counts {
				if dIn[0] != nil {
					for t, r := range chains[i].Rows {
						addCounts(dIn[0][r*labels:(r+1)*labels], n.tags[t*labels:(t+1)*labels], dOut[0])
					}
				}
				addCounts(dIn[1], n.transitions, dOut[0])
				addCounts(dIn[2], n.tags[:labels], dOut[0])
				addCounts(dIn[3], n.tags[len(n.tags)-labels:], dOut[0])
			}
		},
	}.Apply(logits)
}

// addCounts adds factor times counts to the gradient d, unless d is nil.
func addCounts(d []float32, counts []float64, factor float32) {
	if d == nil {
		return
	}
	for i, n := range counts {
		d[i] += factor * float32(n)
	}
}

// Decode returns the most probable sequence of tags of a chain of words with logits [N L], ignoring its gold tags, and
// the marginal probability of each of these tags at its word. Where logits are NaN, the tags are arbitrary.
func (c *CRF) Decode(logits []float32, chain Chain) (tags []int, probabilities []float32) {
	m := newLattice(c.Transitions.Data, c.Start.Data, c.End.Data, c.Constraints)
	tags = m.viterbi(logits, chain)

	n := newCRFCounts(len(tags), m.labels)
	m.count(&n, logits, chain.withoutGold(), 1)
	probabilities = make([]float32, len(tags))
	for t, tag := range tags {
		probabilities[t] = float32(n.tags[t*m.labels+tag])
	}
	return tags, probabilities
}

// viterbi returns the most probable sequence of tags (Viterbi 1967).
func (m *lattice) viterbi(logits []float32, chain Chain) []int {
	labels, words := m.labels, len(chain.Rows)
	delta := make([]float64, words*labels) // [N L] log of the most probable sequence that ends in a tag
	previous := make([]int, words*labels)  // [N L] the tag before it in that sequence
	for t, row := range chain.Rows {
		transitions := m.into(chain, t)
		for j := range labels {
			best, from := math.Inf(-1), 0
			if t == 0 {
				best = transitions.start[j]
			} else {
				for i := range labels {
					if s := delta[(t-1)*labels+i] + transitions.between[i*labels+j]; s > best {
						best, from = s, i
					}
				}
			}
			delta[t*labels+j], previous[t*labels+j] = best+float64(logits[row*labels+j]), from
		}
	}

	// the most probable last tag, and back from it
	last, final, end := 0, delta[(words-1)*labels:], m.into(chain, words).end
	for j := range labels {
		if final[j]+end[j] > final[last]+end[last] {
			last = j
		}
	}
	tags := make([]int, words)
	for t := words - 1; t >= 0; t-- {
		tags[t] = last
		last = previous[t*labels+last]
	}
	return tags
}
