package kernel

import (
	"math"
	"sync"
	"unsafe"
)

// A bfloat16 is the upper half of a float32: its exponent, and 8 bits of precision. Products of them are exact in
// float32, in which they are summed.
//
// Two consecutive values along K are a pair, stored in the 32 bits of one float32: the first in the lower half, the
// second, or 0 at the end of an odd K, in the upper one. A matrix of pairs has half the depth and is packed like one of
// float32. Rounding to pairs and multiplying them treats denormals as zeros and returns none, like the instructions of
// the processors that have them.
//
// The instructions are those of AVX512_BF16, which Intel's and AMD's processors have. AMX, which some of Intel's also
// have, is not used.

// toBFloat16 rounds x to nearest, ties to even. A NaN stays one.
func toBFloat16(x float32) uint16 {
	bits := math.Float32bits(x)
	switch {
	case x != x:
		return uint16(bits>>16) | 1<<6 // quiet
	case bits&0x7f80_0000 == 0:
		return uint16(bits >> 16 & 0x8000)
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}

// pairOf returns the pair of first and second.
func pairOf(first, second float32) float32 {
	return math.Float32frombits(uint32(toBFloat16(first)) | uint32(toBFloat16(second))<<16)
}

// addPairs adds to sum the product of two pairs' second values, then that of their first ones, each sum rounded once,
// in the order of VDPBF16PS.
func addPairs(sum, x, y float32) float32 {
	a, b := math.Float32bits(x), math.Float32bits(y)
	sum = withoutDenormals(withoutDenormals(sum) + float32(upper(a)*upper(b)))
	return withoutDenormals(sum + float32(upper(a<<16)*upper(b<<16)))
}

// upper returns the bfloat16 in the upper half of bits.
func upper(bits uint32) float32 { return withoutDenormals(math.Float32frombits(bits & 0xffff_0000)) }

// withoutDenormals returns x, or a zero with its sign if x is denormal.
func withoutDenormals(x float32) float32 {
	if bits := math.Float32bits(x); bits&0x7f80_0000 == 0 {
		return math.Float32frombits(bits & 0x8000_0000)
	}
	return x
}

func pairRowPlain(out, x *float32, n int) {
	pairs, values := unsafe.Slice(out, n), unsafe.Slice(x, 2*n)
	for i := range pairs {
		pairs[i] = pairOf(values[2*i], values[2*i+1])
	}
}

func pairRowsPlain(out, x *float32, outRow, xRow, rows, cols int) {
	pairs, values := unsafe.Slice(out, (rows-1)*outRow+cols), unsafe.Slice(x, (2*rows-1)*xRow+cols)
	for r := range rows {
		for c := range cols {
			pairs[r*outRow+c] = pairOf(values[2*r*xRow+c], values[(2*r+1)*xRow+c])
		}
	}
}

// packPairRow writes to out the pairs of row i from pair l on, then zeros; the row has k adjacent values.
func (x Matrix) packPairRow(out []float32, i, l, k int) {
	from := x.Data[i*x.Row+2*l : i*x.Row+min(2*(l+len(out)), k)]
	whole := len(from) / 2
	if whole > 0 {
		use.pairRow(&out[0], &from[0], whole)
	}
	rest := out[whole:]
	clear(rest)
	if 2*whole < len(from) {
		rest[0] = pairOf(from[2*whole], 0)
	}
}

// packPairRows writes to out, with row stride outRow, the pairs l:l+depth of rows i:i+rows, of a matrix of k columns
// whose values are adjacent within a column, with zeros behind the last.
func (x Matrix) packPairRows(out []float32, outRow, i, l, rows, depth, k int) {
	from, whole := x.Data[2*l*x.Col+i:], min(depth, k/2-l)
	if whole > 0 {
		_, _ = out[(whole-1)*outRow+rows-1], from[(2*whole-1)*x.Col+rows-1]
		use.pairRows(&out[0], &from[0], outRow, x.Col, whole, rows)
	}
	for c := whole; c < depth; c++ {
		clear(out[c*outRow:][:rows])
	}
	if whole < depth && k%2 == 1 {
		for r, first := range from[2*whole*x.Col:][:rows] {
			out[whole*outRow+r] = pairOf(first, 0)
		}
	}
}

// packPairPanel is packPanel for pairs along the k rows of x, from pair l on.
func (x Matrix) packPairPanel(out []float32, width, l, j, cols, k int) {
	depth := len(out) / width
	if cols < width {
		clear(out)
	}
	if x.Col == 1 {
		x.T().packPairRows(out, width, j, l, cols, depth, k)
		return
	}
	m := pairMemory.Get().(*memory)
	defer pairMemory.Put(m)
	rows := m.of(cols * depth)
	for c := range cols {
		x.T().packPairRow(rows[c*depth:(c+1)*depth], j+c, l, k)
	}
	transposeTo(out, width, rows, depth, cols, depth)
}

var pairMemory = sync.Pool{New: func() any { return new(memory) }}

// Values of gradients in bfloat16: what one process sends to another has half the size.

// RoundBFloat16 rounds values to bfloat16, to nearest, ties to even; denormals become zeros.
func RoundBFloat16(x []float32) { roundTiles.run(len(x), elementTile, x) }

var roundTiles = tiled(func(x *[]float32, lo, hi int) {
	for i, v := range (*x)[lo:hi] {
		(*x)[lo+i] = roundBFloat16(v)
	}
})

// BFloat16Pairs returns how many float32 values n values take as pairs.
func BFloat16Pairs(n int) int { return pieces(n, 2, 1) }

// PackBFloat16 writes the pairs of values, rounded to bfloat16, to out; the last is filled up with 0.
func PackBFloat16(out, x []float32) {
	packTiles.run(len(out), elementTile, [2][]float32{out, x})
}

var packTiles = tiled(func(a *[2][]float32, lo, hi int) {
	out, x := a[0][lo:hi], a[1][2*lo:min(2*hi, len(a[1]))]
	whole := len(x) / 2
	if whole > 0 {
		pairRowPlain(&out[0], &x[0], whole)
	}
	if whole < len(out) {
		out[whole] = pairOf(x[2*whole], 0)
	}
})

// UnpackBFloat16 sets out to the values of pairs.
func UnpackBFloat16(out, pairs []float32) {
	unpackTiles.run(len(pairs), elementTile, [2][]float32{out, pairs})
}

var unpackTiles = tiled(func(a *[2][]float32, lo, hi int) {
	out := a[0][2*lo : min(2*hi, len(a[0]))]
	for i, pair := range a[1][lo:hi] {
		bits := math.Float32bits(pair)
		out[2*i] = upper(bits << 16)
		if 2*i+1 < len(out) {
			out[2*i+1] = upper(bits)
		}
	}
})

// AddBFloat16 adds the values of pairs to sums, and rounds these to bfloat16.
func AddBFloat16(sums, pairs []float32) {
	addPairTiles.run(len(pairs), elementTile, [2][]float32{sums, pairs})
}

var addPairTiles = tiled(func(a *[2][]float32, lo, hi int) {
	sums := a[0][2*lo : min(2*hi, len(a[0]))]
	for i, pair := range a[1][lo:hi] {
		bits := math.Float32bits(pair)
		sums[2*i] = roundBFloat16(sums[2*i] + upper(bits<<16))
		if 2*i+1 < len(sums) {
			sums[2*i+1] = roundBFloat16(sums[2*i+1] + upper(bits))
		}
	}
})

// roundBFloat16 returns x rounded to bfloat16.
func roundBFloat16(x float32) float32 { return math.Float32frombits(uint32(toBFloat16(x)) << 16) }
