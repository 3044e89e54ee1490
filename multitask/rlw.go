package multitask

func init() { RegisterWeighting("rlw", NoOptions{}, NewRLW) }

// RLW weighs the losses at random (random loss weighting, Lin et al. 2022, "Reasonable Effectiveness of Random
// Weighting: A Litmus Test for Multi-Task Learning"): each step draws new factors
//
//	softmax(z)_h    z_h normal, with mean 0 and variance 1
//
// for the losses, which are multiplied by the heads' weights too. A step draws a z for every head of the experiment;
// the z of heads without labelled texts or words in the step are not used.
type RLW struct {
	heads map[HeadName]int // → the number of its z
}

// NewRLW makes the weighting for the heads in env.
func NewRLW(_ NoOptions, env WeightingEnv) (Weighting, error) { return RLW{numbered(env.Heads)}, nil }

// numbered returns the index of each head.
func numbered(heads []HeadName) map[HeadName]int {
	numbers := map[HeadName]int{}
	for i, head := range heads {
		numbers[head] = i
	}
	return numbers
}

// Weigh implements Weighting.
func (w RLW) Weigh(s State, losses []Loss) []float64 {
	z := make([]float64, len(w.heads))
	for i := range z {
		z[i] = s.Rand.NormFloat64()
	}
	return w.factors(z, losses)
}

// factors returns softmax(z) times the weights of the losses' heads.
func (w RLW) factors(z []float64, losses []Loss) []float64 {
	p, factors := softmax(z), make([]float64, len(losses))
	for i, l := range losses {
		factors[i] = l.Weight * p[w.heads[l.HeadName()]]
	}
	return factors
}
