package heads

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

func init() {
	Register("mlm", MLMOptions{Fraction: 0.15, Masked: 0.8, Random: 0.1, Guesses: 5}, newMLM, outputs.HiddenTokens)
	DefaultFor("mlm", outputs.HiddenTokens)
}

// MLMOptions are the keys that may stand beside `type: mlm`.
type MLMOptions struct {
	Fraction float64 `yaml:"share" range:"(0,1]" doc:"fraction of a text's tokens to predict, at least one token"`
	Masked   float64 `yaml:"masked" range:"[0,1]" doc:"fraction of them replaced by the mask token"`
	Random   float64 `yaml:"random" range:"[0,1]" doc:"fraction of them replaced by random tokens; the rest unchanged"`
	Guesses  int     `yaml:"guesses" range:"[1,1000]" doc:"likeliest tokens a prediction lists for each hidden one"`
}

func (MLMOptions) Traits() Traits { return Traits{Words: true} }

// mlm predicts hidden tokens (masked language modelling, Devlin et al. 2019, section 3.1). Its output layer is tied to
// the encoder's word embeddings E:
//
//	logits = LayerNorm(gelu(W·h + b))·Eᵀ + c
//
// where gelu has the error function and LayerNorm's ε is 1e-12. The hidden tokens are drawn anew for each training
// batch; in an evaluation they depend on the number of the example alone. The loss is the mean of -log softmax(logits)
// of the hidden tokens. Predictions are for the mask tokens of a text; for one in several windows that of the window
// where it is furthest from the ends, the first of equals.
type mlm struct {
	MLMOptions
	mask      int32
	transform *nn.Linear
	norm      *nn.LayerNorm
	output    *nn.Linear
}

func newMLM(o MLMOptions, env Env) (Head, error) {
	switch {
	case env.Mask < 0:
		return nil, errors.New("the tokenizer has no mask token; base models trained by masked language modelling " +
			"have one")
	case env.Words == nil:
		return nil, fmt.Errorf("the output layer needs word embeddings of the hidden states' width, %d, and the "+
			"encoder has none; a transformer has them, unless embedding_size in its config.json differs from "+
			"hidden_size, as in a small ELECTRA", env.Width)
	case o.Masked+o.Random > 1:
		return nil, fmt.Errorf("masked is %v and random %v; want at most 1 together", o.Masked, o.Random)
	case o.Masked+o.Random == 0:
		return nil, errors.New("masked and random are 0: no token would be hidden")
	}
	return &mlm{
		MLMOptions: o, mask: env.Mask,
		transform: nn.NewLinear(env.Params.In("transform"), env.Width, env.Width),
		norm:      nn.NewLayerNorm(env.Params.In("norm"), env.Width, 1e-12),
		output:    &nn.Linear{Weight: env.Words, Bias: env.Params.Zeros("bias", env.Words.Shape[0]), Tied: true},
	}, nil
}

func (h *mlm) Describe() Description {
	return Description{
		Output: outputs.HiddenTokens, Prepare: h.prepare,
		Reads: func(rows nn.Rows) []int { return rows.Hidden },
	}
}

func (h *mlm) prepare(batch *corpus.Batch, source func(example int) rand.Source) *corpus.Batch {
	changed := *batch
	rows := &changed.Tokens.Rows
	rows.Hidden = nil
	if source == nil {
		for row, id := range batch.Tokens.IDs {
			if id == h.mask {
				rows.Hidden = append(rows.Hidden, row)
			}
		}
		return &changed
	}
	changed.Examples = slices.Clone(batch.Examples)
	changed.Tokens.IDs = slices.Clone(batch.Tokens.IDs)
	for b, e := range batch.Examples {
		prepared := *e
		prepared.Targets = slices.Clone(e.Targets)
		changed.Examples[b] = &prepared
		if len(e.Targets) == 0 || e.Targets[0] == nil {
			continue
		}
		from, _ := batch.Rows(b)
		r := rand.New(source(b))
		chosen := h.choose(r, e)
		target := &outputs.HiddenTarget{IDs: make([]int32, len(chosen))}
		prepared.Targets[0] = target
		for i, token := range chosen {
			target.IDs[i] = batch.Tokens.IDs[from+token]
			rows.Hidden = append(rows.Hidden, from+token)
			switch x := r.Float64(); {
			case x < h.Masked:
				changed.Tokens.IDs[from+token] = h.mask
			case x < h.Masked+h.Random:
				changed.Tokens.IDs[from+token] = r.Int32N(int32(h.output.Weight.Shape[0]))
			}
		}
	}
	return &changed
}

// choose draws the tokens of an example to hide and returns their indices, ascending. Special tokens, and mask tokens
// of the text itself, are never hidden.
func (h *mlm) choose(r *rand.Rand, e *corpus.Example) []int {
	var tokens []int
	first := 0
	for _, w := range e.Windows {
		for t, offset := range w.Offsets {
			if offset != (corpus.Span{}) && w.IDs[t] != h.mask {
				tokens = append(tokens, first+t)
			}
		}
		first += len(w.IDs)
	}
	n := min(len(tokens), max(1, int(h.Fraction*float64(len(tokens))+0.5)))
	r.Shuffle(len(tokens), func(i, j int) { tokens[i], tokens[j] = tokens[j], tokens[i] })
	slices.Sort(tokens[:n])
	return tokens[:n]
}

func (h *mlm) Logits(_ *nn.Pass, seen nn.Hidden) Logits {
	x := nn.GatherRows(seen.States, seen.Rows.Hidden) // [M D]
	x = h.norm.Apply(nn.GELU(h.transform.Apply(x)))   // [M D]
	return LogitsOf(seen, h.output.Apply(x))          // [M V]
}

func (h *mlm) Units(gold []corpus.Target) float64 { return float64(len(hiddenIDs(gold))) }

func hiddenIDs(gold []corpus.Target) []int {
	var ids []int
	for _, t := range outputs.AllAs[outputs.HiddenTarget](gold) {
		if t == nil {
			continue
		}
		for _, id := range t.IDs {
			ids = append(ids, int(id))
		}
	}
	return ids
}

func (h *mlm) Loss(_ *nn.Pass, logits Logits, gold []corpus.Target) *nn.Node {
	ids := hiddenIDs(gold)
	if len(ids) == 0 {
		return nil
	}
	return nn.CrossEntropy(logits.Nodes[0], ids)
}

func (h *mlm) Predict(logits Logits) []corpus.Prediction {
	rows, values := logits.Rows, nn.Values(logits.Nodes[0])
	predictions := make([]outputs.HiddenPrediction, outputs.Examples(rows))
	window, text, size := make([]int, len(predictions)), 0, h.output.Weight.Shape[0]
	for i, row := range rows.Hidden {
		for row >= rows.Starts[text+1] {
			window[rows.Example[text]]++
			text++
		}
		e := rows.Example[text]
		predictions[e].Tokens = append(predictions[e].Tokens, outputs.HiddenToken{
			Window: window[e], Token: row - rows.Starts[text],
			Guesses: likeliest(nn.Softmax(values[i*size:(i+1)*size]), h.Guesses),
		})
	}
	return outputs.Erase(predictions)
}

// likeliest lists the n largest of probabilities, descending; equal ones in the order of their ids.
func likeliest(probabilities []float32, n int) []outputs.Guess {
	var best []outputs.Guess
	for id, probability := range probabilities {
		if len(best) == n && !(probability > best[n-1].Probability) {
			continue
		}
		at, _ := slices.BinarySearchFunc(best, probability, func(g outputs.Guess, probability float32) int {
			if g.Probability >= probability {
				return -1
			}
			return 1
		})
		best = slices.Insert(best, at, outputs.Guess{ID: int32(id), Probability: probability})
		best = best[:min(n, len(best))]
	}
	return best
}
