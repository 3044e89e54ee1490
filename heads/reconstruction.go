package heads

import (
	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

func init() {
	Register("reconstruction", ReconstructionOptions{Pool: "mean", AlarmOptions: AlarmOptions{0.05}}, newReconstruction,
		outputs.Anomaly)
	DefaultFor("reconstruction", outputs.Anomaly)
}

// ReconstructionOptions are the keys that may stand beside `type: reconstruction`. There is no learned pool: it would
// learn to make all texts equal.
type ReconstructionOptions struct {
	Hidden int    `yaml:"hidden" range:"[0,65536]" doc:"size of the bottleneck; 0: an eighth of the encoder's width"`
	Pool   string `yaml:"pool" choice:"cls|mean|max" doc:"a text's vector: of its first token, the mean, the maximum"`

	AlarmOptions `yaml:",inline"`
}

// reconstruction is an autoencoder over pooled texts (Hinton & Salakhutdinov 2006) that is trained on normal texts
// alone: a large reconstruction error marks an anomaly. With x the pooled states of D features and W, b, V, c learned:
//
//	y = V·gelu(W·x + b) + c    distance = Σ_i (x_i - y_i)²/D
//
// The loss is the mean distance of normal texts. The encoder receives no gradient from it: it would learn constant
// states, which are reconstructed best.
type reconstruction struct {
	alarm
	pooling
	in, back *nn.Linear
}

func newReconstruction(o ReconstructionOptions, env Env) (Head, error) {
	a, err := newAlarm(o.AlarmOptions, env)
	if err != nil {
		return nil, err
	}
	pool := newPool(o.Pool, env)
	if o.Hidden == 0 {
		o.Hidden = max(1, env.Width/8)
	}
	in := nn.NewLinear(env.Params.In("in"), env.Width, o.Hidden)
	back := nn.NewLinear(env.Params.In("back"), o.Hidden, env.Width)
	return &reconstruction{a, pool, in, back}, nil
}

func (h *reconstruction) Describe() Description {
	return Description{Output: outputs.Anomaly, Reads: h.reads, Tuner: h}
}

func (h *reconstruction) Logits(_ *nn.Pass, seen nn.Hidden) Logits {
	x := nn.Detach(h.pool(seen))                 // [B D]
	y := h.back.Apply(nn.GELU(h.in.Apply(x)))    // [B D]
	return LogitsOf(seen, nn.SquaredError(x, y)) // [B 1]
}

func (h *reconstruction) Units(gold []corpus.Target) float64 {
	n := 0.0
	for _, t := range gold {
		if normal(t) {
			n++
		}
	}
	return n
}

func (h *reconstruction) Loss(_ *nn.Pass, logits Logits, gold []corpus.Target) *nn.Node {
	texts := textsOf(logits.Rows)
	weights, labelled := make([]float32, logits.Rows.Texts()), false
	for b, e := range logits.Rows.Example {
		if normal(gold[e]) {
			weights[b], labelled = 1/texts[e], true
		}
	}
	if !labelled {
		return nil
	}
	return nn.WeightedSum(logits.Nodes[0], weights)
}

func (h *reconstruction) Predict(logits Logits) []corpus.Prediction {
	return h.predict(meanOfTexts(logits, 0, 1))
}
