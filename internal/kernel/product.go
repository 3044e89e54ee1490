// Package kernel is float32 arithmetic: products, also of values in fewer bits, attention, norms, activations, the
// optimizer's update. Each exists as a plain version, which reads like its formulas, and as loops in assembly for
// common processors (see set); they differ in the last bits. No sum depends on the number of goroutines. The result of
// a row does not depend on other rows: it has the same bits alone and in any batch. Sums over rows (SumRows,
// LayerNormBackward) run in chunks whose ends are a function of the number of rows.
package kernel

import (
	"errors"
	"fmt"
	"slices"
)

// Matrix is a view of values: element i, j is Data[i*Row+j*Col]. One of Row and Col is 1.
type Matrix struct {
	Data     []float32
	Row, Col int
}

// Dense views values as rows of a width, without gaps.
func Dense(data []float32, width int) Matrix { return Matrix{data, width, 1} }

// T returns the transpose of x.
func (x Matrix) T() Matrix { return Matrix{x.Data, x.Col, x.Row} }

// Product is C = A·B, and operations on C while a tile of it is in the cache.
//
// Each element of C sums its products one by one, over K ascending; in bfloat16 in pairs, of each pair the second
// first. Tiles sum the products of a block of K, whose depth is a function of K, before they add them to C.
type Product struct {
	M, K, N int
	A       Matrix    // [M K]
	B       Matrix    // [K N]
	Packed  *Packed   // B laid out in Precision for many products, instead of B
	C       []float32 // [M N]

	Precision Precision // of A and B
	Start     Start     // not StartAtC in Int8
	Bias      []float32 // [N], for StartAtBias
	After     Epilogue
}

// Start is the value to which the products of an element of C are added.
type Start int

const (
	StartAtC    Start = iota // the values of C
	StartAtZero              // zero
	StartAtBias              // its column's bias
)

// Epilogue are the operations after a product, in this order. Zero values are no operation.
type Epilogue struct {
	GELU         []float32 // [M N] result of GELU(C); C itself is not changed
	Gate         []float32 // [M N] multiplies GELU, if there is one (Shazeer 2020, "GLU Variants Improve Transformer")
	GELUGradient []float32 // [M N] x: turns C from the gradient of GELU(x) into that of x
	Dropout      Dropped   // of C
	Residual     []float32 // [M N] added to C
}

// Dropped is a dropout: which elements are dropped is a function of Key and their index. The zero value drops none.
type Dropped struct {
	Key  uint64
	Rate float64
}

// holds reports whether x has all values of a matrix [rows cols].
func (x Matrix) holds(rows, cols int) bool {
	return rows == 0 || cols == 0 || (rows-1)*x.Row+(cols-1)*x.Col < len(x.Data)
}

// Multiply computes the product. It panics if a matrix has fewer values than its dimensions, or Packed has other
// dimensions.
func (p Product) Multiply() {
	p.check()
	switch {
	case p.M == 0 || p.N == 0:
		return
	case p.K == 0: // C is what it starts at
		switch p.Start {
		case StartAtZero:
			clear(p.C)
		case StartAtBias:
			Repeat(p.C, p.Bias)
		}
		p.After.apply(p.C, p.N, 0, p.M, 0, p.N)
		return
	}
	ints := p.quantized()
	t := p.divided(ints, nil)
	productUnits.run(t.units, 1, t.productUnit)
	t.release()
	if ints != nil {
		quantizedPool.Put(ints)
	}
}

// check cuts C and Bias to their lengths. It has the panics of Multiply.
func (p *Product) check() {
	if p.Packed != nil && (p.Packed.k != p.K || p.Packed.n != p.N) {
		panic("kernel: a product with a packed matrix of other dimensions")
	}
	if p.Packed != nil && p.Packed.precision != p.Precision {
		panic("kernel: a product with a packed matrix of another precision")
	}
	if p.Precision == Int8 && (p.Start == StartAtC || p.A.Col != 1) {
		panic("kernel: a product of int8 that starts at C, or whose rows are not adjacent values")
	}
	if p.M == 0 || p.N == 0 {
		return
	}
	p.C = p.C[:p.M*p.N]
	if p.Start == StartAtBias {
		p.Bias = p.Bias[:p.N]
	}
	if !p.A.holds(p.M, p.K) || p.Packed == nil && !p.B.holds(p.K, p.N) {
		panic("kernel: a product of a matrix that has fewer values than its dimensions")
	}
}

// MatMul adds a·b to c: c [m n], a [m k], b [k n].
func MatMul(c, a, b []float32, m, k, n int) {
	Product{M: m, K: k, N: n, A: Dense(a, k), B: Dense(b, n), C: c}.Multiply()
}

// MatMulBT adds a·bᵀ to c: c [m n], a [m k], b [n k].
func MatMulBT(c, a, b []float32, m, k, n int) {
	Product{M: m, K: k, N: n, A: Dense(a, k), B: Dense(b, k).T(), C: c}.Multiply()
}

// MatMulAT adds aᵀ·b to c: c [m n], a [k m], b [k n].
func MatMulAT(c, a, b []float32, m, k, n int) {
	Product{M: m, K: k, N: n, A: Dense(a, m).T(), B: Dense(b, n), C: c}.Multiply()
}

// apply applies the epilogue to the rows i:iEnd and columns j:jEnd of c, whose rows have width n.
func (e *Epilogue) apply(c []float32, n, i, iEnd, j, jEnd int) {
	if e.GELU == nil && e.GELUGradient == nil && e.Dropout.Rate == 0 && e.Residual == nil {
		return
	}
	drop := newMask(e.Dropout.Key, e.Dropout.Rate)
	for ; i < iEnd; i++ {
		lo, hi := i*n+j, i*n+jEnd
		row := c[lo:hi]
		if e.GELU != nil {
			use.gelu(e.GELU[lo:hi], row)
			if e.Gate != nil {
				use.multiply(e.GELU[lo:hi], e.Gate[lo:hi])
			}
		}
		if e.GELUGradient != nil {
			use.geluGradient(row, e.GELUGradient[lo:hi])
		}
		switch {
		case e.Dropout.Rate > 0 && e.Residual != nil:
			drop.add(row, e.Residual[lo:hi], row, lo)
		case e.Dropout.Rate > 0:
			drop.apply(row, row, lo)
		case e.Residual != nil:
			use.addScaled(row, e.Residual[lo:hi], 1)
		}
	}
}

// Transpose writes b [m n] to a as [n m].
func Transpose(a, b []float32, m, n int) {
	Parallel(n, 64, func(lo, hi int) { transposeTo(a[lo*m:], m, b[lo:], n, m, hi-lo) })
}

// dividedProduct is a product that is divided into units of work, and memory that belongs to it.
type dividedProduct struct {
	productUnit
	units   int
	ownB    *Packed     // nil: b is the caller's
	ownRows *packedRows // nil: there are none
}

// release gives the memory back.
func (t *dividedProduct) release() {
	if t.ownB != nil {
		packedPool.Put(t.ownB)
	}
	if t.ownRows != nil {
		packedRowsPool.Put(t.ownRows)
	}
}

// divided divides the product into units of work, and packs what they share. ints are the rows of a product of Int8,
// packed the rows that the units of another product of the same A share; nil: they are packed here.
func (p *Product) divided(ints *quantized, packed *packedRows) (t dividedProduct) {
	b := p.Packed
	if b == nil {
		b = packedPool.Get().(*Packed)
		t.ownB = b
		b.Pack(p.B, p.K, p.N, p.Precision)
	}

	u := productUnit{p: *p, b: b, ints: ints}
	threads, tile := Threads(), b.tiles.rows()
	u.rowUnits = pieces(p.M, unitRows, threads)
	u.rowUnits = max(1, min(u.rowUnits, p.M/max(leastUnitRows, 2*tile)))
	u.tiles = pieces(p.M, tile, 1)
	columnUnits := 1
	if u.rowUnits < threads {
		columnUnits = (2*threads + u.rowUnits - 1) / u.rowUnits
	}
	u.panels = (b.panels() + columnUnits - 1) / columnUnits
	columnUnits = (b.panels() + u.panels - 1) / u.panels
	switch {
	case ints != nil:
		u.a = rowTiles{data: ints.data, block: 1, row: ints.row}
	case p.rowsInPlace():
		u.a = rowTiles{data: p.A.Data, block: 1, row: p.A.Row}
	case columnUnits > 1:
		if packed == nil {
			packed = packedRowsPool.Get().(*packedRows)
			packed.pack(p, b.tiles, 0, p.M, 0, b.depth, b.block)
			t.ownRows = packed
		}
		u.a = packed.rowTiles
	}
	t.productUnit, t.units = u, u.rowUnits*columnUnits
	return t
}

// mostTogether is the most products that MultiplyAll computes together: query, key and value.
const mostTogether = 3

// MultiplyAll computes products with the bits that Multiply gives each. None may write what another reads. It panics as
// Multiply does, and cuts C and Bias of all to their lengths. Products of the same A with packed matrices are one piece
// of work: goroutines wait for each other once, rows of Int8 are rounded once, and rows that units share are packed
// once. Others are computed one after the other.
func MultiplyAll(products ...Product) {
	if !together(products) {
		for _, p := range products {
			p.Multiply()
		}
		return
	}
	for i := range products {
		products[i].check()
	}
	ints := products[0].quantized()
	var all productsTogether
	var divided [mostTogether]dividedProduct
	units := 0
	for i := range products {
		divided[i] = products[i].divided(ints, divided[0].ownRows)
		all.products[i], all.units[i] = divided[i].productUnit, divided[i].units
		units += divided[i].units
	}
	productsUnits.run(units, 1, all)
	for i := range divided {
		divided[i].release()
	}
	if ints != nil {
		quantizedPool.Put(ints)
	}
}

// together reports whether products have the same A and packed matrices. To pack several matrices for one product each
// would need the memory of all at once.
func together(products []Product) bool {
	if len(products) < 2 || len(products) > mostTogether {
		return false
	}
	first := &products[0]
	if first.M == 0 || first.K == 0 {
		return false
	}
	for i := range products {
		p := &products[i]
		same := p.M == first.M && p.K == first.K && p.Precision == first.Precision && p.A.Row == first.A.Row &&
			p.A.Col == first.A.Col && len(p.A.Data) > 0 && len(first.A.Data) > 0 && &p.A.Data[0] == &first.A.Data[0]
		if !same || p.N == 0 || p.Packed == nil {
			return false
		}
	}
	return true
}

// productsTogether are the units of several products, one product after the other.
type productsTogether struct {
	products [mostTogether]productUnit
	units    [mostTogether]int
}

var productsUnits = tiled(func(all *productsTogether, unit, _ int) {
	for i, n := range all.units {
		if unit < n {
			all.products[i].compute(unit)
			return
		}
		unit -= n
	}
})

// Precision is how the values that a product multiplies are represented. Sums are float32, of Int8 exact.
type Precision int

const (
	Float32  Precision = iota
	BFloat16           // rounded to 8 bits of precision
	Int8               // integers with a scale for each row of A and each column of B; see MaxInt8Depth
)

// String returns the name that options have: float32, bf16 or int8.
func (p Precision) String() string { return [...]string{"float32", "bf16", "int8"}[p] }

// Bytes returns the memory of a value in a packed matrix.
func (p Precision) Bytes() int { return 4 / use.tiles[p].lane }

// Check returns an error if products of a precision below float32 are slow here: the processor has no instruction for
// them, or JENGA_KERNEL selects a version without. They then run in plain Go, as a reference.
func (p Precision) Check() error {
	if p == Float32 || !use.tiles[p].inGo() {
		return nil
	}
	for _, s := range slices.Backward(available()) {
		if !s.tiles[p].inGo() {
			return fmt.Errorf("JENGA_KERNEL=%s does not multiply %s; the %s kernel does", use.name, p, s.name)
		}
	}
	if p == BFloat16 {
		return fmt.Errorf("this processor has no instruction that multiplies %s (AVX512_BF16)", p)
	}
	return errors.New("this processor has no instruction that multiplies int8 (AVX2, NEON)")
}
