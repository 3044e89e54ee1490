package corpus

import "math/rand/v2"

// SplitGroups moves groups of examples, which are those of one Group, to dev: about n examples, groups as they come in
// an order that is the same for a seed and a number of groups, as far as each brings dev nearer to n; where none does,
// the first of the smallest, if there is another.
func SplitGroups(all []*Example, n int, seed uint64) (train, dev []*Example) {
	var names []string
	sizes := map[string]int{}
	for _, e := range all {
		if sizes[e.Group] == 0 {
			names = append(names, e.Group)
		}
		sizes[e.Group]++
	}
	moved, held := map[string]bool{}, 0
	smallest := ""
	for _, g := range rand.New(rand.NewPCG(seed, 0)).Perm(len(names)) {
		size := sizes[names[g]]
		if 2*(n-held) >= size {
			moved[names[g]] = true
			held += size
		}
		if smallest == "" || size < sizes[smallest] {
			smallest = names[g]
		}
	}
	if n > 0 && held == 0 && len(names) > 1 {
		moved[smallest] = true
	}
	for _, e := range all {
		if moved[e.Group] {
			dev = append(dev, e)
		} else {
			train = append(train, e)
		}
	}
	return train, dev
}

// SplitN moves n elements, or all if there are fewer, to dev: the same ones for a seed and a number of elements. Both
// keep the order of all.
func SplitN[E any](all []E, n int, seed uint64) (train, dev []E) {
	n = min(n, len(all))
	if n < 0 {
		panic("corpus: fewer than no elements")
	}
	moved := make([]bool, len(all))
	for _, i := range rand.New(rand.NewPCG(seed, 0)).Perm(len(all))[:n] {
		moved[i] = true
	}
	train, dev = make([]E, 0, len(all)-n), make([]E, 0, n)
	for i, e := range all {
		if moved[i] {
			dev = append(dev, e)
		} else {
			train = append(train, e)
		}
	}
	return train, dev
}
