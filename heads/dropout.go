package heads

import (
	"fmt"

	"github.com/jenga-nlp/jenga/nn"
)

// ModelDropout as a head's dropout option selects model.dropout.
const ModelDropout = -1

// newDropout makes the dropout of a head whose dropout option is own.
func newDropout(own float64, env Env) (nn.Dropout, error) {
	if own == ModelDropout {
		own = env.Dropout
	}
	if own < 0 {
		return nn.Dropout{}, fmt.Errorf("dropout is %v; want one in [0, 1), or %d for the model's", own, ModelDropout)
	}
	return nn.NewDropout(env.Params.In("drop"), own), nil
}
