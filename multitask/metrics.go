package multitask

import (
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/tasks"
)

// Loss is the loss of one head.
type Loss struct {
	Task, Head string
	Weight     float64 // of the head, from the experiment
	Factor     float64 // of its mean in the loss that a step minimised; 0 in evaluations
	Sum        float64 // over the labelled units
	Units      float64 // number of labelled units
}

// Mean returns the mean loss of a labelled unit, 0 without labelled units.
func (l Loss) Mean() float64 {
	if l.Units == 0 {
		return 0
	}
	return l.Sum / l.Units
}

// HeadName returns the name of the loss's head.
func (l Loss) HeadName() HeadName { return HeadName{l.Task, l.Head} }

// HeadName names a head of a task.
type HeadName struct{ Task, Head string }

// HeadNumbers returns the index of each head.
func HeadNumbers(heads []HeadName) map[HeadName]int {
	numbers := map[HeadName]int{}
	for i, head := range heads {
		numbers[head] = i
	}
	return numbers
}

// Losses returns a Loss for each head of a group, with the number of labelled units in batches.
func (g *Group) Losses(batches ...*corpus.Batch) []Loss {
	var all []Loss
	for _, task := range g.Tasks {
		for _, head := range task.Heads {
			l := Loss{Task: task.Name, Head: head.Name, Weight: head.Weight}
			for _, batch := range batches {
				l.Units += head.Head.Units(gold(batch.Examples, len(all)))
			}
			all = append(all, l)
		}
	}
	return all
}

// LossNodes returns the node of each head's loss over the batch, nil without labelled units.
func (g *Group) LossNodes(p *nn.Pass, a Forwarded, batch *corpus.Batch) []*nn.Node {
	var nodes []*nn.Node
	for h, head := range g.Heads() {
		nodes = append(nodes, head.Head.Loss(p, a.logits[h], gold(batch.Examples, h)))
	}
	return nodes
}

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

// types returns the task that each head belongs to.
func (g *Group) types() []tasks.Task {
	var types []tasks.Task
	for _, task := range g.Tasks {
		for range task.Heads {
			types = append(types, task.Type)
		}
	}
	return types
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

// LossValue returns the value of a loss after a forward pass.
func LossValue(loss *nn.Node) float64 { return float64(nn.Values(loss)[0]) }
