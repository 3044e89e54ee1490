package kernel

func init() { neon.adamW = adamWNEON }

// adamWNEON updates weights w and moments m and v by gradients g.
//
//go:noescape
func adamWNEON(w, m, v, g []float32, c *[8]float32)
