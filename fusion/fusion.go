package fusion

import (
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
)

// Fusion turns the shared hidden states into those that a task's heads receive.
type Fusion interface {
	// Fuse returns the states for one of the tasks of the fusion's env, with the rows of shared.
	Fuse(p *nn.Pass, shared nn.Hidden, task string) nn.Hidden
	// Describe returns the fusion's description, the same at each call.
	Describe() Description
}

// Description is what a fusion is and can do beyond the method of Fusion. For the simplest fusion it is the zero value.
type Description struct {
	Layers nn.LayerSet // whose states it reads
	Shared []*nn.Param // that all tasks read; a weighting compares the tasks' gradients at them
	// PerToken says that a token's state for a task is a function of its own shared state alone, not of other tokens'.
	PerToken bool
	// Warnings are about options that are valid, but maybe not intended.
	Warnings []string
	// Figures returns the figures that evaluations report, by task.
	Figures func() map[string][]float32
}

// Env is what the constructor of a fusion receives beside its options.
type Env struct {
	Tasks  []string // the names of all tasks
	Tagged []string // the names of those with an output for each word
	Width  int      // of the hidden states
	Layers int      // number of layers whose states the encoder returns
	Params nn.Params
}

var registry = plugin.NewRegistry[Env, Fusion]("fusion")

// Registry lists the registered fusions.
func Registry() *plugin.Registry[Env, Fusion] { return registry }

// Register registers a fusion as `type: name`. defaults are the options that a file leaves out; New makes the fusion.
func Register[O any](name string, defaults O, New func(O, Env) (Fusion, error)) {
	plugin.Register(registry, name, defaults, New)
}

func init() {
	Register("none", struct{}{}, func(struct{}, Env) (Fusion, error) { return NewNone(), nil })
	Registry().SetDefault("none")
}

// none passes the shared states to each task unchanged.
type none struct{}

// NewNone makes the fusion that changes nothing.
func NewNone() Fusion { return none{} }

func (none) Describe() Description { return Description{PerToken: true} }

func (none) Fuse(_ *nn.Pass, shared nn.Hidden, _ string) nn.Hidden { return shared }
