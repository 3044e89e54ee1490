package fusion

import (
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
)

// Fusion turns the shared hidden states into the ones that a task's heads see.
type Fusion interface {
	// Fuse is given one of the tasks of its env by name. What it returns has the rows of shared.
	Fuse(p *nn.Pass, shared nn.Hidden, task string) nn.Hidden
}

// Describer is a Fusion that reads more than the encoder's last layer, or has parameters that all tasks read.
type Describer interface {
	// Describe returns what the fusion is, the same at each call.
	Describe() Description
}

// Description is what a fusion says of itself. Most fusions say nothing: the zero value.
type Description struct {
	Layers nn.Wanted   // whose states it reads
	Shared []*nn.Param // that all tasks read; a weighting compares the tasks' gradients at them
}

// DescriptionOf returns what f says of itself.
func DescriptionOf(f Fusion) Description {
	if d, ok := f.(Describer); ok {
		return d.Describe()
	}
	return Description{}
}

// Reporter is a Fusion with figures that evaluations report.
type Reporter interface {
	Figures() map[string][]float32 // by task
}

// Env is what a fusion is told.
type Env struct {
	Tasks  []string // the names of all tasks
	Tagged []string // of those that ask about each word
	Width  int      // of the hidden states
	Layers int      // whose states the encoder gives
	Params nn.Params
}

var registry = plugin.NewRegistry[Env, Fusion]("fusion")

// Registry lists the registered fusions.
func Registry() *plugin.Registry[Env, Fusion] { return registry }

// Register makes a fusion known as `type: name`. defaults are its options where a file is silent; New makes it.
func Register[O any](name string, defaults O, New func(O, Env) (Fusion, error)) {
	plugin.Register(registry, name, defaults, New)
}
