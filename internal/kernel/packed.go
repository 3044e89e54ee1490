package kernel

import "sync"

// Packed is a matrix b [k n] laid out for many products a·b: for tiles in panels as wide as a tile, block by block; for
// the plain version unchanged. The zero value is empty.
type Packed struct {
	k, n     int
	bfloat16 bool
	depth    int // k, in pairs where it is of bfloat16
	data     []float32
}

// Pack lays out b [k n], reusing the memory of the previous matrix if it is large enough.
func (p *Packed) Pack(b Matrix, k, n int) {
	p.k, p.n, p.bfloat16, p.depth = k, n, false, k
	if use.tile == nil {
		p.grow(k * n)
		b.pack(p.data, 0, k, 0, n)
		return
	}
	p.packTiles(b)
}

// packPairs lays out b [k n] as pairs of bfloat16, for tiles.
func (p *Packed) packPairs(b Matrix, k, n int) {
	p.k, p.n, p.bfloat16, p.depth = k, n, true, pairDepth(k)
	p.packTiles(b)
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
func (p *Packed) panels() int { return pieces(p.n, use.panel, 1) }

// panel returns panel j of the block that begins at row l: [depth panel].
func (p *Packed) panel(l, j int) []float32 {
	depth := min(blockDepth(p.depth), p.depth-l)
	at := (l*p.panels() + j*depth) * use.panel
	return p.data[at : at+depth*use.panel]
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
		if a.to.bfloat16 {
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
