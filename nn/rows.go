package nn

// Rows tells what the rows of packed states [T D] belong to: the tokens of B texts stand one after the other.
type Rows struct {
	Starts    []int  // [B+1] text b is rows Starts[b]:Starts[b+1]
	Words     []int  // row of the first piece of each word that has one, text after text
	WordIndex []int  // same length: that word's number in its example; words without a row are judged "O"
	WordCount []int  // [B] how many words the text's example has, those without a row too; 0 where it has no words
	Segment   []int8 // [T] 1 in the second text of a pair
	Special   []bool // [T] the token stands for no part of a text; nil: the first and the last of each text do
	Types     []int8 // [T] token types, which encoders are told; nil: as Segment
	Example   []int  // [B] the example a text belongs to; several where it is long, or a pair is encoded apart
	Second    []bool // [B] the text is the second of a pair that is encoded apart
	Hidden    []int  // rows of the tokens that are to be guessed, rising
}

// Texts returns B.
func (r Rows) Texts() int { return len(r.Starts) - 1 }

// Tokens returns T.
func (r Rows) Tokens() int { return r.Starts[len(r.Starts)-1] }

// TokenTypes returns the token types [T] that an encoder is told.
func (r Rows) TokenTypes() []int8 {
	if r.Types != nil {
		return r.Types
	}
	return r.Segment
}

// Hidden is what fusions and heads see of a batch.
type Hidden struct {
	States *Node   // [T D]
	Layers []*Node // [T D] each, first to last; only when a fusion asked for them
	Rows   Rows
}

// Wanted says which layers' states an encoder is to return.
type Wanted int

const (
	LastLayer Wanted = iota // the last layer's alone
	AllLayers               // all that the encoder gives, first to last
)
