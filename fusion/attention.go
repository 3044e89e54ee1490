package fusion

import (
	"fmt"

	"github.com/jenga-nlp/jenga/nn"
)

func init() { Register("attention", AttentionOptions{Scale: "exact"}, newAttention) }

// AttentionOptions are the keys that may stand beside `type: attention`. A hidden_size of 16384 has 1 GiB of weights.
type AttentionOptions struct {
	HiddenSize int    `yaml:"hidden_size" range:"[0,16384]" doc:"of embeddings and attention; 0: the encoder's width"`
	Scale      string `yaml:"scale" choice:"exact|length|residual|gated" doc:"factor of a token's attention weight: exact 1, as published; length the number of tokens of the text, so that uniform attention changes nothing; residual length, and the state is added; gated 1, and the state itself has the rest of a gate that each task learns"`
}

// attention is the AttentionFusion of Jenga-NLP: a task's embedding e determines the weight of each token's state.
//
//	u_i = tanh(W·[h_i ; e] + b)    s_i = v·u_i + c    a = softmax(s) over the text    out_i = f·a_i·h_i
//
// The softmax is over all tokens of a text, or of a window of it, special ones included. f is 1 with scale: exact, else
// the number of these tokens; with scale: residual h_i is added to out_i. With scale: gated, as in Jenga-NLP 2.0,
//
//	out_i = σ·a_i·h_i + (1 - σ)·h_i    σ = sigmoid(g)
//
// where each task learns its own g, at first 0. Evaluations report σ.
type attention struct {
	scale      string
	warnings   []string
	embeddings map[string]*nn.Param // [1 H] of each task
	states     *nn.Linear           // the columns of W for h, [D H]
	task       *nn.Linear           // the columns of W for e, [H H], and b
	score      *nn.Linear           // v and c, [H 1]
	gates      map[string]*nn.Param // g [1] of each task, with scale: gated
}

func newAttention(o AttentionOptions, env Env) (Fusion, error) {
	if o.HiddenSize == 0 {
		o.HiddenSize = env.Width
	}

	f := &attention{scale: o.Scale, embeddings: map[string]*nn.Param{}, gates: map[string]*nn.Param{}}
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
		if o.Scale == "gated" {
			f.gates[task] = env.Params.In("gates").Zeros(task, 1)
		}
	}
	f.states = &nn.Linear{Weight: env.Params.In("states").Normal("weight", 0.02, env.Width, o.HiddenSize)}
	f.task = nn.NewLinear(env.Params.In("task"), o.HiddenSize, o.HiddenSize)
	f.score = nn.NewLinear(env.Params.In("score"), o.HiddenSize, 1)
	return f, nil
}

// Describe returns that all tasks share the parameters of the attention layer, W, b, v and c.
func (f *attention) Describe() Description {
	shared := []*nn.Param{f.states.Weight, f.task.Weight, f.task.Bias, f.score.Weight, f.score.Bias}
	d := Description{Shared: shared, Warnings: f.warnings}
	if f.scale == "gated" {
		d.Figures = f.openings
	}
	return d
}

// openings returns σ of each task.
func (f *attention) openings() map[string][]float32 {
	sigmas := map[string][]float32{}
	for task, g := range f.gates {
		sigmas[task] = nn.Sigmoids(g.Data)
	}
	return sigmas
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
	switch f.scale {
	case "exact":
		seen.States = nn.ScaleRows(shared.States, a) // [T D]
		return seen
	case "gated":
		seen.States = nn.ScaleRows(shared.States, gated(a, f.gates[task])) // [T D]
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

// gated returns σ·a_i + 1 - σ of each weight [T 1], with σ = sigmoid(g).
func gated(a *nn.Node, g *nn.Param) *nn.Node {
	sigmoid := func(g []float32) float32 { return nn.Sigmoids(g)[0] }
	return nn.Operation{
		Name: "gate", Shape: a.Shape(), Params: []*nn.Param{g},
		Forward: func(in [][]float32, out []float32) {
			s := sigmoid(in[1])
			for i, v := range in[0] {
				out[i] = s*v + (1 - s)
			}
		},
		Backward: func(in [][]float32, _, dOut []float32, dIn [][]float32) {
			s, dGate := sigmoid(in[1]), float32(0)
			for i, d := range dOut {
				if dIn[0] != nil {
					dIn[0][i] += s * d
				}
				dGate += d * (in[0][i] - 1)
			}
			if dIn[1] != nil {
				dIn[1][0] += s * (1 - s) * dGate
			}
		},
	}.Apply(a)
}
