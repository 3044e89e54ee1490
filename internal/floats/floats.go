// Package floats has what many packages ask of floating-point numbers.
package floats

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// IsDecimal reports whether a text has nothing but what numbers in decimal notation have, as -1.5e3. strconv.ParseFloat
// reads 0x1p4, 1_000, Inf and NaN too.
func IsDecimal(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return !strings.ContainsRune("+-.0123456789eE", r) })
}

// Parse returns the finite number that a text has in decimal notation.
func Parse(text string) (v float64, ok bool) {
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil && IsDecimal(text)
}

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
