package kernel

// Dropout writes x to out with the given share of its elements set to 0 and the others divided by 1−rate. Which ones is
// a function of key and the element's index. out may be x.
func Dropout(out, x []float32, key uint64, rate float64) {
	m := newMask(key, rate)
	Parallel(len(x), elementTile, func(lo, hi int) { m.apply(out[lo:hi], x[lo:hi], lo) })
}

// DropoutBackward adds to dx the gradient at Dropout's x, given that at its result.
func DropoutBackward(dx, dOut []float32, key uint64, rate float64) {
	m := newMask(key, rate)
	Parallel(len(dx), elementTile, func(lo, hi int) {
		for i, d := range dOut[lo:hi] {
			if m.keeps(lo + i) {
				dx[lo+i] += d * m.scale
			}
		}
	})
}

// mask says which elements a dropout keeps.
type mask struct {
	key   uint64
	bound uint64 // an element whose 32 random bits are below is dropped
	scale float32
}

func newMask(key uint64, rate float64) mask {
	if !(rate >= 0 && rate < 1) {
		panic("kernel: dropout rate is not in [0, 1)")
	}
	return mask{key, uint64(rate * (1 << 32)), float32(1 / (1 - rate))}
}

// of returns the mask of the n-th of the things that share a key.
func (m mask) of(n int) mask {
	m.key = random(m.key, n)
	return m
}

func (m mask) keeps(i int) bool { return random(m.key, i)>>32 >= m.bound }

// apply writes to out what the mask leaves of x, whose first element has the given index.
func (m mask) apply(out, x []float32, first int) {
	out = out[:len(x)]
	for i, v := range x {
		if m.keeps(first + i) {
			out[i] = v * m.scale
		} else {
			out[i] = 0
		}
	}
}

// random is the i-th number of the generator that starts at key: SplitMix64 (Steele, Lea & Flood 2014), whose i-th
// state is known without those before it.
func random(key uint64, i int) uint64 {
	z := key + (uint64(i)+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
