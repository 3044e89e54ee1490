package nn

// Rows describes the rows of packed states [T D], which are the tokens of B texts, one text after the other.
type Rows struct {
	Starts    []int  // [B+1] text b is rows Starts[b]:Starts[b+1]
	Words     []int  // row of the first piece of each word that has one, in the order of texts
	WordIndex []int  // same length: that word's number in its example; the prediction of words without a row is "O"
	WordCount []int  // [B] number of words of the text's example, those without a row included
	Segment   []int8 // [T] 1 in the second text of a pair
	Special   []bool // [T] the token is a special token; nil: the first and the last of each text are
	Types     []int8 // [T] token types, which encoders read; nil: as Segment
	// [B] the text's example; an example has several texts where it is long, or a pair that is encoded separately
	Example []int
	Second  []bool // [B] the text is the second of a pair that is encoded separately
	Hidden  []int  // rows of the hidden tokens that are predicted, ascending
}

// Texts returns B.
func (r Rows) Texts() int { return len(r.Starts) - 1 }

// Tokens returns T.
func (r Rows) Tokens() int { return r.Starts[len(r.Starts)-1] }

// TokenTypes returns the token types [T] that an encoder reads.
func (r Rows) TokenTypes() []int8 {
	if r.Types != nil {
		return r.Types
	}
	return r.Segment
}

// Hidden is the hidden states of a batch, which fusions and heads read.
type Hidden struct {
	States *Node   // [T D]
	Layers []*Node // [T D] each, first to last; only when the fusion requires them
	Rows   Rows
}

// LayerSet selects the layers whose states an encoder returns.
type LayerSet int

const (
	LastLayer LayerSet = iota // the last layer's alone
	AllLayers                 // all that the encoder has, first to last
)
