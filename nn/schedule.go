package nn

import "math"

// Schedule is the learning rate over a run: a linear rise, then a curve.
type Schedule struct {
	Warmup int   // steps of the rise
	Steps  int   // of the run
	Curve  Curve // nil: LinearCurve
}

// Curve is the learning rate after the warmup.
type Curve interface {
	// At returns the rate as a fraction of the highest after so many steps of the curve, of which there may be 0.
	At(done, of int) float64
}

// Rate returns the rate at a step as a fraction of the highest: step/Warmup up to Warmup, then by the curve, which ends
// at Steps.
func (s Schedule) Rate(step int) float64 {
	if step < s.Warmup {
		return float64(step) / float64(s.Warmup)
	}
	curve := s.Curve
	if curve == nil {
		curve = LinearCurve{}
	}
	of := max(0, s.Steps-s.Warmup)
	return curve.At(min(step-s.Warmup, of), of)
}

// LinearCurve is a Curve that falls to 0.
type LinearCurve struct{}

// At returns 1 - done/of.
func (LinearCurve) At(done, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(of-done) / float64(of)
}

// ConstantCurve is a Curve that stays at the highest rate.
type ConstantCurve struct{}

// At returns 1.
func (ConstantCurve) At(int, int) float64 { return 1 }

// CosineCurve is a Curve of a number of waves of a cosine; half a wave falls to 0 (Loshchilov & Hutter 2017).
type CosineCurve struct{ Cycles float64 }

// At returns ½·(1 + cos(2π·Cycles·done/of)).
func (c CosineCurve) At(done, of int) float64 {
	progress := float64(done) / float64(max(1, of))
	return max(0, 0.5*(1+math.Cos(2*math.Pi*c.Cycles*progress)))
}

// PolynomialCurve is a Curve that falls to End, a fraction of the highest rate, by a power of the steps left.
type PolynomialCurve struct{ Power, End float64 }

// At returns (1-End)·(1-done/of)^Power + End.
func (p PolynomialCurve) At(done, of int) float64 {
	left := 1 - float64(done)/float64(max(1, of))
	return (1-p.End)*math.Pow(left, p.Power) + p.End
}
