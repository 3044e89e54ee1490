package predict

import "fmt"

// Pool makes one vector [D] of the states [T D] of a text's tokens.
type Pool string

// Pools.
const (
	MeanPool Pool = "mean" // of all tokens
	ClsPool  Pool = "cls"  // the first token's state
)

// Check returns an error for a name that is none of the pools.
func (p Pool) Check() error {
	if p != MeanPool && p != ClsPool {
		return fmt.Errorf("pool %q: want %s or %s", string(p), MeanPool, ClsPool)
	}
	return nil
}

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
