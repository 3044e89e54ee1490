package heads

import (
	"fmt"

	"github.com/jenga-nlp/jenga/nn"
)

// pooling makes the rows that a head computes with from hidden states. A head that reads no other states embeds it, and
// so is a RowReader.
type pooling struct {
	pool  func(seen nn.Hidden) *nn.Node // [B D] of texts or [W D] of words
	reads func(rows nn.Rows) []int      // the rows of the states that pool reads; nil: all
}

// Reads implements RowReader.
func (p pooling) Reads(rows nn.Rows) []int {
	if p.reads == nil {
		return nil
	}
	return p.reads(rows)
}

// words takes the state of each word's first piece, [W D].
var words = pooling{
	pool:  func(seen nn.Hidden) *nn.Node { return nn.GatherRows(seen.States, seen.Rows.Words) },
	reads: func(rows nn.Rows) []int { return rows.Words },
}

// newPool makes the pooling of a text's tokens into one vector: cls, mean, max or attention.
func newPool(pool string, env Env) pooling {
	switch pool {
	case "cls":
		return pooling{pool: nn.ClsPool, reads: func(rows nn.Rows) []int { return rows.Starts[:rows.Texts()] }}
	case "mean":
		return pooling{pool: nn.MeanPool}
	case "max":
		return pooling{pool: nn.MaxPool}
	case "attention":
		return pooling{pool: nn.NewAttentionPool(env.Params.In("pool"), env.Width).Apply}
	}
	panic(fmt.Sprintf("heads: unexpected pool %q", pool))
}
