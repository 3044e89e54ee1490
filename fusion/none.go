package fusion

import "github.com/jenga-nlp/jenga/nn"

func init() {
	Register("none", struct{}{}, func(struct{}, Env) (Fusion, error) { return NewNone(), nil })
	Registry().SetDefault("none")
}

// none passes the shared states to each task unchanged.
type none struct{}

// NewNone makes the fusion that changes nothing.
func NewNone() Fusion { return none{} }

// Describe implements Describer.
func (none) Describe() Description { return Description{PerToken: true} }

func (none) Fuse(_ *nn.Pass, shared nn.Hidden, _ string) nn.Hidden { return shared }
