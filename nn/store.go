package nn

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// Store holds parameters that learn, their gradients and the optimizer's state, in the memory of the host or of a
// device.
type Store interface {
	// Zero clears all gradients.
	Zero()
	// SumSquares returns the sum of the squares of all gradients, those of other processes' parts too. It returns an
	// error where these do not arrive.
	SumSquares() (float64, error)
	// Update changes each parameter by its gradient times factor at a learning rate. Parameters that the loss of a step
	// does not depend on, such as a head whose task has no batch, keep their values and moments and do not decay, as in
	// PyTorch parameters without a gradient. SumSquares must have been called since the gradients changed. A failure of
	// a device since the last Update, in a backward pass too, is an error here.
	Update(factor float32, rate float64) error
}

// SnapshotStore is a Store whose parameters and moments can be saved in a snapshot.
type SnapshotStore interface {
	// State copies the parameters and what the optimizer keeps of them, always in the same order.
	State() ([]ParamState, error)
	// SetState restores what State returned. It returns an error, and changes nothing, where the state does not fit its
	// parameters.
	SetState(state []ParamState) error
}

// ParamState is a parameter and what the optimizer keeps of it.
type ParamState struct {
	Name   string
	Values []float32
	OptimizerState
}

// HostStore is a Store in the host's memory.
type HostStore struct {
	params    []*Param
	gradients Gradients
	optimizer *Optimizer
	moved     []*Param       // parameters whose gradient was not zero in the last SumSquares
	tasks     *taskGradients // nil: one gradient for all tasks
	shards    *shardSums     // nil: a step has one
	rounds    bool           // gradients of shards are rounded to bfloat16
	placed    *placed        // nil: no parameters are shared with other processes
	average   *averages      // nil: none

	rates map[*Param]float64 // factors of the learning rate; 1 for all others
}

var (
	_ Store         = (*HostStore)(nil)
	_ SnapshotStore = (*HostStore)(nil)
)

// NewHostStore makes zero gradients for those of params that are not frozen, which the optimizer will update.
func NewHostStore(params []*Param, optimizer *Optimizer) *HostStore {
	return &HostStore{params: params, gradients: NewGradients(params), optimizer: optimizer}
}

// Zero implements Store.
func (s *HostStore) Zero() {
	if s.shards != nil {
		s.shards.at = 0
	}
	s.gradients.zeroAll()
	if s.tasks == nil {
		return
	}
	for _, own := range s.tasks.of {
		for _, w := range s.tasks.shared {
			own.of[w].zero(w)
		}
	}
}

// SumSquares implements Store.
func (s *HostStore) SumSquares() (sum float64, err error) {
	var squares map[*Param]float64
	if s.placed != nil {
		if squares, err = s.placed.sumSquares(s.gradients); err != nil {
			return 0, err
		}
	}
	sum, s.moved = s.gradients.sumSquares(s.params, squares)
	return sum, nil
}

// Update implements Store.
func (s *HostStore) Update(factor float32, rate float64) error {
	for params := s.moved; len(params) > 0; {
		// consecutive parameters of one rate
		of, n := s.rateFactor(params[0]), 1
		for n < len(params) && s.rateFactor(params[n]) == of {
			n++
		}
		s.optimizer.Step(s.placed.ownParts(params[:n], s.gradients), s.gradients, factor, rate*of)
		params = params[n:]
	}
	s.placed.forget(s.gradients)
	s.average.follow()
	return nil
}

// SetRates makes Update multiply the learning rate of parameters by factors of their own.
func (s *HostStore) SetRates(factors map[*Param]float64) { s.rates = factors }

func (s *HostStore) rateFactor(w *Param) float64 {
	if factor, ok := s.rates[w]; ok {
		return factor
	}
	return 1
}

// Gradients returns the gradients that a backward pass adds to: those of the selected task, if they are kept by
// task.
func (s *HostStore) Gradients() Gradients {
	if s.tasks != nil {
		return s.tasks.of[s.tasks.at]
	}
	return s.gradients
}

// Total returns the gradients that Update applies.
func (s *HostStore) Total() Gradients { return s.gradients }

// Params returns the parameters that learn.
func (s *HostStore) Params() []*Param {
	return slices.DeleteFunc(slices.Clone(s.params), func(w *Param) bool { return w.Frozen })
}

// State implements SnapshotStore.
func (s *HostStore) State() ([]ParamState, error) { return s.StateIn(nil), nil }

// StateIn is State with the memory of copies.
func (s *HostStore) StateIn(copies *Copies) []ParamState {
	var all []ParamState
	for _, w := range s.Params() {
		state := s.state(w)
		state.Slots = slices.Clone(state.Slots)
		for i := range state.Slots {
			state.Slots[i].Values = copies.Clone(state.Slots[i].Values)
		}
		values, mean := s.average.own(w)
		state.Slots = append(state.Slots, s.average.slots(w, mean, copies)...)
		all = append(all, ParamState{w.Name, copies.Clone(values), state})
	}
	return all
}

// SetState implements SnapshotStore.
func (s *HostStore) SetState(state []ParamState) error {
	params := s.Params()
	if err := CheckState(params, state); err != nil {
		return err
	}
	ofOptimizer := make([]OptimizerState, len(state))
	for i, p := range state {
		ofOptimizer[i] = p.OptimizerState
	}
	means, err := s.average.split(ofOptimizer)
	if err != nil {
		return err
	}
	if err := s.setState(params, ofOptimizer); err != nil {
		return err
	}
	s.UseAverage(false)
	s.average.set(means)
	for i, w := range params {
		copy(w.Data, state[i].Values)
		w.Changed()
	}
	return nil
}

// CheckState returns an error if the names and sizes in a state are not those of params, in their order.
func CheckState(params []*Param, state []ParamState) error {
	for i := range max(len(params), len(state)) {
		switch {
		case i >= len(state):
			return fmt.Errorf("parameter %q not found", params[i].Name)
		case i >= len(params):
			return fmt.Errorf("unexpected parameter %q", state[i].Name)
		case state[i].Name != params[i].Name:
			return fmt.Errorf("unexpected parameter %q; want %q", state[i].Name, params[i].Name)
		case len(state[i].Values) != len(params[i].Data):
			return fmt.Errorf("parameter %q has %d values; want %d",
				state[i].Name, len(state[i].Values), len(params[i].Data))
		}
	}
	return nil
}

// Average makes the store keep a running mean of each parameter that learns, which State has as more slots. AdamW
// updates means together with parameters, other optimizers' parameters take another pass.
func (s *HostStore) Average(decay float64) {
	s.average = &averages{
		decay: decay, params: s.Params(), idle: map[*Param]*idleRows{}, followed: map[*Param]bool{},
	}
	s.optimizer.averages = s.average
}

// UseAverage makes the parameters hold their running means, as soon as there are any, or their own values again. Update
// panics while the means are in use. State has the parameters' own values in any case.
func (s *HostStore) UseAverage(use bool) {
	a := s.average
	if a == nil || a.of == nil || use == a.inUse {
		return
	}
	for _, w := range a.params {
		if use {
			a.fill(w)
		}
		w.Data, a.of[w] = a.of[w], w.Data
		w.Changed()
	}
	a.inUse = use
}

// Copies copies values into memory that it uses again: new memory takes longer to get than to fill. A nil Copies makes
// new copies.
type Copies struct {
	blocks    []copiesBlock
	beside    int            // values for which no block had space
	allocated chan []float32 // by Prepare, if it is not nil
}

// copiesBlock is memory of which the first values are in use.
type copiesBlock struct {
	memory []float32
	used   int
}

// Prepare allocates memory for n values of copies in the background. It is called before there are copies.
func (c *Copies) Prepare(n int) {
	const page = 1024 // values
	allocated := make(chan []float32, 1)
	c.allocated = allocated
	go func() {
		memory := make([]float32, n)
		for i := 0; i < n; i += page {
			memory[i] = 0 // the system provides a page when it is first written
		}
		allocated <- memory
	}()
}

// Reuse allows the memory of all copies to be overwritten by the next ones.
func (c *Copies) Reuse() {
	if c.beside > 0 {
		c.blocks = append(c.blocks, copiesBlock{memory: make([]float32, c.beside)})
	}
	for i := range c.blocks {
		c.blocks[i].used = 0
	}
	c.beside = 0
}

// Floats returns n values, which are not zeros where memory is used again.
func (c *Copies) Floats(n int) []float32 {
	if c == nil {
		return make([]float32, n)
	}
	if c.allocated != nil {
		c.blocks, c.allocated = []copiesBlock{{memory: <-c.allocated}}, nil
	}
	for i := range c.blocks {
		if b := &c.blocks[i]; n <= len(b.memory)-b.used {
			b.used += n
			return b.memory[b.used-n : b.used : b.used]
		}
	}
	c.beside += n
	return make([]float32, n)
}

// Clone returns a copy of x, nil of nil.
func (c *Copies) Clone(x []float32) []float32 {
	if c == nil || x == nil {
		return slices.Clone(x)
	}
	y := c.Floats(len(x))
	copy(y, x)
	return y
}

// shardSums are sums of gradients over shards of a step, of which there is a power of two, one after another: levels[l]
// holds the sum over 2^l shards where it is full. A shard's gradient is added to the sums of its neighbours as a one is
// added to a binary number, so that all are summed in a binary tree, neighbours first, with a gradient for each level.
type shardSums struct {
	shards, at int           // at is the shard whose gradients are added to
	levels     [][]Gradients // of a HostStore's gradients, then of those of each task
}

// SeparateShards makes the store sum the gradients of so many shards, a power of two, in a binary tree. EndShard is
// called after each.
func (s *HostStore) SeparateShards(shards int) {
	sums := &shardSums{shards: shards}
	for range bits.Len(uint(shards)) - 1 {
		level := []Gradients{NewGradients(s.params)}
		if s.tasks != nil {
			for range s.tasks.of {
				level = append(level, level[0].withOwn(s.tasks.shared))
			}
		}
		sums.levels = append(sums.levels, level)
	}
	s.shards = sums
}

// RoundGradients makes EndShard round the gradients of each shard, and the sum of each two, to bfloat16.
func (s *HostStore) RoundGradients() { s.rounds = true }

// EndShard adds the gradients of the shard that ends to those of the shards before it. After the last one the store has
// the sum of all.
func (s *HostStore) EndShard() {
	if s.shards == nil && !s.rounds {
		return
	}
	for _, w := range s.params {
		if s.gradients.of[w] != nil {
			s.EndShardOf(w)
		}
	}
	if s.shards == nil {
		return
	}
	if s.shards.at < s.shards.shards-1 { // the gradients have been exchanged with those of a level
		free := &s.shards.levels[bits.TrailingZeros(^uint(s.shards.at))][0]
		free.memory, s.gradients.memory = s.gradients.memory, free.memory
	}
	s.shards.at++
}

// EndShardOf adds the gradients of one parameter, where they are final before the others.
func (s *HostStore) EndShardOf(w *Param) {
	if s.tasks == nil || !slices.Contains(s.tasks.shared, w) {
		s.endShardOf(w, s.gradients, 0)
		return
	}
	for t, g := range s.tasks.of {
		s.endShardOf(w, g, 1+t)
	}
}

// endShardOf adds w's gradient of the shard that ends to those of the shards before it, at place i of their levels.
func (s *HostStore) endShardOf(w *Param, own Gradients, i int) {
	if s.rounds {
		own.of[w].parts(w, kernel.RoundBFloat16)
	}
	if s.shards == nil {
		return
	}
	level := 0
	for ; s.shards.at>>level&1 != 0; level++ {
		before := s.shards.levels[level][i]
		own.add(w, before)
		before.of[w].zero(w)
		if s.rounds {
			own.of[w].parts(w, kernel.RoundBFloat16)
		}
	}
	if s.shards.at < s.shards.shards-1 {
		free := s.shards.levels[level][i].of[w]
		*free, *own.of[w] = *own.of[w], *free
	}
}

func (g Gradients) add(w *Param, h Gradients) {
	to, from := g.of[w], h.of[w]
	if from.touched == nil && to.touched == nil {
		kernel.Add(to.values, from.values)
		return
	}
	rows := max(len(from.touched), len(to.touched))
	from.record(rows) // the texts of its shards may have been none
	to.record(rows)
	for row := range rows {
		to.addRow(w, row, from, 1)
	}
}

// TaskStore is a Store that keeps the gradients of shared parameters by task until they are combined. A weighting needs
// only their dot products: each combination is Σ factors[t]·g[t].
type TaskStore interface {
	// SelectTask makes backward passes add to task t's gradients of the shared parameters, until it is called again;
	// all other parameters have one gradient.
	SelectTask(t int)
	// Dots returns the dot products g[t]·g[u] of all tasks' gradients over the shared parameters.
	Dots() [][]float64
	// Combine makes Σ factors[t]·g[t] the gradient of the shared parameters.
	Combine(factors []float64)
}

type taskGradients struct {
	shared []*Param
	of     []Gradients // by task: own gradients of shared, the store's of all others
	at     int         // the task whose gradients are added to
}

var _ TaskStore = (*HostStore)(nil)

// SeparateTasks makes zero gradients for each of so many tasks, of those of shared that learn.
func (s *HostStore) SeparateTasks(tasks int, shared []*Param) {
	learn := slices.DeleteFunc(slices.Clone(shared), func(w *Param) bool { return !s.gradients.Has(w) })
	t := &taskGradients{shared: learn}
	for range tasks {
		t.of = append(t.of, s.gradients.withOwn(t.shared))
	}
	s.tasks = t
}

// SelectTask implements TaskStore.
func (s *HostStore) SelectTask(t int) { s.tasks.at = t }

// TaskGradients returns task t's gradients.
func (s *HostStore) TaskGradients(t int) Gradients { return s.tasks.of[t] }

// Shared returns the parameters whose gradients are kept by task.
func (s *HostStore) Shared() []*Param { return s.tasks.shared }

// Dots implements TaskStore. Goroutines share the parameters, whose sums are added in their order.
func (s *HostStore) Dots() [][]float64 {
	tasks, shared := len(s.tasks.of), s.tasks.shared
	sums := make([]float64, len(shared)*tasks*tasks) // [P T T]
	kernel.Parallel(len(shared), 1, func(i, _ int) {
		s.tasks.dots(shared[i], sums[i*tasks*tasks:(i+1)*tasks*tasks])
	})
	dots := make([][]float64, tasks)
	for t := range dots {
		dots[t] = make([]float64, tasks)
		for u := range t + 1 {
			for i := range shared {
				dots[t][u] += sums[(i*tasks+t)*tasks+u]
			}
			dots[u][t] = dots[t][u]
		}
	}
	return dots
}

// dots adds to sums [T T] the dot products of w's gradients of each task and those up to its own: row by row, so that
// each is read once.
func (s *taskGradients) dots(w *Param, sums []float64) {
	for row := range len(w.Data) / w.rowLength() {
		for t, of := range s.of {
			x := of.of[w].row(w, row)
			if x == nil {
				continue
			}
			for u, other := range s.of[:t+1] {
				if y := other.of[w].row(w, row); y != nil {
					sums[t*len(s.of)+u] += kernel.Dot64(x, y)
				}
			}
		}
	}
}

// Combine implements TaskStore. Goroutines share the parameters.
func (s *HostStore) Combine(factors []float64) {
	kernel.Parallel(len(s.tasks.shared), 1, func(i, _ int) {
		w := s.tasks.shared[i]
		s.tasks.combine(w, s.gradients.of[w], factors)
	})
}

// combine adds Σ factors[t]·g[t], g[t] being w's gradient of task t, to the gradient to: row by row, so that each is
// written once.
func (s *taskGradients) combine(w *Param, to *paramGradient, factors []float64) {
	for t, of := range s.of {
		if rows := len(of.of[w].touched); rows > 0 && factors[t] != 0 {
			to.record(rows)
		}
	}
	for row := range len(w.Data) / w.rowLength() {
		for t, of := range s.of {
			if factors[t] != 0 {
				to.addRow(w, row, of.of[w], float32(factors[t]))
			}
		}
	}
}

// withOwn returns the gradients g, with new zero gradients for params, all of which g has.
func (g Gradients) withOwn(params []*Param) Gradients {
	own := Gradients{of: map[*Param]*paramGradient{}}
	for w, d := range g.of {
		own.of[w] = d
	}
	for _, w := range params {
		own.of[w] = &paramGradient{values: kernel.Floats(len(w.Data))}
	}
	return own
}

// row returns a row of the gradient of w, nil where it is zero because nothing has added to it.
func (d *paramGradient) row(w *Param, row int) []float32 {
	if d.touched != nil && d.touched[row] == 0 {
		return nil
	}
	length := w.rowLength()
	return d.values[row*length : (row+1)*length]
}

func (d *paramGradient) addRow(w *Param, row int, from *paramGradient, factor float32) {
	x := from.row(w, row)
	if x == nil {
		return
	}
	if d.touched != nil {
		d.touched[row] = 1
	}
	addScaled(d.row(w, row), x, factor)
}
