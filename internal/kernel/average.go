package kernel

// Follow makes each mean (1-gain)·mean + gain·x: a running mean of x.
func Follow(mean, x []float32, gain float32) {
	followTiles.run(len(x), elementTile, followArgs{mean, x, gain})
}

type followArgs struct {
	mean, x []float32
	gain    float32
}

var followTiles = tiled(func(a *followArgs, lo, hi int) {
	use.scale(a.mean[lo:hi], 1-a.gain)
	use.addScaled(a.mean[lo:hi], a.x[lo:hi], a.gain)
})
