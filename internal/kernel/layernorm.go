package kernel

import "math"

// LayerNorm writes (x−μ)/√(σ²+ε)·gain + bias to out [T D], with the mean μ and the variance σ² of each row of x
// (Ba et al. 2016), and μ and 1/√(σ²+ε) to stats [T 2] for LayerNormBackward.
func LayerNorm(out, stats, x, gain, bias []float32, epsilon float64) {
	layerNormTiles.run(len(x)/len(gain), rowTile,
		layerNormArgs{out, stats, x, gain, bias[:len(gain)], float32(epsilon)})
}

type layerNormArgs struct {
	out, stats, x, gain, bias []float32
	epsilon                   float32
}

var layerNormTiles = tiled(func(a *layerNormArgs, lo, hi int) {
	d := len(a.gain)
	for i := lo; i < hi; i++ {
		a.stats[2*i], a.stats[2*i+1] = use.layerNorm(a.out[i*d:(i+1)*d], a.x[i*d:(i+1)*d], a.gain, a.bias, a.epsilon)
	}
})

// layerNormPlain normalises a row to out, and returns μ and 1/√(σ²+ε).
func layerNormPlain(out, x, gain, bias []float32, epsilon float32) (mean, scale float32) {
	var sum float64
	for _, v := range x {
		sum += float64(v)
	}
	mu := sum / float64(len(x))
	var squares float64
	for _, v := range x {
		squares += (float64(v) - mu) * (float64(v) - mu)
	}
	mean, scale = float32(mu), float32(1/math.Sqrt(squares/float64(len(x))+float64(epsilon)))

	out, gain, bias = out[:len(x)], gain[:len(x)], bias[:len(x)]
	for j, v := range x {
		out[j] = (v-mean)*scale*gain[j] + bias[j]
	}
	return mean, scale
}

// LayerNormBackward adds to dx, dGain and dBias the gradients of LayerNorm's x, gain and bias, given the gradient dOut
// of its result. A nil result is not computed. Sums over rows are computed in chunks, as in SumRows.
func LayerNormBackward(dx, dGain, dBias, stats, x, gain, dOut []float32) {
	if len(x) == 0 {
		return
	}
	d := len(gain)
	sums := newChunkSums(len(x)/d, 2*d) // of dGain and dBias
	layerNormBackwardTiles.run(sums.rows, sums.chunk, layerNormBackwardArgs{sums, dx, stats, x, gain, dOut})
	if dGain != nil {
		sums.addTo(dGain, 0)
	}
	if dBias != nil {
		sums.addTo(dBias, d)
	}
	chunkSumsPool.Put(sums)
}

type layerNormBackwardArgs struct {
	sums                     *chunkSums
	dx, stats, x, gain, dOut []float32
}

var layerNormBackwardTiles = tiled(func(a *layerNormBackwardArgs, lo, hi int) {
	d := len(a.gain)
	sums := a.sums.of(lo)
	for i := lo; i < hi; i++ {
		mean, scale := a.stats[2*i], a.stats[2*i+1]
		x, dOut := a.x[i*d:(i+1)*d], a.dOut[i*d:(i+1)*d]
		sum, dot := use.layerNormSums(sums[:d], sums[d:], x, a.gain, dOut, mean, scale)
		if a.dx != nil {
			use.layerNormGradient(a.dx[i*d:(i+1)*d], x, a.gain, dOut, mean, scale, sum/float32(d), dot/float32(d))
		}
	}
})

// layerNormSumsPlain adds a row's gradients of gain and bias to dGain and dBias, and returns Σg and Σg·n, with n the
// normalised row and g = dOut·gain.
func layerNormSumsPlain(dGain, dBias, x, gain, dOut []float32, mean, scale float32) (sum, dot float32) {
	dGain, dBias, gain, dOut = dGain[:len(x)], dBias[:len(x)], gain[:len(x)], dOut[:len(x)]
	var sumG, sumGN float64
	for j, v := range x {
		n := (v - mean) * scale
		dGain[j] += dOut[j] * n
		dBias[j] += dOut[j]
		g := dOut[j] * gain[j]
		sumG += float64(g)
		sumGN += float64(g * n)
	}
	return float32(sumG), float32(sumGN)
}

// layerNormGradientPlain adds scale·(g − mean(g) − n·mean(g·n)) to dx.
func layerNormGradientPlain(dx, x, gain, dOut []float32, mean, scale, meanG, meanGN float32) {
	dx, gain, dOut = dx[:len(x)], gain[:len(x)], dOut[:len(x)]
	for j, v := range x {
		dx[j] += scale * (dOut[j]*gain[j] - meanG - (v-mean)*scale*meanGN)
	}
}
