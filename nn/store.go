package nn

import (
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
	// Update changes each parameter by its gradient times factor at a learning rate. A parameter whose gradient is 0 as
	// a whole, such as that of a head whose task has no batch, keeps its values and moments and does not decay, as in
	// PyTorch a parameter whose gradient is None. SumSquares must have been called since the gradients changed. A
	// failure of a device since the last Update, in a backward pass too, is an error here.
	Update(factor float32, rate float64) error
}

// SnapshotStore is what a Store implements whose parameters and moments can be saved in a snapshot.
type SnapshotStore interface {
	// State copies the parameters and what the optimizer keeps of them, always in the same order.
	State() ([]ParamState, error)
	// SetState restores what State returned. It returns an error, and changes nothing, where the state does not fit its
	// parameters.
	SetState(state []ParamState) error
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
		now := params[:n]
		if s.placed != nil {
			now = s.placed.ownParts(now, s.gradients)
		}
		s.optimizer.Step(now, s.gradients, factor, rate*of)
		params = params[n:]
	}
	if s.placed != nil {
		s.placed.forget(s.gradients)
	}
	if s.average != nil {
		s.average.follow()
	}
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

// TaskStore is what a Store implements that keeps the gradients of shared parameters by task until they are combined. A
// weighting needs only their dot products: each combination is Σ factors[t]·g[t].
type TaskStore interface {
	// SelectTask makes backward passes add to task t's gradients of the shared parameters, until it is called again;
	// all other parameters have one gradient.
	SelectTask(t int)
	// Dots returns the dot products g[t]·g[u] of all tasks' gradients over the shared parameters.
	Dots() [][]float64
	// Combine makes Σ factors[t]·g[t] the gradient of the shared parameters.
	Combine(factors []float64)
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

// Combine implements TaskStore. Goroutines share the parameters.
func (s *HostStore) Combine(factors []float64) {
	kernel.Parallel(len(s.tasks.shared), 1, func(i, _ int) {
		w := s.tasks.shared[i]
		s.tasks.combine(w, s.gradients.of[w], factors)
	})
}

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
