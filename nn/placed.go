package nn

import "github.com/jenga-nlp/jenga/internal/kernel"

// placed are parameters of a HostStore that lie one after the other in memory for messages, as do their gradients. The
// store updates some of their values; other processes update the others.
type placed struct {
	params []*Param
	at     map[*Param]int // where each begins
	values []float32      // of all
	own    map[*Param][]ownPart
	tiles  map[*Param]int // where the tiles of each begin among those of all
	all    int            // tiles
	sum    func([]float64) error

	// collected has the state of whole parameters since Collect, where that keeps it; nil: there was an update since.
	collected map[*Param]OptimizerState
}

// ownPart is a part of a parameter that the store updates: whole tiles of kernel.SquareTile.
type ownPart struct {
	*Param
	from, to int // of the parameter's values
}

// aligned is what parameters begin at multiples of in the memory of all.
const aligned = 16

func (p *placed) part(memory []float32, w *Param) []float32 {
	at := p.at[w]
	return memory[at : at+len(w.Data) : at+len(w.Data)]
}

func (p *placed) sumSquares(g Gradients) (map[*Param]float64, error) {
	tiles := make([]float64, p.all)
	for w, views := range p.own {
		d, tile := w.rowLength(), kernel.SquareTile(w.rowLength())
		for _, v := range views {
			if !g.Has(w) {
				continue
			}
			x := g.of[w].values[v.from:v.to]
			first := p.tiles[w] + v.from/tile
			kernel.SumSquaresOfTiles(tiles[first:first+kernel.SquareTiles(len(x), d)], x, d, nil)
		}
	}
	if err := p.sum(tiles); err != nil {
		return nil, err
	}
	sums := map[*Param]float64{}
	for _, w := range p.params {
		n := kernel.SquareTiles(len(w.Data), w.rowLength())
		for _, square := range tiles[p.tiles[w]:][:n] {
			sums[w] += square
		}
	}
	return sums, nil
}

// ownParts returns the parts of params that the store updates, with their gradients, and params that are not placed.
func (p *placed) ownParts(params []*Param, g Gradients) []*Param {
	var all []*Param
	for _, w := range params {
		if _, is := p.at[w]; !is {
			all = append(all, w)
			continue
		}
		for _, v := range p.own[w] {
			g.of[v.Param] = &paramGradient{values: g.of[w].values[v.from:v.to]}
			all = append(all, v.Param)
		}
		w.Changed()
	}
	return all
}

// forget removes the gradients of parts, which are those of whole parameters too, and the state before an update.
func (p *placed) forget(g Gradients) {
	p.collected = nil
	for _, parts := range p.own {
		for _, v := range parts {
			delete(g.of, v.Param)
		}
	}
}
