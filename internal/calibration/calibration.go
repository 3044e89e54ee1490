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
// al. 2017, "On Calibration of Modern Neural Networks"), within its bounds. Examples whose label is not known do not
// count; 1 without any other. more is called before each pass over the examples; where it returns false, the search
// ends with what it has.
func Temperature(examples []Example, more func() bool) float64 {
	examples = slices.DeleteFunc(slices.Clone(examples), func(e Example) bool {
		return len(e.Gold) != 1 || e.Gold[0] < 0
	})
	if len(examples) == 0 {
		return 1
	}
	// with one window for each example the mean is convex in 1/T; with several it need not be
	beta, low, high := 1.0, 1./MostTemperature, 1./LeastTemperature
	if slices.ContainsFunc(examples, func(e Example) bool { return len(e.Logits) > 1 }) {
		beta, low, high = onGrid(func(beta float64) float64 { return softmaxLoss(examples, beta) }, low, high, more)
	}
	slopes := func(beta float64) (first, second float64) { return softmaxSlopes(examples, beta) }
	return min(max(1/minimum(slopes, beta, low, high, more), LeastTemperature), MostTemperature)
}

// onGrid returns where on a grid of equal ratios a function is least, and the points beside that.
func onGrid(f func(float64) float64, low, high float64, more func() bool) (best, before, after float64) {
	const grid = 24
	ratio := math.Pow(high/low, 1./grid)
	best, least := 1.0, math.Inf(1)
	for i := 0; i <= grid && more(); i++ {
		at := low * math.Pow(ratio, float64(i))
		if loss := f(at); loss < least {
			best, least = at, loss
		}
	}
	return best, max(low, best/ratio), min(high, best*ratio)
}

// minimum returns where a function of one minimum in [low, high], of which slopes returns the derivatives, has it: by
// Newton's steps from a start, and by halving where they lead out of what is left. Passes over 75 million logits take
// seconds, and this takes a fifth of the passes of a search by values.
func minimum(slopes func(float64) (first, second float64), at, low, high float64, more func() bool) float64 {
	const precise = 1e-10
	lowKnown, highKnown := false, false
	for range 100 {
		if !more() || high-low <= precise*high {
			break
		}
		first, second := slopes(at)
		step := -first / second
		if second > 0 && math.Abs(step) <= precise*at {
			break
		}
		if first <= 0 {
			low, lowKnown = at, true
		} else {
			high, highKnown = at, true
		}
		switch next := at + step; {
		case second > 0 && next > low && next < high:
			at = next
		case first <= 0 && !highKnown:
			at = high
		case first > 0 && !lowKnown:
			at = low
		default:
			at = math.Sqrt(low * high)
		}
	}
	return at
}

// softmaxLoss returns the mean of -log of the mean over windows of softmax(beta·z)[gold].
func softmaxLoss(examples []Example, beta float64) float64 {
	sum := 0.0
	for _, e := range examples {
		p := 0.0
		for _, z := range e.Logits {
			log, _, _ := logSoftmax(z, e.Gold[0], beta)
			p += math.Exp(log) / float64(len(e.Logits))
			if len(e.Logits) == 1 { // the logarithm itself, where its exponential would be 0
				sum -= log
			}
		}
		if len(e.Logits) > 1 {
			sum -= math.Log(max(p, math.SmallestNonzeroFloat64))
		}
	}
	return sum / float64(len(examples))
}

// softmaxSlopes returns the first and second derivative of softmaxLoss by beta.
func softmaxSlopes(examples []Example, beta float64) (first, second float64) {
	n := float64(len(examples))
	for _, e := range examples {
		// p'/p and p''/p of the mean p over windows
		p, p1, p2 := 0.0, 0.0, 0.0
		for _, z := range e.Logits {
			log, above, variance := logSoftmax(z, e.Gold[0], beta)
			weight := 1.0
			if len(e.Logits) > 1 {
				weight = math.Exp(log)
			}
			p += weight
			p1 += weight * above
			p2 += weight * (above*above - variance)
		}
		if p > 0 {
			first -= p1 / p / n
			second += (p1/p*(p1/p) - p2/p) / n
		}
	}
	return first, second
}

// logSoftmax returns the logarithm of softmax(beta·z)[c]. Its derivatives by beta are how much z[c] is above the mean
// of z by these probabilities, and minus the variance of z by them.
func logSoftmax(z []float32, c int, beta float64) (log, above, variance float64) {
	largest := float64(slices.Max(z))
	sum, mean, squares := 0.0, 0.0, 0.0
	for _, v := range z {
		below := float64(v) - largest
		if p := math.Exp(beta * below); p > 0 { // 0·∞ is NaN
			sum += p
			mean += p * below
			squares += p * below * below
		}
	}
	below := float64(z[c]) - largest
	mean /= sum
	return beta*below - math.Log(sum), below - mean, max(0, squares/sum-mean*mean)
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

// Platt returns the sigmoid of the largest likelihood for the decisions of all examples on labels, with Platt's targets
// (N₊+1)/(N₊+2) for what holds and 1/(N₋+2) for what does not, N the number of each (Platt 1999, "Probabilistic Outputs
// for Support Vector Machines"). The probability of a text in several windows is the mean of theirs. A has bounds. more
// is as for Temperature.
func Platt(examples []Example, labels []int, more func() bool) Sigmoid {
	fit := plattFit{examples: examples, labels: labels, more: more}
	holding := 0
	for _, e := range examples {
		for _, label := range labels {
			if slices.Contains(e.Gold, label) {
				holding++
			}
		}
	}
	fit.holding = float64(holding+1) / float64(holding+2)
	fit.others = 1 / float64(len(examples)*len(labels)-holding+2)
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
	examples        []Example
	labels          []int
	more            func() bool
	holding, others float64 // targets
}

// improve minimises the loss by steps of Fisher's scoring, which for one window are Newton's, each halved until the
// loss falls. The slope stays as it is unless slopes is true. A step that is to lower the loss by no more than rounding
// errors is the last.
func (f plattFit) improve(s Sigmoid, slopes bool) Sigmoid {
	const precise = 1e-13
	if !f.more() {
		return s
	}
	here := f.sums(s)
	for range 100 {
		a, b := here.step(slopes)
		fall := (a*here.gA + b*here.gB) / 2 // where the loss is a parabola
		if !(fall > precise*here.loss) {
			return Sigmoid{s.A + a, s.B + b}
		}
		ok := false
		if s, here, ok = f.lower(s, here, a, b); !ok {
			return s
		}
	}
	return s
}

// lower goes from s, where the sums are here, by a step that is halved until the loss falls. It returns false if it
// does not, or if the fit is stopped.
func (f plattFit) lower(s Sigmoid, here plattSums, a, b float64) (Sigmoid, plattSums, bool) {
	for size := 1.0; size > 1e-10 && f.more(); size /= 2 {
		next := Sigmoid{s.A + size*a, s.B + size*b}
		if there := f.sums(next); there.loss < here.loss {
			return next, there, true
		}
	}
	return s, here, false
}

// plattSums are sums over all decisions at a sigmoid: the loss, minus its derivatives by A and B, and their
// information.
type plattSums struct{ loss, gA, gB, aa, ab, bb float64 }

// sums passes over all decisions once: 15,000 texts have 75 million on 5,000 labels.
func (f plattFit) sums(s Sigmoid) (all plattSums) {
	for _, e := range f.examples {
		for _, label := range f.labels {
			target := f.others
			if slices.Contains(e.Gold, label) {
				target = f.holding
			}
			if len(e.Logits) == 1 {
				all.add(s, float64(e.Logits[0][label]), target)
			} else {
				all.addMean(s, e.Logits, label, target)
			}
		}
	}
	return all
}

// add adds the decision of a text of one window: with x = A·z + B its loss is log(1 + exp(x)) - target·x.
func (p *plattSums) add(s Sigmoid, z, target float64) {
	x := s.A*z + s.B
	e := math.Exp(-math.Abs(x))
	q := 1 / (1 + e)
	if x < 0 {
		q = e / (1 + e)
	}
	residual, information := target-q, e/((1+e)*(1+e))
	p.loss += max(x, 0) + math.Log1p(e) - target*x
	p.gA, p.gB = p.gA+residual*z, p.gB+residual
	p.aa, p.ab, p.bb = p.aa+information*z*z, p.ab+information*z, p.bb+information
}

// addMean adds the decision of a text whose probability is the mean of several windows'.
func (p *plattSums) addMean(s Sigmoid, windows [][]float32, label int, target float64) {
	n := float64(len(windows))
	mean, byA, byB := 0.0, 0.0, 0.0
	for _, logits := range windows {
		z := float64(logits[label])
		q := 1 / (1 + math.Exp(-s.A*z-s.B))
		mean += q / n
		byA += q * (1 - q) * z / n
		byB += q * (1 - q) / n
	}
	variance := max(mean*(1-mean), 1e-12)
	residual, clamped := (target-mean)/variance, min(max(mean, 1e-300), 1-1e-16)
	p.loss -= target*math.Log(clamped) + (1-target)*math.Log1p(-clamped)
	p.gA, p.gB = p.gA+residual*byA, p.gB+residual*byB
	p.aa, p.ab, p.bb = p.aa+byA*byA/variance, p.ab+byA*byB/variance, p.bb+byB*byB/variance
}

// step returns the step of Fisher's scoring: the inverse of the information times the gradient.
func (p plattSums) step(slopes bool) (a, b float64) {
	const ridge = 1e-9 // of the information, where all logits are the same
	aa, bb := p.aa+ridge, p.bb+ridge
	determinant := aa*bb - p.ab*p.ab
	if !slopes || !(determinant > 0) {
		return 0, p.gB / bb
	}
	return (bb*p.gA - p.ab*p.gB) / determinant, (aa*p.gB - p.ab*p.gA) / determinant
}
