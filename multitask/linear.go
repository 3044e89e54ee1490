package multitask

import "github.com/jenga-nlp/jenga/nn"

func init() {
	RegisterSchedule("linear", NoOptions{}, func(NoOptions, ScheduleEnv) (nn.Curve, error) { return linear{}, nil })
	schedules.SetDefault("linear")
}

// linear is a learning rate that falls linearly to 0 at the last step, as transformers' linear schedule. As with
// all schedules, `warmup_steps` or `warmup_ratio` lets it rise linearly to `learning_rate` before. In update n of N, of
// which W are the warmup, the rate is `learning_rate` times
//
//	n/W where n < W    (N-n)/(N-W) from n = W on
//
// with n from 1 to N. So the last update has the rate 0 and changes no weight. transformers' Trainer has the same
// function of n-1: there it is the first update of a warmup that has the rate 0. A run of one update has the whole
// rate.
type linear = nn.LinearCurve
