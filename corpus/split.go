package corpus

import "math/rand/v2"

// SplitGroups moves whole groups, the elements with the same value in groups, to dev: about n elements. It takes the
// groups in an order that depends only on the seed and the number of groups, and moves each unless that takes the size
// of dev further from n. If it moves none and there are several groups, it moves the first of the smallest.
func SplitGroups[E any, G comparable](all []E, groups []G, n int, seed uint64) (train, dev []E) {
	var names []G
	sizes := map[G]int{}
	for _, g := range groups {
		if sizes[g] == 0 {
			names = append(names, g)
		}
		sizes[g]++
	}
	moved, held := map[G]bool{}, 0
	smallest := -1
	for _, g := range rand.New(rand.NewPCG(seed, 0)).Perm(len(names)) {
		size := sizes[names[g]]
		if 2*(n-held) >= size {
			moved[names[g]] = true
			held += size
		}
		if smallest < 0 || size < sizes[names[smallest]] {
			smallest = g
		}
	}
	if n > 0 && held == 0 && len(names) > 1 {
		moved[names[smallest]] = true
	}
	for i, e := range all {
		if moved[groups[i]] {
			dev = append(dev, e)
		} else {
			train = append(train, e)
		}
	}
	return train, dev
}

// SplitN moves n elements, or all if there are fewer, to dev; which ones depends only on the seed, the number of
// elements and their strata. strata[i] is the stratum of element i, such as its label, the zero value for none; without
// strata all are one. Each stratum keeps its fraction, and has at least one element in train where there are enough.
// train and dev keep the order of all.
func SplitN[E any, S comparable](all []E, strata []S, n int, seed uint64) (train, dev []E) {
	n = min(n, len(all))
	if n < 0 {
		panic("corpus: negative size of a split")
	}
	s := newStratification(len(all), strata, seed)
	counts := s.allot(len(all) - n) // of train
	for i := range counts {
		counts[i] = s.sizes[i] - counts[i]
	}
	return divide(s, all, counts)
}

// Sample returns n elements, or all if there are fewer, in their order; which ones depends only on the seed, the number
// of elements and their strata, which are those of SplitN. Each stratum has its share, and at least one element where n
// allows. The others are rest.
func Sample[E any, S comparable](all []E, strata []S, n int, seed uint64) (sample, rest []E) {
	if n < 0 {
		panic("corpus: negative size of a sample")
	}
	s := newStratification(len(all), strata, seed)
	rest, sample = divide(s, all, s.allot(min(n, len(all))))
	return sample, rest
}
