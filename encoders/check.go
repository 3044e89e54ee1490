package encoders

import (
	"fmt"

	"github.com/jenga-nlp/jenga/corpus"
)

// CheckTokens returns an error if a batch has token ids outside the vocabulary, or a text of more than most tokens (0:
// of any length).
func CheckTokens(tokens corpus.Tokens, vocabulary, most int) error {
	for b := range tokens.Rows.Texts() {
		lo, hi := tokens.Rows.Starts[b], tokens.Rows.Starts[b+1]
		if most > 0 && hi-lo > most {
			return fmt.Errorf("text %d of the batch has %d tokens; the encoder takes %d", b+1, hi-lo, most)
		}
		for _, id := range tokens.IDs[lo:hi] {
			if id < 0 || int(id) >= vocabulary {
				return fmt.Errorf("text %d of the batch: token id %d is outside the encoder's vocabulary of %d",
					b+1, id, vocabulary)
			}
		}
	}
	return nil
}
