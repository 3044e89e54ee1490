package nn

// Schedule is the learning rate over a run: a linear rise, then a linear fall to 0.
type Schedule struct {
	Warmup int // steps of the rise
	Steps  int // of the run
}

// Rate returns the rate at a step as a fraction of the full rate: step/Warmup up to Warmup, then down to 0 at Steps.
func (s Schedule) Rate(step int) float64 {
	switch {
	case step < s.Warmup:
		return float64(step) / float64(s.Warmup)
	case step >= s.Steps:
		return 0
	}
	return float64(s.Steps-step) / float64(s.Steps-s.Warmup)
}
