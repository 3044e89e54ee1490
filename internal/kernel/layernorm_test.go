package kernel

import (
	"math"
	"testing"
)

const epsilon = 1e-5

// plainNorm is the formula in float64, for rows of len(gain).
func plainNorm(x, gain, bias []float64) []float64 {
	d := len(gain)
	y := make([]float64, len(x))
	for i := 0; i < len(x); i += d {
		var mean, variance float64
		for _, v := range x[i : i+d] {
			mean += v / float64(d)
		}
		for _, v := range x[i : i+d] {
			variance += (v - mean) * (v - mean) / float64(d)
		}
		for j, v := range x[i : i+d] {
			y[i+j] = (v-mean)/math.Sqrt(variance+epsilon)*gain[j] + bias[j]
		}
	}
	return y
}

func TestLayerNorm(t *testing.T) { inEachSet(t, testLayerNorm) }

func testLayerNorm(t *testing.T) {
	const rows, d = 37, 10
	x, gain, bias := normal(1, rows*d), normal(2, d), normal(3, d)
	clear(x[:d]) // a row without any variance
	for i := range x[d : 2*d] {
		x[d+i] += 1e4 // a mean far from 0 adds no error to that of x
	}
	got, stats := make([]float32, len(x)), make([]float32, 2*rows)
	LayerNorm(got, stats, x, gain, bias, epsilon)
	want := plainNorm(float64s(x), float64s(gain), float64s(bias))
	near(t, "LayerNorm far from 0", got[d:2*d], want[d:2*d], 2e-3)
	near(t, "LayerNorm", got[2*d:], want[2*d:], 3e-6)
	near(t, "LayerNorm without variance", got[:d], want[:d], 0)

	x[d] = float32(math.NaN())
	LayerNorm(got, stats, x, gain, bias, epsilon)
	if got[d+1] == got[d+1] || got[0] != got[0] || got[2*d] != got[2*d] {
		t.Errorf("with NaN in one row the result is %v", got[:3*d])
	}
}

func TestLayerNormBackwardEqualsNumericalGradient(t *testing.T) {
	inEachSet(t, testLayerNormBackwardAddsTheSlopes)
}

func testLayerNormBackwardAddsTheSlopes(t *testing.T) {
	const rows, d = 37, 10
	x, gain, bias, weights := normal(1, rows*d), normal(2, d), normal(3, d), normal(4, rows*d)
	stats := make([]float32, 2*rows)
	LayerNorm(make([]float32, len(x)), stats, x, gain, bias, epsilon)
	dx, dGain, dBias := make([]float32, len(x)), make([]float32, d), make([]float32, d)
	x64, gain64, bias64 := float64s(x), float64s(gain), float64s(bias)

	LayerNormBackward(dx, dGain, dBias, stats, x, gain, weights)
	near(t, "dx", dx, slopes(func(x []float64) []float64 { return plainNorm(x, gain64, bias64) }, x, weights), 2e-5)
	near(t, "dGain", dGain, slopes(func(gain []float64) []float64 { return plainNorm(x64, gain, bias64) }, gain,
		weights), 2e-5)
	near(t, "dBias", dBias, slopes(func(bias []float64) []float64 { return plainNorm(x64, gain64, bias) }, bias,
		weights), 2e-5)

	twice := make([]float64, len(dx))
	for i, v := range dx {
		twice[i] = 2 * float64(v)
	}
	LayerNormBackward(dx, nil, nil, stats, x, gain, weights)
	near(t, "dx added to dx", dx, twice, 1e-5)
	same(t, "LayerNormBackward", func() []float32 {
		all := make([]float32, len(x)+2*d)
		LayerNormBackward(all[2*d:], all[:d], all[d:2*d], stats, x, gain, weights)
		return all
	})
}
