package heads

import (
	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

func init() {
	Register("regression", RegressionOptions{Loss: "mse", ScaleOptions: StandardScale, Pool: "cls",
		Dropout: ModelDropout}, newRegression, outputs.Number)
	DefaultFor("regression", outputs.Number)
}

// RegressionOptions are the keys that may stand beside `type: regression`.
type RegressionOptions struct {
	Loss  string    `yaml:"loss" choice:"mse|mae|huber" doc:"of the distance; huber: squared up to 1, then absolute"`
	Range []float64 `yaml:"range" takes:"[LEAST, MOST]" doc:"[LEAST, MOST] of the predicted numbers, by a sigmoid; none: any"`

	Pool    string  `yaml:"pool" choice:"cls|mean|max|attention" doc:"cls: the first token; attention: a learned mean"`
	Dropout float64 `yaml:"dropout" range:"[-1,1)" doc:"dropout rate before the output layer; -1: model.dropout"`

	ScaleOptions `yaml:",inline"`
}

// regression predicts a number for a text by one linear layer over its pooled state x, without a range or with [a, c]:
//
//	y = w·x + b    or    y = a + (c-a)·sigmoid(w·x + b)
//
// The loss of its distance d to the gold number is
//
//	mse d²    mae |d|    huber d²/2 where |d| < 1, else |d| - 1/2 (Huber 1964)
//
// With scale: standard the gold number is standardized, (gold - m)/s with the mean m and the population standard
// deviation s of the training numbers, s = 1 where all are equal: y is in units of s, and so is the loss, and the
// prediction is m + s·y. A range takes its place: with one, y, the loss and the prediction are in the unit of the
// numbers, whatever scale is. With scale: none large numbers give gradients much larger than those of other heads. The
// prediction for a text in windows is the mean of theirs, and its loss the mean of their losses.
type regression struct {
	Number
	pooling
	limit []float64 // [LEAST, MOST] of the predictions; none: they have no limits
	drop  nn.Dropout
	score *nn.Linear
}

func newRegression(o RegressionOptions, env Env) (Head, error) {
	if err := checkLimits(o.Range); err != nil && len(o.Range) > 0 {
		return nil, err
	}

	pool := newPool(o.Pool, env)
	standard := o.ScaleOptions == StandardScale && len(o.Range) == 0
	number, err := newNumber(o.Loss, standard, env)
	if err != nil {
		return nil, err
	}
	rate, err := dropoutRate(o.Dropout, env)
	if err != nil {
		return nil, err
	}
	drop, score := nn.NewDropout(env.Params.In("drop"), rate), nn.NewLinear(env.Params.In("score"), env.Width, 1)
	return &regression{number, pool, o.Range, drop, score}, nil
}

func (h *regression) Describe() Description {
	d := h.Number.Describe()
	d.Reads = h.reads
	if len(h.limit) > 0 {
		d.CheckTarget = func(t corpus.Target) error { return checkRange(t, h.limit) }
	}
	return d
}

func (h *regression) Logits(p *nn.Pass, seen nn.Hidden) Logits {
	x := h.score.Apply(h.drop.Apply(p, h.pool(seen))) // [B 1]
	if len(h.limit) > 0 {
		x = nn.Between(x, float32(h.limit[0]), float32(h.limit[1]))
	}
	return LogitsOf(seen, x)
}
