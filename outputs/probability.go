package outputs

import (
	"math"
	"strconv"

	"github.com/jenga-nlp/jenga/corpus"
)

// Probability is a probability, written with four digits.
type Probability float64

// MarshalJSON writes a probability as 0.9812; one that is no number as null.
func (p Probability) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(p)) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, math.Round(float64(p)*1e4)/1e4, 'f', -1, 64), nil
}

// Finite returns v with seven digits, as float32 has them, for JSON, which has no infinite numbers: nil.
func Finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 7, 64), 64)
	return &v
}

// Mark is something that a prediction says of a text, or of a part of one, as a page or a report draws it.
type Mark struct {
	Label       string      // a label, or what else is said: a number, a token
	Probability float64     // of it; NaN where there is none
	In          Part        // which text Span is of; the whole example where there is no span
	Span        corpus.Span // bytes, End exclusive
}

// Part is what a Mark is on.
type Part int

// Parts of an example.
const (
	Whole  Part = iota // the example, without a span
	InText             // a span of Example.Text
	InPair             // a span of Example.Pair
)

// noProbability is that of a Mark that has none.
var noProbability = math.NaN()
