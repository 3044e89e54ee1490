package heads

import "math"

// Training is what a head is told of its training data.
type Training struct {
	Units  int   // labelled: texts, or words where words have tags
	Counts []int // of them each label has
	// Mean and Deviation are those of the gold numbers, the deviation 1 where all are equal.
	Mean, Deviation float64
}

// balance is the factor that makes label c weigh as much as others. Where the data has nothing of it, it is 1.
func (t Training) balance(c int, many bool) float64 {
	if c >= len(t.Counts) || t.Counts[c] == 0 {
		return 1
	}
	n, all := float64(t.Counts[c]), float64(t.Units)
	if many {
		return math.Max(all-n, 1) / n
	}
	return all / (float64(len(t.Counts)) * n)
}
