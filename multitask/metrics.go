package multitask

import (
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/tasks"
)

// GroupMetrics are the metrics of a group's tasks on some examples.
type GroupMetrics struct {
	Tasks []TaskMetrics
	// AllRight is the fraction of examples with all heads right, among those labelled for all heads; nil where fewer
	// than two heads count. Heads whose predictions are not right or wrong, such as numbers, do not count.
	AllRight *float64
}

// DiscreteTasks returns the names of the tasks that AllRight counts.
func (g GroupMetrics) DiscreteTasks() []string {
	var names []string
	for _, task := range g.Tasks {
		if task.Discrete {
			names = append(names, task.Task)
		}
	}
	return names
}

// TaskMetrics are the metrics of one task's heads.
type TaskMetrics struct {
	Task     string
	Discrete bool // its predictions are right or wrong: AllRight counts them
	Examples int  // labelled for at least one of the heads
	Heads    []HeadMetrics
}

// Main returns the mean of the main metrics of a task's heads; ok is false without labelled examples, or where all are
// undefined.
func (m TaskMetrics) Main() (mean float64, ok bool) {
	sum, n := 0.0, 0.0
	for _, head := range m.Heads {
		if len(head.Metrics) > 0 && !head.Metrics[0].Undefined {
			sum += head.Metrics[0].Value
			n++
		}
	}
	return sum / max(1, n), n > 0
}

// HeadMetrics are the metrics of one head.
type HeadMetrics struct {
	Head     string
	Examples int // labelled for it
	Loss     Loss
	Metrics  []tasks.Metric // the main one first; none without labelled examples
	Tables   *tasks.Tables  // by label; nil for a task without labels, and without labelled examples
}

// ExpectedMetrics returns the metrics that an evaluation on examples will have, each 0 or undefined.
func (g *Group) ExpectedMetrics(examples []*corpus.Example) GroupMetrics {
	metrics := g.newMetrics(examples)
	types, heads := g.types(), g.Heads()
	for h, m := range metrics.heads() {
		if m.Examples > 0 {
			m.Metrics = types[h].Evaluate(nil, nil)
			tasks.MarkUndefined(types[h], labelledOnly(gold(examples, h)), m.Metrics)
			m.Loss.Units = expectedUnits(heads[h].Head, gold(examples, h))
		}
	}
	discrete := g.discrete()
	labelled := func(e *corpus.Example) bool { return labelledForAll(e, discrete) }
	if len(discrete) > 1 && slices.ContainsFunc(examples, labelled) {
		metrics.AllRight = new(float64)
	}
	return metrics
}

func labelledOnly(gold []corpus.Target) []corpus.Target {
	return slices.DeleteFunc(slices.Clone(gold), func(t corpus.Target) bool { return t == nil })
}

// judge compares predictions [heads][examples] with the examples' targets.
func (g *Group) judge(examples []*corpus.Example, predicted [][]corpus.Prediction, losses []Loss) GroupMetrics {
	metrics, types := g.newMetrics(examples), g.types()
	for h, m := range metrics.heads() {
		m.Loss = losses[h]
		if m.Examples == 0 {
			continue
		}
		var gold []corpus.Target
		var predictions []corpus.Prediction
		for i, e := range examples {
			if e.Targets[h] != nil {
				gold = append(gold, e.Targets[h])
				predictions = append(predictions, predicted[h][i])
			}
		}
		m.Metrics = types[h].Evaluate(gold, predictions)
		tasks.MarkUndefined(types[h], gold, m.Metrics)
		if tabulate := tasks.DescriptionOf(types[h]).Tables; tabulate != nil {
			tables := tabulate(gold, predictions)
			m.Tables = &tables
		}
	}
	if discrete := g.discrete(); len(discrete) > 1 {
		metrics.AllRight = g.allRight(examples, predicted, discrete)
	}
	return metrics
}

func (g *Group) newMetrics(examples []*corpus.Example) GroupMetrics {
	var metrics GroupMetrics
	h := 0
	for _, task := range g.Tasks {
		m := TaskMetrics{Task: task.Name, Discrete: task.Type.Output().Discrete()}
		m.Heads = make([]HeadMetrics, len(task.Heads))
		for i, head := range task.Heads {
			m.Heads[i].Head = head.Name
		}
		for _, e := range examples {
			labelled := false
			for i := range task.Heads {
				if e.Targets[h+i] != nil {
					m.Heads[i].Examples++
					labelled = true
				}
			}
			if labelled {
				m.Examples++
			}
		}
		h += len(task.Heads)
		metrics.Tasks = append(metrics.Tasks, m)
	}
	return metrics
}

// expectedUnits returns the units of a head's loss over targets: the examples for a head that makes its targets from
// each batch.
func expectedUnits(head heads.Head, gold []corpus.Target) float64 {
	if head.Describe().Prepare == nil {
		return head.Units(gold)
	}
	return float64(len(labelledOnly(gold)))
}

// heads returns the metrics of the group's heads, in their order.
func (m GroupMetrics) heads() []*HeadMetrics {
	var all []*HeadMetrics
	for _, task := range m.Tasks {
		for h := range task.Heads {
			all = append(all, &task.Heads[h])
		}
	}
	return all
}

// discrete returns the indexes of the heads whose predictions are right or wrong.
func (g *Group) discrete() []int {
	var discrete []int
	for h, t := range g.types() {
		if t.Output().Discrete() {
			discrete = append(discrete, h)
		}
	}
	return discrete
}

// allRight returns the fraction of examples for which all of the given heads are right, among those labelled for all of
// them; nil if there are none.
func (g *Group) allRight(examples []*corpus.Example, predicted [][]corpus.Prediction, heads []int) *float64 {
	right, all, types := 0, 0, g.types()
	for i, e := range examples {
		if !labelledForAll(e, heads) {
			continue
		}
		all++
		wrong := func(h int) bool { return !types[h].Output().Right(e.Targets[h], predicted[h][i]) }
		if !slices.ContainsFunc(heads, wrong) {
			right++
		}
	}
	if all == 0 {
		return nil
	}
	fraction := float64(right) / float64(all)
	return &fraction
}

func labelledForAll(e *corpus.Example, heads []int) bool {
	return !slices.ContainsFunc(heads, func(h int) bool { return e.Targets[h] == nil })
}
