package quantize

import (
	"context"
	"fmt"

	"github.com/jenga-nlp/jenga/experiments/predict"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/plugin"
)

// MaxLoss is the most that a task's figure may lose and not be named, as a fraction.
const MaxLoss = 0.005

// Figure is the main metric of a head on dev, in float32 and quantized; nil where it is unknown.
type Figure struct {
	Task   string   `json:"task"`
	Head   string   `json:"head"`
	Metric string   `json:"metric,omitempty"`
	Before *float64 `json:"before"`
	After  *float64 `json:"after"`
}

// Lost returns what the figure loses, a fraction; 0 where it gains or is unknown. A main metric is one of which more is
// better.
func (f Figure) Lost() float64 {
	if f.Before == nil || f.After == nil {
		return 0
	}
	return max(0, *f.Before-*f.After)
}

// LosesMuch reports whether the figure loses more than MaxLoss.
func (f Figure) LosesMuch() bool {
	const rounding = 1e-9
	return f.Lost() > MaxLoss+rounding
}

// Watch, if not nil, is called before an evaluation, with its number of examples. It returns what is called with each
// number of them that is done.
type Watch func(what string, examples int) (done func(n int))

// of returns the Watch of one evaluation; nil of nil.
func (w Watch) of(what string) func(examples int) (done func(n int)) {
	if w == nil {
		return nil
	}
	return func(examples int) func(n int) { return w(what, examples) }
}

// Before evaluates the run on dev and returns the figures of all heads. Tasks without dev data are in Warnings, and
// their figures are unknown.
func (s *Source) Before(ctx context.Context, watch Watch) ([]Figure, error) {
	groups, warnings, err := s.opened.EvaluateDev(ctx, watch.of("dev in float32"))
	if err != nil {
		return nil, err
	}
	for _, warning := range warnings {
		s.Warnings = append(s.Warnings, plugin.Warning(plugin.Place{File: s.folder}, "%s", warning))
	}
	var all []Figure
	for _, task := range s.opened.Data.Experiment.Tasks {
		for _, head := range task.Heads {
			f := Figure{Task: task.Name, Head: head.Name}
			f.Metric, f.Before = report.MainMetric(groups, f.Task, f.Head)
			all = append(all, f)
		}
	}
	return all, nil
}

// After opens the quantized run in folder, and sets its figures, if there are any of before.
func After(ctx context.Context, figures []Figure, folder string, watch Watch) error {
	opened, err := predict.OpenRun(folder)
	if err != nil {
		return err
	}
	defer opened.Close()
	if len(figures) == 0 {
		return nil
	}
	groups, _, err := opened.EvaluateDev(ctx, watch.of("dev in int8")) // with the warnings of Before
	if err != nil {
		return fmt.Errorf("%s: %w", folder, err)
	}
	for i, f := range figures {
		_, figures[i].After = report.MainMetric(groups, f.Task, f.Head)
	}
	return nil
}
