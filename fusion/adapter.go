package fusion

import (
	"fmt"

	"github.com/jenga-nlp/jenga/nn"
)

func init() { Register("adapter", AdapterOptions{Size: 64}, newAdapter) }

// AdapterOptions are the keys that may stand beside `type: adapter`.
type AdapterOptions struct {
	Size int `yaml:"size" range:"[1,16384]" doc:"features of the bottleneck"`
}

// adapter gives each task a small network beside the shared states (Houlsby et al. 2019, "Parameter-Efficient Transfer
// Learning for NLP", figure 2):
//
//	out = h + W_up·GELU(W_down·h + b_down) + b_up
//
// with GELU by the error function.
type adapter struct{ tasks map[string]bottleneck }

type bottleneck struct{ down, up *nn.Linear }

func newAdapter(o AdapterOptions, env Env) (Fusion, error) {
	f := &adapter{map[string]bottleneck{}}
	for _, task := range env.Tasks {
		at := env.Params.In(task)
		f.tasks[task] = bottleneck{nn.NewLinear(at.In("down"), env.Width, o.Size),
			nn.NewLinear(at.In("up"), o.Size, env.Width)}
	}
	return f, nil
}

func (f *adapter) Describe() Description { return Description{PerToken: true} }

func (f *adapter) Fuse(_ *nn.Pass, shared nn.Hidden, task string) nn.Hidden {
	b, ok := f.tasks[task]
	if !ok {
		panic(fmt.Sprintf("fusion: no task %q", task))
	}
	seen := shared
	seen.States = nn.Sum(shared.States, b.up.Apply(nn.GELU(b.down.Apply(shared.States)))) // [T D]
	return seen
}
