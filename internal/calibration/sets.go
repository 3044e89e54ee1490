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
	return float64(SetSize(gold, least)) / float64(max(1, len(gold)))
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
	set := make([]int, 0, SetSize(p, least))
	for c, v := range p {
		if v >= least {
			set = append(set, c)
		}
	}
	slices.SortStableFunc(set, func(a, b int) int { return cmp.Compare(p[b], p[a]) })
	return set
}

// SetSize returns how many labels are in a Set.
func SetSize(p []float32, least float32) (n int) {
	for _, v := range p {
		if v >= least {
			n++
		}
	}
	return n
}

// Decision is a label's probability, and whether it holds.
type Decision struct {
	Probability float32
	Holds       bool
}

func descending(decisions []Decision) []Decision {
	sorted := slices.Clone(decisions)
	slices.SortFunc(sorted, func(a, b Decision) int { return cmp.Compare(b.Probability, a.Probability) })
	return sorted
}

// BestF1 returns the threshold of the best F1, half way between two probabilities that occur; of equals the one nearest
// to 1/2. ok is false if no label holds, or a probability is NaN.
func BestF1(decisions []Decision) (best float32, ok bool) {
	decisions = descending(decisions)
	holding := 0
	for _, d := range decisions {
		if d.Probability != d.Probability {
			return 0, false
		}
		if d.Holds {
			holding++
		}
	}
	right, bestF1 := 0, 0.0
	for i, d := range decisions {
		if d.Holds {
			right++
		}
		next := float32(0)
		if i+1 < len(decisions) {
			next = decisions[i+1].Probability
		}
		if next == d.Probability {
			continue // both are at or above a threshold, or neither is
		}
		f1, middle := 2*float64(right)/float64(i+1+holding), (d.Probability+next)/2
		if middle == next { // adjacent floats: the lower one would be predicted too
			middle = d.Probability
		}
		closer := math.Abs(float64(middle)-0.5) < math.Abs(float64(best)-0.5)
		if f1 > bestF1 || f1 == bestF1 && f1 > 0 && closer {
			best, bestF1 = middle, f1
		}
	}
	return best, bestF1 > 0
}

// AtPrecision returns the lowest threshold from which on a fraction of at least precision of the decisions hold; 0 if
// all do. If there is none, ok is false and the threshold is that of the best precision.
func AtPrecision(decisions []Decision, precision float64) (threshold float32, ok bool) {
	decisions = descending(decisions)
	holding, bestFraction := 0, -1.0
	var best float32
	for i, d := range decisions {
		if d.Holds {
			holding++
		}
		if i+1 < len(decisions) && decisions[i+1].Probability == d.Probability {
			continue
		}
		fraction, at := float64(holding)/float64(i+1), d.Probability
		if i+1 == len(decisions) {
			at = 0
		}
		if fraction >= precision {
			threshold, ok = at, true
		}
		if fraction > bestFraction {
			best, bestFraction = at, fraction
		}
	}
	if !ok {
		return best, false
	}
	return threshold, true
}

// Point is a least probability of an answer: Coverage is the fraction of texts with one, Accuracy that of those that
// are right.
type Point struct {
	MinProbability float32  `json:"min_probability"`
	Coverage       float64  `json:"coverage"`
	Accuracy       *float64 `json:"accuracy"` // nil if none has an answer
}

// Answered returns what answers from a least probability on are like.
func Answered(decisions []Decision, least float32) Point {
	n, right := 0, 0
	for _, d := range decisions {
		if d.Probability >= least {
			n++
			if d.Holds {
				right++
			}
		}
	}
	p := Point{MinProbability: least, Coverage: float64(n) / float64(max(1, len(decisions)))}
	if n > 0 {
		accuracy := float64(right) / float64(n)
		p.Accuracy = &accuracy
	}
	return p
}

// Abstention returns the least probability at which at most a fraction of the decisions have no answer, which is
// closest to it unless probabilities are equal; 0 if all have one.
func Abstention(decisions []Decision, fraction float64) float32 {
	sorted := descending(decisions)
	k := int(fraction*float64(len(sorted)) + 1e-9) // 0.29·100 is below 29
	if k <= 0 || len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, len(sorted)-1-k)].Probability
}
