package multitask

import (
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
)

// ScheduleEnv is the environment that a schedule is made in.
type ScheduleEnv struct {
	Rate float64 // the highest learning rate
}

var schedules = plugin.NewRegistry[ScheduleEnv, nn.Curve]("lr_scheduler")

// Schedules lists the registered schedules of the learning rate. Each is the curve after the warmup.
func Schedules() *plugin.Registry[ScheduleEnv, nn.Curve] { return schedules }

// RegisterSchedule registers a schedule as `lr_scheduler: {type: name}`.
func RegisterSchedule[O any](name string, defaults O, New func(O, ScheduleEnv) (nn.Curve, error)) {
	plugin.Register(schedules, name, defaults, New)
}
