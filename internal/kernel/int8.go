package kernel

import (
	"math"
	"sync"
	"unsafe"
)

// A product of Int8 has 8 bits for each value. A column of B, rounded when it is packed, has integers from -127 to 127
// and one scale; a row of A, rounded when it is multiplied, has integers from 0 to 255, a scale, and the integer that
// stands for 0:
//
//	C[i j] = (Σ_l a[i l]·b[l j] − zero[i]·Σ_l b[l j])·(scale[i]·scale[j]) + bias[j]
//
// Sums are exact, in 32 bits, and each operation on them is rounded once, so that all versions have the same bits. A
// row with an infinity or NaN has NaN as its result.
//
// Several integers, consecutive along K, share the 32 bits of one float32, a lane, with zeros at the end of B's last
// one. A lane has four bytes, or two words of 16 bits where the processor does not multiply bytes.

// MaxInt8Depth is the largest K of a product of Int8: more of the largest products may overflow 32 bits.
const MaxInt8Depth = math.MaxInt32 / (255 * 127)

var packColumns = tiled(func(a *packArgs, lo, hi int) {
	m := intMemory.Get().(*memory)
	defer intMemory.Put(m)
	for j := lo; j < hi; j++ {
		first, cols := a.to.columns(j)
		scratch := m.of(cols + pieces(cols*a.to.k, 4, 1))
		ints := asBytes(scratch[cols:])[:cols*a.to.k]
		a.b.T().roundRows(ints, a.to.scales[first:first+cols], scratch[:cols], first, a.to.k)
		a.to.packInts(ints, j)
	}
})

// packInts lays out panel j, whose columns are ints [cols k], in all blocks, and sums them.
func (p *Packed) packInts(ints []int8, j int) {
	first, cols := p.columns(j)
	width, group := p.tiles.panel, p.tiles.lane
	clear(p.sums[first : first+cols])
	for l := 0; l < p.depth; l += p.block {
		panel := p.panel(l, j)
		clear(panel)
		words, bytes := asWords(panel), asBytes(panel)
		for c := range cols {
			column := ints[c*p.k:][l*group : min(p.k, l*group+len(panel)/width*group)]
			at, sum := c*group, int32(0)
			for len(column) > 0 {
				lane := column[:min(group, len(column))]
				for r, q := range lane {
					sum += int32(q)
					if group == 2 {
						words[at+r] = int16(q)
					} else {
						bytes[at+r] = q
					}
				}
				column, at = column[len(lane):], at+width*group
			}
			p.sums[first+c] += sum
		}
	}
}

func abs(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) }

// inverted returns 1/scale, 0 for a scale of values that are all taken for 0.
func inverted(scale float32) float32 {
	if scale < 1e-30 {
		return 0
	}
	return 1 / scale
}

// roundInt rounds x to nearest, ties to even, within least and most; NaN is least.
func roundInt(x float32, least, most int32) int32 {
	switch {
	case x >= float32(most):
		return most
	case x > float32(least):
		return int32(math.RoundToEven(float64(x)))
	}
	return least
}

func asBytes(lanes []float32) []int8 {
	return unsafe.Slice((*int8)(unsafe.Pointer(unsafe.SliceData(lanes))), 4*len(lanes))
}

func asWords(lanes []float32) []int16 {
	return unsafe.Slice((*int16)(unsafe.Pointer(unsafe.SliceData(lanes))), 2*len(lanes))
}

// quantized are rows of a product's A as integers.
type quantized struct {
	data, scales []float32
	zeros        []int32
	row          int // lanes between rows
}

var quantizedPool = sync.Pool{New: func() any { return new(quantized) }}

// quantized returns the product's rows of A, which have adjacent values, as integers, to be returned to quantizedPool;
// nil in another precision than Int8.
func (p *Product) quantized() *quantized {
	if p.Precision != Int8 {
		return nil
	}
	q := quantizedPool.Get().(*quantized)
	m, t := p.M, &use.tiles[Int8]
	q.row = pieces(p.K, t.lane, max(16, t.depthMultiple)) // quantize writes whole registers
	if q.row%256 == 0 {
		q.row += 16 // rows of a tile in the same set of the L1 cache would evict each other: see rowsInPlace
	}
	if n := m * q.row; cap(q.data) < n {
		q.data = Floats(n)
	}
	if cap(q.scales) < m {
		q.scales, q.zeros = make([]float32, m), make([]int32, m)
	}
	q.data, q.scales, q.zeros = q.data[:m*q.row], q.scales[:m], q.zeros[:m]
	quantizations.run(m, rowTile, quantization{q, p.A, p.K})
	return q
}

type quantization struct {
	to *quantized
	a  Matrix
	k  int
}

var quantizations = tiled(func(q *quantization, lo, hi int) {
	for i := lo; i < hi; i++ {
		row := q.a.Data[i*q.a.Row:][:q.k]
		low, high := use.extremes(row)
		scale := (high - low) / 255
		if scale-scale != 0 { // not finite
			scale = float32(math.NaN())
		}
		inverse := inverted(scale)
		zero := roundInt(-low*inverse, 0, 255)
		q.to.scales[i], q.to.zeros[i] = scale, zero-use.intShift
		use.quantize(&q.to.data[i*q.to.row], row, inverse, zero)
	}
})

func extremesPlain(row []float32) (low, high float32) {
	var lost float32
	for _, v := range row {
		low, high = min(low, v), max(high, v)
		lost += v - v
	}
	return low + lost, high + lost
}

func quantizePlain(out *float32, x []float32, inverse float32, zero int32) {
	bytes := unsafe.Slice((*uint8)(unsafe.Pointer(out)), len(x))
	for i, v := range x {
		bytes[i] = uint8(max(0, min(roundInt(v*inverse, -255, 255)+zero, 255)))
	}
}

func dequantizePlain(c []float32, sums []int32, scales, bias []float32, zero int32, scale float32) {
	for j, v := range c {
		sum := float32(int32(math.Float32bits(v)) - zero*sums[j])
		c[j] = float32(sum*float32(scale*scales[j])) + bias[j]
	}
}

// dequantize turns the sums in rows i:iEnd and columns j:jEnd of C into its values.
func (q *quantized) dequantize(p *Product, b *Packed, i, iEnd, j, jEnd int) {
	for ; j < jEnd; j += len(noBias) {
		end := min(j+len(noBias), jEnd)
		bias := noBias[:end-j]
		if p.Start == StartAtBias {
			bias = p.Bias[j:end]
		}
		for r := i; r < iEnd; r++ {
			use.dequantize(p.C[r*p.N+j:r*p.N+end], b.sums[j:end], b.scales[j:end], bias, q.zeros[r], q.scales[r])
		}
	}
}

// noBias is the bias of columns that have none.
var noBias [512]float32

var intMemory = sync.Pool{New: func() any { return new(memory) }}

// Integers are the rows of a matrix [n k] as Int8 rounds the columns of a product's B: values from -127 to 127, and a
// scale for each row. A row's integers times its scale are its values.
type Integers struct {
	Data   []int8    // [n k]
	Scales []float32 // [n]; finite, 0 for a row of zeros
}

// MaxScale is the largest scale of integers whose values are finite.
const MaxScale = float32(0x1p127 / 127)

// RoundRows rounds the rows of x [n k].
func RoundRows(x Matrix, n, k int) Integers {
	to := Integers{make([]int8, n*k), make([]float32, n)}
	Parallel(n, rowTile, func(lo, hi int) {
		inverse := make([]float32, rowTile)
		for i := lo; i < hi; i += rowTile {
			end := min(i+rowTile, hi)
			x.roundRows(to.Data[i*k:end*k], to.Scales[i:end], inverse[:end-i], i, k)
		}
	})
	return to
}

// roundRows rounds rows of x, from row first on, to ints [rows k], and sets their scales. inverse [rows] is scratch
// memory.
func (x Matrix) roundRows(ints []int8, scales, inverse []float32, first, k int) {
	clear(inverse)
	for l := range k {
		column := x.Data[l*x.Col+first*x.Row:]
		for r, most := range inverse {
			inverse[r] = max(most, abs(column[r*x.Row]))
		}
	}
	for r, most := range inverse {
		scales[r] = most / 127
		inverse[r] = inverted(scales[r])
	}
	for l := range k {
		column := x.Data[l*x.Col+first*x.Row:]
		for r, by := range inverse {
			ints[r*k+l] = int8(roundInt(column[r*x.Row]*by, -127, 127))
		}
	}
}

// PackIntegers lays out a matrix [k n] for products of Int8, of whose columns b has the integers, as Pack lays out the
// values that they were rounded from. It panics if k is larger than MaxInt8Depth.
func (p *Packed) PackIntegers(b Integers, k, n int) {
	if len(b.Data) != k*n || len(b.Scales) != n {
		panic("kernel: integers of other dimensions")
	}
	p.open(k, n, Int8)
	copy(p.scales, b.Scales)
	packIntegers.run(p.panels(), panelGroup, integerArgs{p, b.Data})
}

type integerArgs struct {
	to   *Packed
	ints []int8
}

var packIntegers = tiled(func(a *integerArgs, lo, hi int) {
	for j := lo; j < hi; j++ {
		first, cols := a.to.columns(j)
		a.to.packInts(a.ints[first*a.to.k:(first+cols)*a.to.k], j)
	}
})

// GatherIntegers adds to each row of out [T D] the row of table [V D] with its index in rows.
func GatherIntegers(out []float32, table Integers, rows []int32, d int) {
	integerGathers.run(len(rows), rowTile, tableArgs{x: out, integers: table, rows: rows, d: d})
}

var integerGathers = tiled(func(a *tableArgs, lo, hi int) {
	for i := lo; i < hi; i++ {
		r := int(a.rows[i])
		out, scale := a.x[i*a.d:(i+1)*a.d], a.integers.Scales[r]
		for j, q := range a.integers.Data[r*a.d : (r+1)*a.d] {
			out[j] += float32(scale * float32(q)) // rounded before the sum on every processor
		}
	}
})
