package parttest_test

import (
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/nn"
)

// brokenEncoders lists encoders likewise.
var brokenEncoders = map[string]struct {
	rule  string
	spoil func(*spoiled)
}{
	"boasting":   {"its_description", boasting},
	"shallow":    {"it_returns_the_states", shallow},
	"sociable":   {"states_do_not_depend_on_the_rest", sociableEncoder},
	"trusting":   {"tokens_without_an_embedding", trusting},
	"skipping":   {"states_that_are_read", skipping},
	"halving":    {"gradients_agree", halving},
	"silent":     {"it_reports_final_gradients", silent},
	"twofold":    {"it_reports_final_gradients", twofold},
	"hasty":      {"it_reports_final_gradients", hasty},
	"wavering":   {"it_reports_final_gradients", wavering},
	"restless":   {"frozen_layers", restless},
	"impatient":  {"layers_that_learn_later", impatient},
	"unlisted":   {"layers_that_learn_later", unlisted},
	"numb":       {"gradients_at_its_word", numb},
	"weightless": {"its_memory_estimate", weightless},
	"forgetful":  {"saved_and_opened", nil}, // it is opened with other weights
}

// spoiled is a sound encoder with another Encode or description.
type spoiled struct {
	sound  encoders.Encoder
	encode encodeFunc
	encoders.Description
}

type encodeFunc func(p *nn.Pass, tokens corpus.Tokens, mode encoders.Mode) ([][]float32, error)

func (e *spoiled) Encode(p *nn.Pass, tokens corpus.Tokens, mode encoders.Mode) ([][]float32, error) {
	return e.encode(p, tokens, mode)
}

func (e *spoiled) Describe() encoders.Description { return e.Description }

func init() {
	for name, b := range brokenEncoders {
		encoders.Register(name, struct{}{}, func(_ struct{}, env encoders.Env) (encoders.Encoder, error) {
			if b.spoil == nil {
				env.Model = ""
			}
			sound, err := encoders.NewBiLSTM(encoders.BiLSTMOptions{Embedding: 6, Layers: 2, Hidden: 5}, env)
			if err != nil || b.spoil == nil {
				return sound, err
			}
			e := &spoiled{sound, sound.Encode, sound.Describe()}
			b.spoil(e)
			return e, nil
		})
	}
}

// boasting names a parameter as its word embeddings that is none of its own.
func boasting(e *spoiled) { e.WordEmbeddings = nn.NewParams(1).Table("words", 1, 20, e.Width) }

// shallow gives the last layer alone, whatever is asked for.
func shallow(e *spoiled) {
	e.encode = func(p *nn.Pass, tokens corpus.Tokens, mode encoders.Mode) ([][]float32, error) {
		mode.Layers = nn.LastLayer
		return e.sound.Encode(p, tokens, mode)
	}
}

// sociableEncoder adds to each text's states the first of the batch.
func sociableEncoder(e *spoiled) {
	e.encode = func(p *nn.Pass, tokens corpus.Tokens, mode encoders.Mode) ([][]float32, error) {
		states, err := e.sound.Encode(p, tokens, mode)
		for _, x := range states {
			first := x[0]
			for i := range x {
				x[i] += first
			}
		}
		return states, err
	}
}

// trusting reads any token outside the vocabulary as the first one.
func trusting(e *spoiled) {
	e.encode = func(p *nn.Pass, tokens corpus.Tokens, mode encoders.Mode) ([][]float32, error) {
		tokens.IDs = slices.Clone(tokens.IDs)
		for i, id := range tokens.IDs {
			if id < 0 || id >= 20 {
				tokens.IDs[i] = 0
			}
		}
		return e.sound.Encode(p, tokens, mode)
	}
}

// skipping reads no token whose state is not read.
func skipping(e *spoiled) {
	e.encode = func(p *nn.Pass, tokens corpus.Tokens, mode encoders.Mode) ([][]float32, error) {
		if mode.Read != nil {
			tokens.IDs = slices.Clone(tokens.IDs)
			for i := range tokens.IDs {
				if !slices.Contains(mode.Read, i) {
					tokens.IDs[i] = 0
				}
			}
		}
		return e.sound.Encode(p, tokens, mode)
	}
}

// halving gives half of each gradient.
func halving(e *spoiled) {
	sound := e.Backward
	e.Backward = func(p *nn.Pass, at [][]float32, into nn.Gradients) { sound(p, halves(at), into) }
}

// numb halves the gradients at the word embeddings.
func numb(e *spoiled) {
	words, sound := *e.Words, e.Words.Backward
	words.Backward = func(p *nn.Pass, at [][]float32) []float32 { return sound(p, halves(at)) }
	e.Words = &words
}

// silent reports no parameter.
func silent(e *spoiled) {
	sound := e.Backward
	e.Backward = func(p *nn.Pass, at [][]float32, into nn.Gradients) { sound(p, at, into.Observed(nil)) }
}

// twofold reports each parameter twice.
func twofold(e *spoiled) {
	sound := e.Backward
	e.Backward = func(p *nn.Pass, at [][]float32, into nn.Gradients) {
		sound(p, at, into.Observed(func(w *nn.Param) { into.Ready(w, w) }))
	}
}

// hasty reports all parameters when half of each gradient is added.
func hasty(e *spoiled) {
	sound := e.Backward
	e.Backward = func(p *nn.Pass, at [][]float32, into nn.Gradients) {
		half := halves(at)
		sound(p, half, into)
		sound(p, half, into.Observed(nil))
	}
}

// wavering reports parameters in an order that depends on the number of tokens.
func wavering(e *spoiled) {
	sound := e.Backward
	e.Backward = func(p *nn.Pass, at [][]float32, into nn.Gradients) {
		var order []*nn.Param
		sound(p, at, into.Observed(func(w *nn.Param) { order = append(order, w) }))
		if tokens := len(at[0]) / e.Width; tokens%3 == 0 {
			slices.Reverse(order)
		}
		into.Ready(order...)
	}
}

// halves returns half of each number.
func halves(at [][]float32) [][]float32 {
	half := make([][]float32, len(at))
	for l, d := range at {
		for _, v := range d {
			half[l] = append(half[l], v/2)
		}
	}
	return half
}

// restless drops states in training, frozen or not.
func restless(e *spoiled) {
	e.encode = func(p *nn.Pass, tokens corpus.Tokens, mode encoders.Mode) ([][]float32, error) {
		states, err := e.sound.Encode(p, tokens, mode)
		if p.Training {
			for _, x := range states {
				x[0] = 0
			}
		}
		return states, err
	}
}

// impatient does not know layers that learn later: it drops out in them.
func impatient(e *spoiled) {
	e.encode = func(p *nn.Pass, tokens corpus.Tokens, mode encoders.Mode) ([][]float32, error) {
		for _, level := range e.Levels {
			for _, w := range level {
				defer func(was bool) { w.Later = was }(w.Later)
				w.Later = false
			}
		}
		return e.sound.Encode(p, tokens, mode)
	}
}

// unlisted leaves out its embeddings.
func unlisted(e *spoiled) { e.Levels = e.Levels[1:] }

// weightless takes no memory, it says.
func weightless(e *spoiled) { e.Memory = func(encoders.Workload) int64 { return 0 } }
