package corpus

import "math/rand/v2"

// SplitGroups moves whole groups, the examples with the same Group, to dev: about n examples. It takes the groups in an
// order that depends only on the seed and the number of groups, and moves each unless that takes the size of dev
// further from n. If it moves none and there are several groups, it moves the first of the smallest.
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

// SplitN moves n elements, or all if there are fewer, to dev; which ones depends only on the seed and the number of
// elements. train and dev keep the order of all.
func SplitN[E any](all []E, n int, seed uint64) (train, dev []E) {
	n = min(n, len(all))
	if n < 0 {
		panic("corpus: negative size of a split")
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
