package pieces

import (
	"cmp"
	"slices"
)

// trie maps byte strings to numbers, for searches of prefixes. Its edges are in the order of a breadth-first search:
// edge e leads to node e+1, and the edges of node n are first[n] to first[n+1].
type trie struct {
	first  []int32
	labels []byte  // of edges, ascending within a node
	values []int32 // of nodes, -1 for none
	root   [256]int32
}

// newTrie returns the trie of keys and their values. Of equal keys the first counts.
func newTrie(keys []string, values []int32) *trie {
	order := make([]int32, len(keys))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(keys[a], keys[b]) })

	// Each node is a range of the sorted keys that have its prefix.
	type node struct{ lo, hi, depth int32 }
	t := &trie{}
	queue := []node{{0, int32(len(keys)), 0}}
	for i := 0; i < len(queue); i++ {
		n := queue[i]
		t.first = append(t.first, int32(len(t.labels)))
		value := int32(-1)
		for n.lo < n.hi && len(keys[order[n.lo]]) == int(n.depth) {
			if value < 0 {
				value = values[order[n.lo]]
			}
			n.lo++
		}
		t.values = append(t.values, value)
		for n.lo < n.hi {
			label, end := keys[order[n.lo]][n.depth], n.lo+1
			for end < n.hi && keys[order[end]][n.depth] == label {
				end++
			}
			t.labels = append(t.labels, label)
			queue = append(queue, node{n.lo, end, n.depth + 1})
			n.lo = end
		}
	}
	t.first = append(t.first, int32(len(t.labels)))

	for i := range t.root {
		t.root[i] = -1
	}
	for e := range t.first[1] {
		t.root[t.labels[e]] = e + 1
	}
	return t
}

// child returns the node that the edge with a label leads to from node n, or -1.
func (t *trie) child(n int32, label byte) int32 {
	if n == 0 {
		return t.root[label]
	}
	lo, hi := t.first[n], t.first[n+1]
	for hi-lo > 8 {
		if mid := (lo + hi) / 2; t.labels[mid] <= label {
			lo = mid
		} else {
			hi = mid
		}
	}
	for ; lo < hi; lo++ {
		if t.labels[lo] == label {
			return lo + 1
		}
	}
	return -1
}

// value returns the value of a key, or -1.
func (t *trie) value(key []byte) int32 {
	n := int32(0)
	for _, b := range key {
		if n = t.child(n, b); n < 0 {
			return -1
		}
	}
	return t.values[n]
}
