package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/tasks"
)

// metric settles what the best model is chosen by, and refuses a metric that evaluations will not have.
func (d *decoding) metric(s *plugin.Section) {
	t := &d.e.Training
	if !s.Has("metric_for_best_model") {
		t.MetricForBestModel = "eval_overall"
	}
	if !d.mistakes.None() {
		return // the tasks may not be what they should
	}
	names, lower := d.metrics()
	higher := !lower[t.MetricForBestModel]
	if !s.Has("greater_is_better") {
		t.GreaterIsBetter = higher
	} else if t.GreaterIsBetter != higher {
		d.remark(s.At("greater_is_better").Place, "greater_is_better: %v with %s chooses the worst model", t.GreaterIsBetter, t.MetricForBestModel)
	}
	if m := s.At("metric_for_best_model"); s.Has("metric_for_best_model") && !slices.Contains(names, t.MetricForBestModel) {
		d.mistakes.Add(m.Place, "training: metric_for_best_model: %s", plugin.Unknown("metric", t.MetricForBestModel, names))
	}
}

// metrics lists the names of all figures that an evaluation of the tasks has, as Figures names them, and those that are
// better when they are lower. Two figures of one name are a mistake.
func (d *decoding) metrics() (names []string, lower map[string]bool) {
	names, lower = []string{"eval_loss", "eval_overall"}, map[string]bool{"eval_loss": true}
	taken := map[string]string{"eval_loss": "all tasks", "eval_overall": "all tasks", "eval_overall_f1": "all tasks", "eval_all_right": "all tasks"}
	clashes := map[string]bool{} // tasks of which one figure is named already
	add := func(task Task, name string) {
		names = append(names, name)
		if first, twice := taken[name]; !twice {
			taken[name] = fmt.Sprintf("task %q", task.Name)
		} else if !clashes[task.Name] {
			clashes[task.Name] = true
			d.mistakes.Add(task.Place, "task %q: its figure %s has the name of one of %s; rename the task or the head", task.Name, name, first)
		}
	}
	f1, exact := false, map[int]int{} // heads whose answers are right or wrong, of each task
	for number, task := range d.e.Tasks {
		part, err := task.Part.Build(tasks.Site{Name: task.Name, Heads: task.HeadNames(), Split: splitBlanks})
		if err != nil {
			d.mistakes.Append(err)
			continue
		}
		if slices.ContainsFunc(task.Heads, Head.learns) {
			add(task, "eval_"+task.Name+"_loss")
			lower["eval_"+task.Name+"_loss"] = true
		}
		for _, head := range task.Heads {
			for _, m := range part.Judge(nil, nil) {
				figure := strings.Join([]string{"eval", task.Name, head.Name, m.Name}, "_")
				add(task, figure)
				lower[figure] = m.Lower
				f1 = f1 || m.Name == "f1"
			}
		}
		if part.Output().Exact() {
			exact[number] = len(task.Heads)
		}
	}
	if f1 {
		names = append(names, "eval_overall_f1")
	}
	if slices.ContainsFunc(d.e.Groups(), func(group []int) bool {
		n := 0
		for _, number := range group {
			n += exact[number]
		}
		return n > 1
	}) {
		names = append(names, "eval_all_right")
	}
	return names, lower
}

// splitBlanks stands in for the tokenizer that a task's site has when it reads data.
func splitBlanks(text string) []corpus.Span {
	var words []corpus.Span
	at := 0
	for word := range strings.FieldsSeq(text) {
		start := at + strings.Index(text[at:], word)
		at = start + len(word)
		words = append(words, corpus.Span{Start: start, End: at})
	}
	return words
}
