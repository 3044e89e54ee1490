package kernel

import (
	"fmt"
	"os"
	"strings"
)

// loops are the inner loops that every processor with some instructions has. Each runs on one row or one tile, in one
// goroutine. The field called x is the function x followed by Plain, the version in Go, or by an instruction set's name:
// the generated file of an architecture has the loops of each of its sets.
type loops struct {
	name string

	addScaled func(to, from []float32, by float32) // to += by·from
	addRows   func(sum, x []float32)               // each row of x, as long as sum, first to last
	scale     func(x []float32, by float32)        // x *= by

	multiply func(x, by []float32)                        // x *= by
	rotate   func(x, y, cos, sin []float32, sign float32) // see Rotate

	sumSquares func(x []float32) float64              // in float64 throughout
	dot64      func(sums *[4]float64, x, y []float32) // see dot64Plain; x has a multiple of four numbers

	layerNorm         func(out, x, gain, bias []float32, epsilon float32) (mean, scale float32)
	layerNormSums     func(dGain, dBias, x, gain, dOut []float32, mean, scale float32) (sum, dot float32)
	layerNormGradient func(dx, x, gain, dOut []float32, mean, scale, meanG, meanGN float32)

	dot             func(x, y []float32) float32       // Σ x·y
	softmaxGradient func(d, y []float32, mean float32) // d = y·(d − mean)

	drop       func(out, x []float32, key, counter uint64, bound uint32, scale float32, first int)
	addDropped func(out, to, x []float32, key, counter uint64, bound uint32, scale float32, first int)

	adamW func(w, m, v, g []float32, c *[8]float32)

	gelu         func(out, x []float32)      // x·Φ(x)
	geluGradient func(d, x []float32)        // d *= Φ(x) + x·φ(x)
	geluBackward func(dx, x, dOut []float32) // dx += dOut·(Φ(x) + x·φ(x))
	tanh         func(out, x []float32)

	maximum         func(row []float32) float32                // -Inf of an empty row, NaN where there is one
	exps            func(row []float32, shift float32) float32 // row = exp(row−shift); returns the sum
	softmax         func(row []float32)
	softmaxBackward func(d, y []float32) // d = y·(d − Σy·d)

	// dequantize turns sums into values; see Int8. extremes returns the smallest and the largest element or 0, NaN if one
	// is not finite.
	dequantize func(c []float32, sums []int32, scales, bias []float32, zero int32, scale float32)
	extremes   func(row []float32) (low, high float32)

	// copyWide copies rows of a panel of Float32, copyNarrow rows of cols values, with row stride xRow, to out without
	// gaps. copyNarrow reads and writes half a panel a row. transpose8 writes 8 rows of x, with row stride xRow, to 8
	// columns of out: 8·times columns of x to as many rows. nil: Go's copies are used.
	copyWide   func(out, x *float32, xRow, rows int)
	copyNarrow func(out, x *float32, xRow, rows, cols int)
	transpose8 func(out, x *float32, outRow, xRow, times int)

	readAll func(x []float32) // of a multiple of 256 values; nil: not available
}

// set is the loops for one kind of processor, and what depends on its instructions for products.
type set struct {
	loops

	tiles [3]tiles // of products, by Precision
	// pairRow writes n pairs of bfloat16: of the first two of the 2n values of x, of the next two and so on. pairRows
	// writes rows of cols pairs, at most a panel's, with row stride outRow: of the first two of 2·rows rows of x, with
	// row stride xRow, of the next two and so on.
	pairRow  func(out, x *float32, n int)
	pairRows func(out, x *float32, outRow, xRow, rows, cols int)
	// quantize writes x·inverse, rounded to nearest, plus zero, within 0 and 255, less intShift, as the tiles of Int8
	// read them; of the last register all lanes.
	quantize quantizeFunc
	intShift int32 // 128 where instructions multiply integers with signs, else 0
}

type quantizeFunc = func(out *float32, x []float32, inverse float32, zero int32)

// plain is the version in Go only: the reference, and the one for processors without a faster one.
var plain = plainLoops.with(
	tiles{run: below(floatTileInGo), panel: goPanel, lane: 1, depthMultiple: 1},
	tiles{run: below(byteTileInGo), panel: goPanel, lane: 4, depthMultiple: 1}, quantizePlain)

// with returns the set with tiles of Float32 and Int8. Those of BFloat16 are in Go.
func (l loops) with(floats, ints tiles, quantize quantizeFunc) set {
	pairs := tiles{run: below(pairTileInGo), panel: goPanel, lane: 2, depthMultiple: 1}
	return set{loops: l, tiles: [3]tiles{floats, pairs, ints}, pairRow: pairRowPlain, pairRows: pairRowsPlain,
		quantize: quantize}
}

// use is the set that all arithmetic runs on; chooseError is the error of an invalid JENGA_KERNEL.
var use, chooseError = choose(os.Getenv("JENGA_KERNEL"), available())

// choose returns the set called name among those that the processor can run, best last; the best where name is empty.
func choose(name string, sets []*set) (*set, error) {
	if name == "" {
		return sets[len(sets)-1], nil
	}
	var names []string
	for _, s := range sets {
		if s.name == name {
			return s, nil
		}
		names = append(names, s.name)
	}
	return &plain, fmt.Errorf("JENGA_KERNEL=%s: this processor has no kernel of that name; it has %s", name,
		strings.Join(names, ", "))
}

// Name returns the name of the version in use: plain, avx2, avx512 or neon.
func Name() string { return use.name }

// Check returns an error if JENGA_KERNEL names a version that this processor cannot run; the plain one is then used.
func Check() error { return chooseError }
