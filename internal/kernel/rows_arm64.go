package kernel

func init() {
	neon.addScaled, neon.scale, neon.addRows = addScaledNEON, scaleNEON, addRowsNEON
	neon.dot, neon.softmaxGradient = dotNEON, softmaxGradientNEON
	neon.sumSquares = sumSquaresNEON
}

// addScaledNEON adds by·from to to, which is not shorter.
//
//go:noescape
func addScaledNEON(to, from []float32, by float32)

// scaleNEON multiplies x by a number.
//
//go:noescape
func scaleNEON(x []float32, by float32)

// addRowsNEON adds the rows of x, each as long as sum, to sum, first to last.
//
//go:noescape
func addRowsNEON(sum, x []float32)

// dotNEON returns Σ x·y; y is not shorter.
//
//go:noescape
func dotNEON(x, y []float32) float32

// softmaxGradientNEON replaces d by y·(d − mean); y is not shorter.
//
//go:noescape
func softmaxGradientNEON(d, y []float32, mean float32)

// sumSquaresNEON returns Σx².
//
//go:noescape
func sumSquaresNEON(x []float32) float64
