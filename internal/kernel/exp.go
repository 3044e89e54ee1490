package kernel

import "math"

// exp is math.Exp to within a relative error of 1e-8, less than float32's rounding, and twice as fast: 2^n·e^r with n
// whole and |r| <= ln(2)/2, and e^r by its Taylor series.
func exp(x float64) float64 {
	if !(x > -700 && x < 700) {
		return math.Exp(x) // neither 2^n nor 2^-n fits, or x is NaN
	}
	// Adding 3·2^51 rounds to a whole number, which is in the sum's lowest bits.
	const whole = 3 << 51
	n := x*math.Log2E + whole
	r := x - (n-whole)*math.Ln2
	r2 := r * r // in independent pairs
	series := (1 + r) + (1./2+r*(1./6))*r2 + ((1./24+r*(1./120))+(1./720+r*(1./5040))*r2)*(r2*r2)
	return series * math.Float64frombits((math.Float64bits(n)+1023)<<52)
}
