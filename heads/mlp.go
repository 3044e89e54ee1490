package heads

import (
	"github.com/jenga-nlp/jenga/nn"
)

func init() {
	Register("mlp", MLPOptions{Activation: "gelu", Pool: "cls", Dropout: ModelDropout, ObjectiveOptions: PlainObjective},
		newMLP, scorable...)
}

// MLPOptions are the keys that may stand beside `type: mlp`.
type MLPOptions struct {
	Hidden     int    `yaml:"hidden" range:"[0,65536]" doc:"features of the hidden layer; 0: the encoder's width"`
	Activation string `yaml:"activation" choice:"gelu|tanh" doc:"of the hidden layer"`

	Pool    string  `yaml:"pool" choice:"cls|mean|max|attention" doc:"cls: the first token; attention: a learned mean"`
	Dropout float64 `yaml:"dropout" range:"[-1,1)" doc:"dropout rate before each layer; -1: model.dropout"`

	ObjectiveOptions `yaml:",inline"`
}

// mlp has one hidden layer over x, a text's pooled state or the state of each word's first piece: logits = W·act(V·x +
// c) + b. docs/formulas.md has the pools, losses and predictions of all heads for a label, labels, tags or a number.
type mlp struct {
	scored
	drop, dropHidden nn.Dropout
	hidden, score    *nn.Linear
	activation       func(*nn.Node) *nn.Node
}

func newMLP(o MLPOptions, env Env) (Head, error) {
	s, err := newScored(o.Pool, o.ObjectiveOptions, env)
	if err != nil {
		return nil, err
	}
	rate, err := dropoutRate(o.Dropout, env)
	if err != nil {
		return nil, err
	}
	hidden := env.Params.In("hidden")
	h := &mlp{scored: s}
	h.drop, h.dropHidden = nn.NewDropout(env.Params.In("drop"), rate), nn.NewDropout(hidden.In("drop"), rate)
	if h.activation = nn.GELU; o.Activation == "tanh" {
		h.activation = nn.Tanh
	}
	if o.Hidden == 0 {
		o.Hidden = env.Width
	}
	h.hidden = nn.NewLinear(hidden, env.Width, o.Hidden)
	h.score = nn.NewLinear(env.Params.In("score"), o.Hidden, s.outputs)
	return h, nil
}

func (h *mlp) Logits(p *nn.Pass, seen nn.Hidden) Logits {
	x := h.activation(h.hidden.Apply(h.drop.Apply(p, h.pool(seen)))) // [B H] or [W H]
	return LogitsOf(seen, h.score.Apply(h.dropHidden.Apply(p, x)))   // [B L] or [W L]
}
