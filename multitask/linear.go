package multitask

import "github.com/jenga-nlp/jenga/nn"

func init() {
	RegisterSchedule("linear", NoOptions{}, func(NoOptions, ScheduleEnv) (nn.Curve, error) { return linear{}, nil })
	schedules.SetDefault("linear")
}

// linear is a learning rate that falls linearly to 0 at the last step, as transformers' linear schedule. As with
// all schedules, `warmup_steps` or `warmup_ratio` lets it rise linearly to `learning_rate` before.
type linear = nn.LinearCurve
