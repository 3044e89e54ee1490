package kernel

// Follow makes each mean (1-gain)·mean + gain·x: a running mean of x.
func Follow(mean, x []float32, gain float32) {
	followTiles.run(len(x), elementTile, followArgs{mean, x, gain})
}

type followArgs struct {
	mean, x []float32
	gain    float32
}

var followTiles = tiled(func(a *followArgs, lo, hi int) { follow(a.mean[lo:hi], a.x[lo:hi], a.gain) })

func follow(mean, x []float32, gain float32) {
	use.scale(mean, 1-gain)
	use.addScaled(mean, x, gain)
}

// FollowRows is Follow for those rows of x [V D] that are active [V].
func FollowRows(mean, x []float32, d int, active []bool, gain float32) {
	Parallel(len(active), max(1, elementTile/d), func(lo, hi int) {
		for r := lo; r < hi; r++ {
			if active[r] {
				follow(mean[r*d:(r+1)*d], x[r*d:(r+1)*d], gain)
			}
		}
	})
}
