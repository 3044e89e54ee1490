package nn

// Schedule is how the learning rate goes over a run: linearly up, then linearly down to nothing.
type Schedule struct {
	Warmup int // steps of the way up
	Steps  int // of the run
}

// Rate returns the share of the full rate at a step: step/Warmup up to Warmup, then down to 0 at Steps.
func (s Schedule) Rate(step int) float64 {
	switch {
	case step < s.Warmup:
		return float64(step) / float64(s.Warmup)
	case step >= s.Steps:
		return 0
	}
	return float64(s.Steps-step) / float64(s.Steps-s.Warmup)
}
