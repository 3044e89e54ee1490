package collective

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/jenga-nlp/jenga/internal/collective/collectivetest"
	"github.com/jenga-nlp/jenga/internal/kernel"
)

// inRanks calls do for each rank of a group in a goroutine of its own.
func inRanks(t *testing.T, ranks int, do func(g *Group) error) {
	t.Helper()
	var wait sync.WaitGroup
	for _, transport := range collectivetest.Local(ranks) {
		g, err := New(transport)
		if err != nil {
			t.Fatal(err)
		}
		wait.Go(func() {
			if err := do(g); err != nil {
				t.Errorf("rank %d of %d: %v", g.rank, ranks, err)
			}
		})
	}
	wait.Wait()
}

// tree returns the sum of the values of shards in a binary tree, neighbours first.
func tree[T float32 | float64](values []T) T {
	if len(values) == 1 {
		return values[0]
	}
	return tree(values[:len(values)/2]) + tree(values[len(values)/2:])
}

func TestSumsHaveTheBitsOfTheTree(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, ranks := range []int{1, 2, 4, 8, 16} {
		for _, n := range []int{0, 1, 63, 64, 65, 1000, 100_003} {
			all := make([][]float32, ranks)
			for rank := range all {
				all[rank] = make([]float32, n)
				for i := range all[rank] {
					all[rank][i] = float32(r.NormFloat64() * math.Pow(10, float64(r.IntN(6))))
				}
			}
			want := make([]float32, n)
			for i := range want {
				var column []float32
				for rank := range all {
					column = append(column, all[rank][i])
				}
				want[i] = tree(column)
			}
			inRanks(t, ranks, func(g *Group) error {
				values, err := g.Floats(n)
				if err != nil {
					return err
				}
				copy(values, all[g.rank])
				bounds := Bounds(n, 50)
				g.Scatter(values, bounds)
				if err := g.Scattered(); err != nil {
					return err
				}
				first, last := Part(len(bounds)-1, g.rank, ranks)
				from, to := bounds[first], bounds[last]
				if !slices.Equal(values[from:to], want[from:to]) {
					return fmt.Errorf("the sums of values %d to %d of %d are not those of the tree", from, to, n)
				}
				if err := g.GatherParts(values, bounds); err != nil {
					return err
				}
				if !slices.Equal(values, want) {
					return fmt.Errorf("the sums of %d values are not those of the tree", n)
				}
				return nil
			})
		}
	}
}

// Scatters that run beside each other do not mix, whatever their lengths.
func TestScattersRunBesideEachOther(t *testing.T) {
	const ranks, n = 4, 20
	inRanks(t, ranks, func(g *Group) error {
		values, err := g.Floats(n * n * 10)
		if err != nil {
			return err
		}
		for i := range values {
			values[i] = float32(i % 100 * (g.rank + 1))
		}
		var all [][]int
		at := 0
		for k := range n {
			bounds := Bounds(k*10, 7)
			for i := range bounds {
				bounds[i] += at
			}
			g.Scatter(values, bounds)
			at += k * 10
			all = append(all, bounds)
		}
		if err := g.Scattered(); err != nil {
			return err
		}
		if err := g.GatherParts(values, all...); err != nil {
			return err
		}
		for i, v := range values[:at] {
			if want := float32(i % 100 * (1 + 2 + 3 + 4)); v != want {
				return fmt.Errorf("value %d is %v, want %v", i, v, want)
			}
		}
		return nil
	})
}

func TestRoundedSumsHaveTheBitsOfARoundedTree(t *testing.T) {
	const ranks, n = 8, 1001
	rounded := func(v float32) float32 {
		x := []float32{v}
		kernel.RoundBFloat16(x)
		return x[0]
	}
	var sum func(rank, of, i int) float32
	value := func(rank, i int) float32 {
		if i == 7 {
			return float32(math.Copysign(0, -1))
		}
		return rounded(float32(math.Sin(float64(rank*n + i))))
	}
	sum = func(rank, of, i int) float32 {
		if of == 1 {
			return value(rank, i)
		}
		return rounded(sum(rank, of/2, i) + sum(rank+of/2, of/2, i))
	}
	inRanks(t, ranks, func(g *Group) error {
		g.RoundSums()
		values, err := g.Floats(n)
		if err != nil {
			return err
		}
		for i := range values {
			values[i] = value(g.rank, i)
		}
		if err := g.Sum(values); err != nil {
			return err
		}
		for i, v := range values {
			if want := sum(0, ranks, i); math.Float32bits(v) != math.Float32bits(want) {
				return fmt.Errorf("sum %d is %v, want %v", i, v, want)
			}
		}
		return nil
	})
}

func TestRoundedSumsAreSentInHalfTheBytes(t *testing.T) {
	const n = 4096
	inRanks(t, 4, func(g *Group) error {
		var sent [2]int64
		for i := range sent {
			values, err := g.Floats(n)
			if err != nil {
				return err
			}
			before := g.Traffic()
			if err := g.Sum(values); err != nil {
				return err
			}
			sent[i] = g.Traffic().Since(before).Sent
			g.RoundSums()
		}
		if 2*sent[1] != sent[0] {
			return fmt.Errorf("%d bytes are sent of rounded values, %d of others", sent[1], sent[0])
		}
		return nil
	})
}

func TestPartsOfMoreRanksDivideThoseOfFewer(t *testing.T) {
	for _, n := range []int{0, 1, 2, 5, 64, 1000} {
		for ranks := 1; ranks <= 64; ranks *= 2 {
			covered := 0
			for rank := range ranks {
				from, to := Part(n, rank, ranks)
				if covered += to - from; from > to || to-from > (n+ranks-1)/ranks {
					t.Fatalf("part %d of %d of %d units is %d to %d", rank, ranks, n, from, to)
				}
				for _, own := range []int{rank, rank + ranks} {
					if a, b := Part(n, own, 2*ranks); a < from || b > to {
						t.Errorf("part %d of %d, %d to %d, is not in part %d of %d", own, 2*ranks, a, b, rank, ranks)
					}
				}
			}
			if covered != n {
				t.Errorf("%d parts of %d units have %d", ranks, n, covered)
			}
		}
	}
}

func TestNumbersAreCombinedInTheTree(t *testing.T) {
	for _, ranks := range []int{1, 2, 4, 8} {
		r := rand.New(rand.NewPCG(3, uint64(ranks)))
		all := make([]float64, ranks)
		for i := range all {
			all[i] = r.NormFloat64() * math.Pow(10, float64(r.IntN(20)))
		}
		inRanks(t, ranks, func(g *Group) error {
			values := []float64{all[g.rank], float64(g.rank)}
			if err := g.SumNumbers(values); err != nil {
				return err
			}
			if want := tree(all); values[0] != want || values[1] != float64(ranks*(ranks-1)/2) {
				return fmt.Errorf("sums are %v, want %v", values, want)
			}
			values = []float64{all[g.rank]}
			if err := g.MaxNumbers(values); err != nil {
				return err
			}
			if want := slices.Max(all); values[0] != want {
				return fmt.Errorf("the largest is %v, want %v", values[0], want)
			}
			return nil
		})
	}
}

func TestOtherNumbersOfRanksAreRefused(t *testing.T) {
	for _, ranks := range []int{3, 6, 12} {
		if _, err := New(collectivetest.Local(ranks)[0]); err == nil {
			t.Errorf("%d ranks are no error", ranks)
		}
	}
}

func TestTraffic(t *testing.T) {
	const n = 2048
	inRanks(t, 4, func(g *Group) error {
		values, err := g.Floats(n)
		if err != nil {
			return err
		}
		before := g.Traffic()
		if err := g.Sum(values); err != nil {
			return err
		}
		// a half and a quarter there and back
		if got, want := g.Traffic().Since(before).Sent, int64(4*2*(n/2+n/4)); got != want {
			return fmt.Errorf("%d bytes sent, want %d", got, want)
		}
		if again := g.Traffic(); again.Active <= before.Active || again != g.Traffic() {
			return fmt.Errorf("traffic of %v, then of %v", before, again)
		}
		return nil
	})
}
