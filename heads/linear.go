package heads

import (
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

func init() {
	Register("linear", LinearOptions{Pool: "cls", Dropout: ModelDropout, ObjectiveOptions: PlainObjective}, newLinear,
		scorable...)
	DefaultFor("linear", outputs.Label, outputs.Labels, outputs.Tags)
}

// LinearOptions are the keys that may stand beside `type: linear`.
type LinearOptions struct {
	Pool    string  `yaml:"pool" choice:"cls|mean|max|attention" doc:"cls: the first token; attention: a learned mean"`
	Dropout float64 `yaml:"dropout" range:"[-1,1)" doc:"dropout rate before the output layer; -1: model.dropout"`

	ObjectiveOptions `yaml:",inline"`
}

// linear is dropout and one linear layer over x, a text's pooled state or the state of each word's first piece: logits
// = W·x + b. docs/formulas.md has the pools, losses and predictions of all heads for a label, labels, tags or a number.
type linear struct {
	scored
	drop  nn.Dropout
	score *nn.Linear
}

func newLinear(o LinearOptions, env Env) (Head, error) {
	s, err := newScored(o.Pool, o.ObjectiveOptions, env)
	if err != nil {
		return nil, err
	}
	rate, err := dropoutRate(o.Dropout, env)
	if err != nil {
		return nil, err
	}
	drop := nn.NewDropout(env.Params.In("drop"), rate)
	return &linear{s, drop, nn.NewLinear(env.Params.In("score"), env.Width, s.outputs)}, nil
}

func (h *linear) Logits(p *nn.Pass, seen nn.Hidden) Logits {
	return LogitsOf(seen, h.score.Apply(h.drop.Apply(p, h.pool(seen)))) // [B L] or [W L]
}
