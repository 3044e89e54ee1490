package pieces

import "math/bits"

// fewSymbols is the length up to which a search of the next merge among all pairs is faster than a queue.
const fewSymbols = 32

// noRank is the rank of a pair that no merge joins.
const noRank = 1<<31 - 1

// mergeFew joins the symbols, in quadratic time.
func (b *bpe) mergeFew(w *bpeScratch) {
	symbols := w.symbols
	w.ranks = w.ranks[:0]
	for i := 1; i < len(symbols); i++ {
		w.ranks = append(w.ranks, b.merges.rank(symbols[i-1].id, symbols[i].id))
	}
	ranks := w.ranks
	for {
		best, at := int32(noRank), -1
		for i, rank := range ranks {
			if rank < best {
				best, at = rank, i
			}
		}
		if at < 0 {
			break
		}
		symbols[at].id = b.results[best]
		symbols[at].size += symbols[at+1].size
		copy(symbols[at+1:], symbols[at+2:])
		symbols = symbols[:len(symbols)-1]
		copy(ranks[at:], ranks[at+1:])
		ranks = ranks[:len(ranks)-1]
		if at > 0 {
			ranks[at-1] = b.merges.rank(symbols[at-1].id, symbols[at].id)
		}
		if at < len(ranks) {
			ranks[at] = b.merges.rank(symbols[at].id, symbols[at+1].id)
		}
	}
	w.symbols = symbols
}

// mergeMany joins the symbols, in time n·log n: a queue holds the pairs by rank and place. A pair whose symbols have
// been joined since is skipped when it comes up.
func (b *bpe) mergeMany(w *bpeScratch) {
	symbols := w.symbols
	w.queue = w.queue[:0]
	for i := range symbols {
		symbols[i].prev, symbols[i].next = int32(i-1), int32(i+1)
		if i > 0 {
			w.push(b.merges.rank(symbols[i-1].id, symbols[i].id), int32(i-1))
		}
	}
	symbols[len(symbols)-1].next = -1

	for len(w.queue) > 0 {
		rank, at := w.pop()
		left := &symbols[at]
		if left.size == 0 || left.next < 0 {
			continue
		}
		right := &symbols[left.next]
		if now := b.merges.rank(left.id, right.id); now == noRank || b.results[now] != b.results[rank] {
			continue
		}
		left.id, left.size, left.next = b.results[rank], left.size+right.size, right.next
		right.size = 0
		if left.prev >= 0 {
			w.push(b.merges.rank(symbols[left.prev].id, left.id), left.prev)
		}
		if left.next >= 0 {
			symbols[left.next].prev = at
			w.push(b.merges.rank(left.id, symbols[left.next].id), at)
		}
	}
}

// push adds the pair at a place to the queue, a binary heap, unless no merge joins it.
func (w *bpeScratch) push(rank, at int32) {
	if rank == noRank {
		return
	}
	key, i := uint64(rank)<<32|uint64(at), len(w.queue)
	w.queue = append(w.queue, key)
	for i > 0 {
		parent := (i - 1) / 2
		if w.queue[parent] <= key {
			break
		}
		w.queue[i], i = w.queue[parent], parent
	}
	w.queue[i] = key
}

// pop removes the pair of the lowest rank, the leftmost of them, from the queue.
func (w *bpeScratch) pop() (rank, at int32) {
	top, last := w.queue[0], w.queue[len(w.queue)-1]
	w.queue = w.queue[:len(w.queue)-1]
	n, i := len(w.queue), 0
	for n > 0 {
		child := 2*i + 1
		if child+1 < n && w.queue[child+1] < w.queue[child] {
			child++
		}
		if child >= n || last <= w.queue[child] {
			w.queue[i] = last
			break
		}
		w.queue[i], i = w.queue[child], child
	}
	return int32(top >> 32), int32(top & (1<<32 - 1))
}

// pairTable maps pairs of ids to ranks of merges: a hash table with linear probing.
type pairTable struct {
	slots []pairSlot // a power of two, at most half of them in use
	shift int
}

type pairSlot struct {
	pair uint64 // the two ids, plus one: 0 is an empty slot
	rank int32
}

func newPairTable(pairs int) pairTable {
	log := bits.Len(uint(2*pairs + 1))
	return pairTable{make([]pairSlot, 1<<log), 64 - log}
}

// slot returns the slot of a pair, or the empty one where it belongs.
func (t *pairTable) slot(a, b int32) *pairSlot {
	pair := uint64(a)<<32 + uint64(b) + 1
	for i := pair * 0x9e3779b97f4a7c15 >> t.shift; ; i = (i + 1) & uint64(len(t.slots)-1) {
		if s := &t.slots[i]; s.pair == pair || s.pair == 0 {
			return s
		}
	}
}

// rank returns the rank of the merge that joins two ids, or noRank.
func (t *pairTable) rank(a, b int32) int32 {
	if s := t.slot(a, b); s.pair != 0 {
		return s.rank
	}
	return noRank
}

// set sets the rank of a pair.
func (t *pairTable) set(a, b, rank int32) {
	s := t.slot(a, b)
	s.pair, s.rank = uint64(a)<<32+uint64(b)+1, rank
}
