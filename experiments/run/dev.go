package run

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/plugin"
)

// checkDev reports a mistake if dev has no labels for the metric that selects the best model.
func (r *Run) checkDev(mistakes *plugin.Mistakes) {
	var groups []multitask.GroupMetrics // as evaluations will have them
	var unevaluated, undefined []string
	selects := r.experiment().Training.MetricForBestModel
	examples := 0
	for g, texts := range r.Data.Groups {
		group := r.Model.Groups[g].ExpectedMetrics(texts.Examples[config.Dev])
		groups = append(groups, group)
		examples += len(texts.Examples[config.Dev])
		for _, task := range group.Tasks {
			for _, head := range task.Heads {
				undefined = append(undefined, undefinedMetrics(task.Task, head, selects)...)
				if head.Metrics == nil {
					unevaluated = append(unevaluated, plugin.Warning(plugin.Place{},
						"task %q: dev has no label for head %q, which is not evaluated", task.Task, head.Head))
				}
			}
		}
	}

	e, t := r.experiment(), r.experiment().Training
	figures := report.Metrics(groups)
	_, chosen := figures[t.MetricForBestModel]
	if t.MetricWeights != nil && len(figures) > 0 {
		chosen = true
		r.checkWeights(groups, mistakes)
	}
	switch r.evaluated = len(figures) > 0; {
	case !r.evaluated && t.EarlyStoppingPatience > 0:
		mistakes.Add(e.Place("training.early_stopping_patience"),
			"training: early_stopping_patience: no dev example is labelled, so no model is better than another")
	case !r.evaluated:
		why := "no dev example is labelled"
		if examples == 0 {
			why = "dev has no examples"
		}
		r.Warnings = append(r.Warnings, plugin.Warning(plugin.Place{},
			"%s: no evaluation; best/ will be the last checkpoint", why))
	case !chosen && len(undefined) > 0 && !strings.HasSuffix(selects, "_loss"):
		mistakes.Add(e.Place("training.metric_for_best_model"), "training: metric_for_best_model: %s has no value: "+
			"%s; want one that dev defines: %s", t.MetricForBestModel, strings.Join(undefined, ", "),
			strings.Join(slices.Sorted(maps.Keys(figures)), ", "))
	case !chosen:
		mistakes.Add(e.Place("training.metric_for_best_model"), "training: metric_for_best_model: %s",
			plugin.Unknown("metric with labels in dev", t.MetricForBestModel, slices.Sorted(maps.Keys(figures))))
	default:
		r.Warnings = append(r.Warnings, unevaluated...)
		for _, what := range undefined {
			r.Warnings = append(r.Warnings, plugin.Warning(plugin.Place{}, "%s, and is left out of means", what))
		}
	}
	for g := range r.Data.Groups {
		r.Warnings = append(r.Warnings, r.Data.CheckTargets(&r.Data.Groups[g], config.Dev, true)...)
	}
}

// checkWeights reports tasks with a weight in metric_for_best_model whose main metrics have no value on dev.
func (r *Run) checkWeights(groups []multitask.GroupMetrics, mistakes *plugin.Mistakes) {
	e := r.experiment()
	for _, group := range groups {
		for _, task := range group.Tasks {
			weight := e.Training.MetricWeights[task.Task]
			if _, ok := report.TaskMetric(task); !ok && weight > 0 {
				mistakes.Add(e.Place("training.metric_for_best_model"),
					"training: metric_for_best_model: task %q has no metric on dev; leave it out, or label examples",
					task.Task)
			}
		}
	}
}

// undefinedMetrics describes the metrics of a head that dev leaves undefined, of the main one and the one that selects
// the best model.
func undefinedMetrics(task string, head multitask.HeadMetrics, selects string) []string {
	var all []string
	for i, m := range head.Metrics {
		if m.Undefined && (i == 0 || report.HeadMetric(task, head.Head, m.Name) == selects) {
			all = append(all, fmt.Sprintf("task %q: %s of head %q is undefined on dev", task, m.Name, head.Head))
		}
	}
	return all
}

// warnUntuned warns of heads that are tuned in evaluations on dev, where there are no evaluations or dev has no label
// for the head.
func (r *Run) warnUntuned() {
	for g, texts := range r.Data.Groups {
		group := &r.Model.Groups[g]
		expected := group.ExpectedMetrics(texts.Examples[config.Dev])
		for t, task := range group.Tasks {
			for h, head := range task.Heads {
				tuner, cause := heads.TunerOf(head.Head), ""
				switch {
				case tuner == nil:
					continue
				case r.experiment().Training.EvalStrategy == "no":
					cause = "eval_strategy: no"
				case expected.Tasks[t].Heads[h].Examples == 0:
					cause = "dev has no label for it"
				default:
					continue
				}
				what, then := tuner.Untuned(head.Name)
				r.Warnings = append(r.Warnings,
					plugin.Warning(plugin.Place{}, "task %q: %s (%s): %s", task.Name, what, cause, then))
			}
		}
	}
}
