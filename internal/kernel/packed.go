package kernel

import "sync"

// Packed is a matrix b [k n] laid out for many products a·b in one precision: for tiles in panels as wide as a tile,
// block by block; for the plain version as one panel, of integers for Int8, else of float32 values. The zero value is
// empty.
type Packed struct {
	k, n      int
	precision Precision
	depth     int // rows of data: k, or the lanes of k values
	data      []float32
	scales    []float32 // [n] of the columns' integers
	sums      []int32   // [n]
}

// Pack lays out b [k n], reusing the memory of the previous matrix if it is large enough. It panics if k is larger than
// MaxInt8Depth for Int8.
func (p *Packed) Pack(b Matrix, k, n int, precision Precision) {
	p.k, p.n, p.precision, p.depth = k, n, precision, k
	switch {
	case precision == Int8:
		p.packInt8(b)
	case !precision.inTiles():
		p.grow(k * n)
		b.pack(p.data, 0, k, 0, n)
	case precision == BFloat16:
		p.depth = pairDepth(k)
		p.packTiles(b)
	default:
		p.packTiles(b)
	}
}

func (p *Packed) packTiles(b Matrix) {
	p.grow(p.depth * p.panels() * use.panel)
	if len(p.data) == 0 {
		return
	}
	packPanels.run(pieces(p.depth, blockDepth(p.depth), 1)*p.panels(), panelGroup, packArgs{p, b})
}

func (p *Packed) grow(n int) {
	if cap(p.data) < n {
		p.data = Floats(n)
	}
	p.data = p.data[:n]
}

// panels returns the matrix's number of panels.
func (p *Packed) panels() int { return pieces(p.n, p.panelWidth(), 1) }

// panelWidth returns the number of columns of a panel.
func (p *Packed) panelWidth() int {
	if p.precision.inTiles() {
		return use.panel
	}
	return p.n
}

// panel returns panel j of the block that begins at row l: [depth panel].
func (p *Packed) panel(l, j int) []float32 {
	depth := min(blockDepth(p.depth), p.depth-l)
	width := p.panelWidth()
	at := (l*p.panels() + j*depth) * width
	return p.data[at : at+depth*width]
}

// A product's blocks: rows of b whose panel stays in the L1 cache, with a tile's part of a.
const (
	panelDepth = 384 // at most
	panelGroup = 8   // panels that one goroutine packs at a time
)

// blockDepth returns the number of rows of b in a block, with k rows divided into blocks of about equal depth.
func blockDepth(k int) int { return evenly(k, pieces(k, panelDepth, 1)) }

type packArgs struct {
	to *Packed
	b  Matrix
}

var packPanels = tiled(func(a *packArgs, lo, hi int) {
	panels := a.to.panels()
	for i := lo; i < hi; i++ {
		l, j := i/panels*blockDepth(a.to.depth), i%panels
		panel, cols := a.to.panel(l, j), min(use.panel, a.to.n-j*use.panel)
		if a.to.precision == BFloat16 {
			a.b.packPairPanel(panel, l, j*use.panel, cols, a.to.k)
		} else {
			a.b.packPanel(panel, l, j*use.panel, cols)
		}
	}
})

// packPanel writes to out [depth panel] the columns j:j+cols from row l on, padded with zeros to the panel's width.
func (x Matrix) packPanel(out []float32, l, j, cols int) {
	width := use.panel
	depth := len(out) / width
	switch {
	case x.Col == 1 && cols == width:
		_ = x.Data[(l+depth-1)*x.Row+j+width-1]
		use.copyWide(&out[0], &x.Data[l*x.Row+j], x.Row, depth)
	case x.Col == 1:
		for r := range depth {
			row := out[r*width : (r+1)*width]
			clear(row[copy(row[:cols], x.Data[(l+r)*x.Row+j:]):])
		}
	default:
		if cols < width {
			clear(out)
		}
		transposeTo(out, width, x.Data[j*x.Col+l:], x.Col, cols, depth)
	}
}

// transposeTo writes the rows of x [rows cols], with row stride stride, to the columns of out, with row stride width.
func transposeTo(out []float32, width int, x []float32, stride, rows, cols int) {
	r := 0
	if use.transpose8 != nil && cols >= 8 {
		for ; r+8 <= rows; r += 8 {
			_, _ = out[(cols-1)*width+r+7], x[(r+7)*stride+cols-1]
			use.transpose8(&out[r], &x[r*stride], width, stride, cols/8)
		}
	}
	for i := range rows {
		from := 0
		if i < r {
			from = cols &^ 7
		}
		for j := from; j < cols; j++ {
			out[j*width+i] = x[i*stride+j]
		}
	}
}

// packedPool holds the memory of matrices that are packed for one product.
var packedPool = sync.Pool{New: func() any { return new(Packed) }}
