package kernel

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/internal/shared"
)

// rowSums is MatMul's contract as loops: each element adds its products in ascending order, in float32. In Go each is
// rounded before it is added to the element. In assembly it is not, and those of a block are summed before they are
// added.
func rowSums(c, a, b []float32, m, k, n int) {
	if k == 0 {
		return
	}
	depth := use.tiles[Float32].blockDepth(k)
	for i := range m {
		for j := range n {
			var sum float32
			for l := range k {
				if use.tiles[Float32].inGo() {
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

// severalProducts makes products of one a [m k] with matrices of some widths, their b packed or not. The results begin
// with the same values each time.
func severalProducts(m, k int, widths []int, precision Precision, packed bool) []Product {
	a := normal(1, m*k)
	var all []Product
	for i, n := range widths {
		p := Product{M: m, K: k, N: n, A: Dense(a, k), B: Dense(normal(uint64(2+i), k*n), n), C: normal(9, m*n),
			Start: StartAtBias, Bias: normal(uint64(20+i), n), Precision: precision}
		switch i {
		case 1:
			p.Start, p.Bias = StartAtZero, nil
			p.After.Residual = normal(30, m*n)
		case 2:
			p.After.GELU = make([]float32, m*n)
		}
		if packed {
			p.Packed = new(Packed)
			p.Packed.Pack(p.B, k, n, precision)
		}
		all = append(all, p)
	}
	return all
}

// productsShape are the sizes of products of one A [m k].
type productsShape struct {
	m, k   int
	widths []int
}

// productsShapes returns sizes of products: a few, and in long tests all combinations of edges.
func productsShapes() []productsShape {
	shapes := []productsShape{
		{1, 33, []int{64, 64, 64}}, {13, 520, []int{7, 70, 33}}, {27, 1024, []int{40, 40, 40}}, // rows packed too
		{130, 33, []int{7, 70, 33}}, {0, 33, []int{64, 64}}, {13, 33, []int{40}}, {13, 33, []int{16, 32, 48, 64}},
	}
	if testing.Short() || !shared.Long() {
		return shapes
	}
	for _, m := range []int{0, 1, 12, 27, 130} {
		for _, k := range []int{1, 33, 520, 1024} {
			for _, widths := range [][]int{{40}, {64, 64, 64}, {7, 300, 33}, {16, 32, 48, 64}} {
				shapes = append(shapes, productsShape{m, k, widths})
			}
		}
	}
	return shapes
}

func TestProductsTogetherHaveTheBitsOfEach(t *testing.T) {
	defer SetThreads(0)
	all := []int{2, 1, 8}
	if testing.Short() {
		all = all[:1]
	}
	for _, threads := range all {
		SetThreads(threads)
		inEachSet(t, productsTogetherHaveTheBitsOfEach)
	}
}

func productsTogetherHaveTheBitsOfEach(t *testing.T) {
	for _, s := range productsShapes() {
		for _, precision := range []Precision{Float32, BFloat16, Int8} {
			for _, packed := range []bool{true, false} {
				checkTogether(t, s.m, s.k, s.widths, precision, packed)
			}
		}
	}
	checkTogether(t, 5, 33, []int{64, 0, 5}, Float32, false)
}

func checkTogether(t *testing.T, m, k int, widths []int, precision Precision, packed bool) {
	t.Helper()
	want := severalProducts(m, k, widths, precision, packed)
	for _, p := range want {
		p.Multiply()
	}
	got := severalProducts(m, k, widths, precision, packed)
	MultiplyAll(got...)
	for i, p := range got {
		if !slices.Equal(p.C, want[i].C) || !slices.Equal(p.After.GELU, want[i].After.GELU) {
			t.Fatalf("%v, packed %v: product %d of %d × %d × %v has other bits than alone", precision, packed, i, m,
				k, widths)
		}
	}
}

func TestProductsTogetherAllocateNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector empties pools")
	}
	inEachSet(t, func(t *testing.T) {
		for _, precision := range []Precision{Float32, BFloat16, Int8} {
			all := severalProducts(12, 384, []int{64, 64, 64}, precision, true)
			if n := testing.AllocsPerRun(50, func() { MultiplyAll(all[0], all[1], all[2]) }); n > 0 {
				t.Errorf("%v: %v allocations", precision, n)
			}
		}
	})
}

func TestProductsOfDifferentRowsAreNotTakenTogether(t *testing.T) {
	inEachSet(t, func(t *testing.T) {
		make2 := func() []Product {
			all := severalProducts(13, 33, []int{40, 40}, Float32, true)
			all[1].A = Dense(normal(5, 13*33), 33)
			return all
		}
		want, got := make2(), make2()
		for _, p := range want {
			p.Multiply()
		}
		MultiplyAll(got...)
		if !slices.Equal(got[0].C, want[0].C) || !slices.Equal(got[1].C, want[1].C) {
			t.Error("other bits than alone")
		}
	})
}

func TestOneOfSeveralProductsThatIsTooSmallPanics(t *testing.T) {
	inEachSet(t, func(t *testing.T) {
		defer func() {
			if recover() == nil {
				t.Error("it does not panic")
			}
		}()
		all := severalProducts(13, 33, []int{40, 40, 40}, Float32, false)
		all[2].B.Data = all[2].B.Data[:40]
		MultiplyAll(all...)
	})
}

// BenchmarkProductsTogether compares the products of query, key and value of a few texts one after the other with the
// same together.
func BenchmarkProductsTogether(b *testing.B) {
	for _, precision := range []Precision{Float32, BFloat16, Int8} {
		for _, m := range []int{1, 12, 96, 2048} {
			all := severalProducts(m, 384, []int{384, 384, 384}, precision, true)
			for name, multiply := range map[string]func(){
				"alone": func() {
					for _, p := range all {
						p.Multiply()
					}
				},
				"together": func() { MultiplyAll(all...) },
			} {
				b.Run(fmt.Sprintf("%v/%d/%s", precision, m, name), func(b *testing.B) {
					for b.Loop() {
						multiply()
					}
				})
			}
		}
	}
}
