package merge

import (
	"context"
	"fmt"

	"github.com/jenga-nlp/jenga/experiments/predict"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/plugin"
)

// Figure is the main metric of a head on dev: in its own run, in the merged run, and there after heads are trained
// again; nil where it is unknown.
type Figure struct {
	Run      string   `json:"run"` // its own
	Task     string   `json:"task"`
	Head     string   `json:"head"`
	Metric   string   `json:"metric,omitempty"`
	Before   *float64 `json:"before"`
	Merged   *float64 `json:"merged"`
	Refitted *float64 `json:"refitted,omitempty"`
}

// Before evaluates the runs on dev and returns the figures of all heads, by their tasks' names in the merged run.
func (m *Merge) Before(ctx context.Context) ([]Figure, error) {
	var all []Figure
	for _, s := range m.sources {
		groups, warnings, err := s.opened.EvaluateDev(ctx, nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.folder, err)
		}
		for _, warning := range warnings {
			m.Warnings = append(m.Warnings, plugin.Warning(plugin.Place{File: s.folder}, "%s", warning))
		}
		for _, task := range s.experiment.Tasks {
			for _, head := range task.Heads {
				f := Figure{Run: s.folder, Task: s.names[task.Name], Head: head.Name}
				f.Metric, f.Before = report.MainMetric(groups, task.Name, head.Name)
				all = append(all, f)
			}
		}
	}
	return all, nil
}

// After sets the figures of the merged run in folder.
func After(ctx context.Context, figures []Figure, folder string) error {
	opened, err := predict.OpenRun(folder)
	if err != nil {
		return err
	}
	defer opened.Close()
	groups, _, err := opened.EvaluateDev(ctx, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", folder, err)
	}
	for i := range figures {
		_, figures[i].Merged = report.MainMetric(groups, figures[i].Task, figures[i].Head)
	}
	return nil
}

// Refitted sets the figures of the merged run after its heads are trained again, by the evaluation of its best model.
func Refitted(figures []Figure, best multitask.Evaluation) {
	for i := range figures {
		_, figures[i].Refitted = report.MainMetric(best.Groups, figures[i].Task, figures[i].Head)
	}
}
