package fusion

import (
	"fmt"

	"github.com/jenga-nlp/jenga/nn"
)

func init() { Register("attention", AttentionOptions{Scale: "exact"}, newAttention) }

// AttentionOptions are the keys that may stand beside `type: attention`. A hidden_size of 16384 has 1 GiB of weights.
type AttentionOptions struct {
	HiddenSize int    `yaml:"hidden_size" range:"[0,16384]" doc:"of embeddings and attention; 0: the encoder's width"`
	Scale      string `yaml:"scale" choice:"exact|length|residual" doc:"factor of a token's attention weight: exact 1, as published; length the number of tokens of the text, so that uniform attention changes nothing; residual length, and the state is added"`
}

// attention is the AttentionFusion of Jenga-NLP: a task's embedding e determines the weight of each token's state.
//
//	u_i = tanh(W·[h_i ; e] + b)    s_i = v·u_i + c    a = softmax(s) over the text    out_i = f·a_i·h_i
//
// The softmax is over all tokens of a text, or of a window of it, special ones included. f is 1 with scale: exact, else
// the number of these tokens; with scale: residual h_i is added to out_i.
type attention struct {
	scale      string
	warnings   []string
	embeddings map[string]*nn.Param // [1 H] of each task
	states     *nn.Linear           // the columns of W for h, [D H]
	task       *nn.Linear           // the columns of W for e, [H H], and b
	score      *nn.Linear           // v and c, [H 1]
}

func newAttention(o AttentionOptions, env Env) (Fusion, error) {
	if o.HiddenSize == 0 {
		o.HiddenSize = env.Width
	}

	f := &attention{scale: o.Scale, embeddings: map[string]*nn.Param{}}
	if o.HiddenSize != env.Width {
		f.warnings = append(f.warnings, fmt.Sprintf("hidden_size is %d, the encoder's width %d: it works, but is "+
			"rarely intended", o.HiddenSize, env.Width))
	}
	if o.Scale == "exact" && len(env.Tagged) > 0 {
		f.warnings = append(f.warnings, fmt.Sprintf("scale: exact gives most words a weight near 0 (docs/fusion.md), "+
			"which harms tagging tasks such as %q; write scale: residual, or length", env.Tagged[0]))
	}
	for _, task := range env.Tasks {
		f.embeddings[task] = env.Params.In("tasks").Normal(task, 0.02, 1, o.HiddenSize)
	}
	f.states = &nn.Linear{Weight: env.Params.In("states").Normal("weight", 0.02, env.Width, o.HiddenSize)}
	f.task = nn.NewLinear(env.Params.In("task"), o.HiddenSize, o.HiddenSize)
	f.score = nn.NewLinear(env.Params.In("score"), o.HiddenSize, 1)
	return f, nil
}

// Describe returns that all tasks share the parameters of the attention layer, W, b, v and c.
func (f *attention) Describe() Description {
	shared := []*nn.Param{f.states.Weight, f.task.Weight, f.task.Bias, f.score.Weight, f.score.Bias}
	return Description{Shared: shared, Warnings: f.warnings}
}

// AttentionOf is the name under which a fusion emits the weights that a text's tokens have for a task, [T] per text.
func AttentionOf(task string) string { return "fusion." + task }

func (f *attention) Fuse(p *nn.Pass, shared nn.Hidden, task string) nn.Hidden {
	e := f.embeddings[task]
	if e == nil {
		panic(fmt.Sprintf("fusion: no task %q", task))
	}
	u := nn.Tanh(nn.AddRow(f.states.Apply(shared.States), f.task.Apply(p.Param(e)))) // [T H]
	a := nn.SoftmaxPerText(f.score.Apply(u), shared.Rows)                            // [T 1]
	p.EmitPerText(AttentionOf(task), a, shared.Rows)

	seen := shared
	if f.scale == "exact" {
		seen.States = nn.ScaleRows(shared.States, a) // [T D]
		return seen
	}
	lengths := p.Floats(shared.Rows.Tokens()) // [T], each token's of its text
	for b := range shared.Rows.Texts() {
		from, to := shared.Rows.Starts[b], shared.Rows.Starts[b+1]
		for i := from; i < to; i++ {
			lengths[i] = float32(to - from)
		}
	}
	a = nn.ScaleRows(a, p.Input(lengths, len(lengths), 1)) // [T 1]
	seen.States = nn.ScaleRows(shared.States, a)           // [T D]
	if f.scale == "residual" {
		seen.States = nn.Sum(shared.States, seen.States)
	}
	return seen
}
