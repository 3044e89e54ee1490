package kernel

// SGD is gradient descent with momentum in torch.optim.SGD's order of operations.
type SGD struct {
	Rate      float64 // of a step
	Momentum  float64 // factor of the velocity
	Dampening float64 // a gradient is multiplied by 1 minus it where it is added to the velocity
	Decay     float64 // times a weight is added to its gradient
	Nesterov  bool    // the step is the gradient plus Momentum times the velocity
}

// Step updates the weights w and their velocity v by the gradient g times scale. v is nil without momentum. first: v is
// zero, and becomes the gradient without dampening.
func (s SGD) Step(w, v, g []float32, scale float32, first bool) {
	a := sgdArgs{
		w: w, v: v, g: g, nesterov: s.Nesterov,
		scale: scale, rate: float32(s.Rate), momentum: float32(s.Momentum), gain: float32(1 - s.Dampening),
		decay: float32(s.Decay),
	}
	if first {
		a.gain = 1
	}
	sgdTiles.run(len(w), elementTile, a)
}

type sgdArgs struct {
	w, v, g                            []float32
	nesterov                           bool
	scale, rate, momentum, gain, decay float32
}

var sgdTiles = tiled(func(a *sgdArgs, lo, hi int) {
	w, g := a.w[lo:hi], a.g[lo:hi]
	if a.v == nil {
		for i, x := range w {
			w[i] = x - a.rate*(g[i]*a.scale+a.decay*x)
		}
		return
	}
	v := a.v[lo:hi]
	for i, x := range w {
		d := g[i]*a.scale + a.decay*x
		v[i] = a.momentum*v[i] + a.gain*d
		if a.nesterov {
			d += a.momentum * v[i]
		} else {
			d = v[i]
		}
		w[i] = x - a.rate*d
	}
})
