package predict

import (
	"bufio"
	"bytes"
	"io"
	"math"
	"strconv"
)

// Explanation is what the model computed for one text on the way to its predictions.
type Explanation struct {
	Prediction Prediction `json:"prediction"`
	// Readings are the ways in which the text was encoded; tasks that read the same tokens have one together.
	Readings []Reading `json:"readings"`
	// FusionFigures are the fusion's own by task, whatever the text is: those of mix are the weights of the layers.
	FusionFigures map[string][]float32 `json:"fusion_figures,omitempty"`
	// Notes say what the explanation lacks, and why.
	Notes []string `json:"notes,omitempty"`
}

// Reading is one encoding of a text, for the tasks that read it so.
type Reading struct {
	Tasks []string `json:"tasks"`
	// Windows has one, unless the text is long; a pair whose texts are encoded separately has one for each.
	Windows []Window `json:"windows"`
}

// Window is a part of a text that the encoder read at once, of T tokens.
type Window struct {
	Tokens []Token `json:"tokens"`
	// Attention is nil if it was not asked for, or the encoder has none.
	Attention AttentionWeights `json:"attention,omitempty"`
	// Fusion has the weight of each token [T], by task; nil for a fusion without weights.
	Fusion map[string][]float32 `json:"fusion,omitempty"`
	// Lenses are those of focus heads, by task and head.
	Lenses map[string]map[string]Lens `json:"lenses,omitempty"`
	// Answers are the predicted answers and what each token adds to them, by task and head.
	Answers map[string]map[string][]Attribution `json:"answers,omitempty"`
}

// AttentionWeights has the weight of token j (the last index) for token i, [layers][heads][T][T]. They are most of an
// explanation, and their JSON has six decimals.
type AttentionWeights [][][][]float32

// MarshalJSON returns what WriteJSON writes.
func (a AttentionWeights) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	err := a.WriteJSON(&b)
	return b.Bytes(), err
}

// WriteJSON writes the weights, which are finite, as JSON with six decimals, a row at a time.
func (a AttentionWeights) WriteJSON(w io.Writer) error {
	out := bufio.NewWriterSize(w, 1<<16)
	var row []byte
	list := func(n int, each func(i int)) {
		out.WriteByte('[')
		for i := range n {
			if i > 0 {
				out.WriteByte(',')
			}
			each(i)
		}
		out.WriteByte(']')
	}
	list(len(a), func(layer int) {
		list(len(a[layer]), func(head int) {
			list(len(a[layer][head]), func(i int) {
				row = append(row[:0], '[')
				for j, v := range a[layer][head][i] {
					if j > 0 {
						row = append(row, ',')
					}
					row = strconv.AppendFloat(row, math.Round(1e6*float64(v))/1e6, 'f', -1, 64)
				}
				out.Write(append(row, ']'))
			})
		})
	})
	return out.Flush() // with the first error of a write
}

// Token is a token as the model reads it.
type Token struct {
	Token string `json:"token"` // of the vocabulary
	In    string `json:"in"`    // special, text or pair
	// Start and End are the token's span of the text or pair, in the unit that was asked for; 0 of special tokens.
	Start int `json:"start"`
	End   int `json:"end"`
}

// Lens is where each token's Gaussian lens is and how wide, both in lengths of the window: position 0 is its first
// token, 1 its last.
type Lens struct {
	Centre   [][]float32 `json:"centre"`   // [lenses][T]
	Aperture [][]float32 `json:"aperture"` // [lenses][T]
}

// Attribution says how much each token adds to the logit of an answer.
type Attribution struct {
	Label string  `json:"label"`          // the answer: a label, a number, the text of a span
	Word  *int    `json:"word,omitempty"` // the word that it is about; nil: the text
	Logit float64 `json:"logit"`          // of a span the sum of those of its start and its end
	// GradientInput is the product of the logit's gradient and the token's word embedding, summed over its features,
	// [T]; nil if it was not asked for, or no gradient reaches the encoder.
	GradientInput []float64 `json:"gradient_input,omitempty"`
	// IntegratedGradients are those from Baseline, the logit with [PAD] in place of all but special tokens, [T]
	// (Sundararajan et al. 2017, equation 1); nil if they were not asked for. Over all windows that the answer is in,
	// they add up to Logit - Baseline.
	IntegratedGradients []float64 `json:"integrated_gradients,omitempty"`
	Baseline            *float64  `json:"baseline,omitempty"`
}
