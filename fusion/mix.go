package fusion

import (
	"errors"
	"fmt"

	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
)

func init() { Register("mix", MixOptions{}, newMix) }

// MixOptions are the keys that may stand beside `type: mix`.
type MixOptions struct {
	Layers int `yaml:"layers" range:"[0,128]" doc:"how many of the encoder's last states are mixed; 0: all of them"`
}

// mix gives each task its own weighted mean of the encoder's layers (ScalarMix, Peters et al. 2018, "Deep
// contextualized word representations", equation 1):
//
//	out = γ·Σ_l softmax(w)_l·h_l
//
// A transformer of n layers has n + 1 such states: h_0 are the embeddings, normalised, as its first layer reads them. A
// bilstm has those of its LSTM layers.
type mix struct {
	layers int
	tasks  map[string]*nn.LayerMix
}

func newMix(o MixOptions, env Env) (Fusion, error) {
	layers := env.Layers
	if o.Layers > 0 {
		layers = o.Layers
	}
	switch {
	case env.Layers == 0:
		return nil, errors.New("the encoder does not return the states of its layers; those of types bilstm and " +
			"transformer do, and fusion none takes any encoder")
	case layers > env.Layers:
		return nil, fmt.Errorf("layers is %d; the encoder returns %d states (embeddings and %s)", o.Layers, env.Layers,
			plugin.Count(env.Layers-1, "layer"))
	}
	f := &mix{layers: layers, tasks: map[string]*nn.LayerMix{}}
	for _, task := range env.Tasks {
		f.tasks[task] = nn.NewLayerMix(env.Params.In(task), layers)
	}
	return f, nil
}

func (f *mix) Describe() Description { return Description{Layers: nn.AllLayers, Figures: f.figures} }

func (f *mix) Fuse(_ *nn.Pass, shared nn.Hidden, task string) nn.Hidden {
	m := f.tasks[task]
	if m == nil {
		panic(fmt.Sprintf("fusion: no task %q", task))
	}
	seen := shared
	seen.States = m.Apply(shared.Layers[len(shared.Layers)-f.layers:]...) // [T D]
	return seen
}

// figures are each task's weights of the layers, first to last.
func (f *mix) figures() map[string][]float32 {
	weights := map[string][]float32{}
	for task, m := range f.tasks {
		weights[task] = m.Weights()
	}
	return weights
}
