package nn

import (
	"fmt"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
	"gorgonia.org/gorgonia"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

func init() { gorgonia.Use(products{}) }

// products is the BLAS that gorgonia multiplies with. It is gonum's except for float32 products: gonum orders their
// sums by the number of rows and by the operands' addresses. Here a row's result depends on that row alone. gorgonia
// writes all products to tensors of their own: its alpha is 1, its beta 0.
type products struct{ gonum.Implementation }

// Sgemm computes c = op(a)·op(b); op(a) is [m k], op(b) [k n].
func (products) Sgemm(tA, tB blas.Transpose, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int,
	beta float32, c []float32, ldc int) {
	if alpha != 1 || beta != 0 || ldc != n {
		panic(fmt.Sprintf("nn: gorgonia multiplies with alpha %v, beta %v and rows of %d in %d", alpha, beta, n, ldc))
	}
	clear(c[:m*n])
	if m*n*k > 0 {
		kernel.Product{M: m, K: k, N: n, A: view(a, lda, tA), B: view(b, ldb, tB), C: c[:m*n]}.Multiply()
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

// Sgemv computes y = op(a)·x, a [m n].
func (products) Sgemv(t blas.Transpose, m, n int, alpha float32, a []float32, lda int, x []float32, incX int,
	beta float32, y []float32, incY int) {
	if alpha != 1 || beta != 0 {
		panic(fmt.Sprintf("nn: gorgonia multiplies with alpha %v and beta %v", alpha, beta))
	}
	rows, columns, down, right := m, n, lda, 1
	if t != blas.NoTrans {
		rows, columns, down, right = n, m, 1, lda
	}
	for i := range rows {
		var sum float32
		for j := range columns {
			sum += a[i*down+j*right] * x[j*incX]
		}
		y[i*incY] = sum
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
