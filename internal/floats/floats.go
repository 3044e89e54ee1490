// Package floats has what many packages ask of floating-point numbers.
package floats

import (
	"math"
	"slices"
)

// IsFinite reports whether a number is neither NaN nor infinite.
func IsFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// NotFinite returns the index of the first number that is not finite; -1 if all are.
func NotFinite[F float32 | float64](x []F) int {
	return slices.IndexFunc(x, func(v F) bool { return !IsFinite(float64(v)) })
}

// Largest returns the index of the largest value, the first of equals; 0 if all are NaN, or there is none.
func Largest(x []float32) int {
	best := 0
	for i, v := range x {
		if v > x[best] || v == v && x[best] != x[best] {
			best = i
		}
	}
	return best
}
