package predict

// Pool makes one vector [D] of the states [T D] of a text's tokens.
type Pool string

// Pools.
const (
	MeanPool Pool = "mean" // of all tokens
	ClsPool  Pool = "cls"  // the first token's state
)

// Of returns the vector of states; those of a mean are summed in their order.
func (p Pool) Of(states [][]float32) []float32 {
	vector := make([]float32, len(states[0]))
	if p == ClsPool {
		copy(vector, states[0])
		return vector
	}
	for _, state := range states {
		for d, v := range state {
			vector[d] += v / float32(len(states))
		}
	}
	return vector
}
