package kernel

import "math/bits"

// Dropout writes x to out with each element set to 0 with probability rate and the others divided by 1−rate. The choice
// is a function of key and the element's index. out may be x.
func Dropout(out, x []float32, key uint64, rate float64) {
	dropTiles.run(len(x), elementTile, dropArgs{out: out, x: x, mask: newMask(key, rate)})
}

// addDropped writes to out the sum of to and Dropout's result for x. out may be either.
func addDropped(out, to, x []float32, key uint64, rate float64) {
	addDroppedTiles.run(len(x), elementTile, dropArgs{out, to, x, newMask(key, rate)})
}

// DropoutBackward adds to dx the gradient of Dropout's x, given the gradient dOut of its result.
func DropoutBackward(dx, dOut []float32, key uint64, rate float64) {
	addDropped(dx, dx, dOut, key, rate)
}

type dropArgs struct {
	out, to, x []float32
	mask       mask
}

var (
	dropTiles       = tiled(func(a *dropArgs, lo, hi int) { a.mask.apply(a.out[lo:hi], a.x[lo:hi], lo) })
	addDroppedTiles = tiled(func(a *dropArgs, lo, hi int) { a.mask.add(a.out[lo:hi], a.to[lo:hi], a.x[lo:hi], lo) })
)

// mask determines which elements a dropout keeps.
type mask struct {
	key     uint64
	counter uint64 // number of the mask for its key
	bound   uint32 // elements whose 32 random bits are less are dropped
	scale   float32
}

func newMask(key uint64, rate float64) mask {
	if !(rate >= 0 && rate < 1) {
		panic("kernel: dropout rate is not in [0, 1)")
	}
	return mask{key, 0, uint32(rate * (1 << 32)), float32(1 / (1 - rate))}
}

// of returns the n-th mask of the key.
func (m mask) of(n int) mask {
	m.counter = uint64(n)
	return m
}

// apply writes to out x with the mask applied; the first element of x has the index first. out may be x.
func (m mask) apply(out, x []float32, first int) {
	use.drop(out[:len(x)], x, m.key, m.counter, m.bound, m.scale, first)
}

// add writes to out the sum of to and x with the mask applied. out may be either.
func (m mask) add(out, to, x []float32, first int) {
	use.addDropped(out[:len(x)], to[:len(x)], x, m.key, m.counter, m.bound, m.scale, first)
}

func dropPlain(out, x []float32, key, counter uint64, bound uint32, scale float32, first int) {
	var words [4]uint32
	for i, v := range x {
		if index := first + i; index%4 == 0 || i == 0 {
			words = philox(key, counter, uint64(index)/4)
		}
		if words[(first+i)%4] >= bound {
			out[i] = v * scale
		} else {
			out[i] = 0
		}
	}
}

func addDroppedPlain(out, to, x []float32, key, counter uint64, bound uint32, scale float32, first int) {
	var dropped [256]float32
	for i := 0; i < len(x); i += len(dropped) {
		part := dropped[:min(len(dropped), len(x)-i)]
		dropPlain(part, x[i:i+len(part)], key, counter, bound, scale, first+i)
		for j, v := range part {
			out[i+j] = to[i+j] + v
		}
	}
}

// philox is Philox4x32-10, a counter-based generator (Salmon et al. 2011): four random words that are a function of the
// key and of a counter, here the block's number and the mask's.
func philox(key, counter, block uint64) [4]uint32 {
	key0, key1 := uint32(key), uint32(key>>32)
	x := [4]uint32{uint32(block), uint32(block >> 32), uint32(counter), uint32(counter >> 32)}
	for range 10 {
		high0, low0 := bits.Mul32(0xd2511f53, x[0])
		high2, low2 := bits.Mul32(0xcd9e8d57, x[2])
		x = [4]uint32{high2 ^ x[1] ^ key0, low2, high0 ^ x[3] ^ key1, low0}
		key0 += 0x9e3779b9
		key1 += 0xbb67ae85
	}
	return x
}
