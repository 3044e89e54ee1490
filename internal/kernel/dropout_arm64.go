package kernel

func init() { neon.drop, neon.addDropped = dropNEON, addDroppedNEON }

// dropNEON writes to out what a mask leaves of x, whose first element has the index first.
//
//go:noescape
func dropNEON(out, x []float32, key, thing uint64, bound uint32, scale float32, first int)

// addDroppedNEON writes to out the sum of to and of what a mask leaves of x, whose first element has the index first.
//
//go:noescape
func addDroppedNEON(out, to, x []float32, key, thing uint64, bound uint32, scale float32, first int)
