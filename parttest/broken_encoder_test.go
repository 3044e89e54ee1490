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
	spoil func(sound bilstm) encoders.Encoder
}{
	"boasting":   {"its_description", func(e bilstm) encoders.Encoder { return boasting{e} }},
	"shallow":    {"it_returns_the_states", func(e bilstm) encoders.Encoder { return shallow{e} }},
	"sociable":   {"states_do_not_depend_on_the_rest", func(e bilstm) encoders.Encoder { return sociableEncoder{e} }},
	"trusting":   {"tokens_without_an_embedding", func(e bilstm) encoders.Encoder { return trusting{e} }},
	"skipping":   {"states_that_are_read", func(e bilstm) encoders.Encoder { return skipping{e} }},
	"halving":    {"gradients_agree", func(e bilstm) encoders.Encoder { return halving{e} }},
	"silent":     {"it_reports_final_gradients", func(e bilstm) encoders.Encoder { return silent{e} }},
	"twofold":    {"it_reports_final_gradients", func(e bilstm) encoders.Encoder { return twofold{e} }},
	"hasty":      {"it_reports_final_gradients", func(e bilstm) encoders.Encoder { return hasty{e} }},
	"wavering":   {"it_reports_final_gradients", func(e bilstm) encoders.Encoder { return wavering{e} }},
	"restless":   {"frozen_layers", func(e bilstm) encoders.Encoder { return restless{e} }},
	"impatient":  {"layers_that_learn_later", func(e bilstm) encoders.Encoder { return impatient{e} }},
	"unlisted":   {"layers_that_learn_later", func(e bilstm) encoders.Encoder { return unlisted{e} }},
	"numb":       {"gradients_at_its_word", func(e bilstm) encoders.Encoder { return numb{e} }},
	"weightless": {"its_memory_estimate", func(e bilstm) encoders.Encoder { return weightless{e} }},
	"forgetful":  {"saved_and_opened", nil}, // it is opened with other weights
}

// bilstm is the sound encoder below them.
type bilstm interface {
	encoders.Trainable
	encoders.Layered
	encoders.Saver
	encoders.MemoryEstimator
	encoders.Attributable
}

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
			return b.spoil(sound.(bilstm)), nil
		})
	}
}

// boasting names a parameter as its word embeddings that is none of its own.
type boasting struct{ bilstm }

func (e boasting) Describe() encoders.Description {
	d := e.bilstm.Describe()
	d.WordEmbeddings = nn.NewParams(1).Table("words", 1, 20, d.Width)
	return d
}

// shallow gives the last layer alone, whatever is asked for.
type shallow struct{ bilstm }

func (e shallow) Encode(p *nn.Pass, tokens corpus.Tokens, _ nn.LayerSet) ([][]float32, error) {
	return e.bilstm.Encode(p, tokens, nn.LastLayer)
}

// sociableEncoder adds to each text's states the first of the batch.
type sociableEncoder struct{ bilstm }

func (e sociableEncoder) Encode(p *nn.Pass, tokens corpus.Tokens, layers nn.LayerSet) ([][]float32, error) {
	states, err := e.bilstm.Encode(p, tokens, layers)
	for _, x := range states {
		first := x[0]
		for i := range x {
			x[i] += first
		}
	}
	return states, err
}

// trusting reads any token outside the vocabulary as the first one.
type trusting struct{ bilstm }

func (e trusting) Encode(p *nn.Pass, tokens corpus.Tokens, layers nn.LayerSet) ([][]float32, error) {
	tokens.IDs = slices.Clone(tokens.IDs)
	for i, id := range tokens.IDs {
		if id < 0 || id >= 20 {
			tokens.IDs[i] = 0
		}
	}
	return e.bilstm.Encode(p, tokens, layers)
}

// skipping reads no token whose state is not read.
type skipping struct{ bilstm }

func (e skipping) Encode(p *nn.Pass, tokens corpus.Tokens, layers nn.LayerSet) ([][]float32, error) {
	if p.Read != nil {
		read := p.Read
		tokens.IDs = slices.Clone(tokens.IDs)
		for i := range tokens.IDs {
			if !slices.Contains(read, i) {
				tokens.IDs[i] = 0
			}
		}
	}
	return e.bilstm.Encode(p, tokens, layers)
}

// halving gives half of each gradient.
type halving struct{ bilstm }

func (e halving) Backward(p *nn.Pass, at [][]float32, into nn.Gradients) {
	e.bilstm.Backward(p, halves(at), into)
}

// numb halves the gradients at the word embeddings.
type numb struct{ bilstm }

func (e numb) BackwardWords(p *nn.Pass, at [][]float32) []float32 {
	return e.bilstm.BackwardWords(p, halves(at))
}

// silent reports no parameter.
type silent struct{ bilstm }

func (e silent) Backward(p *nn.Pass, at [][]float32, into nn.Gradients) {
	e.bilstm.Backward(p, at, into.Observed(nil))
}

// twofold reports each parameter twice.
type twofold struct{ bilstm }

func (e twofold) Backward(p *nn.Pass, at [][]float32, into nn.Gradients) {
	e.bilstm.Backward(p, at, into.Observed(func(w *nn.Param) { into.Ready(w, w) }))
}

// hasty reports all parameters when half of each gradient is added.
type hasty struct{ bilstm }

func (e hasty) Backward(p *nn.Pass, at [][]float32, into nn.Gradients) {
	half := halves(at)
	e.bilstm.Backward(p, half, into)
	e.bilstm.Backward(p, half, into.Observed(nil))
}

// wavering reports parameters in an order that depends on the number of tokens.
type wavering struct{ bilstm }

func (e wavering) Backward(p *nn.Pass, at [][]float32, into nn.Gradients) {
	var order []*nn.Param
	e.bilstm.Backward(p, at, into.Observed(func(w *nn.Param) { order = append(order, w) }))
	if tokens := len(at[0]) / e.Describe().Width; tokens%3 == 0 {
		slices.Reverse(order)
	}
	into.Ready(order...)
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
type restless struct{ bilstm }

func (e restless) Encode(p *nn.Pass, tokens corpus.Tokens, layers nn.LayerSet) ([][]float32, error) {
	states, err := e.bilstm.Encode(p, tokens, layers)
	if p.Training {
		for _, x := range states {
			x[0] = 0
		}
	}
	return states, err
}

// impatient does not know layers that learn later: it drops out in them.
type impatient struct{ bilstm }

func (e impatient) Encode(p *nn.Pass, tokens corpus.Tokens, layers nn.LayerSet) ([][]float32, error) {
	for _, level := range e.Levels() {
		for _, w := range level {
			defer func(was bool) { w.Later = was }(w.Later)
			w.Later = false
		}
	}
	return e.bilstm.Encode(p, tokens, layers)
}

// unlisted leaves out its embeddings.
type unlisted struct{ bilstm }

func (e unlisted) Levels() [][]*nn.Param { return e.bilstm.Levels()[1:] }

// weightless takes no memory, it says.
type weightless struct{ bilstm }

func (weightless) Memory(encoders.Workload) int64 { return 0 }
