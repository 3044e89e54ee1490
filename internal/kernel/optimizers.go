package kernel

import (
	"math"
	"sync"
)

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

// Adafactor is the optimizer of Shazeer & Stern 2018 (algorithms 4 and 5) as transformers' Adafactor computes it.
type Adafactor struct {
	Rate    float64 // of a step
	Beta1   float64 // decay rate of the mean of updates; 0: there is none
	Beta2   float64 // of a step: decay rate of the squares
	Epsilon float64 // added to the square of a gradient
	Clip    float64 // an update of a larger root mean square is scaled to it
	Decay   float64 // times Rate is the fraction of a weight that a step subtracts
}

// StepMatrix updates the weights w [V D], the running means row [V] and column [D] of the squares of the gradient's
// rows and columns, and the running mean of the updates, nil without Beta1, by the gradient g times scale. If touched
// [V] is not nil, the gradient of rows where it is 0 is not read: the result has the same bits if it is zeros.
func (a Adafactor) StepMatrix(w, row, column, mean, g []float32, scale float32, touched []float32) {
	rows, d := len(row), len(column)
	tile := max(1, adafactorTile/d)
	tiles := (rows + tile - 1) / tile
	s := &adafactorStep{
		Adafactor: a, w: w, mean: mean, g: g, scale: float64(scale), touched: touched, d: d, tile: tile,
		row: row, sums: make([]float64, tiles), columns: make([]float64, tiles*d),
		rowFactor: make([]float32, rows), columnFactor: make([]float32, d),
	}

	// squares: the means of rows and columns
	Parallel(rows, tile, s.squares)
	for j := range column {
		sum := 0.0
		for t := range tiles {
			sum += s.columns[t*d+j]
		}
		column[j] = a.follow(column[j], sum/float64(rows))
		s.columnFactor[j] = float32(1 / math.Sqrt(float64(column[j])))
	}

	// 1/√ of their product over their mean, which is the estimate of the mean square of each gradient
	sum := 0.0
	for _, v := range row {
		sum += float64(v)
	}
	for i, v := range row {
		s.rowFactor[i] = float32(math.Sqrt(sum / float64(rows) / float64(v)))
	}

	Parallel(rows, tile, s.measure)
	s.clip(len(w))
	Parallel(rows, tile, s.update)
}

// StepVector is StepMatrix with a running mean of the square of each gradient.
func (a Adafactor) StepVector(w, square, mean, g []float32, scale float32) {
	n := len(w)
	s := &adafactorStep{
		Adafactor: a, w: w, mean: mean, g: g, scale: float64(scale), d: n, tile: 1,
		row: make([]float32, 1), sums: make([]float64, 1),
		rowFactor: []float32{1}, columnFactor: make([]float32, n),
	}
	for i, v := range g {
		v := float64(v) * s.scale
		square[i] = a.follow(square[i], v*v)
		s.columnFactor[i] = float32(1 / math.Sqrt(float64(square[i])))
	}
	s.measure(0, 1)
	s.clip(n)
	s.update(0, 1)
}

// follow returns a running mean of squares after another square.
func (a Adafactor) follow(mean float32, square float64) float32 {
	return float32(a.Beta2*float64(mean) + (1-a.Beta2)*(square+a.Epsilon))
}

// adafactorTile is the number of elements of a tile of rows: each has its own sums of columns.
const adafactorTile = 1 << 16

// adafactorStep is a step of one parameter. Sums are over tiles of rows first, whose number does not depend on the
// number of goroutines.
type adafactorStep struct {
	Adafactor
	w, mean, g              []float32 // [V D]
	touched                 []float32 // [V] or nil
	row                     []float32 // [V] means of the squares of rows
	rowFactor, columnFactor []float32 // [V], [D]: the update is the gradient times both
	sums                    []float64 // [tiles] of the squares of updates
	columns                 []float64 // [tiles D] sums of the squares of columns
	scale                   float64   // of the gradient
	rate                    float64   // of the update, after clipping
	d, tile                 int
}

func (s *adafactorStep) idle(row int) bool { return s.touched != nil && s.touched[row] == 0 }

// squares adds the squares of rows lo:hi, which are a tile.
func (s *adafactorStep) squares(lo, hi int) {
	columns := s.columns[lo/s.tile*s.d:][:s.d]
	for i := lo; i < hi; i++ {
		sum := 0.0
		if !s.idle(i) {
			for j, v := range s.g[i*s.d : (i+1)*s.d] {
				v := float64(v) * s.scale
				sum += v * v
				columns[j] += v * v
			}
		}
		s.row[i] = s.follow(s.row[i], sum/float64(s.d))
	}
}

// measure sums the squares of the updates of rows lo:hi, which are a tile.
func (s *adafactorStep) measure(lo, hi int) {
	sum := 0.0
	for i := lo; i < hi; i++ {
		if s.idle(i) {
			continue
		}
		factor, columns := s.rowFactor[i]*float32(s.scale), s.columnFactor
		for j, v := range s.g[i*s.d : (i+1)*s.d] {
			u := float64(v * factor * columns[j])
			sum += u * u
		}
	}
	s.sums[lo/s.tile] = sum
}

// clip sets the rate of n updates by their root mean square.
func (s *adafactorStep) clip(n int) {
	sum := 0.0
	for _, part := range s.sums {
		sum += part
	}
	s.rate = s.Rate / max(1, math.Sqrt(sum/float64(n))/s.Clip)
}

// update updates the weights of rows lo:hi.
func (s *adafactorStep) update(lo, hi int) {
	rate, decay, beta, gain := float32(s.rate), float32(s.Decay*s.Rate), float32(s.Beta1), float32(1-s.Beta1)
	for i := lo; i < hi; i++ {
		w := s.w[i*s.d : (i+1)*s.d]
		if s.idle(i) && s.mean == nil {
			if decay != 0 {
				for j, x := range w {
					w[j] = x - decay*x
				}
			}
			continue
		}
		factor, g := s.rowFactor[i]*float32(s.scale), s.g[i*s.d:(i+1)*s.d]
		for j, x := range w {
			u := rate * (g[j] * factor * s.columnFactor[j])
			if s.mean != nil {
				m := &s.mean[i*s.d+j]
				*m = beta**m + gain*u
				u = *m
			}
			w[j] = x - decay*x - u
		}
	}
}

// Follow makes each mean (1-gain)·mean + gain·x: a running mean of x.
func Follow(mean, x []float32, gain float32) {
	followTiles.run(len(x), elementTile, followArgs{mean, x, gain})
}

type followArgs struct {
	mean, x []float32
	gain    float32
}

var followTiles = tiled(func(a *followArgs, lo, hi int) { follow(a.mean[lo:hi], a.x[lo:hi], a.gain) })

func follow(mean, x []float32, gain float32) {
	use.scale(mean, 1-gain)
	use.addScaled(mean, x, gain)
}

// FollowRows is Follow for those rows of x [V D] that are active [V].
func FollowRows(mean, x []float32, d int, active []bool, gain float32) {
	Parallel(len(active), max(1, elementTile/d), func(lo, hi int) {
		for r := lo; r < hi; r++ {
			if active[r] {
				follow(mean[r*d:(r+1)*d], x[r*d:(r+1)*d], gain)
			}
		}
	})
}

// SumSquaresOfRows returns Σx² of rows [V D], without underflow: it is 0 only if all of x is. It is the same for any
// number of threads. If touched [V] is not nil, only the rows where it is not 0 are read: the result has the same bits
// if all others are zeros.
func SumSquaresOfRows(x []float32, d int, touched []float32) float64 {
	if len(x) == 0 {
		return 0
	}
	sums := squareSumsPool.Get().(*[]float64)
	*sums = append((*sums)[:0], make([]float64, SquareTiles(len(x), d))...)
	SumSquaresOfTiles(*sums, x, d, touched)
	var sum float64
	for _, s := range *sums {
		sum += s
	}
	squareSumsPool.Put(sums)
	return sum
}

// SquareTile is the number of values in a tile of rows of length d, whose squares SumSquaresOfRows sums by themselves
// before it adds the sums of all tiles, first to last.
func SquareTile(d int) int { return max(1, elementTile/d) * d }

// SquareTiles returns the number of tiles of n values in rows of length d.
func SquareTiles(n, d int) int { return (n + SquareTile(d) - 1) / SquareTile(d) }

// SumSquaresOfTiles sets sums to Σx² of each tile of rows [V D], which begin with one; touched is as for
// SumSquaresOfRows.
func SumSquaresOfTiles(sums []float64, x []float32, d int, touched []float32) {
	tile := SquareTile(d) / d
	sumSquaresTiles.run(len(x)/d, tile, sumSquaresArgs{sums, x, touched, d, tile})
}

var squareSumsPool = sync.Pool{New: func() any { return new([]float64) }}

type sumSquaresArgs struct {
	sums       []float64 // of the tiles
	x, touched []float32
	d, tile    int
}

var sumSquaresTiles = tiled(func(a *sumSquaresArgs, lo, hi int) {
	var sum float64
	for i := lo; i < hi; i++ {
		if a.touched == nil || a.touched[i] != 0 {
			sum += use.sumSquares(a.x[i*a.d : (i+1)*a.d])
		}
	}
	a.sums[lo/a.tile] = sum
})

// sumSquaresPlain has four independent sums.
func sumSquaresPlain(x []float32) float64 {
	var s0, s1, s2, s3 float64
	for ; len(x) >= 4; x = x[4:] {
		a, b, c, d := float64(x[0]), float64(x[1]), float64(x[2]), float64(x[3])
		s0 += a * a
		s1 += b * b
		s2 += c * c
		s3 += d * d
	}
	for _, v := range x {
		s0 += float64(v) * float64(v)
	}
	return s0 + s1 + s2 + s3
}

// Dot64 returns Σ x·y in float64, in which the products are exact, as four independent sums. y is not shorter.
func Dot64(x, y []float32) float64 {
	var s [4]float64
	whole := len(x) &^ 3
	y = y[:len(x)]
	if whole > 0 {
		use.dot64(&s, x[:whole], y)
	}
	for i := whole; i < len(x); i++ {
		s[0] += float64(x[i]) * float64(y[i])
	}
	return s[0] + s[1] + s[2] + s[3]
}

// dot64Plain adds to sums the products of every fourth pair of numbers, from the first, second, third and fourth on.
func dot64Plain(sums *[4]float64, x, y []float32) {
	s0, s1, s2, s3 := sums[0], sums[1], sums[2], sums[3]
	y = y[:len(x)]
	for ; len(x) >= 4; x, y = x[4:], y[4:] {
		s0 += float64(x[0]) * float64(y[0])
		s1 += float64(x[1]) * float64(y[1])
		s2 += float64(x[2]) * float64(y[2])
		s3 += float64(x[3]) * float64(y[3])
	}
	*sums = [4]float64{s0, s1, s2, s3}
}
