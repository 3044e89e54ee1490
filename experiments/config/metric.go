package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/internal/floats"
	"github.com/jenga-nlp/jenga/internal/suggest"
	"github.com/jenga-nlp/jenga/plugin"
)

type metricNames struct {
	names []string
	lower map[string]bool   // those for which lower is better
	short map[string]string // names in files of Jenga-NLP → names
	// headless are names without the head, or also without what follows the metric's first word, → names: eval_team_f1 →
	// eval_team_team_f1_macro
	headless map[string]string
}

func (d *decoding) metric(s *plugin.Section) {
	best := &d.e.Training.Selection
	switch given := s.At("metric_for_best_model"); {
	case !s.Has("metric_for_best_model"):
		best.Metric = report.Overall
	case given.Kind == plugin.Mapping:
		d.weightedMetric(s, given)
		return
	case given.Kind != plugin.Text:
		d.mistakes.Add(given.Place, "training: metric_for_best_model: want a metric's name or {TASK: WEIGHT}, have %s",
			given)
	default:
		best.Metric = given.Text
	}
	if !d.mistakes.Empty() {
		return // the tasks may be incomplete
	}
	all := d.metrics()
	known := slices.Contains(all.names, best.Metric)
	if name := all.short[best.Metric]; !known && slices.Contains(all.names, name) {
		best.Metric, known = name, true
	}
	d.greaterIsBetter(s, !all.lower[best.Metric], best.Metric)
	if s.Has("metric_for_best_model") && !known {
		d.mistakes.Add(s.At("metric_for_best_model").Place, "training: metric_for_best_model: %s",
			plugin.UnknownLike("metric", best.Metric, all.nearest(best.Metric), all.names))
	}
}

// maxMetricWeight is the largest weight of a task's metric: sums of them do not overflow.
const maxMetricWeight = 1e+100

func (d *decoding) weightedMetric(s, given *plugin.Section) {
	best := &d.e.Training.Selection
	best.Metric, best.Weights = report.Weighted, map[string]float64{}
	if len(given.Entries) == 0 {
		d.mistakes.Add(given.Place, "training: metric_for_best_model: want a metric's name or {TASK: WEIGHT}, have {}")
	}
	names := d.e.taskNames()
	for _, e := range given.Entries {
		weight, isDecimal := floats.Parse(e.Value.Text)
		number := isDecimal && (e.Value.Kind == plugin.Int || e.Value.Kind == plugin.Float)
		switch {
		case !slices.Contains(names, e.Key):
			d.mistakes.Add(e.Place, "training: metric_for_best_model: %s", plugin.Unknown("task", e.Key, names))
		case !number || !(weight > 0) || weight > maxMetricWeight:
			d.mistakes.Add(e.Value.Place, "training: metric_for_best_model: weight of task %q: want a number above 0, "+
				"at most %v, have %s", e.Key, maxMetricWeight, e.Value)
		}
		best.Weights[e.Key] = weight
	}
	d.greaterIsBetter(s, true, "weights of tasks")
}

// greaterIsBetter sets whether a higher value of what selects the best model is better, by default that which is right.
func (d *decoding) greaterIsBetter(s *plugin.Section, right bool, what string) {
	t := &d.e.Training
	if !s.Has("greater_is_better") {
		t.Selection.Higher = right
	} else if t.Reversed = t.Selection.Higher != right; t.Reversed {
		d.warn(s.At("greater_is_better").Place, "greater_is_better: %v with %s chooses the worst model; leave it out",
			t.Selection.Higher, what)
	}
}

func (n *metricNames) nearest(metric string) string {
	near, _ := suggest.Nearest(metric, slices.Concat(n.names, slices.Sorted(maps.Keys(n.headless))))
	return cmp.Or(n.headless[near], near)
}

// metrics returns the metrics of an evaluation of the tasks, as in report.Metrics. Two metrics with one name are a
// mistake.
func (d *decoding) metrics() metricNames {
	all := metricNames{
		names: []string{report.Loss, report.Overall},
		lower: map[string]bool{report.Loss: true}, short: map[string]string{}, headless: map[string]string{},
	}
	taken := map[string]string{} // metric → its owner
	for _, name := range []string{report.Loss, report.Overall, report.OverallF1, report.AllRight} {
		taken[name] = "all tasks"
	}
	f1, exact := false, map[int]int{} // task number → heads whose predictions are either right or wrong
	for number, task := range d.e.Tasks {
		before := len(all.names)
		all.addTask(task)
		d.checkDuplicates(task, all.names[before:], taken)
		for _, m := range task.metrics {
			f1 = f1 || m.F1 && len(task.Heads) > 0
		}
		if task.kind.Discrete() {
			exact[number] = len(task.Heads)
		}
	}
	if f1 {
		all.names = append(all.names, report.OverallF1)
	}
	if slices.ContainsFunc(d.e.Groups(), func(group []int) bool {
		n := 0
		for _, number := range group {
			n += exact[number]
		}
		return n > 1
	}) {
		all.names = append(all.names, report.AllRight)
	}
	return all
}

func (n *metricNames) addTask(task Task) {
	if slices.ContainsFunc(task.Heads, Head.learns) {
		n.names = append(n.names, report.TaskLoss(task.Name))
		n.lower[report.TaskLoss(task.Name)] = true
	}
	for _, head := range task.Heads {
		for _, m := range task.metrics {
			name := report.HeadMetric(task.Name, head.Name, m.Name)
			n.names = append(n.names, name)
			n.lower[name] = m.Lower
			first, _, _ := strings.Cut(m.Name, "_")
			for _, of := range []string{m.Name, first} {
				headless := "eval_" + task.Name + "_" + of
				n.headless[headless] = cmp.Or(n.headless[headless], name)
			}
			if !m.F1 {
				continue
			}
			// Jenga-NLP has one f1, precision and recall of a head: those of its main F1.
			for _, short := range []string{"f1", "precision", "recall"} {
				whole := report.HeadMetric(task.Name, head.Name, strings.Replace(m.Name, "f1", short, 1))
				n.short[report.HeadMetric(task.Name, head.Name, short)] = whole
			}
		}
	}
}

func (d *decoding) checkDuplicates(task Task, names []string, taken map[string]string) {
	clash := false
	for _, name := range names {
		first, duplicate := taken[name]
		switch {
		case !duplicate:
			taken[name] = fmt.Sprintf("task %q", task.Name)
		case !clash:
			clash = true
			d.mistakes.Add(task.Place, "task %q: duplicate metric %s, also of %s; rename the task or the head",
				task.Name, name, first)
		}
	}
}
