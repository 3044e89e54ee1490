package nn

import (
	"math/bits"
	"slices"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// shardSums are sums of gradients over shards of a step, of which there is a power of two, one after another: levels[l]
// holds the sum over 2^l shards where it is full. A shard's gradient is added to the sums of its neighbours as a one is
// added to a binary number, so that all are summed in a binary tree, neighbours first, with a gradient for each level.
type shardSums struct {
	shards, at int // at is the shard whose gradients are added to
	levels     []shardLevel
}

// shardLevel is a sum of a HostStore's gradients, and of those by task.
type shardLevel struct {
	gradients Gradients
	tasks     []Gradients
}

// SeparateShards makes the store sum the gradients of so many shards, a power of two, in a binary tree. EndShard is
// called after each.
func (s *HostStore) SeparateShards(shards int) {
	sums := &shardSums{shards: shards}
	for range bits.Len(uint(shards)) - 1 {
		level := shardLevel{gradients: NewGradients(s.params)}
		if s.tasks != nil {
			for range s.tasks.of {
				level.tasks = append(level.tasks, level.gradients.withOwn(s.tasks.shared))
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
		free := &s.shards.levels[bits.TrailingZeros(^uint(s.shards.at))].gradients
		free.memory, s.gradients.memory = s.gradients.memory, free.memory
	}
	s.shards.at++
}

// EndShardOf adds the gradients of one parameter, where they are final before the others.
func (s *HostStore) EndShardOf(w *Param) {
	if s.tasks == nil || !slices.Contains(s.tasks.shared, w) {
		s.endShardOf(w, s.gradients, func(l shardLevel) Gradients { return l.gradients })
		return
	}
	for t, g := range s.tasks.of {
		s.endShardOf(w, g, func(l shardLevel) Gradients { return l.tasks[t] })
	}
}

// endShardOf adds w's gradient of the shard that ends to those of the shards before it.
func (s *HostStore) endShardOf(w *Param, own Gradients, of func(shardLevel) Gradients) {
	if s.rounds {
		own.round(w)
	}
	if s.shards == nil {
		return
	}
	level := 0
	for ; s.shards.at>>level&1 != 0; level++ {
		before := of(s.shards.levels[level])
		own.add(w, before)
		before.of[w].zero(w)
		if s.rounds {
			own.round(w)
		}
	}
	if s.shards.at < s.shards.shards-1 {
		free := of(s.shards.levels[level]).of[w]
		*free, *own.of[w] = *own.of[w], *free
	}
}

// round rounds w's gradient to bfloat16.
func (g Gradients) round(w *Param) {
	d := g.of[w]
	if d.touched == nil {
		kernel.RoundBFloat16(d.values)
		return
	}
	n := w.rowLength()
	for r, touched := range d.touched {
		if touched != 0 {
			kernel.RoundBFloat16(d.values[r*n : (r+1)*n])
		}
	}
}

// add adds w's gradient in h to that in g.
func (g Gradients) add(w *Param, h Gradients) {
	to, from := g.of[w], h.of[w]
	if from.touched == nil && to.touched == nil {
		kernel.Add(to.values, from.values)
		return
	}
	if from.touched == nil { // the texts of its shards were none
		from.touched = make([]float32, len(to.touched))
		mark(from.touched, from.values)
	}
	to.recordRowsLike(from)
	for row := range len(w.Data) / w.rowLength() {
		to.addRow(w, row, from, 1)
	}
}
