package updates

import (
	"fmt"

	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
)

// ScheduleEnv is the environment that a schedule is made in.
type ScheduleEnv struct {
	Rate float64 // the highest learning rate
}

// Schedule is the learning rate after the warmup, as a fraction of the highest one.
type Schedule struct {
	nn.Curve // nil: linear, to 0
	Part
}

// Name returns the type and the options of the schedule.
func (s Schedule) Name() string {
	switch {
	case s.Curve == nil:
		return schedules.Default()
	case s.Type == "":
		return "a schedule without a name"
	}
	return s.Part.String()
}

var schedules = plugin.NewRegistry[ScheduleEnv, Schedule]("lr_scheduler")

// Schedules lists the registered schedules of the learning rate.
func Schedules() *plugin.Registry[ScheduleEnv, Schedule] { return schedules }

// RegisterSchedule registers a schedule as `lr_scheduler: {type: name}`.
func RegisterSchedule[O any](name string, defaults O, New func(O, ScheduleEnv) (nn.Curve, error)) {
	plugin.Register(schedules, name, defaults, func(o O, env ScheduleEnv) (Schedule, error) {
		curve, err := New(o, env)
		return Schedule{curve, partOf(name, o)}, err
	})
}

func init() {
	RegisterSchedule("linear", struct{}{}, func(struct{}, ScheduleEnv) (nn.Curve, error) { return linear{}, nil })
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

func init() {
	RegisterSchedule("constant", struct{}{}, func(struct{}, ScheduleEnv) (nn.Curve, error) { return constant{}, nil })
	schedules.Alias("constant_with_warmup", "constant")
}

// constant is a learning rate that stays at `learning_rate` after the warmup, as transformers'
// constant_with_warmup, which is another name for it.
type constant = nn.ConstantCurve

func init() {
	RegisterSchedule("cosine", cosine{Cycles: 0.5}, func(c cosine, _ ScheduleEnv) (nn.Curve, error) { return c, nil })
}

// cosine is a learning rate that falls to 0 along a cosine (Loshchilov & Hutter 2017, "SGDR"), slowly at first
// and at the end, as transformers' cosine schedule. With n, N and W as of linear the factor after the warmup is
//
//	½·(1 + cos(2π·num_cycles·(n-W)/(N-W)))
type cosine = nn.CosineCurve

func init() { RegisterSchedule("polynomial", polynomial{Power: 1, End: 1e-7}, newPolynomial) }

// polynomial is a learning rate that falls to `lr_end` by a power of the steps left, as transformers' polynomial
// schedule: (learning_rate - lr_end)·(1 - progress)^power + lr_end, with progress (n-W)/(N-W) as of linear.
type polynomial = nn.PolynomialCurve

func newPolynomial(o polynomial, env ScheduleEnv) (nn.Curve, error) {
	if o.End >= env.Rate {
		return nil, fmt.Errorf("lr_end: want a rate below learning_rate, %v, have %v", env.Rate, o.End)
	}
	o.End /= env.Rate // as a fraction
	return o, nil
}
