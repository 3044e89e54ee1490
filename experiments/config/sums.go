package config

import "math/bits"

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
