package corpus

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

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
	moved, held, order := map[G]bool{}, 0, rand.New(rand.NewPCG(seed, 0)).Perm(len(names))
	for _, g := range order {
		if size := sizes[names[g]]; 2*(n-held) >= size {
			moved[names[g]] = true
			held += size
		}
	}
	if n > 0 && held == 0 && len(names) > 1 {
		smallest := slices.MinFunc(order, func(a, b int) int { return sizes[names[a]] - sizes[names[b]] })
		moved[names[smallest]] = true
	}
	return partition(all, func(i int) bool { return moved[groups[i]] })
}

// partition divides elements by whether the one at an index is moved. Both parts keep their order.
func partition[E any](all []E, moves func(i int) bool) (left, moved []E) {
	for i, e := range all {
		if moves(i) {
			moved = append(moved, e)
		} else {
			left = append(left, e)
		}
	}
	return left, moved
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

// stratification is elements in a random order, and the stratum of each. Strata are numbered as they first occur in
// that order, so that none is favoured for its place in a file.
type stratification struct {
	order   []int // a permutation of the elements
	stratum []int // number of each element's stratum
	sizes   []int // of the strata
	named   []bool
}

// newStratification stratifies n elements by the names of their strata; nil: all are one.
func newStratification[S comparable](n int, names []S, seed uint64) *stratification {
	var none S
	if names == nil {
		names = make([]S, n)
	}
	s := &stratification{order: rand.New(rand.NewPCG(seed, 0)).Perm(n), stratum: make([]int, n)}
	numbers := map[S]int{}
	for _, i := range s.order {
		number, known := numbers[names[i]]
		if !known {
			number = len(numbers)
			numbers[names[i]] = number
			s.sizes, s.named = append(s.sizes, 0), append(s.named, names[i] != none)
		}
		s.stratum[i] = number
		s.sizes[number]++
	}
	return s
}

// allot divides n elements among the strata by the method of the largest remainder (Hamilton's): each has the whole
// part of its share n·size/total, and those with the largest fractions have one more. Then each named stratum has at
// least one, where n is enough for that, taken from the largest.
func (s *stratification) allot(n int) []int {
	total, counts, left := len(s.order), make([]int, len(s.sizes)), n
	if total == 0 {
		return counts
	}

	// shares
	byRemainder := make([]int, len(s.sizes))
	for i, size := range s.sizes {
		counts[i], byRemainder[i] = n*size/total, i
		left -= counts[i]
	}
	slices.SortStableFunc(byRemainder, func(a, b int) int {
		return cmp.Compare(n*s.sizes[b]%total, n*s.sizes[a]%total)
	})
	for _, i := range byRemainder[:left] {
		counts[i]++
	}

	// at least one of each
	named := 0
	for _, is := range s.named {
		if is {
			named++
		}
	}
	if n < named {
		return counts
	}
	for i := range counts {
		if counts[i] > 0 || !s.named[i] {
			continue
		}
		counts[s.largest(counts)]--
		counts[i]++
	}
	return counts
}

// largest returns the stratum with the largest count, of equal ones the smallest stratum, whose share is the least; a
// named stratum must keep one.
func (s *stratification) largest(counts []int) int {
	best := -1
	for i, count := range counts {
		if count == 0 || count == 1 && s.named[i] {
			continue
		}
		if best < 0 || count > counts[best] || count == counts[best] && s.sizes[i] < s.sizes[best] {
			best = i
		}
	}
	return best
}

// divide moves counts[i] elements of each stratum i, the first of the random order, to moved.
func divide[E any](s *stratification, all []E, counts []int) (left, moved []E) {
	counts, moves := slices.Clone(counts), make([]bool, len(all))
	for _, i := range s.order {
		if counts[s.stratum[i]] > 0 {
			counts[s.stratum[i]]--
			moves[i] = true
		}
	}
	return partition(all, func(i int) bool { return moves[i] })
}
