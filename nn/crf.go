package nn

import (
	"fmt"
	"math"
	"slices"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// Transitions are the allowed transitions between tags in the chain of a CRF. A transition leads from a tag, or from
// Start, to a tag, or to End. A nil *Transitions allows all.
type Transitions struct {
	tags      int
	forbidden []bool // [tags+1, tags+1]
}

// NewTransitions returns transitions between that many tags, all of them allowed.
func NewTransitions(tags int) *Transitions {
	return &Transitions{tags, make([]bool, (tags+1)*(tags+1))}
}

// Start is the state before the first word: transitions lead from it.
func (t *Transitions) Start() int { return t.tags }

// End is the state after the last word: transitions lead to it.
func (t *Transitions) End() int { return t.tags }

// Forbid gives a transition probability 0.
func (t *Transitions) Forbid(from, to int) { t.forbidden[t.index(from, to)] = true }

// Allowed reports whether to may follow from.
func (t *Transitions) Allowed(from, to int) bool { return t == nil || !t.forbidden[t.index(from, to)] }

// AllAllowed reports whether no transition is forbidden.
func (t *Transitions) AllAllowed() bool { return t == nil || !slices.Contains(t.forbidden, true) }

// index is the place of a transition in forbidden: Start has the last row, End the last column.
func (t *Transitions) index(from, to int) int { return from*(t.tags+1) + to }

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
	Gold []int // tag of each; negative where it is unknown: any tag may be the gold one; nil if all are
	// Gaps mark words without logits: Gaps[t] before word t, Gaps[N] after the last, [N+1].
	// Constraints do not hold for the transition across a gap. nil if there are no gaps.
	Gaps []bool
}

func (c Chain) withoutGold() Chain { c.Gold = nil; return c }

// check panics if the chain does not fit logits [rows labels].
func (c Chain) check(rows, labels int) {
	n := len(c.Rows)
	if n == 0 || c.Gold != nil && len(c.Gold) != n || c.Gaps != nil && len(c.Gaps) != n+1 {
		panic(fmt.Sprintf("nn: CRF of a chain of %d words, %d tags and %d gaps", n, len(c.Gold), len(c.Gaps)))
	}
	for i, r := range c.Rows {
		if r < 0 || r >= rows {
			panic(fmt.Sprintf("nn: CRF of row %d of %d", r, rows))
		}
		if c.Gold != nil && c.Gold[i] >= labels {
			panic(fmt.Sprintf("nn: CRF of tag %d of %d", c.Gold[i], labels))
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
			addGradients(dIn, chains, counts, dOut[0])
		},
	}.Apply(logits)
}

// addGradients adds factor times the expected counts of chains to the gradients at the logits, the transitions, the
// start and the end.
func addGradients(dIn [][]float32, chains []Chain, counts []crfCounts, factor float32) {
	for i, n := range counts {
		labels := len(n.tags) / len(chains[i].Rows)
		if dIn[0] != nil {
			for t, r := range chains[i].Rows {
				addCounts(dIn[0][r*labels:(r+1)*labels], n.tags[t*labels:(t+1)*labels], factor)
			}
		}
		addCounts(dIn[1], n.transitions, factor)
		addCounts(dIn[2], n.tags[:labels], factor)
		addCounts(dIn[3], n.tags[len(n.tags)-labels:], factor)
	}
}

// addCounts adds factor times counts to the gradient d, unless d is nil.
func addCounts(d []float32, counts []float64, factor float32) {
	for i := range d {
		d[i] += factor * float32(counts[i])
	}
}

// SoftLoss returns the sum over chains of T²·Σ_y -Q(y)·log P(y), a scalar, where P is the probability of the tags y by
// logits/T [N L] and transitions/T, and Q the product of a teacher's probabilities q [N L] of each word's tag, over the
// tags that the constraints allow and normalised over them:
//
//	Q(y) ∝ Π_t q[t, y_t]    log P(y) = (start[y_1] + Σ_t z[t, y_t] + Σ_t A[y_t, y_t+1] + end[y_n])/T - log Z
//
// All words of a chain have probabilities; leave a word without them out as a gap. A chain adds nothing if the
// constraints forbid all tags that q allows. Gold tags are ignored.
func (c *CRF) SoftLoss(logits *Node, chains []Chain, q []float32, temperature float64) *Node {
	labels := checkSoft("CRF", logits, q, temperature, nil)
	rows := rowsOf("CRF", logits, c.Start.Shape[0])
	for _, chain := range chains {
		chain.check(rows, labels)
	}
	logQ := make([]float32, len(q))
	for i, v := range q {
		logQ[i] = float32(math.Log(float64(v)))
	}
	// Q is a chain too, of the logits log q and without learned transitions. each visits the chains with minus the
	// expected counts of Q.
	none := newLattice(make([]float32, labels*labels), make([]float32, labels), make([]float32, labels), c.Constraints)
	each := func(visit func(i int, chain Chain, n *crfCounts)) {
		kernel.Parallel(len(chains), 1, func(i, _ int) {
			chain, n := chains[i].withoutGold(), newCRFCounts(len(chains[i].Rows), labels)
			if _, total := none.alphas(logQ, chain); !math.IsInf(total, -1) {
				none.count(&n, logQ, chain, -1)
				visit(i, chain, &n)
			}
		})
	}
	student := func(in [][]float32) (z []float32, m *lattice) {
		at := func(x []float32) []float32 { return Tempered(x, temperature) }
		return at(in[0]), newLattice(at(in[1]), at(in[2]), at(in[3]), c.Constraints)
	}
	return Operation{
		Name: "soft CRF", Params: []*Param{c.Transitions, c.Start, c.End},
		Forward: func(in [][]float32, out []float32) {
			z, m := student(in)
			losses := make([]float64, len(chains))
			each(func(i int, chain Chain, minusQ *crfCounts) {
				_, logZ := m.alphas(z, chain)
				losses[i] = logZ + m.expected(minusQ, z, chain)
			})
			sum := 0.0
			for _, loss := range losses {
				sum += loss
			}
			out[0] = float32(temperature * temperature * sum)
		},
		// the expected counts of P less those of Q
		Backward: func(in [][]float32, _, dOut []float32, dIn [][]float32) {
			z, m := student(in)
			counts := make([]crfCounts, len(chains))
			for i, chain := range chains {
				counts[i] = newCRFCounts(len(chain.Rows), labels)
			}
			each(func(i int, chain Chain, minusQ *crfCounts) {
				m.count(minusQ, z, chain, 1)
				counts[i] = *minusQ
			})
			addGradients(dIn, chains, counts, dOut[0]*float32(temperature))
		},
	}.Apply(logits)
}

// Marginals returns the marginal probability of each tag of each word of each chain, [n L] of one of n words, by
// logits/T [N L] and transitions/T, ignoring gold tags.
func (c *CRF) Marginals(logits []float32, chains []Chain, temperature float64) [][]float32 {
	at := func(w *Param) []float32 { return Tempered(w.Data, temperature) }
	m := newLattice(at(c.Transitions), at(c.Start), at(c.End), c.Constraints)
	logits = Tempered(logits, temperature)
	all := make([][]float32, len(chains))
	for i, chain := range chains {
		all[i] = m.marginals(logits, chain)
	}
	return all
}

func (m *lattice) marginals(logits []float32, chain Chain) []float32 {
	n := newCRFCounts(len(chain.Rows), m.labels)
	m.count(&n, logits, chain.withoutGold(), 1)
	marginals := make([]float32, len(n.tags))
	for i, p := range n.tags {
		marginals[i] = float32(p)
	}
	return marginals
}

// Decode returns the most probable sequence of tags of a chain of words with logits [N L], ignoring its gold tags, and
// the marginal probability of each of these tags at its word. Where logits are NaN, the tags are arbitrary.
func (c *CRF) Decode(logits []float32, chain Chain) (tags []int, probabilities []float32) {
	m := newLattice(c.Transitions.Data, c.Start.Data, c.End.Data, c.Constraints)
	tags = m.viterbi(logits, chain)
	marginals := m.marginals(logits, chain)
	probabilities = make([]float32, len(tags))
	for t, tag := range tags {
		probabilities[t] = marginals[t*m.labels+tag]
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

// lattice holds the scores of the transitions, and their exponentials for sums over sequences of tags.
type lattice struct {
	labels     int
	start, end []float64 // [L], -Inf where forbidden
	between    []float64 // [L L] from a tag to the next, -Inf where forbidden
	highest    float64   // the largest of between, 0 if that is not finite
	exp        []float64 // [L L] exp(between - highest)

	unconstrained *lattice // with all transitions allowed
}

// newLattice returns the lattice of transitions [L L], start [L] and end [L].
func newLattice(between, start, end []float32, allowed *Transitions) *lattice {
	labels := len(start)
	m := &lattice{
		labels: labels, start: make([]float64, labels), end: make([]float64, labels),
		between: make([]float64, labels*labels), exp: make([]float64, labels*labels),
	}
	score := func(learned float32, from, to int) float64 {
		if !allowed.Allowed(from, to) {
			return math.Inf(-1)
		}
		return float64(learned)
	}
	for i := range labels {
		m.start[i], m.end[i] = score(start[i], labels, i), score(end[i], i, labels) // labels is Start, and End
		for j := range labels {
			m.between[i*labels+j] = score(between[i*labels+j], i, j)
		}
	}
	m.highest = exponentials(m.exp, m.between)
	if m.unconstrained = m; allowed != nil {
		m.unconstrained = newLattice(between, start, end, nil)
	}
	return m
}

// into returns the lattice whose transitions lead into word t of a chain, or to its end where t is its length.
func (m *lattice) into(c Chain, t int) *lattice {
	if c.Gaps != nil && c.Gaps[t] {
		return m.unconstrained
	}
	return m
}

// The sums over sequences of tags follow Rabiner (1989): alpha sums over what comes before a tag, beta over what comes
// after it. With gold tags, only sequences that agree with those that are known are counted.

// alphas returns log alpha [N L], of which alpha[t, j] is the sum over the sequences up to word t that end in tag j,
// with the logit of j; and the log of the sum over whole sequences, which is log Z where the chain has no gold tags.
func (m *lattice) alphas(logits []float32, c Chain) (alpha []float64, total float64) {
	labels, words := m.labels, len(c.Rows)
	alpha = make([]float64, words*labels)                          // [N L]
	exp, final := make([]float64, labels), make([]float64, labels) // [L] each
	for t := range words {
		at := alpha[t*labels : (t+1)*labels] // [L]
		if t == 0 {
			copy(at, m.into(c, t).start)
		} else {
			m.into(c, t).stepForward(at, alpha[(t-1)*labels:t*labels], exp)
		}
		for j := range at {
			at[j] += m.logit(logits, c, t, j)
		}
	}

	end := m.into(c, words).end // [L]
	for j := range final {
		final[j] = alpha[(words-1)*labels+j] + end[j]
	}
	return alpha, logSum(final)
}

// betas returns log beta [N L], of which beta[t, j] is the sum over the sequences after word t that follow tag j,
// without the logit of j.
func (m *lattice) betas(logits []float32, c Chain) []float64 {
	labels, words := m.labels, len(c.Rows)
	beta := make([]float64, words*labels)                         // [N L]
	exp, next := make([]float64, labels), make([]float64, labels) // [L] each
	copy(beta[(words-1)*labels:], m.into(c, words).end)
	for t := words - 2; t >= 0; t-- {
		for j := range next {
			next[j] = m.logit(logits, c, t+1, j) + beta[(t+1)*labels+j]
		}
		m.into(c, t+1).stepBackward(beta[t*labels:(t+1)*labels], next, exp)
	}
	return beta
}

// logit returns the logit of tag j at word t, -Inf where the gold tag is another.
func (m *lattice) logit(logits []float32, c Chain, t, j int) float64 {
	if c.Gold != nil && c.Gold[t] >= 0 && c.Gold[t] != j {
		return math.Inf(-1)
	}
	return float64(logits[c.Rows[t]*m.labels+j])
}

// crfCounts are the expected counts in a chain of each tag at each word, [N L], and of each transition, [L L].
type crfCounts struct{ tags, transitions []float64 }

func newCRFCounts(words, labels int) crfCounts {
	return crfCounts{make([]float64, words*labels), make([]float64, labels*labels)}
}

// count adds factor times the expected counts over all sequences, or over those that agree with the chain's gold tags:
// exp(alpha + beta - log Z) of a tag, exp(alpha_i + transition_ij + logit_j + beta_j - log Z) of a transition.
func (m *lattice) count(n *crfCounts, logits []float32, c Chain, factor float64) {
	labels := m.labels
	alpha, logZ := m.alphas(logits, c)
	beta := m.betas(logits, c)
	for i, a := range alpha {
		n.tags[i] += factor * math.Exp(a+beta[i]-logZ)
	}

	from, to, exp := make([]float64, labels), make([]float64, labels), make([]float64, 2*labels)
	for t := 1; t < len(c.Rows); t++ {
		for i := range labels {
			from[i] = alpha[(t-1)*labels+i] - logZ
			to[i] = m.logit(logits, c, t, i) + beta[t*labels+i]
		}
		m.into(c, t).countTransitions(n.transitions, from, to, exp, factor)
	}
}

// expected returns the sum of the logits and of the learned transitions of a chain, each times its expected count.
func (m *lattice) expected(n *crfCounts, logits []float32, c Chain) float64 {
	free, labels, sum := m.unconstrained, m.labels, 0.0 // a forbidden transition is not expected
	for t, row := range c.Rows {
		for j := range labels {
			sum += n.tags[t*labels+j] * float64(logits[row*labels+j])
		}
	}
	for j := range labels {
		sum += n.tags[j]*free.start[j] + n.tags[len(n.tags)-labels+j]*free.end[j]
	}
	for i, count := range n.transitions {
		sum += count * free.between[i]
	}
	return sum
}

// countTransitions adds to counts [L L] factor times exp(from_i + between_ij + to_j). exp [2 L] is scratch memory.
func (m *lattice) countTransitions(counts, from, to, exp []float64, factor float64) {
	labels := m.labels
	expFrom, expTo := exp[:labels], exp[labels:]
	highest := exponentials(expFrom, from) + exponentials(expTo, to) + m.highest
	if highest < 600 {
		scale := factor * math.Exp(highest)
		for i, e := range expFrom {
			if e == 0 {
				continue
			}
			for j, transition := range m.exp[i*labels : (i+1)*labels] {
				counts[i*labels+j] += scale * e * transition * expTo[j]
			}
		}
		return
	}

	// at such a scale some exponentials overflow float64: term by term
	for i, f := range from {
		for j, b := range to {
			if p := f + m.between[i*labels+j] + b; p > -700 {
				counts[i*labels+j] += factor * math.Exp(p)
			}
		}
	}
}

// exponentials writes exp(x - highest) to out and returns highest, the largest of x, or 0 where that is not finite.
func exponentials(out, x []float64) (highest float64) {
	highest = math.Inf(-1)
	for _, v := range x {
		highest = math.Max(highest, v)
	}
	if math.IsInf(highest, 0) {
		highest = 0
	}
	for i, v := range x {
		out[i] = math.Exp(v - highest)
	}
	return highest
}

// A sum of exponentials below smallestSum may lack terms that underflowed: it is computed again, in log space.
const smallestSum = 1e-280

// stepForward writes to out [L] log Σ_i exp(x_i + between_ij) for each tag j. exp [L] is scratch memory.
func (m *lattice) stepForward(out, x, exp []float64) {
	highest := exponentials(exp, x)
	clear(out)
	for i, e := range exp {
		if e == 0 {
			continue
		}
		for j, transition := range m.exp[i*m.labels : (i+1)*m.labels] {
			out[j] += e * transition
		}
	}
	for j, sum := range out {
		if sum < smallestSum {
			out[j] = logSumOf(m.labels, func(i int) float64 { return x[i] + m.between[i*m.labels+j] })
		} else {
			out[j] = highest + m.highest + math.Log(sum)
		}
	}
}

// stepBackward writes to out [L] log Σ_j exp(between_ij + x_j) for each tag i. exp [L] is scratch memory.
func (m *lattice) stepBackward(out, x, exp []float64) {
	highest := exponentials(exp, x)
	for i := range out {
		sum := 0.0
		for j, transition := range m.exp[i*m.labels : (i+1)*m.labels] {
			sum += transition * exp[j]
		}
		if sum < smallestSum {
			out[i] = logSumOf(m.labels, func(j int) float64 { return m.between[i*m.labels+j] + x[j] })
		} else {
			out[i] = highest + m.highest + math.Log(sum)
		}
	}
}
