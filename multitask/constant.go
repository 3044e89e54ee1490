package multitask

import "github.com/jenga-nlp/jenga/nn"

func init() {
	RegisterSchedule("constant", NoOptions{}, func(NoOptions, ScheduleEnv) (nn.Curve, error) { return constant{}, nil })
	schedules.Alias("constant_with_warmup", "constant")
}

// constant is a learning rate that stays at `learning_rate` after the warmup, as transformers'
// constant_with_warmup, which is another name for it.
type constant = nn.ConstantCurve
