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

// AlarmOptions are the keys that say when a head of anomalies raises an alarm.
type AlarmOptions struct {
	FalseAlarms float64 `yaml:"false_alarms" range:"[0,1]" doc:"share of dev's normal texts that an alarm is raised for: it sets the threshold of scores"`
}

// alarm divides the scores of anomalies: above its threshold an alarm is raised.
type alarm struct {
	threshold *nn.Param // [1], does not learn; never until dev has chosen it
	share     float64   // of normal texts above it
}

// never is the threshold of an alarm that is never raised: parameters are finite.
const never = math.MaxFloat32

// newAlarm makes an alarm, with its threshold in the env's parameters.
func newAlarm(o AlarmOptions, env Env) (alarm, error) {
	if env.Training.Units > 0 && env.Training.Mean == 1 {
		return alarm{}, errors.New("no training text is normal, so nothing tells what normal is; " +
			"the task's option normal names the label of normal texts")
	}
	a := alarm{env.Params.Zeros("threshold", 1), o.FalseAlarms}
	a.threshold.Frozen = true
	a.threshold.Data[0] = never
	return a, nil
}

// Thresholds returns the score above which an alarm is raised; nil until dev has chosen it.
func (a alarm) Thresholds() []float32 {
	if a.threshold.Data[0] == never {
		return nil
	}
	return a.threshold.Data
}

// Tune sets the threshold by the scores of dev's normal texts, and decides anew for which texts an alarm is raised.
func (a alarm) Tune(gold []corpus.Target, predicted []corpus.Prediction) {
	distances := outputs.Predictions[outputs.AnomalyPrediction](predicted)
	var scores []float64 // of normal texts, rising
	for i, t := range gold {
		if normal(t) && !math.IsNaN(distances[i].Distance) {
			scores = append(scores, distances[i].Distance)
		}
	}
	if len(scores) == 0 {
		return
	}
	slices.Sort(scores)
	above := int(a.share*float64(len(scores)) + 1e-9) // 0.29 of 100 is 28.999…
	if at := len(scores) - 1 - above; at >= 0 {
		a.threshold.Data[0] = float32(scores[at])
	} else {
		a.threshold.Data[0] = -never
	}
	for _, p := range distances {
		a.decide(p)
	}
}

// Untuned tells of the threshold.
func (alarm) Untuned(name string) (what, then string) {
	return fmt.Sprintf("no evaluation sets the threshold of head %q", name), "it scores texts, and raises no alarm"
}

// decide says whether an alarm is raised, if dev has said when.
func (a alarm) decide(p *outputs.AnomalyPrediction) {
	limit := a.threshold.Data[0]
	if p.Alarm = nil; limit != never {
		p.Alarm = new(bool)
		*p.Alarm = float32(p.Distance) > limit
	}
}

// predict gives each example its distance from normal texts, and whether that raises an alarm.
func (a alarm) predict(distances []float64) []corpus.Prediction {
	predictions := make([]outputs.AnomalyPrediction, len(distances))
	for e, distance := range distances {
		predictions[e].Distance = distance
		a.decide(&predictions[e])
	}
	return outputs.Erase(predictions)
}

// normal tells whether a target says that its text is normal.
func normal(t corpus.Target) bool {
	target := outputs.As[outputs.AnomalyTarget](t)
	return target != nil && !target.Anomalous
}
