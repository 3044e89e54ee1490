package nn

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
	"gorgonia.org/gorgonia"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

func init() { gorgonia.Use(products{}) }

// products is the BLAS that gorgonia multiplies with. It is gonum's except for float32 products: gonum orders their
// sums by the number of rows and by the operands' addresses. Here a row's result depends on that row alone.
type products struct{ gonum.Implementation }

// Sgemm computes c = alpha·op(a)·op(b) + beta·c; op(a) is [m k], op(b) [k n].
func (products) Sgemm(tA, tB blas.Transpose, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int,
	beta float32, c []float32, ldc int) {
	if m == 0 || n == 0 {
		return
	}
	rescale(c, m, n, ldc, beta)
	if alpha == 0 || k == 0 {
		return
	}
	to := c
	if alpha != 1 || ldc != n {
		to = make([]float32, m*n)
	}
	kernel.Product{M: m, K: k, N: n, A: view(a, lda, tA), B: view(b, ldb, tB), C: to[:m*n]}.Multiply()
	if alpha == 1 && ldc == n {
		return
	}
	for i := range m {
		addScaled(c[i*ldc:i*ldc+n], to[i*n:(i+1)*n], alpha)
	}
}

// view returns op(a); consecutive rows of a have a distance of stride values.
func view(a []float32, stride int, t blas.Transpose) kernel.Matrix {
	m := kernel.Dense(a, stride)
	if t != blas.NoTrans {
		m = m.T()
	}
	return m
}

// rescale multiplies c by beta; a beta of 0 sets c to zero, NaN included.
func rescale(c []float32, m, n, stride int, beta float32) {
	for i := range m {
		row := c[i*stride : i*stride+n]
		if beta == 0 {
			clear(row)
			continue
		}
		for j := range row {
			row[j] *= beta
		}
	}
}

// Sgemv computes y = alpha·op(a)·x + beta·y, a [m n].
func (p products) Sgemv(t blas.Transpose, m, n int, alpha float32, a []float32, lda int, x []float32, incX int,
	beta float32, y []float32, incY int) {
	rows, columns, down, right := m, n, lda, 1
	if t != blas.NoTrans {
		rows, columns, down, right = n, m, 1, lda
	}
	for i := range rows {
		var sum float32
		for j := range columns {
			sum += a[i*down+j*right] * x[j*incX]
		}
		if beta == 0 {
			y[i*incY] = alpha * sum
		} else {
			y[i*incY] = alpha*sum + beta*y[i*incY]
		}
	}
}

// Sdot sums x·y in ascending order.
func (products) Sdot(n int, x []float32, incX int, y []float32, incY int) float32 {
	var sum float32
	for i := range n {
		sum += x[i*incX] * y[i*incY]
	}
	return sum
}
