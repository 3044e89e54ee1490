package outputs

import (
	"math"
	"strconv"

	"github.com/jenga-nlp/jenga/corpus"
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
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 7, 64), 64)
	return &v
}

// Mark is a label that a prediction assigns to a text, or to a part of it, as a page or a report draws it.
type Mark struct {
	Label       string      // a label, a number or a token
	Probability float64     // of the label; NaN if there is none
	In          Part        // which text Span is in; Whole if there is no span
	Span        corpus.Span // bytes, End exclusive
}

// Part is the part of an example that a Mark is on.
type Part int

// Parts of an example.
const (
	Whole  Part = iota // the example, without a span
	InText             // a span of Example.Text
	InPair             // a span of Example.Pair
)

// noProbability is the probability of a Mark without one.
var noProbability = math.NaN()
