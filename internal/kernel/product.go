// Package kernel is float32 arithmetic: products, attention, norms, activations, the optimizer's update. Here is the
// plain version, which reads like its formulas. Every sum runs in an order that depends neither on the number of
// goroutines nor on the number of rows: the same row gives the same bits alone and in any batch.
package kernel

import "gonum.org/v1/gonum/blas/gonum"

var blas gonum.Implementation

// MatMul adds a·b to c: c [m n], a [m k], b [k n]. Each element sums over k in ascending order.
func MatMul(c, a, b []float32, m, k, n int) {
	Parallel(m, 8, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			for l := range k {
				blas.Saxpy(n, a[i*k+l], b[l*n:], 1, c[i*n:], 1)
			}
		}
	})
}

// MatMulBT adds a·bᵀ to c: c [m n], a [m k], b [n k].
func MatMulBT(c, a, b []float32, m, k, n int) {
	t := make([]float32, k*n)
	Transpose(t, b, n, k)
	MatMul(c, a, t, m, k, n)
}

// MatMulAT adds aᵀ·b to c: c [m n], a [k m], b [k n]. Each element sums over k in ascending order.
func MatMulAT(c, a, b []float32, m, k, n int) {
	t := make([]float32, m*k)
	Transpose(t, a, k, m)
	MatMul(c, t, b, m, k, n)
}

// Transpose writes b [m n] to a as [n m].
func Transpose(a, b []float32, m, n int) {
	for i := range m {
		for j := range n {
			a[j*m+i] = b[i*n+j]
		}
	}
}
