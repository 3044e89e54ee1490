package kernel

import (
	"fmt"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/internal/shared"
)

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
		if use.tile == nil {
			t.Skip("the plain version's closures are allocated")
		}
		for _, precision := range []Precision{Float32, BFloat16, Int8} {
			if !precision.inTiles() {
				continue
			}
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
