package kernel

import (
	"fmt"
	"os"
	"strings"
)

// set is the inner loops for one kind of processor. Each works on one row or one tile, in one goroutine. A set begins
// as a copy of the plain version; faster loops take the place of its fields.
type set struct {
	name string

	addScaled func(to, from []float32, by float32) // to += by·from
	addRows   func(sum, x []float32)               // each row of x, as long as sum, first to last
	scale     func(x []float32, by float32)        // x *= by

	sumSquares func(x []float32) float64 // in float64 throughout

	layerNorm         func(out, x, gain, bias []float32, epsilon float32) (mean, scale float32)
	layerNormSums     func(dGain, dBias, x, gain, dOut []float32, mean, scale float32) (sum, dot float32)
	layerNormGradient func(dx, x, gain, dOut []float32, mean, scale, meanG, meanGN float32)

	dot             func(x, y []float32) float32       // Σ x·y
	softmaxGradient func(d, y []float32, mean float32) // d = y·(d − mean)

	drop       func(out, x []float32, key, thing uint64, bound uint32, scale float32, first int)
	addDropped func(out, to, x []float32, key, thing uint64, bound uint32, scale float32, first int)

	adamW func(w, m, v, g []float32, c *[8]float32)

	gelu         func(out, x []float32)      // x·Φ(x)
	geluGradient func(d, x []float32)        // d *= Φ(x) + x·φ(x)
	geluBackward func(dx, x, dOut []float32) // dx += dOut·(Φ(x) + x·φ(x))
	tanh         func(out, x []float32)

	maximum         func(row []float32) float32                // -Inf of an empty row, NaN where there is one
	exps            func(row []float32, shift float32) float32 // row = exp(row−shift); returns the sum
	softmax         func(row []float32)
	softmaxBackward func(d, y []float32) // d = y·(d − Σy·d)

	// tile[rows] writes from + a·b to c, count times so many rows and panel columns: the tiles of c and from lie below
	// each other, those of a aTile values apart. a [rows k] has its rows aRow and its columns aCol values apart, b
	// [k panel] has no gaps. Meanwhile the cache is asked for the values from next to end, which are likely read soon.
	// nil: the processor's products are the plain ones.
	tile  []tileFunc
	panel int
	// pairTile is tile for pairs of bfloat16, which pairRow and pairRows make: n of the first two of the 2n values of
	// x, of the next two and so on; rows of cols, at most panel and outRow apart, of the first two of 2·rows rows of x,
	// which are xRow apart, of the next two and so on.
	pairTile []tileFunc
	pairRow  func(out, x *float32, n int)
	pairRows func(out, x *float32, outRow, xRow, rows, cols int)
	// copyWide and copyNarrow copy rows, xRow values apart, to out without gaps: of panel values, of cols values. The
	// latter reads and writes as many values as half a panel has.
	copyWide   func(out, x *float32, xRow, rows int)
	copyNarrow func(out, x *float32, xRow, rows, cols int)
	// transpose8 writes 8 rows of x, xRow values apart, to 8 columns of out: 8·times columns of x to as many rows.
	transpose8 func(out, x *float32, outRow, xRow, times int)

	// multiplyAdds are rounds of roundFlops operations in registers; pairMultiplyAdds are the same of bfloat16, twice
	// as many. nil: none.
	multiplyAdds, pairMultiplyAdds func(times int)
	roundFlops                     int
	readAll                        func(x []float32) // nil: none; of a multiple of 256 values
}

type tileFunc = func(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol, aTile int, b *float32, k int, next,
	end *float32, count int)

// plain is the version in Go alone: the reference, and what processors without a faster one run.
var plain = set{
	name:      "plain",
	addScaled: addScaledPlain,
	addRows:   addRowsPlain,
	scale:     scalePlain,

	sumSquares: sumSquaresPlain,

	layerNorm:         layerNormPlain,
	layerNormSums:     layerNormSumsPlain,
	layerNormGradient: layerNormGradientPlain,

	gelu:         geluPlain,
	geluGradient: geluGradientPlain,
	geluBackward: geluBackwardPlain,
	tanh:         tanhPlain,

	maximum:         maximumPlain,
	exps:            expsPlain,
	softmax:         softmaxPlain,
	softmaxBackward: softmaxBackwardPlain,
	drop:            dropPlain,
	addDropped:      addDroppedPlain,

	adamW: adamWPlain,

	dot:             dotPlain,
	softmaxGradient: softmaxGradientPlain,

	pairRow:  pairRowPlain,
	pairRows: pairRowsPlain,
}

// called returns a copy of s under another name.
func (s set) called(name string) set {
	s.name = name
	return s
}

// use is the set that all arithmetic runs on.
var use = &plain

// chooseError is what JENGA_KERNEL got wrong.
var chooseError error

func init() { use, chooseError = choose(os.Getenv("JENGA_KERNEL"), available()) }

// choose returns the set called name among those that the processor can run, best last; the best where name is empty.
func choose(name string, there []*set) (*set, error) {
	if name == "" {
		return there[len(there)-1], nil
	}
	var names []string
	for _, s := range there {
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

// Check returns what is wrong with the version that JENGA_KERNEL asks for; the plain one runs then.
func Check() error { return chooseError }
