package nn

import (
	"fmt"
	"math"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// CRF is a linear-chain conditional random field (Lafferty et al. 2001): the probability of tags y of a chain of words is
//
//	exp(start[y_1] + Σ_t scores[t, y_t] + Σ_t transitions[y_t, y_t+1] + end[y_n]) / Z
//
// All sums over chains are taken in log space: scores of any size neither overflow nor vanish.
type CRF struct {
	Transitions *Param // [L L] from a tag to the next
	Start, End  *Param // [L]
	// Forbidden moves have probability 0 where a chain does not free them: [L+1 L+1] from a tag, or from L before the
	// first word, to a tag, or to L behind the last. nil: none is.
	Forbidden []bool
}

// NewCRF makes the parameters "transitions", "start" and "end", from normal(0, 0.02).
func NewCRF(params Params, labels int, forbidden []bool) *CRF {
	if forbidden != nil && len(forbidden) != (labels+1)*(labels+1) {
		panic(fmt.Sprintf("nn: CRF of %d tags with %d moves", labels, len(forbidden)))
	}
	return &CRF{
		Transitions: params.Normal("transitions", 0.02, labels, labels),
		Start:       params.Normal("start", 0.02, labels),
		End:         params.Normal("end", 0.02, labels),
		Forbidden:   forbidden,
	}
}

// Chain is the words of one example that have scores.
type Chain struct {
	Rows []int // of the scores, word after word; at least one
	Gold []int // tag of each; negative where it is not known: any tag may be the gold one
	// Free are the moves that Forbidden does not hold for, [N+1]: into word t from what has scores before it, and at N to
	// what is behind: words between them have none. nil: it holds for all.
	Free []bool
}

// anyTags is the chain of all tags.
func (c Chain) anyTags() Chain { c.Gold = nil; return c }

// Loss returns the sum over chains of -log p(gold), a number: scores [N L].
func (c *CRF) Loss(scores *Node, chains []Chain) *Node {
	labels := c.Start.Shape[0]
	rows := rowsOf("CRF", scores, labels)
	for _, chain := range chains {
		if n := len(chain.Rows); n == 0 || len(chain.Gold) != n || chain.Free != nil && len(chain.Free) != n+1 {
			panic(fmt.Sprintf("nn: CRF of a chain of %d words, %d tags and %d moves that may be free", n, len(chain.Gold), len(chain.Free)))
		}
		for i, r := range chain.Rows {
			if r < 0 || r >= rows || chain.Gold[i] >= labels {
				panic(fmt.Sprintf("nn: CRF of row %d and tag %d, of %d and %d", r, chain.Gold[i], rows, labels))
			}
		}
	}
	return Operation{
		Name: "CRF", Params: []*Param{c.Transitions, c.Start, c.End},
		Forward: func(in [][]float32, out []float32) {
			m := c.moves(in[1], in[2], in[3])
			losses := make([]float64, len(chains))
			kernel.Parallel(len(chains), 1, func(i, _ int) {
				_, all := m.forward(in[0], chains[i].anyTags())
				_, gold := m.forward(in[0], chains[i])
				losses[i] = all - gold
			})
			sum := 0.0
			for _, l := range losses {
				sum += l
			}
			out[0] = float32(sum)
		},
		// The gradient of log Z is each score's expected count: of all chains, less that of those that agree with gold.
		Backward: func(in [][]float32, _, dOut []float32, dIn [][]float32) {
			m := c.moves(in[1], in[2], in[3])
			counts := make([]crfCounts, len(chains))
			kernel.Parallel(len(chains), 1, func(i, _ int) {
				counts[i] = newCRFCounts(len(chains[i].Rows), labels)
				m.count(&counts[i], in[0], chains[i].anyTags(), 1)
				m.count(&counts[i], in[0], chains[i], -1)
			})
			for i, n := range counts {
				if dIn[0] != nil {
					for t, r := range chains[i].Rows {
						addCounts(dIn[0][r*labels:(r+1)*labels], n.tags[t*labels:(t+1)*labels], dOut[0])
					}
				}
				addCounts(dIn[1], n.moves, dOut[0])
				addCounts(dIn[2], n.tags[:labels], dOut[0])
				addCounts(dIn[3], n.tags[len(n.tags)-labels:], dOut[0])
			}
		},
	}.Apply(scores)
}

// addCounts adds by times counts to d, if it is wanted.
func addCounts(d []float32, counts []float64, by float32) {
	if d == nil {
		return
	}
	for i, n := range counts {
		d[i] += by * float32(n)
	}
}

// Decode returns the likeliest tags of a chain of words with scores [N L], whatever its gold ones, and the probability of
// each tag at its word. Where scores are no numbers, the tags are some.
func (c *CRF) Decode(scores []float32, chain Chain) (tags []int, shares []float32) {
	m := c.moves(c.Transitions.Data, c.Start.Data, c.End.Data)
	labels, rows := m.labels, chain.Rows
	best := make([]float64, len(rows)*labels) // log of the likeliest way to a tag
	from := make([]int, len(rows)*labels)
	for t, r := range rows {
		into := m.into(chain, t)
		for j := range labels {
			score, at := math.Inf(-1), 0
			if t == 0 {
				score = into.start[j]
			} else {
				for i := range labels {
					if s := best[(t-1)*labels+i] + into.between[i*labels+j]; s > score {
						score, at = s, i
					}
				}
			}
			best[t*labels+j], from[t*labels+j] = score+float64(scores[r*labels+j]), at
		}
	}
	tags = make([]int, len(rows))
	last, end := 0, m.into(chain, len(rows)).end
	for j := range labels {
		if best[(len(rows)-1)*labels+j]+end[j] > best[(len(rows)-1)*labels+last]+end[last] {
			last = j
		}
	}
	for t := len(rows) - 1; t >= 0; t-- {
		tags[t] = last
		last = from[t*labels+last]
	}

	n := newCRFCounts(len(rows), labels)
	m.count(&n, scores, chain.anyTags(), 1)
	shares = make([]float32, len(rows))
	for t, tag := range tags {
		shares[t] = float32(n.tags[t*labels+tag])
	}
	return tags, shares
}

// crfMoves are the scores of moves, -Inf where they are forbidden.
type crfMoves struct {
	labels              int
	start, between, end []float64 // [L], [L L], [L]
	top                 float64   // the largest of between
	powers              []float64 // [L L] exp(between - top)
	free                *crfMoves // where none is forbidden
}

func (c *CRF) moves(between, start, end []float32) *crfMoves {
	free := newCRFMoves(between, start, end, nil)
	if free.free = free; c.Forbidden == nil {
		return free
	}
	m := newCRFMoves(between, start, end, c.Forbidden)
	m.free = free
	return m
}

func newCRFMoves(between, start, end []float32, forbidden []bool) *crfMoves {
	labels := len(start)
	m := &crfMoves{labels: labels, start: make([]float64, labels), between: make([]float64, labels*labels), end: make([]float64, labels)}
	move := func(score float32, from, to int) float64 {
		if forbidden != nil && forbidden[from*(labels+1)+to] {
			return math.Inf(-1)
		}
		return float64(score)
	}
	m.top = math.Inf(-1)
	for i := range labels {
		m.start[i], m.end[i] = move(start[i], labels, i), move(end[i], i, labels)
		for j := range labels {
			m.between[i*labels+j] = move(between[i*labels+j], i, j)
			m.top = math.Max(m.top, m.between[i*labels+j])
		}
	}
	if math.IsInf(m.top, 0) {
		m.top = 0
	}
	m.powers = make([]float64, labels*labels)
	for i, score := range m.between {
		m.powers[i] = math.Exp(score - m.top)
	}
	return m
}

// into are the moves into word t of a chain, or at its length to what is behind it.
func (m *crfMoves) into(c Chain, t int) *crfMoves {
	if c.Free != nil && c.Free[t] {
		return m.free
	}
	return m
}

// A sum of powers below it may have lost some of its terms to underflow: it is taken again, term by term.
const leastSum = 1e-280

// ahead writes to out [L] log Σ_i exp(x_i + between_ij) for each tag j.
func (m *crfMoves) ahead(out, x, powers []float64) {
	top := m.toPowers(powers, x)
	clear(out)
	for i, power := range powers {
		if power == 0 {
			continue
		}
		for j, move := range m.powers[i*m.labels : (i+1)*m.labels] {
			out[j] += power * move
		}
	}
	for j, sum := range out {
		if sum < leastSum {
			out[j] = m.sumOf(func(i int) float64 { return x[i] + m.between[i*m.labels+j] })
		} else {
			out[j] = top + m.top + math.Log(sum)
		}
	}
}

// back writes to out [L] log Σ_j exp(between_ij + x_j) for each tag i.
func (m *crfMoves) back(out, x, powers []float64) {
	top := m.toPowers(powers, x)
	for i := range out {
		sum := 0.0
		for j, move := range m.powers[i*m.labels : (i+1)*m.labels] {
			sum += move * powers[j]
		}
		if sum < leastSum {
			out[i] = m.sumOf(func(j int) float64 { return m.between[i*m.labels+j] + x[j] })
		} else {
			out[i] = top + m.top + math.Log(sum)
		}
	}
}

// toPowers writes exp(x - top) to powers and returns top, the largest of x, or 0 where that is not finite.
func (m *crfMoves) toPowers(powers, x []float64) (top float64) {
	top = math.Inf(-1)
	for _, v := range x {
		top = math.Max(top, v)
	}
	if math.IsInf(top, 0) {
		top = 0
	}
	for i, v := range x {
		powers[i] = math.Exp(v - top)
	}
	return top
}

// sumOf is log Σ exp of the terms of all tags.
func (m *crfMoves) sumOf(term func(i int) float64) float64 {
	terms := make([]float64, m.labels)
	for i := range terms {
		terms[i] = term(i)
	}
	return logSum(terms)
}

// logSum returns log Σ exp(x), -Inf where all are.
func logSum(x []float64) float64 {
	top := math.Inf(-1)
	for _, v := range x {
		top = math.Max(top, v)
	}
	if math.IsInf(top, 0) || math.IsNaN(top) {
		return top
	}
	sum := 0.0
	for _, v := range x {
		sum += math.Exp(v - top)
	}
	return top + math.Log(sum)
}

// forward returns for each word t and tag j of a chain the log of all ways up to the word that give it the tag, its score
// counted in, [N L], and the log of all ways, those that agree with the chain's gold tags if it has some.
func (m *crfMoves) forward(scores []float32, c Chain) (ways []float64, total float64) {
	labels, n := m.labels, len(c.Rows)
	ways = make([]float64, n*labels)
	powers, last := make([]float64, labels), make([]float64, labels)
	for t := range n {
		at, into := ways[t*labels:(t+1)*labels], m.into(c, t)
		if t == 0 {
			copy(at, into.start)
		} else {
			into.ahead(at, ways[(t-1)*labels:t*labels], powers)
		}
		for j := range at {
			at[j] += m.score(scores, c, t, j)
		}
	}
	end := m.into(c, n).end
	for j := range last {
		last[j] = ways[(n-1)*labels+j] + end[j]
	}
	return ways, logSum(last)
}

// backward returns for each word and tag the log of all ways from the word on, its own score not counted in, [N L].
func (m *crfMoves) backward(scores []float32, c Chain) []float64 {
	labels, n := m.labels, len(c.Rows)
	ways := make([]float64, n*labels)
	powers, behind := make([]float64, labels), make([]float64, labels)
	copy(ways[(n-1)*labels:], m.into(c, n).end)
	for t := n - 2; t >= 0; t-- {
		for j := range behind {
			behind[j] = m.score(scores, c, t+1, j) + ways[(t+1)*labels+j]
		}
		m.into(c, t+1).back(ways[t*labels:(t+1)*labels], behind, powers)
	}
	return ways
}

// score is that of tag j at word t, -Inf where gold says another.
func (m *crfMoves) score(scores []float32, c Chain, t, j int) float64 {
	if c.Gold != nil && c.Gold[t] >= 0 && c.Gold[t] != j {
		return math.Inf(-1)
	}
	return float64(scores[c.Rows[t]*m.labels+j])
}

// crfCounts are how often each tag and each move is expected in a chain.
type crfCounts struct{ tags, moves []float64 } // [N L], [L L]

func newCRFCounts(words, labels int) crfCounts {
	return crfCounts{make([]float64, words*labels), make([]float64, labels*labels)}
}

// count adds by times what is expected over all tags, or those that agree with the chain's gold ones.
func (m *crfMoves) count(n *crfCounts, scores []float32, c Chain, by float64) {
	forward, total := m.forward(scores, c)
	backward := m.backward(scores, c)
	labels := m.labels
	for i, f := range forward {
		n.tags[i] += by * math.Exp(f+backward[i]-total)
	}
	from, to := make([]float64, labels), make([]float64, labels)
	fromPowers, toPowers := make([]float64, labels), make([]float64, labels)
	for t := 1; t < len(c.Rows); t++ {
		into := m.into(c, t)
		for i := range labels {
			from[i] = forward[(t-1)*labels+i] - total
			to[i] = m.score(scores, c, t, i) + backward[t*labels+i]
		}
		size := m.toPowers(fromPowers, from) + m.toPowers(toPowers, to) + into.top
		if factor := by * math.Exp(size); size < 600 {
			for i, power := range fromPowers {
				if power == 0 {
					continue
				}
				for j, move := range into.powers[i*labels : (i+1)*labels] {
					n.moves[i*labels+j] += factor * power * move * toPowers[j]
				}
			}
			continue
		}
		for i, f := range from { // of such a size, some powers are beyond a number's range
			for j, b := range to {
				if p := f + into.between[i*labels+j] + b; p > -700 {
					n.moves[i*labels+j] += by * math.Exp(p)
				}
			}
		}
	}
}
