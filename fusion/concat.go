package fusion

import (
	"fmt"

	"github.com/jenga-nlp/jenga/nn"
)

func init() { Register("concat", ConcatOptions{}, newConcat) }

// ConcatOptions are the keys that may stand beside `type: concat`. A hidden_size of 16384 has 1 GiB of weights.
type ConcatOptions struct {
	HiddenSize int `yaml:"hidden_size" range:"[0,16384]" doc:"of the task embeddings; 0: the encoder's width"`
}

// concat is the concatenation of Jenga-NLP 2.0: a linear layer, which all tasks share, maps a token's state and the
// task's embedding e, side by side, back to the encoder's width.
//
//	out_i = W·[h_i ; e] + b
//
// At first the part of W for h is the identity and b is 0, so that the heads of a pretrained encoder begin with its
// states and a small part that tells the tasks apart. W·[h ; e] is W_h·h + W_e·e, and W_e·e is the same for all tokens:
// tasks differ by a vector that is added to each state.
type concat struct {
	embeddings map[string]*nn.Param // [1 H] of each task
	states     *nn.Linear           // the columns of W for h, [D D]
	task       *nn.Linear           // the columns of W for e, [H D], and b
}

func newConcat(o ConcatOptions, env Env) (Fusion, error) {
	if o.HiddenSize == 0 {
		o.HiddenSize = env.Width
	}
	f := &concat{embeddings: map[string]*nn.Param{}}
	for _, task := range env.Tasks {
		f.embeddings[task] = env.Params.In("tasks").Normal(task, 0.02, 1, o.HiddenSize)
	}
	f.states = &nn.Linear{Weight: env.Params.In("states").Zeros("weight", env.Width, env.Width)}
	for i := 0; i < len(f.states.Weight.Data); i += env.Width + 1 { // none where values are read from a file
		f.states.Weight.Data[i] = 1
	}
	f.task = nn.NewLinear(env.Params.In("task"), o.HiddenSize, env.Width)
	return f, nil
}

// Describe returns that all tasks share W and b.
func (f *concat) Describe() Description {
	return Description{PerToken: true, Shared: []*nn.Param{f.states.Weight, f.task.Weight, f.task.Bias}}
}

func (f *concat) Fuse(p *nn.Pass, shared nn.Hidden, task string) nn.Hidden {
	e := f.embeddings[task]
	if e == nil {
		panic(fmt.Sprintf("fusion: no task %q", task))
	}
	seen := shared
	seen.States = nn.AddRow(f.states.Apply(shared.States), f.task.Apply(p.Param(e))) // [T D]
	return seen
}
