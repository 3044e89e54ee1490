package heads

import "math"

// Training is the statistics of a head's training data.
type Training struct {
	Units  int   // labelled units: texts, or words where words have tags
	Counts []int // of the units of each label
	// Mean and Deviation are those of the gold numbers; the deviation is 1 where all are equal.
	Mean, Deviation float64
}

// balance is the factor that gives label c the same total weight as the others; 1 for a label without training data.
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
