package calibration

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// SetThreshold returns the least probability of a label in a conformal set that has the right label with probability 1
// - alpha: split conformal prediction with the score 1 - p(gold) (LAC: Sadinle, Lei & Wasserman 2019), whose threshold
// is the score of rank ⌈(n+1)(1-alpha)⌉ of n. gold has p(gold) of each example, below 0 for a label that the head does
// not know. ok is false if there are fewer than (1-alpha)/alpha examples: all labels are in the set then.
func SetThreshold(gold []float32, alpha float64) (least float32, ok bool) {
	sorted := slices.Clone(gold) // ascending in p is descending in the score
	slices.Sort(sorted)
	slices.Reverse(sorted)
	rank := Rank(len(sorted), alpha)
	if rank > len(sorted) || rank < 1 {
		return 0, false
	}
	return max(0, sorted[rank-1]), true
}

// Rank returns ⌈(n+1)(1-alpha)⌉.
func Rank(n int, alpha float64) int {
	// (n+1)·0.9 may be above a whole number by rounding alone
	return int(math.Ceil(float64(n+1)*(1-alpha) - 1e-9))
}

// Golds returns the probability of each example's label, -1 of one that the head does not know.
func Golds(p [][]float32, gold []int) []float32 {
	all := make([]float32, len(p))
	for i, row := range p {
		if all[i] = -1; gold[i] >= 0 {
			all[i] = row[gold[i]]
		}
	}
	return all
}

// Coverage returns the fraction of examples whose set has the right label.
func Coverage(gold []float32, least float32) float64 {
	n := 0
	for _, p := range gold {
		if p >= least {
			n++
		}
	}
	return float64(n) / float64(max(1, len(gold)))
}

// HalvesCoverage returns the mean and standard deviation of the coverage over random halves: each time the threshold is
// that of one half, the coverage that of the other. The halves are the same at each call.
func HalvesCoverage(gold []float32, alpha float64, times int) (mean, deviation float64) {
	random := rand.New(rand.NewPCG(1, 0))
	var sum, squares float64
	for range times {
		shuffled := make([]float32, len(gold))
		for i, at := range random.Perm(len(gold)) {
			shuffled[i] = gold[at]
		}
		half := len(shuffled) / 2
		least, _ := SetThreshold(shuffled[:half], alpha)
		c := Coverage(shuffled[half:], least)
		sum, squares = sum+c, squares+c*c
	}
	mean = sum / float64(times)
	return mean, math.Sqrt(max(0, squares/float64(times)-mean*mean))
}

// Halves divides n examples into two halves at random, in ascending order; the same at each call.
func Halves(n int) (first, second []int) {
	order := rand.New(rand.NewPCG(2, 0)).Perm(n)
	first, second = slices.Clone(order[:n/2]), slices.Clone(order[n/2:])
	slices.Sort(first)
	slices.Sort(second)
	return first, second
}

// Set lists the labels whose probability is at least least, the likeliest first, of equals the first; not nil.
func Set(p []float32, least float32) []int {
	set := []int{}
	for c, v := range p {
		if v >= least {
			set = append(set, c)
		}
	}
	slices.SortStableFunc(set, func(a, b int) int { return cmp.Compare(p[b], p[a]) })
	return set
}

// All returns the numbers of n examples.
func All(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}
