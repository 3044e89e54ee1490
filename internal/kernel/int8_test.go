package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// withIntTiles lists the sets of this processor, those that it would have with fewer instructions, and the plain one
// with tiles of other sizes, whose depth is a multiple of 16 lanes.
func withIntTiles() []*set {
	plus := func(x, y float32) float32 { return math.Float32frombits(math.Float32bits(x) + math.Float32bits(y)) }
	var each []oneTile
	for rows := 1; rows <= 32; rows++ {
		each = append(each, formulaTile(rows, mostColumns, func(sum, x, y float32) float32 {
			product := multiplyBytes(math.Float32bits(x), math.Float32bits(y))
			return plus(sum, math.Float32frombits(uint32(product)))
		}, plus))
	}
	tall := plain
	tall.name = "plain, tiles of 32 rows"
	tall.tiles[Int8] = tiles{run: below(each...), panel: mostColumns, lane: 4, depthMultiple: 16}
	return append(append(available(), lesserSets()...), &tall)
}

// inEachIntSet runs test with each set that multiplies int8.
func inEachIntSet(t *testing.T, test func(t *testing.T)) {
	chosen := use
	defer func() { use = chosen }()
	for _, s := range withIntTiles() {
		use = s
		t.Run(s.name, test)
	}
}

// ofInt8 is the formula of a product of Int8, and a bound of its difference from the exact product: half a step of each
// row's and column's values.
func ofInt8(a, b, bias []float32, m, k, n int) (want []float32, exact, bound []float64) {
	want, exact, bound = make([]float32, m*n), make([]float64, m*n), make([]float64, m*n)
	columns, scales := make([][]int, n), make([]float32, n)
	for j := range n {
		var most float32
		for l := range k {
			most = max(most, abs(b[l*n+j]))
		}
		scales[j] = most / 127
		for l := range k {
			columns[j] = append(columns[j], nearest(b[l*n+j], 1/scales[j]))
		}
	}
	for i := range m {
		row := a[i*k : (i+1)*k]
		low, high := min(0, slices.Min(row)), max(0, slices.Max(row))
		scale := (high - low) / 255
		zero := nearest(-low, 1/scale)
		for j := range n {
			sum, ofColumn := 0, 0
			for l, x := range row {
				sum += max(0, min(nearest(x, 1/scale)+zero, 255)) * columns[j][l]
				ofColumn += columns[j][l]
				exact[i*n+j] += float64(x) * float64(b[l*n+j])
				bound[i*n+j] += 1.01 * (float64(scale)*math.Abs(float64(b[l*n+j])) +
					float64(scales[j])*(math.Abs(float64(x))+float64(scale))) / 2
			}
			want[i*n+j] = float32(float32(sum-zero*ofColumn)*float32(scale*scales[j])) + bias[j]
			exact[i*n+j] += float64(bias[j])
			bound[i*n+j] += 1e-5 * math.Abs(exact[i*n+j])
		}
	}
	return want, exact, bound
}

// nearest rounds x·inverse to nearest, ties to even; 0 where inverse is that of no scale.
func nearest(x, inverse float32) int {
	if math.IsInf(float64(inverse), 0) {
		return 0
	}
	return int(math.RoundToEven(float64(x * inverse)))
}

func TestProductsOfInt8(t *testing.T) {
	shapes := [][3]int{{5, 4*panelDepth + 2, 40}, {20, 8*panelDepth + 3, 33}, {70, 130, 300}}
	for _, s := range sizes {
		if s[0]*s[1]*s[2] > 0 {
			shapes = append(shapes, s)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 30 {
		shapes = append(shapes, [3]int{1 + r.IntN(70), 1 + r.IntN(70), 1 + r.IntN(70)})
	}
	defer SetThreads(0)
	for _, s := range shapes {
		m, k, n := s[0], s[1], s[2]
		a, b, bias := normal(1, m*k), normal(2, k*n), normal(3, n)
		clear(a[:k])                 // a row of zeros
		for i := 1; i < m*k/2; i++ { // rows without negative values, as after a GELU
			a[i] = max(a[i], -0.1)
		}
		want, exact, bound := ofInt8(a, b, bias, m, k, n)
		for i, got := range want {
			if !(math.Abs(float64(got)-exact[i]) <= bound[i]) {
				t.Fatalf("m, k, n = %v: the formula has %v for element %d, %v exactly", s, got, i, exact[i])
			}
		}
		inEachIntSet(t, func(t *testing.T) {
			packed := new(Packed)
			packed.Pack(Dense(transposed(b, k, n), k).T(), k, n, Int8)
			for name, p := range map[string]Product{"packed": {Packed: packed}, "not packed": {B: Dense(b, n)}} {
				for threads := 1; threads <= 3; threads++ {
					SetThreads(threads)
					p.M, p.K, p.N, p.A, p.C, p.Precision = m, k, n, Dense(a, k), repeated(7, m*n), Int8
					p.Start, p.Bias = StartAtBias, bias
					p.Multiply()
					if !slices.Equal(p.C, want) {
						t.Fatalf("%s, m, k, n = %v: not the formula's bits", name, s)
					}
				}
			}
		})
	}
}

func TestStartAndEpilogueOfAProductOfInt8(t *testing.T) {
	const m, k, n = 37, 131, groupColumns + 50
	a, b, residual := normal(1, m*k), normal(2, k*n), normal(4, m*n)
	inEachIntSet(t, func(t *testing.T) {
		want := make([]float32, m*n)
		p := Product{M: m, K: k, N: n, A: Dense(a, k), B: Dense(b, n), C: want, Precision: Int8, Start: StartAtZero}
		p.Multiply()
		gelu := make([]float32, m*n)
		use.gelu(gelu, want)
		Add(want, residual)
		p.C, p.After = repeated(7, m*n), Epilogue{GELU: make([]float32, m*n), Residual: residual}
		p.Multiply()
		if !slices.Equal(p.C, want) || !slices.Equal(p.After.GELU, gelu) {
			t.Error("a product with GELU and residual differs from the separate operations")
		}
	})
}

func TestRowsOfAProductOfInt8DependOnThemselvesAlone(t *testing.T) {
	const m, k, n = 67, 131, 150
	a, b := normal(1, m*k), normal(2, k*n)
	inEachIntSet(t, func(t *testing.T) {
		all := make([]float32, m*n)
		p := Product{M: m, K: k, N: n, A: Dense(a, k), B: Dense(b, n), C: all, Precision: Int8, Start: StartAtZero}
		p.Multiply()
		for i := 0; i < m; i += 3 {
			p.M, p.A, p.C = 1, Dense(a[i*k:(i+1)*k], k), make([]float32, n)
			p.Multiply()
			if !slices.Equal(p.C, all[i*n:(i+1)*n]) {
				t.Fatalf("row %d differs from the same row among %d", i, m)
			}
		}
	})
}

func TestTheDeepestProductOfInt8DoesNotOverflow(t *testing.T) {
	const k = MaxInt8Depth
	inEachIntSet(t, func(t *testing.T) {
		for _, sign := range []float32{1, -1} {
			c := []float32{0}
			Product{M: 1, K: k, N: 1, A: Dense(repeated(1, k), k), B: Dense(repeated(sign, k), 1), C: c,
				Precision: Int8, Start: StartAtZero}.Multiply()
			if math.Abs(float64(c[0]/(sign*k)-1)) > 1e-6 {
				t.Errorf("the sum is %v, want %v", c[0], sign*k)
			}
		}
	})
	defer func() {
		if recover() == nil {
			t.Error("a deeper matrix is packed")
		}
	}()
	new(Packed).Pack(Dense(make([]float32, k+1), 1), k+1, 1, Int8)
}

func TestWhatIsNotFiniteInAProductOfInt8(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	inEachIntSet(t, func(t *testing.T) {
		for _, x := range []float32{nan, inf, -inf, math.MaxFloat32} {
			for at := range 20 {
				a := repeated(1, 2*20)
				a[at] = x
				if x == math.MaxFloat32 {
					a[(at+1)%20] = -x // their difference overflows
				}
				c := []float32{0, 0}
				Product{M: 2, K: 20, N: 1, A: Dense(a, 20), B: Dense(repeated(1, 20), 1), C: c, Precision: Int8,
					Start: StartAtZero}.Multiply()
				if c[0] == c[0] || math.Abs(float64(c[1])-20) > 1e-4 {
					t.Errorf("with %v at %d the rows are %v, want NaN and 20", x, at, c)
				}
			}
		}
	})
}

func TestProductsOfInt8AllocateNothing(t *testing.T) {
	const m, k, n = 40, 70, 90
	packed := new(Packed)
	chosen := use
	defer func() { use = chosen }()
	for _, use = range withIntTiles() {
		packed.Pack(Dense(normal(2, k*n), n), k, n, Int8)
		p := Product{M: m, K: k, N: n, A: Dense(normal(1, m*k), k), Packed: packed, C: make([]float32, m*n),
			Precision: Int8, Start: StartAtZero}
		allocatesNothing(t, map[string]func(){use.name: p.Multiply})
	}
}

func BenchmarkProductsOfInt8(b *testing.B) {
	chosen := use
	defer func() { use = chosen }()
	for _, use = range withIntTiles() {
		for _, s := range [][3]int{{16, 768, 768}, {384, 384, 1536}, {2048, 768, 3072}, {2048, 3072, 768}} {
			m, k, n := s[0], s[1], s[2]
			for precision := Float32; precision <= Int8; precision++ {
				packed := new(Packed)
				packed.Pack(Dense(normal(2, k*n), n), k, n, precision)
				p := Product{M: m, K: k, N: n, A: Dense(normal(1, m*k), k), Packed: packed,
					C: make([]float32, m*n), Precision: precision, Start: StartAtZero}
				b.Run(fmt.Sprintf("%s/%dx%dx%d/%s", precision, m, k, n, use.name), func(b *testing.B) {
					for b.Loop() {
						p.Multiply()
					}
					b.ReportMetric(2*float64(m*k*n)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GOP/s")
				})
			}
		}
	}
}

func TestIntegersOfColumnsMultiplyAsTheirMatrixDoes(t *testing.T) {
	for _, s := range [][3]int{{1, 1, 1}, {5, 3, 2}, {7, 130, 33}, {20, 8*panelDepth + 3, 70}} {
		m, k, n := s[0], s[1], s[2]
		a, b := normal(1, m*k), normal(2, k*n)
		for l := range k {
			b[l*n] = 0 // a column of zeros
		}
		columns := RoundRows(Dense(b, n).T(), n, k)
		inEachIntSet(t, func(t *testing.T) {
			p := Product{M: m, K: k, N: n, A: Dense(a, k), Precision: Int8, Start: StartAtZero}
			var results [2][]float32
			packed := [2]Packed{}
			packed[0].Pack(Dense(b, n), k, n, Int8)
			packed[1].Pack(Dense(repeated(1, (k+5)*(n+3)), n+3), k+5, n+3, Int8) // memory that has been used
			packed[1].PackIntegers(columns, k, n)
			for i := range results {
				p.Packed, p.C = &packed[i], make([]float32, m*n)
				p.Multiply()
				results[i] = p.C
			}
			if !slices.Equal(results[0], results[1]) {
				t.Errorf("m, k, n = %v: other bits than those of the matrix", s)
			}
		})
	}
}

func TestRoundedRowsAreWithinHalfAStep(t *testing.T) {
	const n, k = 37, 53
	x := normal(3, n*k)
	clear(x[4*k : 5*k])
	rows := RoundRows(Dense(x, k), n, k)
	if rows.Scales[4] != 0 || slices.ContainsFunc(rows.Data[4*k:5*k], func(q int8) bool { return q != 0 }) {
		t.Errorf("a row of zeros has scale %v and integers %v", rows.Scales[4], rows.Data[4*k:5*k])
	}
	for i, v := range x {
		scale := rows.Scales[i/k]
		if d := math.Abs(float64(v - scale*float32(rows.Data[i]))); d > 0.5001*float64(scale) {
			t.Fatalf("row %d: %v has become %d times %v", i/k, v, rows.Data[i], scale)
		}
	}
	for i := range n {
		if row := rows.Data[i*k : (i+1)*k]; i != 4 && slices.Max(row) != 127 && slices.Min(row) != -127 {
			t.Errorf("row %d does not use all integers: %v", i, row)
		}
	}
}

func TestGatheredIntegersAreAddedAsTheirValues(t *testing.T) {
	const v, d = 19, 21
	table := RoundRows(Dense(normal(3, v*d), d), v, d)
	values := make([]float32, v*d)
	for i, q := range table.Data {
		values[i] = table.Scales[i/d] * float32(q)
	}
	rows := []int32{18, 0, 3, 3, 7, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
	want, got := repeated(0.5, len(rows)*d), repeated(0.5, len(rows)*d)
	gather := func(out []float32) {
		for i, r := range rows {
			for j := range d {
				out[i*d+j] += values[int(r)*d+j]
			}
		}
	}
	gather(want)
	if GatherIntegers(got, table, rows, d); !slices.Equal(got, want) {
		t.Error("other sums than those of the values")
	}
}
