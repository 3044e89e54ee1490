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

// multiplyPairs adds a·b to c [m n], both rounded to bfloat16: the reference, without tiles but with their order of
// summation.
func multiplyPairs(c []float32, a, b Matrix, m, k, n int) {
	depth := pairDepth(k)
	if depth == 0 {
		return
	}
	block := blockDepth(depth)
	x, y := a.pairs(m, k), b.T().pairs(n, k) // [m depth], [n depth]
	Parallel(m, rowTile, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			for j := range n {
				for l := 0; l < depth; l += block {
					sum := float32(0)
					for at := l; at < min(l+block, depth); at++ {
						sum = addPairs(sum, x[i*depth+at], y[j*depth+at])
					}
					c[i*n+j] += sum
				}
			}
		}
	})
}

// pairDepth returns the number of pairs of k values.
func pairDepth(k int) int { return (k + 1) / 2 }

// pairs returns the pairs of each row of x [m k].
func (x Matrix) pairs(m, k int) []float32 {
	depth := pairDepth(k)
	out := make([]float32, m*depth)
	for i := range m {
		for l := range depth {
			first, second := x.Data[i*x.Row+2*l*x.Col], float32(0)
			if 2*l+1 < k {
				second = x.Data[i*x.Row+(2*l+1)*x.Col]
			}
			out[i*depth+l] = pairOf(first, second)
		}
	}
	return out
}

// packPairRow writes to out the pairs of row i from pair l on; the row has k adjacent values.
func (x Matrix) packPairRow(out []float32, i, l, k int) {
	from := x.Data[i*x.Row+2*l : i*x.Row+min(2*(l+len(out)), k)]
	whole := len(from) / 2
	if whole > 0 {
		use.pairRow(&out[0], &from[0], whole)
	}
	if whole < len(out) {
		out[whole] = pairOf(from[2*whole], 0)
	}
}

// packPairRows writes to out, with row stride outRow, the pairs l:l+depth of rows i:i+rows, of a matrix of k columns
// whose values are adjacent within a column.
func (x Matrix) packPairRows(out []float32, outRow, i, l, rows, depth, k int) {
	from, whole := x.Data[2*l*x.Col+i:], min(depth, k/2-l)
	if whole > 0 {
		_, _ = out[(whole-1)*outRow+rows-1], from[(2*whole-1)*x.Col+rows-1]
		use.pairRows(&out[0], &from[0], outRow, x.Col, whole, rows)
	}
	if whole < depth {
		for r, first := range from[2*whole*x.Col:][:rows] {
			out[whole*outRow+r] = pairOf(first, 0)
		}
	}
}

// packPairPanel is packPanel for pairs along the k rows of x, from pair l on.
func (x Matrix) packPairPanel(out []float32, l, j, cols, k int) {
	width := use.panel
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
