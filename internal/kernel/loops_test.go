package kernel

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// loop is one of a set's loops over slices of one length, for tests.
type loop struct {
	name   string
	slices int // number of its slices
	// run runs the loop of s on x and returns its results. first is the index of the first element.
	run         func(s *set, x [][]float32, first int) []float32
	elementwise bool // an element's result is a function of its own values and index
	// bound is the largest difference from the plain version, of values for normal inputs: absolute for values up to 1,
	// else relative.
	bound float64
}

// lengths are all up to some registers and rounds of each set, and some long ones.
func lengths() []int {
	all := []int{127, 128, 129, 384, 768, 1000}
	for n := range 71 {
		all = append(all, n)
	}
	return all
}

// placed returns copies of values between guards, each at another place of a 32 byte line.
func placed(x [][]float32, offset int) (whole, parts [][]float32) {
	for k, values := range x {
		w := slices.Repeat([]float32{guard}, len(values)+32)
		at := 8 + (offset+3*k*offset)%8
		copy(w[at:], values)
		whole, parts = append(whole, w), append(parts, w[at:at+len(values)])
	}
	return whole, parts
}

const guard = -12345

// check compares a loop of each set with the plain one and with itself elsewhere in memory.
func (l loop) check(t *testing.T) {
	t.Helper()
	for _, s := range available() {
		t.Run(l.name+"/"+s.name, func(t *testing.T) {
			for _, n := range lengths() {
				l.checkLength(t, s, n)
			}
			l.checkSpecial(t, s)
		})
	}
}

func (l loop) checkLength(t *testing.T, s *set, n int) {
	t.Helper()
	x := make([][]float32, l.slices)
	for k := range x {
		x[k] = normal(uint64(n*l.slices+k), n)
	}
	_, want := placed(x, 0)
	wantResults := l.run(&plain, want, 5)
	_, first := placed(x, 0)
	results := l.run(s, first, 5)
	near(t, fmt.Sprintf("result of %d values", n), results, float64s(wantResults), l.bound*float64(1+n))
	for k := range x {
		for i, v := range first[k] {
			if d := math.Abs(float64(v - want[k][i])); !(d <= l.bound*max(1, math.Abs(float64(want[k][i])))) {
				t.Fatalf("value %d of %d in slice %d is %v, plain %v", i, n, k, v, want[k][i])
			}
		}
	}
	for offset := range 8 {
		whole, parts := placed(x, offset)
		again := l.run(s, parts, 5)
		if !slices.Equal(again, results) {
			t.Fatalf("offset %d of %d values: returns %v, want %v", offset, n, again, results)
		}
		for k := range whole {
			if !slices.Equal(parts[k], first[k]) {
				t.Fatalf("offset %d of %d values: slice %d differs", offset, n, k)
			}
			rest := slices.Concat(whole[k])
			at := 8 + (offset+3*k*offset)%8
			if rest = slices.Delete(rest, at, at+n); slices.ContainsFunc(rest,
				func(v float32) bool { return v != guard }) {
				t.Fatalf("offset %d of %d values: values around slice %d were written", offset, n, k)
			}
		}
	}
	if l.elementwise && n > 0 {
		_, parts := placed(x, 0)
		for i := 0; i < n; {
			end := min(n, i+1+i%7)
			pieces := make([][]float32, len(parts))
			for k := range pieces {
				pieces[k] = parts[k][i:end]
			}
			l.run(s, pieces, 5+i)
			i = end
		}
		for k := range parts {
			if !slices.Equal(parts[k], first[k]) {
				t.Fatalf("slice %d of %d values differs when computed in pieces", k, n)
			}
		}
	}
}

// checkSpecial checks that infinities and NaN are where the plain version has them.
func (l loop) checkSpecial(t *testing.T, s *set) {
	t.Helper()
	inf := math.Inf(1)
	special := []float64{math.NaN(), inf, -inf, 0, math.Copysign(0, -1), 1e-40, -1e-40, 1e4, -1e4, 88, -104, 1}
	for shift := range len(special) * l.slices {
		for _, n := range []int{1, 3, 8, 37} {
			x := make([][]float32, l.slices)
			for k := range x {
				x[k] = normal(uint64(k), n)
				if k == shift%l.slices || shift >= len(special) {
					for i := range x[k] {
						x[k][i] = float32(special[(i*(k+1)+shift)%len(special)])
					}
				}
			}
			_, want := placed(x, 0)
			_, got := placed(x, 0)
			want, got = append(want, l.run(&plain, want, 3)), append(got, l.run(s, got, 3))
			for k := range got {
				for i, v := range got[k] {
					if v, w := float64(v),
						float64(want[k][i]); !(math.IsNaN(v) && math.IsNaN(w) || v == w ||
						math.Abs(v-w) <= 1e-5*max(1e5, math.Abs(w))) {
						t.Fatalf("value %d of slice %d for %v is %v, plain %v", i, k, x, v, w)
					}
				}
			}
		}
	}
}

func TestLoopsEqualThePlainOnes(t *testing.T) {
	const key, bound = 0x0123456789abcdef, 1 << 30
	moved := adamWStep{0.5, 0.1, 0.999, 0.001, 0.998, 0.05, 7, 1e-8}
	// A float32 has a relative distance of 1.2e-7 to the next. Sums of n values in another order differ by n of those
	// at most; products that are rounded before they are added or not, by one of each.
	for _, l := range []loop{
		{name: "addScaled", slices: 2, elementwise: true, bound: 3e-7,
			run: func(s *set, x [][]float32, _ int) []float32 {
				s.addScaled(x[0], x[1], 0.3)
				return nil
			}},
		{name: "add", slices: 2, elementwise: true, bound: 0, run: func(s *set, x [][]float32, _ int) []float32 {
			s.addScaled(x[0], x[1], 1)
			return nil
		}},
		{name: "scale", slices: 1, elementwise: true, bound: 0, run: func(s *set, x [][]float32, _ int) []float32 {
			s.scale(x[0], 0.3)
			return nil
		}},
		{name: "multiply", slices: 2, elementwise: true, bound: 0, run: func(s *set, x [][]float32, _ int) []float32 {
			s.multiply(x[0], x[1])
			return nil
		}},
		{name: "rotate", slices: 4, elementwise: true, bound: 3e-7, run: func(s *set, x [][]float32, _ int) []float32 {
			s.rotate(x[0], x[1], x[2], x[3], -1)
			return nil
		}},
		{name: "sumSquares", slices: 1, bound: 1e-7, run: func(s *set, x [][]float32, _ int) []float32 {
			return []float32{float32(s.sumSquares(x[0]))}
		}},
		{name: "dot64", slices: 2, bound: 0, run: func(s *set, x [][]float32, _ int) []float32 {
			sums := [4]float64{1, 2, 3, 4}
			s.dot64(&sums, x[0][:len(x[0])&^3], x[1])
			return []float32{float32(sums[0]), float32(sums[1]), float32(sums[2]), float32(sums[3])}
		}},
		{name: "drop", slices: 2, elementwise: true, bound: 0, run: func(s *set, x [][]float32, first int) []float32 {
			s.drop(x[0], x[1], key, 3, bound, 1.25, first)
			return nil
		}},
		{name: "drop in place, far on", slices: 1, elementwise: true, bound: 0,
			run: func(s *set, x [][]float32, first int) []float32 {
				s.drop(x[0], x[0], key, 1<<40+7, bound, 1.25, math.MaxInt&^0xffff+first)
				return nil
			}},
		{name: "addDropped", slices: 3, elementwise: true, bound: 0,
			run: func(s *set, x [][]float32, first int) []float32 {
				s.addDropped(x[0], x[1], x[2], key, 3, bound, 1.25, first)
				return nil
			}},
		{name: "adamW", slices: 4, elementwise: true, bound: 1e-6, run: func(s *set, x [][]float32, _ int) []float32 {
			for i, v := range x[2] {
				x[2][i] = v * v // a mean square
			}
			s.adamW(x[0], x[1], x[2], x[3], (*[8]float32)(&moved))
			return nil
		}},
		{name: "layerNorm", slices: 4, bound: 3e-6, run: func(s *set, x [][]float32, _ int) []float32 {
			if len(x[1]) == 0 {
				return nil // there is no row without columns
			}
			mean, scale := s.layerNorm(x[0], x[1], x[2], x[3], 1e-5)
			if mean-mean != 0 {
				return nil // all of the result is NaN then, whether the mean is infinite or NaN
			}
			return []float32{mean, scale}
		}},
		{name: "layerNormSums", slices: 5, bound: 3e-7, run: func(s *set, x [][]float32, _ int) []float32 {
			sum, dot := s.layerNormSums(x[0], x[1], x[2], x[3], x[4], 0.25, 1.5)
			return []float32{sum, dot}
		}},
		{name: "layerNormGradient", slices: 4, elementwise: true, bound: 3e-6,
			run: func(s *set, x [][]float32, _ int) []float32 {
				s.layerNormGradient(x[0], x[1], x[2], x[3], 0.25, 1.5, 0.1, 0.2)
				return nil
			}},
	} {
		l.check(t)
	}
}

func TestAddRowsEqualsThePlainOne(t *testing.T) {
	for _, s := range available() {
		for _, d := range lengths() {
			if d == 0 {
				continue
			}
			for rows := range 10 {
				x := [][]float32{normal(1, d), normal(2, rows*d)}
				_, want := placed(x, 0)
				plain.addRows(want[0], want[1])
				for offset := range 8 {
					whole, got := placed(x, offset)
					s.addRows(got[0], got[1])
					if !slices.Equal(got[0], want[0]) {
						t.Fatalf("%s: the sum of %d rows of %d at offset %d is not the plain one", s.name, rows, d,
							offset)
					}
					if at := 8 + offset; slices.ContainsFunc(slices.Concat(whole[0][:at], whole[0][at+d:]),
						func(v float32) bool { return v != guard }) {
						t.Fatalf("%s: values around the sum of rows of %d were written", s.name, d)
					}
				}
			}
		}
	}
}

func TestRowLoopsAllocateNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector empties pools")
	}
	defer SetThreads(0)
	const rows, d = 300, 64
	x, y, row, stats := make([]float32, rows*d), make([]float32, rows*d), make([]float32, d), make([]float32, 2*rows)
	names, active := make([]int32, rows), make([]bool, rows)
	a := AdamW{Rate: 1, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Decay: 0.1}
	for name, do := range map[string]func(){
		"Repeat":            func() { Repeat(x, row) },
		"SumRows":           func() { SumRows(row, x) },
		"Gather":            func() { Gather(x, y, names, d) },
		"Scatter":           func() { Scatter(y, x, names, d) },
		"SumSquaresOfRows":  func() { SumSquaresOfRows(x, d, y[:rows]) },
		"LayerNorm":         func() { LayerNorm(y, stats, x, row, row, 1e-5) },
		"LayerNormBackward": func() { LayerNormBackward(y, row, row, stats, x, row, x) },
		"Dropout": func() {
			Dropout(y, x, 1, 0.1)
			addDropped(y, y, x, 1, 0.1)
			DropoutBackward(y, x, 1,
				0.1)
		},
		"a mask": func() { newMask(1, 0.1).of(2).apply(y, x, 3) },
		"AdamW":  func() { a.Step(x, x, x, x, 1, 1); a.StepRows(x, x, x, x, d, active, 1, 1) },
	} {
		for n := 1; n <= 2; n++ {
			SetThreads(n)
			do()
			if allocs := testing.AllocsPerRun(20, do); allocs > 0 {
				t.Errorf("%s with %d threads allocates %v times", name, n, allocs)
			}
		}
	}
}

func BenchmarkRows(b *testing.B) {
	const rows, d, large = 2048, 768, 1 << 22
	x, y, z, row, stats := normal(1, rows*d), normal(2, rows*d), normal(3, rows*d), normal(4, d),
		make([]float32, 2*rows)
	w, m, v, g := normal(5, large), make([]float32, large), make([]float32, large), normal(6, large)
	a := AdamW{Rate: 1e-5, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Decay: 0.01}
	chosen := use
	defer func() { use = chosen }()
	for _, c := range []struct {
		name  string
		bytes int // read and written
		do    func()
	}{
		{"Add", 3 * 4 * rows * d, func() { Add(y, x) }},
		{"SumRows", 4 * rows * d, func() { SumRows(row, x) }},
		{"LayerNorm", 2 * 4 * rows * d, func() { LayerNorm(y, stats, x, row, row, 1e-5) }},
		{"LayerNormBackward", 4 * 4 * rows * d, func() { LayerNormBackward(y, row, row, stats, x, row, z) }},
		{"Dropout", 2 * 4 * rows * d, func() { Dropout(y, x, 7, 0.1) }},
		{"AddDropped", 3 * 4 * rows * d, func() { addDropped(y, z, x, 7, 0.1) }},
		{"SumSquaresOfRows", 4 * large, func() { SumSquaresOfRows(w, 1024, nil) }},
		{"AdamW", 7 * 4 * large, func() { a.Step(w, m, v, g, 1, 1) }},
	} {
		for _, use = range available() {
			b.Run(c.name+"/"+use.name, func(b *testing.B) {
				b.SetBytes(int64(c.bytes))
				c.do() // allocates the memory
				for b.Loop() {
					c.do()
				}
			})
		}
	}
}
