package corpus

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// stratification is elements in a random order, and the stratum of each. Strata are numbered as they first occur in
// that order, so that none is favoured for its place in a file.
type stratification struct {
	order []int // a permutation of the elements
	of    []int // number of each element's stratum
	sizes []int // of the strata
	named []bool
}

// newStratification stratifies n elements by the names of their strata; nil: all are one.
func newStratification[S comparable](n int, names []S, seed uint64) *stratification {
	var none S
	if names == nil {
		names = make([]S, n)
	}
	s := &stratification{order: rand.New(rand.NewPCG(seed, 0)).Perm(n), of: make([]int, n)}
	numbers := map[S]int{}
	for _, i := range s.order {
		number, known := numbers[names[i]]
		if !known {
			number = len(numbers)
			numbers[names[i]] = number
			s.sizes, s.named = append(s.sizes, 0), append(s.named, names[i] != none)
		}
		s.of[i] = number
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

// divide moves counts[i] elements of each stratum i, the first of the random order, to moved. Both parts keep the order
// of all.
func divide[E any](s *stratification, all []E, counts []int) (left, moved []E) {
	counts, moves, n := slices.Clone(counts), make([]bool, len(all)), 0
	for _, i := range s.order {
		if counts[s.of[i]] > 0 {
			counts[s.of[i]]--
			moves[i] = true
			n++
		}
	}
	left, moved = make([]E, 0, len(all)-n), make([]E, 0, n)
	for i, e := range all {
		if moves[i] {
			moved = append(moved, e)
		} else {
			left = append(left, e)
		}
	}
	return left, moved
}
