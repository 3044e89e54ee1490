package kernel

func init() { neon.multiplyAdds, neon.roundFlops, neon.readAll = multiplyAddsNEON, 28*4*2, readAllNEON }

// multiplyAddsNEON runs so many rounds of 28 fused multiply-adds of registers that do not wait for each other.
//
//go:noescape
func multiplyAddsNEON(times int)

// readAllNEON reads x, whose length is a multiple of 256, and does nothing with it.
//
//go:noescape
func readAllNEON(x []float32)
