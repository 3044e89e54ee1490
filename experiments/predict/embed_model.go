package predict

import (
	"context"
	"fmt"

	"github.com/jenga-nlp/jenga/corpus"
)

// Embedding is a vector for a text.
type Embedding struct {
	Vector    []float32 `json:"vector"` // [D]
	Tokens    int       `json:"tokens"` // that were read, special ones included
	Truncated int       `json:"truncated"`
}

// stateReading is an example with its tokens, and what is made of their states.
type stateReading struct {
	*corpus.Example
	pool      Pool
	truncated int
}

// Embed returns a vector for each example, from the encoder's last states. Texts are truncated at the encoder's limit.
// One that is empty or not UTF-8 is an *ExampleError, one that is too long a *LengthError.
func (m *Model) Embed(ctx context.Context, pool Pool, examples ...*corpus.Example) ([]Embedding, error) {
	if err := pool.Check(); err != nil {
		return nil, err
	}
	all := make([]stateReading, len(examples))
	for i, e := range examples {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		own := cloneExample(e)
		if own.Place.String() == "" {
			own.Place.File = fmt.Sprintf("text %d of %d", i+1, len(examples))
		}
		if err := checkTexts(own); err != nil {
			return nil, &ExampleError{err}
		}
		all[i] = stateReading{own, pool, m.embedder.read(own)}
		if err := m.checkLength(own, own.Tokens()); err != nil {
			return nil, err
		}
	}
	embeddings, err := m.states.Do(ctx, all...)
	return embeddings, queueError(err)
}

// embedAll makes the embeddings of a batch.
func (m *Model) embedAll(all []stateReading) ([]Embedding, error) {
	examples := make([]*corpus.Example, len(all))
	for i, r := range all {
		examples[i] = r.Example
	}
	states, err := m.embedder.statesOf(examples)
	if err != nil {
		return nil, err
	}
	embeddings := make([]Embedding, len(all))
	for i, r := range all {
		embeddings[i] = Embedding{r.pool.Of(states[i]), r.Tokens(), r.truncated}
	}
	return embeddings, nil
}
