//go:build gpu && linux && (amd64 || arm64)

package cuda_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/internal/cuda"
)

// normWidths are whole vectors and not, of one warp and several, and the widest.
var normWidths = []int{6, 20, 300, 384, 1030, 4096}

const normEpsilon = 1e-5

// norms returns LayerNorm of rows in float64, its rows' means and scales, and the normalised rows.
func norms(x []float64, gain, bias []float32) (out, stats, normalised []float64) {
	width := len(gain)
	out, normalised = make([]float64, len(x)), make([]float64, len(x))
	for i := 0; i < len(x); i += width {
		var mean, square float64
		for _, v := range x[i : i+width] {
			mean += v / float64(width)
		}
		for _, v := range x[i : i+width] {
			square += (v - mean) * (v - mean) / float64(width)
		}
		scale := 1 / math.Sqrt(square+normEpsilon)
		stats = append(stats, mean, scale)
		for j, v := range x[i : i+width] {
			normalised[i+j] = (v - mean) * scale
			out[i+j] = normalised[i+j] * float64(gain[j])
			if bias != nil {
				out[i+j] += float64(bias[j])
			}
		}
	}
	return out, stats, normalised
}

// orNull returns p if there is such an operand.
func orNull(there bool, p cuda.Pointer) cuda.Pointer {
	if there {
		return p
	}
	return 0
}

func TestNormForward(t *testing.T) {
	d := openRows(t)
	for _, typ := range actTypes {
		for i, width := range slices.Concat(normWidths, normWidths[:3]) {
			rows, rate := 5, float64((i+1)%2)*0.3
			x, gain, bias := normals(1, rows*width), normals(2, width), normals(3, width)
			for j := range x {
				x[j] = x[j]*3 + 2
			}
			want, stats, _ := norms(wide(x), gain, bias)
			keep := factors(11, rate, len(x))
			for j := range want {
				want[j] *= float64(keep[j])
			}
			what := fmt.Sprintf("type %v, width %d", typ, width)
			out32, out, gotStats := d.empty(len(x)), d.emptyOf(typ, len(x)), d.empty(2*rows)
			d.NormForward(typ, out32, out, gotStats, upload(d, x), upload(d, gain), upload(d, bias), normEpsilon,
				dropOf(11, rate), rows, width)
			got32 := download[float32](d, out32, len(x))
			closeTo(t, what, got32, want, close32)
			sameBits(t, "out, "+what, d.load(typ, out, len(x)), roundedTo(typ, got32))
			closeTo(t, "stats, "+what, download[float32](d, gotStats, 2*rows), stats, close32)

			// in place, without bias, dropout, stats and out
			want, _, _ = norms(wide(x), gain, nil)
			in := upload(d, x)
			d.NormForward(typ, in, 0, 0, in, upload(d, gain), 0, normEpsilon, cuda.Drop{}, rows, width)
			closeTo(t, "in place, "+what, download[float32](d, in, len(x)), want, close32)
			d.NormForward(typ, 0, out, 0, upload(d, x), upload(d, gain), 0, normEpsilon, cuda.Drop{}, rows, width)
			closeTo(t, "out alone, "+what, d.load(typ, out, len(x)), want, tolerance(typ))
		}
		d.NormForward(typ, 0, 0, 0, 0, 0, 0, normEpsilon, cuda.Drop{}, 0, 8) // no rows
	}
}

func TestAddNormForward(t *testing.T) {
	d := openRows(t)
	for _, typ := range actTypes {
		for i, width := range normWidths {
			for nulls := range 4 { // 1: without yBias; 2: without gain
				rows, rate := 6, float64((i+nulls)%2)*0.3
				residual, y := normals(1, rows*width), roundedTo(typ, normals(2, rows*width))
				gain, bias, yBias := normals(3, width), normals(4, width), normals(5, width)
				sums := wide(residual)
				for j, keep := range factors(21, rate, len(y)) {
					add := y[j]
					if nulls&1 == 0 {
						add += yBias[j%width]
					}
					sums[j] += float64(add) * float64(keep)
				}
				want, stats, _ := norms(sums, gain, bias)
				if nulls&2 != 0 {
					want = sums
				}
				what := fmt.Sprintf("type %v, width %d, without %d", typ, width, nulls)
				sum, out32, out := upload(d, residual), d.empty(len(y)), d.emptyOf(typ, len(y))
				gotStats, low := d.empty(2*rows), d.emptyOf(typ, len(y))
				yBiasAt, gainAt := orNull(nulls&1 == 0, upload(d, yBias)), orNull(nulls&2 == 0, upload(d, gain))
				d.AddNormForward(typ, out32, out, gotStats, sum, low, d.store(typ, y), yBiasAt, dropOf(21, rate),
					sum, gainAt, upload(d, bias), normEpsilon, rows, width)
				closeTo(t, "sum, "+what, download[float32](d, sum, len(y)), sums, close32)
				sameBits(t, "low, "+what, d.load(typ, low, len(y)), roundedTo(typ, download[float32](d, sum, len(y))))
				got32 := download[float32](d, out32, len(y))
				closeTo(t, what, got32, want, close32)
				sameBits(t, "out, "+what, d.load(typ, out, len(y)), roundedTo(typ, got32))
				if nulls&2 == 0 {
					closeTo(t, "stats, "+what, download[float32](d, gotStats, 2*rows), stats, close32)
				}

				// into another sum, and nothing else
				alone := d.empty(len(y))
				d.AddNormForward(typ, 0, 0, 0, alone, 0, d.store(typ, y), yBiasAt, dropOf(21, rate),
					upload(d, residual), 0, 0, normEpsilon, rows, width)
				sameBits(t, "sum alone, "+what, download[float32](d, alone, len(y)), download[float32](d, sum, len(y)))
			}
		}
	}
}

// normCase are the operands of a backward pass, and the results expected.
type normCase struct {
	typ                   cuda.Type
	rows, width           int
	rate                  float64
	x, stats              []float32
	dOut, gain, beside    []float32
	dx, dropped           []float64
	dGain, dBias, dBefore []float64
}

// newNormCase makes the operands, without gain and beside if parts says so (bits 0 and 1).
func newNormCase(typ cuda.Type, rows, width int, rate float64, parts int) *normCase {
	n := rows * width
	c := &normCase{typ: typ, rows: rows, width: width, rate: rate, x: roundedTo(typ, normals(1, n)),
		dOut: normals(2, n)}
	gain := normals(3, width)
	_, stats, normalised := norms(wide(c.x), gain, nil)
	for _, v := range stats {
		c.stats = append(c.stats, float32(v))
	}
	c.dx, c.dropped = wide(c.dOut), make([]float64, n)
	c.dGain, c.dBias, c.dBefore = make([]float64, width), make([]float64, width), make([]float64, width)
	if parts&1 == 0 {
		c.gain = gain
		for i := 0; i < n; i += width {
			var sum, dot float64
			for j := range width {
				g := float64(c.dOut[i+j]) * float64(gain[j])
				sum += g / float64(width)
				dot += g * normalised[i+j] / float64(width)
				c.dGain[j] += float64(c.dOut[i+j]) * normalised[i+j]
				c.dBias[j] += float64(c.dOut[i+j])
			}
			for j := range width {
				g := float64(c.dOut[i+j]) * float64(gain[j])
				c.dx[i+j] = stats[2*i/width+1] * (g - sum - normalised[i+j]*dot)
			}
		}
	}
	if parts&2 == 0 {
		c.beside = normals(4, n)
		for i, v := range c.beside {
			c.dx[i] += float64(v)
		}
	}
	for i, keep := range factors(31, rate, n) {
		c.dropped[i] = c.dx[i] * float64(keep)
		c.dBefore[i%width] += c.dropped[i]
	}
	return c
}

// run computes dx, which replaces dOut if place is 1, and beside if it is 2, then what is dropped and the sums.
func (c *normCase) run(d rowsDevice, place int) (dx, dropped, sums []float32) {
	d.t.Helper()
	n, chunks := c.rows*c.width, cuda.Chunks(c.rows)
	to, out, partial := d.empty(n), d.emptyOf(c.typ, n), d.empty(3*chunks*c.width)
	total := upload(d, make([]float32, 3*c.width))
	dOut, beside := upload(d, c.dOut), orNull(c.beside != nil, upload(d, c.beside))
	switch {
	case place == 1:
		to = dOut
	case place == 2 && c.beside != nil:
		to = beside
	}
	d.NormBackward(c.typ, to, out, partial, dOut, d.store(c.typ, c.x), upload(d, c.stats),
		orNull(c.gain != nil, upload(d, c.gain)), beside, dropOf(31, c.rate), c.rows, c.width)
	d.SumPartials(total, partial, chunks, 3*c.width, 3*c.width)
	return download[float32](d, to, n), d.load(c.typ, out, n), download[float32](d, total, 3*c.width)
}

func TestNormBackward(t *testing.T) {
	d := openRows(t)
	for _, typ := range actTypes {
		for i, width := range normWidths {
			for parts := range 4 {
				rows := 35 // three chunks
				if width > 384 {
					rows = 17
				}
				c := newNormCase(typ, rows, width, float64((i+parts)%2)*0.3, parts)
				what := fmt.Sprintf("type %v, width %d, without %d", typ, width, parts)
				dx, dropped, sums := c.run(d, parts%3)
				closeTo(t, "dx, "+what, dx, c.dx, close32)
				closeTo(t, "dropped, "+what, dropped, c.dropped, tolerance(typ))
				closeTo(t, "sums, "+what, sums, slices.Concat(c.dGain, c.dBias, c.dBefore), 5*close32)

				dx2, dropped2, sums2 := c.run(d, 0)
				sameBits(t, "dx again, "+what, dx2, dx)
				sameBits(t, "dropped again, "+what, dropped2, dropped)
				sameBits(t, "sums again, "+what, sums2, sums)
			}
		}
	}
	t.Run("chunks of more than 16 rows", func(t *testing.T) {
		c := newNormCase(cuda.Float32, 4300, 6, 0.5, 0)
		dx, _, sums := c.run(d, 0)
		closeTo(t, "dx", dx, c.dx, close32)
		closeTo(t, "sums", sums, slices.Concat(c.dGain, c.dBias, c.dBefore), 5*close32)
	})
	t.Run("one result alone", func(t *testing.T) {
		c := newNormCase(cuda.BFloat16, 18, 24, 0.5, 0)
		dx, dropped, _ := c.run(d, 0)
		out, out16 := d.empty(len(dx)), d.emptyOf(c.typ, len(dx))
		for k := range 2 {
			d.NormBackward(c.typ, orNull(k == 0, out), orNull(k == 1, out16), 0, upload(d, c.dOut),
				d.store(c.typ, c.x), upload(d, c.stats), upload(d, c.gain), upload(d, c.beside), dropOf(31, c.rate),
				c.rows, c.width)
		}
		sameBits(t, "dx", download[float32](d, out, len(dx)), dx)
		sameBits(t, "dropped", d.load(c.typ, out16, len(dx)), dropped)
	})
}

// TestRowsAreIndependent computes rows alone and beside one with NaN and infinity.
func TestRowsAreIndependent(t *testing.T) {
	d := openRows(t)
	const typ, rows, bad = cuda.BFloat16, 7, 3
	for _, width := range []int{6, 384, 1028} {
		c := newNormCase(typ, rows, width, 0, 0)
		y := roundedTo(typ, normals(6, rows*width))
		nan, inf := float32(math.NaN()), float32(math.Inf(1))
		c.x[bad*width+1], c.dOut[bad*width+2], y[bad*width], c.stats[2*bad] = nan, inf, nan, nan

		// forward and backward results of count rows from first on
		compute := func(first, count int) map[string][]float32 {
			n, at := count*width, first*width
			x, gain, none := upload(d, c.x[at:at+n]), upload(d, c.gain), cuda.Drop{}
			dOut, stats := upload(d, c.dOut[at:at+n]), upload(d, c.stats[2*first:2*(first+count)])
			norm, added, sum := d.empty(n), d.emptyOf(typ, n), d.empty(n)
			dx, active := d.empty(n), d.emptyOf(typ, n)
			in := d.store(typ, y[at:at+n])
			d.NormForward(typ, norm, 0, 0, x, gain, 0, normEpsilon, none, count, width)
			d.AddNormForward(typ, 0, added, 0, sum, 0, in, 0, none, x, gain, 0, normEpsilon, count, width)
			low := d.store(typ, c.x[at:at+n])
			d.NormBackward(typ, dx, 0, 0, dOut, low, stats, gain, 0, none, count, width)
			d.GELUForward(typ, active, in, count, width, width)
			return map[string][]float32{
				"norm": download[float32](d, norm, n), "sum": download[float32](d, sum, n),
				"dx": download[float32](d, dx, n), "added": d.load(typ, added, n), "active": d.load(typ, active, n),
			}
		}
		isNaN := func(v float32) bool { return v != v }
		all := compute(0, rows)
		for row := range rows {
			for name, got := range compute(row, 1) {
				batch := all[name][row*width:][:width]
				what := fmt.Sprintf("%s of row %d, width %d", name, row, width)
				if row != bad {
					sameBits(t, what, got, batch)
				}
				if found := slices.ContainsFunc(batch, isNaN); found != (row == bad) {
					t.Errorf("%s: NaN is in the row: %v", what, found)
				}
			}
		}
	}
}
