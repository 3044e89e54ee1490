package kernel

// Floats returns n zeros. Where the system offers large pages for memory that asks for them, many of them do: they are
// had and found again several times as fast as small ones.
func Floats(n int) []float32 {
	x := make([]float32, n)
	if n >= largeFloats {
		askForLargePages(x)
	}
	return x
}

const largeFloats = 1 << 20 // two large pages

// Clear writes zeros to x.
func Clear(x []float32) { clears.run(len(x), 1<<16, x) }

var clears = tiled(func(x *[]float32, lo, hi int) { clear((*x)[lo:hi]) })
