package nn

import (
	"slices"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

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

// CanPlace reports whether the store's updates change each value by its own gradient and state, so that processes may
// share them: by AdamW and SGD, without running means, of parameters whose gradients are not kept by task.
func (s *HostStore) CanPlace() bool {
	return s.optimizer.UpdatesEach() && s.average == nil && s.tasks == nil
}

// Place moves the values of params, none of which is a table, and their gradients into memory of allocate.
func (s *HostStore) Place(params []*Param, allocate func(n int) ([]float32, error)) error {
	p := &placed{params: params, at: map[*Param]int{}, own: map[*Param][]ownPart{}, tiles: map[*Param]int{}}
	n := 0
	for _, w := range params {
		p.at[w], p.tiles[w] = n, p.all
		n += (len(w.Data) + aligned - 1) / aligned * aligned
		p.all += kernel.SquareTiles(len(w.Data), w.rowLength())
	}
	var err error
	if p.values, err = allocate(n); err != nil {
		return err
	}
	for _, w := range params {
		copy(p.values[p.at[w]:], w.Data)
		w.Data = p.part(p.values, w)
	}
	gradients := []*Gradients{&s.gradients}
	if s.shards != nil {
		for l := range s.shards.levels {
			gradients = append(gradients, &s.shards.levels[l][0])
		}
	}
	for _, g := range gradients {
		if g.memory, err = allocate(n); err != nil {
			return err
		}
		for _, w := range params {
			g.of[w].values = p.part(g.memory, w)
		}
	}
	s.placed = p
	return nil
}

// TakeBack moves the values that Place has moved into memory of their own, and gives its memory to release. The store
// is not used after it.
func (s *HostStore) TakeBack(release func([]float32)) {
	for _, w := range s.placed.params {
		w.Data = slices.Clone(w.Data)
	}
	release(s.placed.values)
	release(s.gradients.memory)
	if s.shards != nil {
		for _, l := range s.shards.levels {
			release(l[0].memory)
		}
	}
	s.placed, s.gradients, s.shards = &placed{}, Gradients{}, nil
}

func (p *placed) part(memory []float32, w *Param) []float32 {
	at := p.at[w]
	return memory[at : at+len(w.Data) : at+len(w.Data)]
}

// Placed returns the memory of the values of all parameters that Place has moved, and that of their gradients, in their
// order.
func (s *HostStore) Placed() (values, gradients []float32) {
	return s.placed.values, s.gradients.memory
}

// Moved reports whether the last update has changed w, in any process.
func (s *HostStore) Moved(w *Param) bool { return slices.Contains(s.moved, w) }

// Units returns where the units begin that processes share the updates of consecutive placed parameters by, and where
// the last one ends.
func (s *HostStore) Units(params []*Param) []int {
	var bounds []int
	end := 0
	for _, w := range params {
		at, tile := s.placed.at[w], kernel.SquareTile(w.rowLength())
		for from := 0; from < len(w.Data); from += tile {
			bounds = append(bounds, at+from)
		}
		end = at + len(w.Data)
	}
	return append(bounds, end)
}

// Own makes the store update those placed values that lie within ranges of the memory, each between two bounds of
// Units. sum replaces numbers by their sums over all processes.
func (s *HostStore) Own(ranges [][2]int, sum func([]float64) error) {
	s.placed.sum = sum
	for _, w := range s.placed.params {
		at := s.placed.at[w]
		for _, r := range ranges {
			from, to := max(r[0], at)-at, min(r[1], at+len(w.Data))-at
			if from < to {
				own := &Param{Name: w.Name, Shape: []int{to - from}, Data: w.Data[from:to:to], Decay: w.Decay}
				s.placed.own[w] = append(s.placed.own[w], ownPart{own, from, to})
			}
		}
	}
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
	if p == nil {
		return params
	}
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
	if p == nil {
		return
	}
	p.collected = nil
	for _, parts := range p.own {
		for _, v := range parts {
			delete(g.of, v.Param)
		}
	}
}

// state returns what the optimizer keeps of w, of a placed parameter only in the parts that this store updates: zeros
// in the others.
func (s *HostStore) state(w *Param) OptimizerState {
	if s.placed == nil || !slices.Contains(s.placed.params, w) {
		return s.optimizer.State(w)
	}
	if whole, is := s.placed.collected[w]; is {
		return whole
	}
	var whole OptimizerState
	for _, v := range s.placed.own[w] {
		part := s.optimizer.State(v.Param)
		whole.Steps = part.Steps
		for i, slot := range part.Slots {
			if i == len(whole.Slots) {
				whole.Slots = append(whole.Slots, Slot{slot.Name, make([]float32, len(w.Data))})
			}
			copy(whole.Slots[i].Values[v.from:], slot.Values)
		}
	}
	return whole
}

// Collected reports whether State has what the optimizer keeps of all values, as far as this process is to have it:
// always where no other process updates any, else from Collect to the next update.
func (s *HostStore) Collected() bool { return s.placed == nil || s.placed.collected != nil }

// Collect makes State have what the optimizer keeps of whole parameters, until the next update, if keep is true. All
// processes call it: largest replaces numbers by the largest of all, gather the parts of others in memory of the placed
// parameters by what they have.
func (s *HostStore) Collect(keep bool, largest func([]float64) error, gather func([]float32) error) error {
	p := s.placed
	if p == nil {
		return nil
	}
	steps := make([]float64, len(p.params))
	for i, w := range p.params {
		for _, v := range p.own[w] {
			steps[i] = float64(s.optimizer.State(v.Param).Steps)
		}
	}
	if err := largest(steps); err != nil {
		return err
	}
	collected := map[*Param]OptimizerState{}
	for i, w := range p.params {
		if keep {
			collected[w] = OptimizerState{Steps: int(steps[i])}
		}
	}
	memory := s.gradients.memory // which the next step clears
	for i, slot := range s.optimizer.rule.slots(&Param{}) {
		clear(memory)
		for _, w := range p.params {
			for _, v := range p.own[w] {
				if state := s.optimizer.State(v.Param); state.Steps > 0 {
					copy(p.part(memory, w)[v.from:], state.Slots[i].Values)
				}
			}
		}
		if err := gather(memory); err != nil {
			return err
		}
		for j, w := range p.params {
			if keep && steps[j] > 0 {
				state := collected[w]
				state.Slots = append(state.Slots, Slot{slot.name, slices.Clone(p.part(memory, w))})
				collected[w] = state
			}
		}
	}
	p.collected = collected
	return nil
}

func (s *HostStore) setState(params []*Param, states []OptimizerState) error {
	if s.placed == nil {
		return s.optimizer.SetState(params, states)
	}
	s.placed.collected = nil
	var parts []*Param
	var of []OptimizerState
	for i, w := range params {
		if _, is := s.placed.at[w]; !is {
			parts, of = append(parts, w), append(of, states[i])
			continue
		}
		for _, v := range s.placed.own[w] {
			part := OptimizerState{Steps: states[i].Steps}
			for _, slot := range states[i].Slots {
				if len(slot.Values) == len(w.Data) { // else SetState returns an error
					slot.Values = slices.Clone(slot.Values[v.from:v.to])
				}
				part.Slots = append(part.Slots, slot)
			}
			parts, of = append(parts, v.Param), append(of, part)
		}
	}
	return s.optimizer.SetState(parts, of)
}
