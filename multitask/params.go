package multitask

import (
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/nn"
)

// EncoderParams returns the encoder's subtree of a model's parameters.
func EncoderParams(root nn.Params) nn.Params { return root.In("encoder") }

// FusionParams returns the fusion's subtree of a model's parameters.
func FusionParams(root nn.Params) nn.Params { return root.In("fusion") }

// HeadParams returns the subtree of a task's head in a model's parameters.
func HeadParams(root nn.Params, task, head string) nn.Params {
	return root.In("heads").In(task).In(head)
}

// AdapterParams returns the subtree of an adapter of the encoder in a model's parameters.
func AdapterParams(root nn.Params, adapter string) nn.Params {
	return encoders.AdapterParams(EncoderParams(root), adapter)
}
