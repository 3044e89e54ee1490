package kernel

func init() { neon.multiplyAdds, neon.roundFlops, neon.readAll = multiplyAddsNEON, 28*4*2, readAllNEON }

// multiplyAddsNEON runs rounds of 28 independent fused multiply-adds in registers.
//
//go:noescape
func multiplyAddsNEON(times int)

// readAllNEON reads x, whose length is a multiple of 256.
//
//go:noescape
func readAllNEON(x []float32)
