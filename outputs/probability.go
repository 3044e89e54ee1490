package outputs

import (
	"math"
	"strconv"

	"github.com/jenga-nlp/jenga/internal/floats"
)

// Probability is a probability, written with four digits.
type Probability float64

// MarshalJSON writes a probability as 0.9812; NaN as null.
func (p Probability) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(p)) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, math.Round(float64(p)*1e4)/1e4, 'f', -1, 64), nil
}

// Finite returns v rounded to seven digits, the precision of float32; nil if it is not finite, which JSON cannot hold.
func Finite(v float64) *float64 {
	if !floats.IsFinite(v) {
		return nil
	}
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 7, 64), 64)
	return &v
}

// Part is a text of an example.
type Part int

// Parts of an example.
const (
	InText Part = iota // Example.Text
	InPair             // Example.Pair
)
