package kernel

import "math"

// LayerNorm writes (x−μ)/√(σ²+ε)·gain + bias to out [T D], with the mean μ and the variance σ² of each row of x
// (Ba et al. 2016). stats [T 2] takes μ and 1/√(σ²+ε) for LayerNormBackward.
func LayerNorm(out, stats, x, gain, bias []float32, epsilon float64) {
	d := len(gain)
	Parallel(len(x)/d, rowTile, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			row := x[i*d : (i+1)*d]
			mean, scale := moments(row, epsilon)
			stats[2*i], stats[2*i+1] = mean, scale
			to, gain, bias := out[i*d:][:len(row)], gain[:len(row)], bias[:len(row)]
			for j, v := range row {
				to[j] = (v-mean)*scale*gain[j] + bias[j]
			}
		}
	})
}

// moments returns a row's mean and 1/√(σ²+ε).
func moments(row []float32, epsilon float64) (mean, scale float32) {
	var sum float64
	for _, v := range row {
		sum += float64(v)
	}
	mu := sum / float64(len(row))
	var squares float64
	for _, v := range row {
		squares += (float64(v) - mu) * (float64(v) - mu)
	}
	return float32(mu), float32(1 / math.Sqrt(squares/float64(len(row))+epsilon))
}

// LayerNormBackward adds to dx, dGain and dBias the gradients at LayerNorm's x, gain and bias, given that at its
// result. What is nil is not wanted.
func LayerNormBackward(dx, dGain, dBias, stats, x, gain, dOut []float32) {
	d := len(gain)
	if dBias != nil {
		SumRows(dBias, dOut)
	}
	if dGain != nil {
		Parallel(d, columnTile, func(lo, hi int) {
			for i := range len(x) / d {
				mean, scale := stats[2*i], stats[2*i+1]
				row, g := x[i*d+lo:i*d+hi], dGain[lo:hi]
				for j, dy := range dOut[i*d+lo : i*d+hi] {
					g[j] += dy * (row[j] - mean) * scale
				}
			}
		})
	}
	if dx != nil {
		Parallel(len(x)/d, rowTile, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				normRowBackward(dx[i*d:(i+1)*d], x[i*d:], gain, dOut[i*d:], stats[2*i], stats[2*i+1])
			}
		})
	}
}

// normRowBackward adds scale·(g − mean(g) − n·mean(g·n)) to dx, with n the normalised row and g = dOut·gain.
func normRowBackward(dx, x, gain, dOut []float32, mean, scale float32) {
	x, gain, dOut = x[:len(dx)], gain[:len(dx)], dOut[:len(dx)]
	var sum, dot float64
	for j, v := range x {
		g := dOut[j] * gain[j]
		sum += float64(g)
		dot += float64(g * ((v - mean) * scale))
	}
	meanG, meanGN := float32(sum/float64(len(dx))), float32(dot/float64(len(dx)))
	for j, v := range x {
		dx[j] += scale * (dOut[j]*gain[j] - meanG - (v-mean)*scale*meanGN)
	}
}
