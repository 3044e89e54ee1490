// Package kernel is float32 arithmetic: products, also of values in fewer bits, attention, norms, activations, the
// optimizer's update. Each exists as a plain version, which reads like its formulas, and as loops in assembly for
// common processors (see set); they differ in the last bits. No sum depends on the number of goroutines. The result of
// a row does not depend on other rows: it has the same bits alone and in any batch. Sums over rows (SumRows,
// LayerNormBackward) run in chunks whose ends are a function of the number of rows.
package kernel

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
	case p.Precision == Int8:
		p.multiplyInt8()
	case p.Precision.inTiles() && p.K > 0:
		p.multiplyTiles(nil)
	default:
		p.multiplyPlain()
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

// multiplyPlain is Multiply in plain Go.
func (p *Product) multiplyPlain() {
	switch p.Start {
	case StartAtZero:
		clear(p.C)
	case StartAtBias:
		Repeat(p.C, p.Bias)
	}
	if p.Packed != nil {
		p.B = Dense(p.Packed.data, p.N)
	}
	if p.Precision == BFloat16 {
		multiplyPairs(p.C, p.A, p.B, p.M, p.K, p.N)
	} else {
		multiply(p.C, p.A, p.B, p.M, p.K, p.N)
	}
	plainEpilogues.run(p.M, rowTile, plainEpilogue{p.After, p.C, p.N})
}

type plainEpilogue struct {
	Epilogue
	c []float32
	n int
}

var plainEpilogues = tiled(func(e *plainEpilogue, lo, hi int) { e.apply(e.c, e.n, lo, hi, 0, e.n) })

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
	Parallel(n, 64, func(lo, hi int) {
		Matrix{b, 1, n}.pack(a[lo*m:], lo, hi, 0, m)
	})
}

// pack copies rows i:iEnd and columns j:jEnd to out without gaps.
func (x Matrix) pack(out []float32, i, iEnd, j, jEnd int) {
	rows, cols := iEnd-i, jEnd-j
	if x.Col == 1 {
		for r := range rows {
			copy(out[r*cols:(r+1)*cols], x.Data[(i+r)*x.Row+j:])
		}
		return
	}
	c := 0
	for ; c+8 <= cols; c += 8 { // eight columns at a time, so that writes are adjacent
		from := x.Data[(j+c)*x.Col+i:]
		c0, c1, c2, c3 := from[:rows], from[x.Col:][:rows], from[2*x.Col:][:rows], from[3*x.Col:][:rows]
		c4, c5, c6, c7 := from[4*x.Col:][:rows], from[5*x.Col:][:rows], from[6*x.Col:][:rows], from[7*x.Col:][:rows]
		for r, v := range c0 {
			to := (*[8]float32)(out[r*cols+c:])
			to[0], to[1], to[2], to[3] = v, c1[r], c2[r], c3[r]
			to[4], to[5], to[6], to[7] = c4[r], c5[r], c6[r], c7[r]
		}
	}
	for ; c < cols; c++ {
		for r, v := range x.Data[(j+c)*x.Col+i:][:rows] {
			out[r*cols+c] = v
		}
	}
}
