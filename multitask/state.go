package multitask

import (
	"encoding"
	"math/rand/v2"
)

// State is the progress of training when the next batch is chosen.
type State struct {
	Step, Epoch int        // steps done; epochs done
	Steps       int        // of the run
	Epochs      int        // of the run, the last one may be incomplete
	Examples    []int      // number of training examples of each group
	Batches     []int      // number of batches of each group per epoch
	Left        []int      // number of them not used in this epoch; negative for a group that started again
	Last        int        // the group of the previous batch, -1 before the first
	Rand        *rand.Rand // a function of the seed
}

// Stateful is a Weighting or a Sampler that has state from step to step besides the parameters of a LearnedWeighting. A
// snapshot holds it.
type Stateful interface {
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}

// LossObserver is a Weighting or a Sampler that receives the losses of finished steps.
type LossObserver interface {
	Observe(s State, losses []Loss)
}
