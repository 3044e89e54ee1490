package nn

import "math"

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
func newLattice(between, start, end []float32, constraints *Transitions) *lattice {
	all := newLatticeOf(between, start, end, NewTransitions(len(start)))
	all.unconstrained = all
	if constraints == nil {
		return all
	}
	m := newLatticeOf(between, start, end, constraints)
	m.unconstrained = all
	return m
}

func newLatticeOf(between, start, end []float32, allowed *Transitions) *lattice {
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
		m.start[i], m.end[i] = score(start[i], allowed.Start(), i), score(end[i], i, allowed.End())
		for j := range labels {
			m.between[i*labels+j] = score(between[i*labels+j], i, j)
		}
	}
	m.highest = exponentials(m.exp, m.between)
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

// logSumOf returns log Σ exp(term(i)) over n terms.
func logSumOf(n int, term func(i int) float64) float64 {
	terms := make([]float64, n)
	for i := range terms {
		terms[i] = term(i)
	}
	return logSum(terms)
}

// logSum returns log Σ exp(x), -Inf where all x are.
func logSum(x []float64) float64 {
	highest := math.Inf(-1)
	for _, v := range x {
		highest = math.Max(highest, v)
	}
	if math.IsInf(highest, 0) || math.IsNaN(highest) {
		return highest
	}
	sum := 0.0
	for _, v := range x {
		sum += math.Exp(v - highest)
	}
	return highest + math.Log(sum)
}
