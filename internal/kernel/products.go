package kernel

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
	threads := Threads()
	tile := len(use.tile) - 1
	u.rowUnits = pieces(p.M, unitRows, threads)
	u.rowUnits = max(1, min(u.rowUnits, p.M/leastUnitRows))
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
			packed.pack(p, 0, p.M, 0, b.depth, blockDepth(b.depth))
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
	var ints *quantized
	if first := &products[0]; first.Precision == Int8 {
		ints = quantizedPool.Get().(*quantized)
		ints.of(first.A, first.M, first.K)
	}
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

// together reports whether products have the same A and packed matrices, and are computed in tiles. To pack several
// matrices for one product each would need the memory of all at once.
func together(products []Product) bool {
	if len(products) < 2 || len(products) > mostTogether {
		return false
	}
	first := &products[0]
	if !first.Precision.inTiles() || first.M == 0 || first.K == 0 {
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
