package config

import (
	"fmt"
	"math/bits"

	"github.com/jenga-nlp/jenga/heads"
)

// NativeSums is the value of all_reduce for sums of the MPI library.
const NativeSums = "native"

// sums checks how the gradients of shards are summed.
func (d *decoding) sums() {
	t := d.e.Training
	if bits.OnesCount(uint(t.Shards)) > 1 {
		d.mistakes.Add(d.e.Place("training.shards"), "training: shards: want a power of two, have %d", t.Shards)
	}
	if t.AllReduce == NativeSums && t.GradientDtype == BF16 {
		d.mistakes.Add(d.e.Place("training.all_reduce"),
			"training: all_reduce: native sums float32; leave it out, or gradient_dtype: bf16")
	}
}

// CheckPairs returns an error where a head learns by comparing the examples of a batch, or of a shard of one, and these
// have less than two.
func (e *Experiment) CheckPairs() error {
	shards := max(1, e.Training.Shards)
	if e.Training.BatchSize/shards >= 2 {
		return nil
	}
	for _, task := range e.Tasks {
		for _, head := range task.Heads {
			switch {
			case !heads.TraitsOf(head.Part.Options).Compares:
			case shards == 1:
				return fmt.Errorf("training: batch_size is 1: head %q of task %q learns by comparing the examples of "+
					"a batch; want at least 2", head.Name, task.Name)
			default:
				return fmt.Errorf("training: batch_size is %d, in %d shards: head %q of task %q learns by comparing "+
					"the examples of a shard; want at least %d, or fewer training.shards", e.Training.BatchSize,
					shards, head.Name, task.Name, 2*shards)
			}
		}
	}
	return nil
}
