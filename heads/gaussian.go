package heads

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/jenga-nlp/jenga/nn"
)

// gaussian is a normal distribution of rows of features, fitted and not learned.
type gaussian struct {
	mean  *nn.Param // [F]
	white *nn.Param // [F F] lower triangular: white·(x-mean) has the identity for covariance
}

// newGaussian makes the parameters, initially of mean 0 and variance 1.
func newGaussian(params nn.Params, features int) gaussian {
	g := gaussian{params.Zeros("mean", features), params.Zeros("white", features, features)}
	for f := range features {
		g.white.Data[f*features+f] = 1
	}
	g.mean.Frozen, g.white.Frozen = true, true
	return g
}

// distance is the Mahalanobis distance of x [F] from the mean.
func (g gaussian) distance(x []float32) float64 {
	sum := 0.0
	for f := range x {
		projected := 0.0
		for k, w := range g.white.Data[f*len(x) : f*len(x)+f+1] {
			projected += float64(w) * float64(x[k]-g.mean.Data[k])
		}
		sum += projected * projected
	}
	return math.Sqrt(sum)
}

// fit estimates mean and covariance from rows of features. Features are standardized, else shrinkage would treat those
// of small deviation as noise; a constant feature keeps its unit. If a feature is NaN, the distribution is unchanged.
func (g gaussian) fit(rows [][]float32) {
	n, p := len(rows), len(g.mean.Data)
	x := mat.NewDense(n, p, nil)
	mean, deviation := make([]float64, p), make([]float64, p)
	for f := range p {
		for _, row := range rows {
			mean[f] += float64(row[f]) / float64(n)
		}
		for _, row := range rows {
			deviation[f] += (float64(row[f]) - mean[f]) * (float64(row[f]) - mean[f]) / float64(n)
		}
		const rounding = 1e-6 // of a mean over float32s
		if deviation[f] = math.Sqrt(deviation[f]); !(deviation[f] > rounding*math.Abs(mean[f])) {
			deviation[f] = 1
		}
		for i, row := range rows {
			x.Set(i, f, (float64(row[f])-mean[f])/deviation[f])
		}
	}

	covariance, _ := ledoitWolf(x)
	var cholesky mat.Cholesky
	whole := cholesky.Factorize(covariance)
	for ridge := 1e-6; !whole && ridge < 1; ridge *= 10 { // features that depend on each other
		for f := range p {
			covariance.SetSym(f, f, covariance.At(f, f)+ridge)
		}
		whole = cholesky.Factorize(covariance)
	}
	if !whole {
		return
	}
	var lower, white mat.TriDense
	cholesky.LTo(&lower)
	if err := white.InverseTri(&lower); err != nil {
		if _, near := err.(mat.Condition); !near {
			panic("heads: a triangle that was factorized has no inverse: " + err.Error())
		}
	}
	for f := range p {
		g.mean.Data[f] = float32(mean[f])
		for k := range f + 1 {
			g.white.Data[f*p+k] = float32(white.At(f, k) / deviation[k])
		}
	}
}

// ledoitWolf returns the covariance of the rows of x [n p], whose mean is 0, shrunk towards the identity times the mean
// variance, and the shrinkage coefficient in [0, 1], which minimises the expected squared error (Ledoit & Wolf 2004, "A
// well-conditioned estimator for large-dimensional covariance matrices").
func ledoitWolf(x *mat.Dense) (covariance *mat.SymDense, shrinkage float64) {
	n, p := x.Dims()
	covariance = mat.NewSymDense(p, nil)
	covariance.SymOuterK(1/float64(n), x.T())
	variance := mat.Trace(covariance) / float64(p)

	squares, fourth := 0.0, 0.0 // ‖S‖², and the sum over rows of ‖x‖⁴
	for i := range p {
		for j := range p {
			squares += covariance.At(i, j) * covariance.At(i, j)
		}
	}
	for i := range n {
		norm := mat.Dot(x.RowView(i), x.RowView(i))
		fourth += norm * norm
	}
	noise := (fourth/float64(n) - squares) / float64(n)
	spread := squares - float64(p)*variance*variance // ‖S - variance·I‖²
	if noise = min(noise, spread); noise > 0 {
		shrinkage = noise / spread
	}

	covariance.ScaleSym(1-shrinkage, covariance)
	for i := range p {
		covariance.SetSym(i, i, covariance.At(i, i)+shrinkage*variance)
	}
	return covariance, shrinkage
}
