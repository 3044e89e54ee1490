package multitask

import "github.com/jenga-nlp/jenga/nn"

// EncoderParams returns the encoder's corner of a model's tree of parameters.
func EncoderParams(root nn.Params) nn.Params { return root.In("encoder") }

// FusionParams returns the fusion's corner of a model's tree of parameters.
func FusionParams(root nn.Params) nn.Params { return root.In("fusion") }

// HeadParams returns the corner of a task's head in a model's tree of parameters.
func HeadParams(root nn.Params, task, head string) nn.Params {
	return root.In("heads").In(task).In(head)
}
