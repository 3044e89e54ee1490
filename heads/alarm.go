package heads

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

// AlarmOptions are the keys that set when a head for anomalies raises an alarm.
type AlarmOptions struct {
	FalseAlarms float64 `yaml:"false_alarms" range:"[0,1]" doc:"fraction of dev's normal texts above the threshold"`
}

type alarm struct {
	threshold   *nn.Param // [1], does not learn; never until Tune has set it
	falseAlarms float64   // fraction of normal texts above it
}

// never is the threshold until it is tuned. It is finite, as parameters have to be.
const never = math.MaxFloat32

func newAlarm(o AlarmOptions, env Env) (alarm, error) {
	if env.Training.Units > 0 && env.Training.Mean == 1 {
		return alarm{}, errors.New("no training text is normal; " +
			"the task's option normal names the label of normal texts")
	}
	return alarm{env.fixed("threshold", never), o.FalseAlarms}, nil
}

// Thresholds returns the distance above which an alarm is raised; nil until Tune has set it.
func (a alarm) Thresholds() []float32 {
	if a.threshold.Data[0] == never {
		return nil
	}
	return a.threshold.Data
}

func (a alarm) Tune(gold []corpus.Target, predicted []corpus.Prediction) {
	predictions := outputs.AllAs[outputs.AnomalyPrediction](predicted)
	var distances []float64 // of normal texts, ascending
	for i, t := range gold {
		if normal(t) && !math.IsNaN(predictions[i].Distance) {
			distances = append(distances, predictions[i].Distance)
		}
	}
	if len(distances) == 0 {
		return
	}
	slices.Sort(distances)
	above := int(a.falseAlarms*float64(len(distances)) + 1e-9) // 0.29 of 100 is 28.999…
	if at := len(distances) - 1 - above; at >= 0 {
		a.threshold.Data[0] = float32(distances[at])
	} else {
		a.threshold.Data[0] = -never
	}
	for _, p := range predictions {
		a.decide(p)
	}
}

func (alarm) Untuned(name string) (what, then string) {
	return fmt.Sprintf("no evaluation sets the threshold of head %q", name), "it predicts distances and raises no alarm"
}

func (a alarm) decide(p *outputs.AnomalyPrediction) {
	limit := a.threshold.Data[0]
	if p.Alarm = nil; limit != never {
		p.Alarm = new(bool)
		*p.Alarm = float32(p.Distance) > limit
	}
}

func (a alarm) predict(distances []float64) []corpus.Prediction {
	predictions := make([]outputs.AnomalyPrediction, len(distances))
	for e, distance := range distances {
		predictions[e].Distance = distance
		a.decide(&predictions[e])
	}
	return outputs.Erase(predictions)
}

func normal(t corpus.Target) bool {
	target := outputs.As[outputs.AnomalyTarget](t)
	return target != nil && !target.Anomalous
}
