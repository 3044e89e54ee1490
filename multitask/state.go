package multitask

import (
	"encoding"
	"encoding/json"
	"fmt"
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

// Stateful is what a sampler or a weighting changes from step to step, besides parameters that it learns. A snapshot of
// a training holds it. An error of UnmarshalBinary says why the bytes are no state of the same kind.
type Stateful interface {
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}

// JSONState returns value as what is kept as JSON; check returns an error for a value that cannot be.
func JSONState[T any](value *T, check func(T) error) Stateful { return jsonState[T]{value, check} }

type jsonState[T any] struct {
	value *T
	check func(T) error
}

func (s jsonState[T]) MarshalBinary() ([]byte, error) { return json.Marshal(s.value) }

func (s jsonState[T]) UnmarshalBinary(state []byte) error {
	var value T
	if err := json.Unmarshal(state, &value); err != nil {
		return err
	}
	if err := s.check(value); err != nil {
		return err
	}
	*s.value = value
	return nil
}

// CheckHeads returns an error if a state is that of another number of heads.
func CheckHeads(have, want int) error {
	if have != want {
		return fmt.Errorf("it has %d heads; want %d", have, want)
	}
	return nil
}
