package multitask

import "github.com/jenga-nlp/jenga/nn"

func init() { RegisterSchedule("cosine", CosineOptions{NumCycles: 0.5}, newCosine) }

// CosineOptions are the keys that may stand beside `type: cosine`.
type CosineOptions struct {
	NumCycles float64 `yaml:"num_cycles" range:"(0,)" doc:"waves of the cosine; 0.5 falls to 0 once"`
}

// cosine is a learning rate that falls to 0 along a cosine (Loshchilov & Hutter 2017, "SGDR"), slowly at first
// and at the end, as transformers' cosine schedule. With n, N and W as of linear the factor after the warmup is
//
//	½·(1 + cos(2π·num_cycles·(n-W)/(N-W)))
type cosine = nn.CosineCurve

func newCosine(o CosineOptions, _ ScheduleEnv) (nn.Curve, error) {
	return cosine{Cycles: o.NumCycles}, nil
}
