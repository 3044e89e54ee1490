package kernel

import (
	"math"
	"slices"
	"testing"
)

func TestAdamWEqualsFormula(t *testing.T) { inEachSet(t, testAdamWEqualsFormula) }

func testAdamWEqualsFormula(t *testing.T) {
	const n = 20000
	a := AdamW{Rate: 1e-2, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Decay: 0.1}
	w, m, v := normal(1, n), make([]float32, n), make([]float32, n)
	want, mean, square := float64s(w), make([]float64, n), make([]float64, n)
	for step := 1; step <= 20; step++ {
		g := normal(uint64(step+1), n)
		clear(g[:n/2])
		if step > 10 {
			clear(g[:3*n/4]) // a quarter of them had gradients before
		}
		a.Step(w, m, v, g, 0.5, step)
		for i, d := range g {
			d := float64(d) / 2
			mean[i] = a.Beta1*mean[i] + (1-a.Beta1)*d
			square[i] = a.Beta2*square[i] + (1-a.Beta2)*d*d
			want[i] -= a.Rate * a.Decay * want[i]
			fairMean := mean[i] / (1 - math.Pow(a.Beta1, float64(step)))
			fairSquare := square[i] / (1 - math.Pow(a.Beta2, float64(step)))
			want[i] -= a.Rate * fairMean / (math.Sqrt(fairSquare) + a.Epsilon)
		}
	}
	near(t, "AdamW", w, want, 1e-5)
}

func TestAdamWPropagatesNaN(t *testing.T) { inEachSet(t, testAdamWPropagatesNaN) }

func testAdamWPropagatesNaN(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1)} {
		w, m, v := []float32{1, 1}, []float32{0, 0}, []float32{0, 0}
		AdamW{Rate: 1e-2, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}.Step(w, m, v, []float32{float32(bad), 1}, 1, 1)
		if w[0] == w[0] || w[1] != w[1] {
			t.Errorf("after a gradient of %v the weights are %v", bad, w)
		}
	}
}

// Running means follow the weights of a step, those of rows that are not active stay.
func TestAdamWMeans(t *testing.T) {
	inEachSet(t, func(t *testing.T) {
		const rows, d = 300, 37
		a := AdamW{Rate: 1e-2, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Decay: 0.1, Gain: 0.25}
		w, m, v := normal(1, rows*d), make([]float32, rows*d), make([]float32, rows*d)
		g, before := normal(2, rows*d), normal(3, rows*d)
		active := make([]bool, rows)
		for r := range active {
			if active[r] = r%3 == 0; !active[r] {
				clear(g[r*d : (r+1)*d])
			}
		}
		for _, byRows := range []bool{false, true} {
			a.Mean = slices.Clone(before)
			if byRows {
				a.StepRows(w, m, v, g, d, active, 1, 1)
			} else {
				a.Step(w, m, v, g, 1, 1)
			}
			for i, got := range a.Mean {
				want := 0.75*float64(before[i]) + 0.25*float64(w[i])
				if byRows && !active[i/d] {
					want = float64(before[i])
				}
				if !(math.Abs(float64(got)-want) <= 1e-6) {
					t.Fatalf("by rows: %v: mean %d is %v, want %v", byRows, i, got, want)
				}
			}
		}
	})
}

// Rows without a gradient so far are only decayed, with the same bits.
func TestAdamWStepRowsEqualsStep(t *testing.T) {
	inEachSet(t, func(t *testing.T) {
		const rows, d = 500, 37
		for _, decay := range []float64{0, 0.1} {
			a := AdamW{Rate: 1e-2, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Decay: decay}
			w, m, v := normal(1, rows*d), make([]float32, rows*d), make([]float32, rows*d)
			w2, m2, v2 := slices.Clone(w), make([]float32, rows*d), make([]float32, rows*d)
			active := make([]bool, rows)
			for step := 1; step <= 5; step++ {
				g := make([]float32, rows*d)
				for i := range rows {
					if i%7 == step || i > 400 && i%2 == 0 {
						active[i] = true
						copy(g[i*d:], normal(uint64(step*rows+i), d))
					}
				}
				a.Step(w, m, v, g, 0.5, step)
				for i := range g {
					if !active[i/d] {
						g[i] = float32(math.NaN()) // which must not be read
					}
				}
				a.StepRows(w2, m2, v2, g, d, active, 0.5, step)
				for name, pair := range map[string][2][]float32{"weights": {w, w2}, "means": {m, m2},
					"squares": {v, v2}} {
					if !slices.EqualFunc(pair[0], pair[1],
						func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }) {
						t.Fatalf("decay %v, step %d: the %s of rows differ from those of all", decay, step, name)
					}
				}
			}
		}
	})
}

// A step has the same bits with any number of threads, and where rows of zeros are not read.
func TestAdafactorBits(t *testing.T) {
	defer SetThreads(0)
	const rows, d = 900, 131 // two tiles
	touched, g := make([]float32, rows), make([]float32, rows*d)
	for r := range rows {
		if r%3 == 0 {
			touched[r] = 1
			copy(g[r*d:], normal(uint64(r+1), d))
		}
	}
	step := func(threads int, touched []float32, withMean bool) []float32 {
		SetThreads(threads)
		w, row, column := normal(1, rows*d), make([]float32, rows), make([]float32, d)
		a := Adafactor{Rate: 1e-2, Epsilon: 1e-30, Clip: 1, Decay: 0.1}
		var mean []float32
		if withMean {
			a.Beta1, mean = 0.9, make([]float32, rows*d)
		}
		for range 3 {
			a.StepMatrix(w, row, column, mean, g, 0.5, touched)
			a.Beta2 = 0.5
		}
		return slices.Concat(w, row, column, mean)
	}
	for _, withMean := range []bool{false, true} {
		want := step(1, nil, withMean)
		if !slices.Equal(step(2, nil, withMean), want) {
			t.Error("two threads give other bits than one")
		}
		if !slices.Equal(step(2, touched, withMean), want) {
			t.Error("rows of zeros that are not read give other bits")
		}
	}
}

// sumSquares is of rows of 37, where x has whole ones.
func sumSquares(x []float32) float64 {
	if len(x)%37 == 0 {
		return SumSquaresOfRows(x, 37, nil)
	}
	return SumSquaresOfRows(x, len(x), nil)
}

func TestSumSquares(t *testing.T) { inEachSet(t, testSumSquares) }

func testSumSquares(t *testing.T) {
	x := normal(1, 37*3000) // of several tiles
	var want float64
	for _, v := range x {
		want += float64(v) * float64(v)
	}
	if got := sumSquares(x); !(math.Abs(got-want) <= 1e-9*want) {
		t.Errorf("SumSquares = %v, want %v", got, want)
	}
	same(t, "SumSquares", func() []float32 {
		bits := math.Float64bits(sumSquares(x))
		return []float32{float32(bits >> 40), float32(bits >> 20 & 0xfffff), float32(bits & 0xfffff)}
	})
	if x[7] = float32(math.NaN()); !math.IsNaN(sumSquares(x)) {
		t.Errorf("SumSquares hides NaN")
	}
}

func TestSumSquaresLosesNoSquare(t *testing.T) {
	inEachSet(t, func(t *testing.T) {
		for _, v := range []float32{1e-45, -1e-38, 3e38} {
			x := make([]float32, 100)
			x[70] = v
			if got, want := sumSquares(x), float64(v)*float64(v); got != want {
				t.Errorf("SumSquares of %v among zeros = %v, want %v", v, got, want)
			}
		}
	})
}

func TestSumSquaresOfRowsLooksOnlyAtThoseTouched(t *testing.T) {
	inEachSet(t, func(t *testing.T) {
		const rows, d = 700, 37
		touched, x := make([]float32, rows), make([]float32, rows*d)
		for i := 0; i < rows; i += 1 + i%5 {
			touched[i] = 1
			copy(x[i*d:], normal(uint64(i), d))
		}
		want := SumSquaresOfRows(x, d, nil)
		if whole := SumSquaresOfRows(x, len(x), nil); !(math.Abs(want-whole) <= 1e-12*want) {
			t.Errorf("the sum of squares of rows is %v, want %v", want, whole)
		}
		if got := SumSquaresOfRows(x, d, touched); got != want {
			t.Errorf("the sum over the rows touched is %v, want %v", got, want)
		}
		for i := range x {
			if touched[i/d] == 0 {
				x[i] = float32(math.NaN())
			}
		}
		if got := SumSquaresOfRows(x, d, touched); got != want {
			t.Errorf("the sum over the rows touched is %v where others hold NaN, want %v", got, want)
		}
	})
}
