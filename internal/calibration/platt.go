package calibration

import "math"

// Sigmoid is the probability σ(A·z + B) of a binary decision with logit z.
type Sigmoid struct{ A, B float64 }

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

// of returns the mean probability over windows, and its derivatives by A and B.
func (s Sigmoid) of(logits []float32) (p, byA, byB float64) {
	n := float64(len(logits))
	for _, z := range logits {
		q := 1 / (1 + math.Exp(-s.A*float64(z)-s.B))
		p += q / n
		byA += q * (1 - q) * float64(z) / n
		byB += q * (1 - q) / n
	}
	return p, byA, byB
}

// loss returns the sum of the cross entropies with the targets.
func (f plattFit) loss(s Sigmoid) float64 {
	sum := 0.0
	for _, d := range f.decisions {
		p, _, _ := s.of(d.Logits)
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
		p, byA, byB := s.of(d.Logits)
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
