package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

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
