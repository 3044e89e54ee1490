package kernel

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// withPairTiles lists the sets of this processor, and the plain one with tiles of other sizes, so that they are tested
// everywhere: about those of AVX-512, and taller ones whose depth is a multiple of 16 lanes.
func withPairTiles() []*set {
	sets := available()
	for _, like := range []struct{ rows, panel, depthMultiple int }{{14, 32, 1}, {32, 16, 16}} {
		var each []oneTile
		for rows := 1; rows <= like.rows; rows++ {
			each = append(each, formulaTile(rows, like.panel, addPairs, func(x, y float32) float32 { return x + y }))
		}
		s := plain
		s.name = fmt.Sprintf("plain, tiles of %d rows", like.rows)
		s.tiles[BFloat16] = tiles{run: below(each...), panel: like.panel, lane: 2, depthMultiple: like.depthMultiple}
		sets = append(sets, &s)
	}
	return sets
}

// formulaTile is a tile of rows by panel, as the formula of its sums: add adds the product of two lanes to a sum, plus
// two sums.
func formulaTile(rows, panel int, add func(sum, x, y float32) float32, plus func(x, y float32) float32) oneTile {
	return func(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, _ *float32) {
		for i := range rows {
			for j := range panel {
				sum := float32(0)
				for l := range k {
					sum = add(sum, *after(a, i*aRow+l*aCol), *after(b, l*panel+j))
				}
				*after(c, i*cRow+j) = plus(*after(from, i*fromRow+j), sum)
			}
		}
	}
}

// multiplyPairs adds a·b to c [m n], both rounded to bfloat16: the formula, in the order of the tiles' sums.
func multiplyPairs(c []float32, a, b Matrix, m, k, n int) {
	depth := plain.tiles[BFloat16].depth(k)
	block := plain.tiles[BFloat16].blockDepth(depth)
	x, y := a.pairs(m, k), b.T().pairs(n, k) // [m depth], [n depth]
	for i := range m {
		for j := range n {
			for l := 0; l < depth; l += block {
				sum := float32(0)
				for at := l; at < min(l+block, depth); at++ {
					sum = addPairs(sum, x[i*depth+at], y[j*depth+at])
				}
				c[i*n+j] += sum
			}
		}
	}
}

// pairs returns the pairs of each row of x [m k].
func (x Matrix) pairs(m, k int) []float32 {
	depth := plain.tiles[BFloat16].depth(k)
	out := make([]float32, m*depth)
	for i := range m {
		for l := range depth {
			first, second := x.Data[i*x.Row+2*l*x.Col], float32(0)
			if 2*l+1 < k {
				second = x.Data[i*x.Row+(2*l+1)*x.Col]
			}
			out[i*depth+l] = pairOf(first, second)
		}
	}
	return out
}

// inEachPairSet runs test with each set that multiplies bfloat16.
func inEachPairSet(t *testing.T, test func(t *testing.T)) {
	chosen := use
	defer func() { use = chosen }()
	for _, s := range withPairTiles() {
		use = s
		t.Run(s.name, test)
	}
}

func TestBFloat16RoundsToNearestEven(t *testing.T) {
	value := func(upper uint32) float64 {
		if upper&0x7fff == 0x7f80 { // rounding treats infinity as the next power of two
			return math.Copysign(0x1p128, float64(int32(upper<<16)))
		}
		return float64(math.Float32frombits(upper << 16))
	}
	for upper := range uint32(1 << 16) {
		for _, lower := range []uint32{0, 1, 0x7fff, 0x8000, 0x8001, 0xffff} {
			x := math.Float32frombits(upper<<16 | lower)
			got := uint32(toBFloat16(x))
			switch exponent := upper & 0x7f80; {
			case x != x:
				if y := math.Float32frombits(got << 16); y == y {
					t.Fatalf("%08x, which is NaN, becomes %04x", upper<<16|lower, got)
				}
				continue
			case exponent == 0: // zeros and denormals
				if got != upper&0x8000 {
					t.Fatalf("%v becomes %04x, want a zero", x, got)
				}
				continue
			case exponent == 0x7f80:
				if got != upper {
					t.Fatalf("%v becomes %04x", x, got)
				}
				continue
			}
			below, above := math.Abs(float64(x)-value(upper)), math.Abs(float64(x)-value(upper+1))
			want := upper
			if above < below || above == below && upper&1 == 1 {
				want++
			}
			if got != want {
				t.Fatalf("%v becomes %04x, want %04x", x, got, want)
			}
		}
	}
}

// halves are float32 numbers of all exponents and cases of rounding, and NaN.
func halves() []float32 {
	var x []float32
	for upper := uint32(0); upper < 1<<16; upper += 7 {
		for _, lower := range []uint32{0, 1, 0x7fff, 0x8000, 0x8001, 0xffff} {
			x = append(x, math.Float32frombits(upper<<16|lower))
		}
	}
	return x
}

// sameBits reports whether x and y have the same bits. It compares pairs, some of which are NaN as float32.
func sameBits(x, y []float32) bool {
	return slices.EqualFunc(x, y, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) })
}

func TestPairsOfValues(t *testing.T) {
	for _, s := range withPairTiles() {
		x := halves()
		got, want := make([]float32, len(x)/2), make([]float32, len(x)/2)
		for i := range want {
			want[i] = pairOf(x[2*i], x[2*i+1])
		}
		if s.pairRow(&got[0], &x[0], len(got)); !sameBits(got, want) {
			t.Errorf("%s: pairs of neighbours differ", s.name)
		}

		const cols = 13
		rows := len(x) / (2 * cols)
		got = make([]float32, rows*cols)
		s.pairRows(&got[0], &x[0], cols, cols, rows, cols)
		for i := range got {
			r, c := i/cols, i%cols
			if want := pairOf(x[2*r*cols+c], x[(2*r+1)*cols+c]); math.Float32bits(got[i]) != math.Float32bits(want) {
				t.Fatalf("%s: pair %d of row %d is %x, want %x", s.name, c, r, math.Float32bits(got[i]),
					math.Float32bits(want))
			}
		}
	}
}

func TestPairsOfAnyLengthAnywhereInMemory(t *testing.T) {
	for _, s := range withPairTiles() {
		for n := 1; n <= 70; n++ {
			for offset := range 8 {
				whole, parts := placed([][]float32{make([]float32, n), normal(uint64(n), 2*n)}, offset)
				want := slices.Clone(whole[0])
				at := 8 + offset%8
				pairRowPlain(&want[at], &parts[1][0], n)
				if s.pairRow(&parts[0][0], &parts[1][0], n); !sameBits(whole[0], want) {
					t.Fatalf("%s: %d pairs of neighbours at offset %d differ, or values around them were written",
						s.name, n, offset)
				}
			}
		}
		for cols := 1; cols <= s.tiles[BFloat16].panel; cols++ {
			for rows := 1; rows <= 4; rows++ {
				outRow, xRow := cols+rows%3, cols+rows
				whole, parts := placed([][]float32{make([]float32, (rows-1)*outRow+cols),
					normal(uint64(cols), (2*rows-1)*xRow+cols)}, cols%8)
				want := slices.Clone(whole[0])
				at := 8 + cols%8
				pairRowsPlain(&want[at], &parts[1][0], outRow, xRow, rows, cols)
				if s.pairRows(&parts[0][0], &parts[1][0], outRow, xRow, rows, cols); !sameBits(whole[0], want) {
					t.Fatalf("%s: %d rows of %d pairs differ, or values around them were written", s.name, rows, cols)
				}
			}
		}
	}
}

// ofBFloat16 are the products of bfloat16 of all layouts of a [m k] and b [k n].
func ofBFloat16(a, b []float32, m, k, n int) map[string]Product {
	p := Product{M: m, K: k, N: n, A: Dense(a, k), B: Dense(b, n), Precision: BFloat16}
	bt, at := p, p
	bt.B = Dense(transposed(b, k, n), k).T()
	at.A = Dense(transposed(a, m, k), m).T()
	return map[string]Product{"a·b": p, "a·bᵀ": bt, "aᵀ·b": at}
}

// rounded returns x in bfloat16.
func rounded(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(math.Float32frombits(uint32(toBFloat16(v)) << 16))
	}
	return y
}

// exactProduct returns c + a·b with a and b rounded to bfloat16, and a bound of the error of each element: each of its
// k sums is rounded to float32, and is at most the sum of what it sums without signs.
func exactProduct(c, a, b []float32, m, k, n int) (want, bound []float64) {
	x, y := rounded(a), rounded(b)
	want, bound = float64s(c), make([]float64, m*n)
	for i := range m {
		for j := range n {
			size := math.Abs(want[i*n+j])
			for l := range k {
				product := x[i*k+l] * y[l*n+j]
				want[i*n+j] += product
				size += math.Abs(product)
			}
			bound[i*n+j] = float64(k+1) * ulp / 2 * size
		}
	}
	return want, bound
}

func TestProductsOfBFloat16(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random, most := 60, 1<<20 // the tiles in Go are slow
	if testing.Short() {
		random, most = 15, 1<<17
	}
	var shapes [][3]int
	for _, s := range sizes {
		if s[0]*s[1]*s[2] < most {
			shapes = append(shapes, s)
		}
	}
	for range random {
		shapes = append(shapes, [3]int{1 + r.IntN(70), 1 + r.IntN(70), 1 + r.IntN(70)})
	}
	shapes = append(shapes, [3]int{5, 2*panelDepth - 1, 40}, [3]int{5, 2*panelDepth + 1, 40},
		[3]int{20, 4*panelDepth + 2, 33})
	chosen := use
	defer func() { use = chosen }()
	for _, s := range shapes {
		m, k, n := s[0], s[1], s[2]
		a, b, before := normal(1, m*k), normal(2, k*n), normal(3, m*n)
		want, bound := exactProduct(before, a, b, m, k, n)
		reference := slices.Clone(before)
		multiplyPairs(reference, Dense(a, k), Dense(b, n), m, k, n)
		for i, got := range reference {
			if !(math.Abs(float64(got)-want[i]) <= bound[i]) {
				t.Fatalf("plain, m, k, n = %v: element %d is %v, want %v", s, i, got, want[i])
			}
		}
		for _, use = range withPairTiles() {
			for name, p := range ofBFloat16(a, b, m, k, n) {
				p.C = slices.Clone(before)
				p.Multiply()
				for i, got := range p.C {
					if !(math.Abs(float64(got)-want[i]) <= bound[i]) {
						t.Fatalf("%s, %s, m, k, n = %v: element %d is %v, want %v", use.name, name, s, i, got, want[i])
					}
				}
				sameOrder := use.tiles[BFloat16].inGo() && use.tiles[BFloat16].depthMultiple == 1
				if sameOrder && !slices.Equal(p.C, reference) {
					t.Fatalf("%s, %s, m, k, n = %v: the same order of sums has other bits in tiles", use.name, name, s)
				}
			}
		}
	}
}

func TestStartAndEpilogueOfAProductOfBFloat16(t *testing.T) {
	const m, k, n = 17, 33, 50
	a, b, bias, residual := normal(1, m*k), normal(2, k*n), normal(3, n), normal(4, m*n)
	inEachPairSet(t, func(t *testing.T) {
		want := make([]float32, m*n)
		Repeat(want, bias)
		Product{M: m, K: k, N: n, A: Dense(a, k), B: Dense(b, n), C: want, Precision: BFloat16}.Multiply()
		Add(want, residual)
		got := repeated(7, m*n)
		Product{M: m, K: k, N: n, A: Dense(a, k), B: Dense(b, n), C: got, Precision: BFloat16, Start: StartAtBias,
			Bias: bias, After: Epilogue{Residual: residual}}.Multiply()
		if !slices.Equal(got, want) {
			t.Error("a product with bias and residual differs from the three separate operations")
		}
	})
}

func TestRowsOfAProductOfBFloat16DependOnThemselvesAlone(t *testing.T) {
	const m, k, n = 67, 131, 150
	a, b := normal(1, m*k), normal(2, k*n)
	inEachPairSet(t, func(t *testing.T) {
		all := make([]float32, m*n)
		Product{M: m, K: k, N: n, A: Dense(a, k), B: Dense(b, n), C: all, Precision: BFloat16}.Multiply()
		for offset := range 3 {
			for i := 0; i < m; i += 3 {
				row := make([]float32, offset+n)[offset:]
				x := append(make([]float32, offset, offset+k), a[i*k:(i+1)*k]...)[offset:]
				Product{M: 1, K: k, N: n, A: Dense(x, k), B: Dense(b, n), C: row, Precision: BFloat16}.Multiply()
				if !slices.Equal(row, all[i*n:(i+1)*n]) {
					t.Fatalf("row %d at offset %d differs from the same row among %d", i, offset, m)
				}
			}
		}
	})
}

func TestThreadsDoNotChangeAProductOfBFloat16(t *testing.T) {
	const m, k, n = 140, 31, 100
	a, b := normal(1, m*k), normal(2, k*n)
	inEachPairSet(t, func(t *testing.T) {
		for name, p := range ofBFloat16(a, b, m, k, n) {
			same(t, name, func() []float32 {
				p.C = make([]float32, m*n)
				p.Multiply()
				return p.C
			})
		}
	})
}

func TestProductsOfBFloat16PropagateNaN(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	tiny := float32(1e-40) // a zero in bfloat16
	inEachPairSet(t, func(t *testing.T) {
		for _, test := range []struct {
			what string
			a, b []float32 // [1 3], [3 1]
			want float32
		}{
			{"zero times NaN", []float32{0, 1, 2}, []float32{nan, 1, 1}, nan},
			{"zero times infinity", []float32{0, 1, 2}, []float32{inf, 1, 1}, nan},
			{"one times infinity, in the second of a pair", []float32{0, 1, 2}, []float32{1, inf, 1}, inf},
			{"one times infinity, at an odd end", []float32{0, 1, 2}, []float32{1, 1, -inf}, -inf},
			{"overflow of float32", []float32{3e38, 1, 2}, []float32{3e38, 1, 1}, inf},
			{"what rounds up to infinity", []float32{math.MaxFloat32, 0, 0}, []float32{1, 1, 1}, inf},
			{"a denormal times a large number", []float32{tiny, 1, 0}, []float32{1e38, 2, 1}, 2},
			{"a product below all normal numbers", []float32{1e-30, 0, 0}, []float32{1e-30, 1, 1}, 0},
		} {
			c := []float32{0}
			Product{M: 1, K: 3, N: 1, A: Dense(test.a, 3), B: Dense(test.b, 1), C: c, Precision: BFloat16}.Multiply()
			if !alike(c[0], test.want) {
				t.Errorf("%s = %v, want %v", test.what, c[0], test.want)
			}
		}
	})
}

func TestProductsOfBFloat16AllocateNothing(t *testing.T) {
	const m, k, n = 40, 70, 90
	a, b, c := normal(1, m*k), normal(2, k*n), make([]float32, m*n)
	chosen := use
	defer func() { use = chosen }()
	for _, use = range withPairTiles() {
		calls := map[string]func(){}
		for name, p := range ofBFloat16(a, b, m, k, n) {
			p.C = c
			calls[use.name+", "+name] = p.Multiply
		}
		allocatesNothing(t, calls)
	}
}

func TestCheckOfAPrecision(t *testing.T) {
	chosen := use
	defer func() { use = chosen }()
	sets := available()
	for precision, lacks := range map[Precision]string{
		BFloat16: "this processor has no instruction that multiplies bf16 (AVX512_BF16)",
		Int8:     "this processor has no instruction that multiplies int8 (AVX2, NEON)",
	} {
		want := lacks
		for _, use = range sets {
			if !use.tiles[precision].inGo() {
				want = fmt.Sprintf("JENGA_KERNEL=plain does not multiply %s; the %s kernel does", precision, use.name)
				if err := precision.Check(); err != nil {
					t.Error(err)
				}
			}
		}
		use = &plain
		if err := precision.Check(); err == nil || err.Error() != want {
			t.Errorf("error is %v, want %s", err, want)
		}
		if err := Float32.Check(); err != nil {
			t.Error(err)
		}
	}
}

func BenchmarkProductsOfBFloat16(b *testing.B) {
	chosen := use
	defer func() { use = chosen }()
	for _, use = range available() {
		if use.tiles[BFloat16].inGo() {
			continue
		}
		for _, s := range [][3]int{{384, 384, 1536}, {2048, 768, 768}, {2048, 768, 3072}, {2048, 3072, 768}} {
			m, k, n := s[0], s[1], s[2]
			products := ofBFloat16(normal(1, m*k), normal(2, k*n), m, k, n)
			for _, name := range slices.Sorted(maps.Keys(products)) {
				p := products[name]
				p.C = make([]float32, m*n)
				b.Run(fmt.Sprintf("%s/%dx%dx%d/%s", name, m, k, n, use.name), func(b *testing.B) {
					for b.Loop() {
						p.Multiply()
					}
					b.ReportMetric(2*float64(m*k*n)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
				})
			}
		}
	}
}

func TestMultiplyAddsOfLowerPrecision(t *testing.T) {
	for _, precision := range []Precision{BFloat16, Int8} {
		loop := MultiplyAdds(precision)
		if err := precision.Check(); (loop != nil) != (err == nil) {
			t.Fatalf("%v: there is a loop: %v; %v", precision, loop != nil, err)
		}
		if loop != nil {
			if peak := loop(time.Millisecond); peak.Mean() <= 0 || peak.Best < peak.Mean() {
				t.Errorf("%v: the peak is %+v", precision, peak)
			}
		}
	}
}

func TestSumsOfBFloat16PairsAreThoseOfRoundedValues(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2, 3, 1000, 100_001} {
		x, y := make([]float32, n), make([]float32, n)
		for i := range x {
			x[i] = float32(r.NormFloat64() * math.Pow(10, float64(r.IntN(8)-4)))
			y[i] = float32(r.NormFloat64())
		}
		RoundBFloat16(y)
		want := make([]float32, n)
		for i := range want {
			want[i] = roundBFloat16(y[i] + roundBFloat16(x[i]))
		}
		pairs := make([]float32, BFloat16Pairs(n))
		PackBFloat16(pairs, x)
		unpacked := make([]float32, n)
		UnpackBFloat16(unpacked, pairs)
		if RoundBFloat16(x); !slices.Equal(unpacked, x) {
			t.Errorf("%d values that are packed are not the rounded ones", n)
		}
		AddBFloat16(y, pairs)
		if !slices.Equal(y, want) {
			t.Errorf("the sums of %d values are not those of rounded ones", n)
		}
		again := slices.Clone(y)
		if RoundBFloat16(again); !slices.Equal(again, y) {
			t.Errorf("%d sums are not in bfloat16", n)
		}
	}
}

// The values are those of torch.tensor(x).bfloat16(), of PyTorch 2.
func TestRoundBFloat16(t *testing.T) {
	x := []float32{1, 1.00390625, 1.01171875, -3.1415927, 65504, 1e-3}
	want := []float32{1, 1, 1.015625, -3.140625, 65536, 0.00099945068359375}
	if RoundBFloat16(x); !slices.Equal(x, want) {
		t.Errorf("rounded to %v, want %v", x, want)
	}
}
