package kernel

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// rowSums is MatMul's contract as loops: each element adds its products in ascending order, in float32. In the plain
// version each is rounded before it is added. In tiles it is not, and those of a block are summed before they are
// added.
func rowSums(c, a, b []float32, m, k, n int) {
	if k == 0 {
		return
	}
	depth := blockDepth(k)
	for i := range m {
		for j := range n {
			var sum float32
			for l := range k {
				if use.tile == nil {
					product := a[i*k+l] * b[l*n+j]
					c[i*n+j] += product
					continue
				}
				sum = multiplyAdd(a[i*k+l], b[l*n+j], sum)
				if (l+1)%depth == 0 || l+1 == k {
					c[i*n+j] += sum
					sum = 0
				}
			}
		}
	}
}

// multiplyAdd returns a·b + c, rounded once. In float64 the product is exact; where the sum is not, it is rounded to
// odd, so that rounding it again to float32 equals rounding the exact sum (Boldo & Melquiond 2008).
func multiplyAdd(a, b, c float32) float32 {
	x, y := float64(a)*float64(b), float64(c)
	sum := x + y
	if math.IsNaN(sum) || math.IsInf(sum, 0) {
		return float32(sum)
	}
	part := sum - x // Knuth's two-sum: rest is the rounding error of the sum
	rest := (x - (sum - part)) + (y - part)
	if bits := math.Float64bits(sum); rest != 0 && bits&1 == 0 {
		if (rest > 0) == (sum > 0) {
			bits++
		} else {
			bits--
		}
		sum = math.Float64frombits(bits)
	}
	return float32(sum)
}

func transposed(x []float32, m, n int) []float32 {
	t := make([]float32, len(x))
	for i := range m {
		for j := range n {
			t[j*m+i] = x[i*n+j]
		}
	}
	return t
}

// sizes are m, k, n around the borders of tiles.
var sizes = [][3]int{{1, 1, 1}, {1, 10, 3}, {3, 5, 10}, {7, 300, 9}, {8, 256, 256}, {9, 257, 257}, {130, 33, 70},
	{131, 520, 264}, {0, 3, 4}, {3, 0, 4}, {3, 4, 0},
	{13, 192, 16}, {14, 193, 17}, {15, 384, 32}, {16, 577, 31}, {33, 40, 33},
	{27, 1024, 40}} // rows at a distance of 4096 bytes

func TestProductsSumInAscendingOrder(t *testing.T) { inEachSet(t, productsSumInAscendingOrder) }

func productsSumInAscendingOrder(t *testing.T) {
	for _, s := range sizes {
		m, k, n := s[0], s[1], s[2]
		a, b, before := normal(1, m*k), normal(2, k*n), normal(3, m*n)
		want := slices.Clone(before)
		rowSums(want, a, b, m, k, n)
		for name, multiply := range map[string]func(c []float32){
			"MatMul":   func(c []float32) { MatMul(c, a, b, m, k, n) },
			"MatMulBT": func(c []float32) { MatMulBT(c, a, transposed(b, k, n), m, k, n) },
			"MatMulAT": func(c []float32) { MatMulAT(c, transposed(a, m, k), b, m, k, n) },
		} {
			got := slices.Clone(before)
			multiply(got)
			if !slices.Equal(got, want) {
				t.Errorf("%s of m, k, n = %v is not the sum in ascending order", name, s)
			}
		}
	}
}

// With slightly more than a block of depth, a group of columns and a unit of rows: start, epilogue, layout of the
// operands and number of threads do not change a bit.
func TestStartsAndEpiloguesOfLargeProducts(t *testing.T) {
	inEachSet(t, startsAndEpiloguesOfLargeProducts)
}

func startsAndEpiloguesOfLargeProducts(t *testing.T) {
	defer SetThreads(0)
	const k, n = panelDepth + 3, groupColumns + 37
	rows := []int{55, 59} // not divisible into tiles of 6 or 12 rows
	if testing.Short() {
		rows = rows[:1]
	}
	for _, m := range rows {
		a, b, before := normal(1, m*k), normal(2, k*n), normal(3, m*n)
		columns, crosswise := transposed(a, m, k), transposed(b, k, n)
		bias, residual := normal(4, n), normal(5, m*n)
		packed := new(Packed)
		packed.Pack(Dense(b, n), k, n, Float32)
		dropped := Dropped{Key: 7, Rate: 0.2}
		for start := StartAtC; start <= StartAtBias; start++ {
			want := slices.Clone(before)
			switch start {
			case StartAtZero:
				clear(want)
			case StartAtBias:
				Repeat(want, bias)
			}
			rowSums(want, a, b, m, k, n)
			gelu := make([]float32, m*n)
			use.gelu(gelu, want)
			gated := slices.Clone(gelu)
			use.multiply(gated, residual)
			sum := slices.Clone(want)
			addDropped(sum, residual, want, dropped.Key, dropped.Rate)
			for name, p := range map[string]Product{
				"A·B":    {A: Dense(a, k), B: Dense(b, n)},
				"A·Bᵀ":   {A: Dense(a, k), B: Dense(crosswise, k).T()},
				"Aᵀ·B":   {A: Dense(columns, m).T(), B: Dense(b, n)},
				"packed": {A: Dense(a, k), Packed: packed},
			} {
				p.M, p.K, p.N, p.Start, p.Bias = m, k, n, start, bias
				for threads := 1; threads <= 4; threads++ {
					SetThreads(threads)
					for after, expected := range map[string]struct {
						Epilogue
						c, gelu []float32
					}{
						"GELU":                 {Epilogue{GELU: make([]float32, m*n)}, want, gelu},
						"gated GELU":           {Epilogue{GELU: make([]float32, m*n), Gate: residual}, want, gated},
						"dropout and residual": {Epilogue{Dropout: dropped, Residual: residual}, sum, nil},
					} {
						p.C, p.After = slices.Clone(before), expected.Epilogue
						p.Multiply()
						if !slices.Equal(p.C, expected.c) || !slices.Equal(p.After.GELU, expected.gelu) {
							t.Fatalf("%s of %d rows, start %d, threads %d: %s of another result", name, m, start,
								threads, after)
						}
					}
				}
			}
		}
	}
}

func TestProductsOfTooFewValuesPanic(t *testing.T) {
	whole := func() Product {
		return Product{M: 3, K: 4, N: 5, A: Dense(make([]float32, 12), 4), B: Dense(make([]float32, 20), 5),
			C: make([]float32, 15), Bias: make([]float32, 5), Start: StartAtBias}
	}
	inEachSet(t, func(t *testing.T) {
		whole().Multiply()
		for name, cut := range map[string]func(p *Product){
			"A":    func(p *Product) { p.A.Data = p.A.Data[:11] },
			"B":    func(p *Product) { p.B.Data = p.B.Data[:19] },
			"C":    func(p *Product) { p.C = p.C[:14:14] },
			"bias": func(p *Product) { p.Bias = p.Bias[:4:4] },
		} {
			p := whole()
			cut(&p)
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("no panic where %s is short", name)
					}
				}()
				p.Multiply()
			}()
		}
	})
}

func TestPackingAnEmptyMatrix(t *testing.T) {
	inEachSet(t, func(t *testing.T) {
		packed, c := new(Packed), []float32{1, 2}
		packed.Pack(Dense(nil, 2), 0, 2, Float32)
		Product{M: 1, K: 0, N: 2, Packed: packed, C: c}.Multiply()
		if !slices.Equal(c, []float32{1, 2}) {
			t.Errorf("a product with K = 0 adds %v", c)
		}
	})
}

func TestRowsOfAProductDependOnThemselvesAlone(t *testing.T) {
	inEachSet(t, rowsOfAProductDependOnThemselvesAlone)
}

func rowsOfAProductDependOnThemselvesAlone(t *testing.T) {
	const m, k, n = 67, 130, 300
	a, b := normal(1, m*k), normal(2, k*n)
	all := make([]float32, m*n)
	MatMul(all, a, b, m, k, n)
	for offset := range 4 { // of the row in memory, in floats: alignment must not matter
		for i := range m {
			row := make([]float32, offset+n)[offset:]
			x := append(make([]float32, offset, offset+k), a[i*k:(i+1)*k]...)[offset:]
			MatMul(row, x, b, 1, k, n)
			if !slices.Equal(row, all[i*n:(i+1)*n]) {
				t.Fatalf("row %d at offset %d differs from the same row among %d", i, offset, m)
			}
		}
	}
}

func TestThreadsDoNotChangeAProduct(t *testing.T) {
	const m, k, n = 300, 70, 600
	a, b := normal(1, m*k), normal(2, k*n)
	inEachSet(t, func(t *testing.T) {
		same(t, "MatMul", func() []float32 {
			c := make([]float32, m*n)
			MatMul(c, a, b, m, k, n)
			return c
		})
	})
}

func TestProductsPassOnWhatIsNoNumber(t *testing.T) { inEachSet(t, productsPassOnWhatIsNoNumber) }

func productsPassOnWhatIsNoNumber(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, bad := range []float32{nan, inf} {
		c := make([]float32, 4)
		MatMul(c, []float32{0, 1, 2, 3}, []float32{bad, 1, 1, 1}, 2, 2, 2) // 0·NaN and 0·Inf are NaN
		if c[0] == c[0] || c[1] != 1 {
			t.Errorf("zero times %v is %v", bad, c)
		}
	}
}

func TestTranspose(t *testing.T) {
	for _, s := range sizes {
		m, n := s[0], s[2]
		x := normal(1, m*n)
		got := make([]float32, m*n)
		Transpose(got, x, m, n)
		if want := transposed(x, m, n); !slices.Equal(got, want) {
			t.Errorf("Transpose of %d by %d is wrong", m, n)
		}
	}
}

func BenchmarkProducts(b *testing.B) {
	chosen := use
	defer func() { use = chosen }()
	for _, s := range [][3]int{{384, 384, 384}, {384, 384, 1536}, {384, 1536, 384}, {2048, 768, 768}, {2048, 768, 3072},
		{2048, 3072, 768}, {16, 768, 3072}} {
		m, k, n := s[0], s[1], s[2]
		x, y, z := normal(1, m*k), normal(2, k*n), make([]float32, m*n)
		for name, multiply := range map[string]func(c, a, b []float32, m, k, n int){"MatMul": MatMul,
			"MatMulBT": MatMulBT, "MatMulAT": MatMulAT} {
			for _, use = range available() {
				b.Run(fmt.Sprintf("%s/%dx%dx%d/%s", name, m, k, n, use.name), func(b *testing.B) {
					for b.Loop() {
						multiply(z, x, y, m, k, n)
					}
					b.ReportMetric(2*float64(m*k*n)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
				})
			}
		}
	}
}
