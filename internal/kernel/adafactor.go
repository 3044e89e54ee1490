package kernel

import "math"

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
