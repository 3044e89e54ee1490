// Package calibration fits probabilities to what came true on held-out examples, and measures how well they do: the
// temperature of a softmax, the slope and offset of a sigmoid, thresholds of decisions, conformal sets. It knows no
// model: an example is its logits.
package calibration

import (
	"math"
	"slices"

	"github.com/jenga-nlp/jenga/internal/floats"
)

// Example is what a head computes for an example, and what is right.
type Example struct {
	Logits [][]float32 // [windows][labels]; the probabilities are the mean over windows
	Gold   []int       // numbers of the labels that hold; below 0: one that the head does not know
}

// Bounds of a temperature: where all examples are right, the likelihood grows without end as the temperature falls.
const (
	LeastTemperature = 0.1
	MostTemperature  = 10
)

// Temperature returns the T that minimises the mean of -log p(gold), p the mean over windows of softmax(z/T) (Guo et
// al. 2017, "On Calibration of Modern Neural Networks"), within its bounds. With one window for each example the mean
// is convex in 1/T; with several it need not be, so that the search begins on a grid. Examples whose label is not known
// do not count; 1 without any other.
func Temperature(examples []Example) float64 {
	examples = slices.DeleteFunc(slices.Clone(examples), func(e Example) bool {
		return len(e.Gold) != 1 || e.Gold[0] < 0
	})
	if len(examples) == 0 {
		return 1
	}
	const grid = 24
	low, high := math.Log(LeastTemperature), math.Log(MostTemperature)
	step := (high - low) / grid
	loss := func(logT float64) float64 { return softmaxLoss(examples, math.Exp(-logT)) }
	best, bestLoss := 0.0, math.Inf(1)
	for i := range grid + 1 {
		if at := low + step*float64(i); loss(at) < bestLoss {
			best, bestLoss = at, loss(at)
		}
	}
	best = minimum(loss, max(low, best-step), min(high, best+step))
	return min(max(math.Exp(best), LeastTemperature), MostTemperature)
}

// softmaxLoss returns the mean of -log of the mean over windows of softmax(beta·z)[gold].
func softmaxLoss(examples []Example, beta float64) float64 {
	sum := 0.0
	for _, e := range examples {
		p := 0.0
		for _, z := range e.Logits {
			p += math.Exp(logSoftmax(z, e.Gold[0], beta)) / float64(len(e.Logits))
		}
		if len(e.Logits) == 1 { // the logarithm itself, where its exponential would be 0
			sum -= logSoftmax(e.Logits[0], e.Gold[0], beta)
			continue
		}
		sum -= math.Log(max(p, math.SmallestNonzeroFloat64))
	}
	return sum / float64(len(examples))
}

func logSoftmax(z []float32, c int, beta float64) float64 {
	largest := beta * float64(slices.Max(z))
	sum := 0.0
	for _, v := range z {
		sum += math.Exp(beta*float64(v) - largest)
	}
	return beta*float64(z[c]) - largest - math.Log(sum)
}

// minimum returns where a function of one minimum in [low, high] has it, by golden sections.
func minimum(f func(float64) float64, low, high float64) float64 {
	ratio := (math.Sqrt(5) - 1) / 2
	a, b := high-ratio*(high-low), low+ratio*(high-low)
	fa, fb := f(a), f(b)
	for high-low > 1e-9 {
		if fa <= fb {
			high, b, fb = b, a, fa
			a = high - ratio*(high-low)
			fa = f(a)
		} else {
			low, a, fa = a, b, fb
			b = low + ratio*(high-low)
			fb = f(b)
		}
	}
	return (low + high) / 2
}

// Bins is the number of bins of equal width that calibration errors are computed in.
const Bins = 15

// Measures say how well probabilities agree with what is right. They are means over examples with one label, and over
// the decisions of all examples and labels where any number of labels may hold.
type Measures struct {
	// ECE is the expected calibration error: over bins of the probability, the mean of |fraction right - mean
	// probability|, weighted by their numbers: of the likeliest label's probability and whether that is right, or of
	// each decision's and whether it holds.
	ECE float64 `json:"ece"`
	// Brier is the mean of Σ_c (p_c - y_c)² over all labels c, or of (p - y)² of a decision.
	Brier float64 `json:"brier"`
	// NLL is the mean of -log p(gold), or the binary cross entropy of a decision. Probabilities count as at least 2^-23
	// and at most 1 - 2^-23, as in scikit-learn. An example whose label is not known does not count; nil without
	// others.
	NLL *float64 `json:"nll"`
}

func clamp(p float64) float64 { return min(max(p, 0x1p-23), 1-0x1p-23) }

// Measure measures probabilities [examples][labels]. gold has the labels that hold, below 0 one that the head does not
// know: any number of them or, if one is true, a single one.
func Measure(p [][]float32, gold [][]int, one bool) Measures {
	var m Measures
	var bins errorBins
	nll, decisions, known := 0.0, 0, 0
	for i, row := range p {
		top := floats.Largest(row)
		for c, q := range row {
			holds := slices.Contains(gold[i], c)
			y, right := 0.0, 1-float64(q)
			if holds {
				y, right = 1, float64(q)
			}
			m.Brier += (float64(q) - y) * (float64(q) - y)
			if !one || c == top {
				bins.add(float64(q), holds)
				decisions++
			}
			if !one || holds {
				nll -= math.Log(clamp(right))
				known++
			}
		}
		if one && gold[i][0] < 0 {
			m.Brier++
		}
	}
	m.ECE, m.Brier, m.NLL = bins.error(), m.Brier/float64(max(1, decisions)), meanOf(nll, known)
	return m
}

func meanOf(sum float64, n int) *float64 {
	if n == 0 {
		return nil
	}
	mean := sum / float64(n)
	return &mean
}

// errorBins collects probabilities in bins: bin b of B has those in (b/B, (b+1)/B], the first 0 too.
type errorBins struct {
	sum, right [Bins]float64
	n          float64
}

func (b *errorBins) add(p float64, right bool) {
	at := min(max(int(math.Ceil(p*Bins))-1, 0), Bins-1)
	b.sum[at] += p
	b.n++
	if right {
		b.right[at]++
	}
}

// error returns Σ_b n_b/n·|right_b/n_b - sum_b/n_b|.
func (b *errorBins) error() float64 {
	e := 0.0
	for at := range b.sum {
		e += math.Abs(b.right[at] - b.sum[at])
	}
	return e / max(1, b.n)
}

// Tops returns the decision of each example for its likeliest label, and whether that is right.
func Tops(p [][]float32, gold []int) []Decision {
	all := make([]Decision, len(p))
	for i, row := range p {
		top := floats.Largest(row)
		all[i] = Decision{row[top], top == gold[i]}
	}
	return all
}

// Sigmoid is the probability σ(A·z + B) of a binary decision with logit z.
type Sigmoid struct {
	A float64 `json:"a"`
	B float64 `json:"b"`
}

// Bounds of A: it is not negative, which would turn the order of logits around, and finite where a logit separates all
// examples.
const (
	LeastSlope = 0.01
	MostSlope  = 100
)

// Binary is a decision with its logits, one for each window of a text, and whether it holds.
type Binary struct {
	Logits []float32
	Holds  bool
}

// Platt returns the sigmoid of the largest likelihood, with Platt's targets (N₊+1)/(N₊+2) for what holds and 1/(N₋+2)
// for what does not, N the number of each (Platt 1999, "Probabilistic Outputs for Support Vector Machines"). The
// probability of a text in several windows is the mean of theirs. A has bounds.
func Platt(decisions []Binary) Sigmoid {
	holding := 0
	for _, d := range decisions {
		if d.Holds {
			holding++
		}
	}
	fit := plattFit{decisions, float64(holding+1) / float64(holding+2), 1 / float64(len(decisions)-holding+2)}
	s := fit.improve(Sigmoid{A: 1}, true)
	switch {
	case s.A < LeastSlope: // the loss is convex for texts of one window: the best within bounds is on the bound
		s = fit.improve(Sigmoid{A: LeastSlope}, false)
	case s.A > MostSlope:
		s = fit.improve(Sigmoid{A: MostSlope}, false)
	}
	return s
}

type plattFit struct {
	decisions       []Binary
	holding, others float64 // targets
}

func (f plattFit) target(d Binary) float64 {
	if d.Holds {
		return f.holding
	}
	return f.others
}

// probability returns the mean over windows, and its derivatives by A and B.
func (s Sigmoid) probability(logits []float32) (p, byA, byB float64) {
	n := float64(len(logits))
	for _, z := range logits {
		q := 1 / (1 + math.Exp(-s.A*float64(z)-s.B))
		p += q / n
		byA += q * (1 - q) * float64(z) / n
		byB += q * (1 - q) / n
	}
	return p, byA, byB
}

func (f plattFit) loss(s Sigmoid) float64 {
	sum := 0.0
	for _, d := range f.decisions {
		p, _, _ := s.probability(d.Logits)
		t, p := f.target(d), min(max(p, 1e-300), 1-1e-16)
		sum -= t*math.Log(p) + (1-t)*math.Log1p(-p)
	}
	return sum
}

// improve minimises the loss by steps of Fisher's scoring, which for one window are Newton's, each halved until the
// loss falls. The slope stays as it is unless slopes is true.
func (f plattFit) improve(s Sigmoid, slopes bool) Sigmoid {
	loss := f.loss(s)
	for range 100 {
		a, b := f.step(s, slopes)
		moved := false
		for size := 1.0; size > 1e-10; size /= 2 {
			next := Sigmoid{s.A + size*a, s.B + size*b}
			if l := f.loss(next); l < loss {
				moved = loss-l > 1e-13*math.Abs(loss)
				s, loss = next, l
				break
			}
		}
		if !moved {
			return s
		}
	}
	return s
}

// step returns the step of Fisher's scoring: the inverse of the information times the gradient.
func (f plattFit) step(s Sigmoid, slopes bool) (a, b float64) {
	const ridge = 1e-9 // of the information, where all logits are the same
	gA, gB, aa, ab, bb := 0.0, 0.0, ridge, 0.0, ridge
	for _, d := range f.decisions {
		p, byA, byB := s.probability(d.Logits)
		variance := max(p*(1-p), 1e-12)
		residual := (f.target(d) - p) / variance
		gA, gB = gA+residual*byA, gB+residual*byB
		aa, ab, bb = aa+byA*byA/variance, ab+byA*byB/variance, bb+byB*byB/variance
	}
	if !slopes {
		return 0, gB / bb
	}
	determinant := aa*bb - ab*ab
	if !(determinant > 0) {
		return 0, gB / bb
	}
	return (bb*gA - ab*gB) / determinant, (aa*gB - ab*gA) / determinant
}
