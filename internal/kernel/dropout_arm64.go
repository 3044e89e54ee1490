package kernel

func init() { neon.drop, neon.addDropped = dropNEON, addDroppedNEON }

// dropNEON writes to out x with a mask applied; the first element of x has the index first.
//
//go:noescape
func dropNEON(out, x []float32, key, counter uint64, bound uint32, scale float32, first int)

// addDroppedNEON writes to out the sum of to and x with a mask applied; the first element of x has the index first.
//
//go:noescape
func addDroppedNEON(out, to, x []float32, key, counter uint64, bound uint32, scale float32, first int)
