package kernel

import "math"

// AdamW is the optimizer of Loshchilov & Hutter 2019 in torch.optim.AdamW's order of operations.
type AdamW struct {
	Rate         float64 // of a step
	Beta1, Beta2 float64 // decay rates of the moments
	Epsilon      float64 // added to the square root; above 0 in float32
	Decay        float64 // times Rate is the fraction of a weight that a step subtracts

	// Mean is a running mean of the weights, which a step makes follow them with Gain, as Follow does, while they are
	// in a cache; nil: there is none.
	Mean []float32
	Gain float32
}

// Factor returns the factor by which a step's decay multiplies weights.
func (a AdamW) Factor() float32 { return float32(1 - a.Rate*a.Decay) }

// Step updates the weights w and their moments m and v, zero before the first step, by the gradient g times scale.
// step counts from 1.
func (a AdamW) Step(w, m, v, g []float32, scale float32, step int) {
	adamWTiles.run(len(w), elementTile, a.args(w, m, v, g, scale, step))
}

// StepRows is Step for rows [V D] of which those not active [V] have zero moments and a zero gradient: these only
// decay, and only their weights are read. The result has the same bits as Step's, except that the means of rows that
// are not active stay as they are.
func (a AdamW) StepRows(w, m, v, g []float32, d int, active []bool, scale float32, step int) {
	args := a.args(w, m, v, g, scale, step)
	args.active, args.d = active, d
	adamWRowsTiles.run(len(active), max(1, elementTile/d), args)
}

// adamWStep are the constants of one step, in this order: the gradient's scale; 1−β₁; β₂; 1−β₂; the factor of weight
// decay; the rate divided by 1−β₁ᵗ; the factor 1/√(1−β₂ᵗ) of the square root; epsilon.
type adamWStep [8]float32

func (a AdamW) constants(scale float32, step int) adamWStep {
	return adamWStep{
		scale,
		float32(1 - a.Beta1),
		float32(a.Beta2), float32(1 - a.Beta2),
		a.Factor(),
		float32(a.Rate / (1 - math.Pow(a.Beta1, float64(step)))),
		float32(1 / math.Sqrt(1-math.Pow(a.Beta2, float64(step)))),
		float32(a.Epsilon),
	}
}

type adamWArgs struct {
	w, m, v, g []float32
	active     []bool // of rows
	d          int    // their length
	c          adamWStep
	mean       []float32
	gain       float32
}

func (a AdamW) args(w, m, v, g []float32, scale float32, step int) adamWArgs {
	return adamWArgs{w: w, m: m, v: v, g: g, c: a.constants(scale, step), mean: a.Mean, gain: a.Gain}
}

func (a *adamWArgs) update(lo, hi int) {
	use.adamW(a.w[lo:hi], a.m[lo:hi], a.v[lo:hi], a.g[lo:hi], (*[8]float32)(&a.c))
	if a.mean != nil {
		follow(a.mean[lo:hi], a.w[lo:hi], a.gain)
	}
}

var adamWTiles = tiled((*adamWArgs).update)

var adamWRowsTiles = tiled(func(a *adamWArgs, row, end int) {
	decay := a.c[4]
	for row < end {
		// consecutive rows that are all active or all inactive
		first, active := row, a.active[row]
		for row < end && a.active[row] == active {
			row++
		}
		lo, hi := first*a.d, row*a.d
		switch {
		case active:
			a.update(lo, hi)
		case decay != 1:
			use.scale(a.w[lo:hi], decay)
		}
	}
})

func adamWPlain(w, m, v, g []float32, c *[8]float32) {
	scale, gain1, beta2, gain2 := c[0], c[1], c[2], c[3]
	decay, rate, root, epsilon := c[4], c[5], c[6], c[7]
	m, v, g = m[:len(w)], v[:len(w)], g[:len(w)]
	for i, x := range w {
		d := g[i] * scale
		if d == 0 && m[i] == 0 && v[i] == 0 { // without dividing 0
			w[i] = x * decay
			continue
		}
		m[i] += gain1 * (d - m[i])
		v[i] = beta2*v[i] + gain2*d*d
		w[i] = x*decay - rate*m[i]/(float32(math.Sqrt(float64(v[i])))*root+epsilon)
	}
}
