package parttest

import (
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/nn"
)

// encoderMaker makes the encoder under test.
type encoderMaker func(encoders.Env) (encoders.Encoder, error)

// encoder is an encoder under test.
type encoder struct {
	encoders.Encoder
	params []*nn.Param
}

// encoder makes an encoder whose parameters are far from their initial values, so that all of them have an effect.
func (m encoderMaker) encoder(t *testing.T, freeze string, dropout float64) encoder {
	t.Helper()
	params := nn.NewParams(3)
	made, err := m(encoders.Env{Vocabulary: vocabulary, MaxLength: longest, Dropout: dropout, DropoutSet: true,
		Freeze: freeze,
		Params: params.In("encoder")})
	if err != nil {
		t.Fatalf("freeze %q: %v", freeze, err)
	}
	e := encoder{made, params.All()}
	for i, w := range e.params {
		for j, x := range direction(uint64(i), len(w.Data)) {
			w.Data[j] += 0.3 * x
		}
		w.Changed()
	}
	return e
}

// trainable is the encoder as one that learns, nil if it does not.
func (e encoder) trainable() encoders.Trainable {
	t, _ := e.Encoder.(encoders.Trainable)
	return t
}

// tokensOf makes texts of the given lengths.
func tokensOf(lengths ...int) corpus.Tokens {
	tokens := corpus.Tokens{Rows: nn.Rows{Starts: []int{0}}}
	for b, length := range lengths {
		for i := range length {
			tokens.IDs = append(tokens.IDs, int32((7*b+3*i+i*i)%vocabulary))
			tokens.Rows.Segment = append(tokens.Rows.Segment, int8(2*i/length))
		}
		tokens.Rows.Starts = append(tokens.Rows.Starts, len(tokens.IDs))
		tokens.Rows.Example = append(tokens.Rows.Example, b)
	}
	return tokens
}

// ofTexts packs some texts of a batch, in the order they are named in.
func ofTexts(all corpus.Tokens, texts ...int) corpus.Tokens {
	tokens := corpus.Tokens{Rows: nn.Rows{Starts: []int{0}}}
	for b, text := range texts {
		lo, hi := all.Rows.Starts[text], all.Rows.Starts[text+1]
		tokens.IDs = append(tokens.IDs, all.IDs[lo:hi]...)
		tokens.Rows.Segment = append(tokens.Rows.Segment, all.Rows.Segment[lo:hi]...)
		tokens.Rows.Starts = append(tokens.Rows.Starts, len(tokens.IDs))
		tokens.Rows.Example = append(tokens.Rows.Example, b)
	}
	return tokens
}

// encode returns the states of the requested layers, and the pass that holds them.
func (e encoder) encode(t *testing.T, tokens corpus.Tokens, layers nn.LayerSet, training bool) (*nn.Pass, [][]float32) {
	t.Helper()
	p := nn.NewPass(5)
	p.Training = training
	states, err := e.Encode(p, tokens, layers)
	if err != nil {
		t.Fatal(err)
	}
	return p, states
}

// upstream are gradients that differ for all states.
func upstream(states [][]float32) [][]float32 {
	at := make([][]float32, len(states))
	for l, x := range states {
		at[l] = direction(uint64(50+l), len(x))
	}
	return at
}

// gradients returns those of Σ upstream·states in training, and the states.
func (e encoder) gradients(t *testing.T, tokens corpus.Tokens, layers nn.LayerSet) (nn.Gradients, [][]float32) {
	t.Helper()
	p, states := e.encode(t, tokens, layers, true)
	into := nn.NewGradients(e.params)
	e.trainable().Backward(p, upstream(states), into)
	return into, states
}
