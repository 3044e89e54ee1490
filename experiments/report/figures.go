// Package report names the metrics of evaluations, and says by the metrics file of a run how far it came.
package report

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/multitask"
)

// Selection is the metric that selects the best checkpoint, by keys of the section training.
type Selection struct {
	Metric string `yaml:"-"` // eval_overall, eval_loss, eval_TASK_loss, eval_TASK_HEAD_METRIC, …
	// whether a higher value of metric_for_best_model is better; false for losses and errors
	Higher bool `yaml:"greater_is_better" default:"(by the metric)"`
	// Weights of tasks, by whose main metrics Weighted is computed; nil for other metrics
	Weights map[string]float64 `yaml:"-"`
}

// Value returns the selected metric of an evaluation.
func (s Selection) Value(groups []multitask.GroupMetrics) (float64, error) {
	if s.Weights != nil {
		if v := s.Weighted(groups); v != nil {
			return *v, nil
		}
		return 0, errors.New("no task with a weight has a metric in this evaluation")
	}
	v, ok := Metrics(groups)[s.Metric]
	if !ok {
		return 0, fmt.Errorf("no metric %q in this evaluation", s.Metric)
	}
	return v, nil
}

// Weighted returns the weighted mean of the main metrics of the tasks that have one; nil where none has a weight.
func (s Selection) Weighted(groups []multitask.GroupMetrics) *float64 {
	sum, weights := 0.0, 0.0
	for _, g := range groups {
		for _, task := range g.Tasks {
			if figure, ok := task.Main(); ok {
				sum += s.Weights[task.Task] * figure
				weights += s.Weights[task.Task]
			}
		}
	}
	if weights == 0 {
		return nil
	}
	sum /= weights
	return &sum
}

// Better reports whether value a is better than b.
func (s Selection) Better(a, b float64) bool { return s.Higher && a > b || !s.Higher && a < b }

// Names of the metrics of all tasks.
const (
	Loss      = "eval_loss"
	Overall   = "eval_overall"
	OverallF1 = "eval_overall_f1"
	AllRight  = "eval_all_right"
	Weighted  = "eval_weighted" // of a Selection by weights
)

// TaskLoss returns the metric name of a task's loss.
func TaskLoss(task string) string { return "eval_" + task + "_loss" }

// HeadMetric returns the metric name of a head's metric.
func HeadMetric(task, head, metric string) string {
	return strings.Join([]string{"eval", task, head, metric}, "_")
}

// Metrics returns all metrics of an evaluation by the names that metric_for_best_model takes:
//
//	eval_loss              the mean of the tasks' losses
//	eval_overall           the mean of all heads' main metrics, for all of which higher is better
//	eval_overall_f1        the mean of all heads' main F1
//	eval_TASK_loss         the sum of the task's heads' losses, each times its weight
//	eval_TASK_HEAD_METRIC  a head's metric
//	eval_all_right         the mean over groups of the fraction of examples with every head right
//
// Heads without labelled examples and undefined metrics are left out.
func Metrics(groups []multitask.GroupMetrics) map[string]float64 {
	figures := map[string]float64{}
	var losses, mains, f1s, rights mean
	for _, g := range groups {
		if g.AllRight != nil {
			rights.add(*g.AllRight)
		}
		for _, task := range g.Tasks {
			loss, labelled := 0.0, false
			for _, head := range task.Heads {
				if head.Loss.Units > 0 {
					loss, labelled = loss+head.Loss.Weight*head.Loss.Mean(), true
				}
				for i, m := range head.Metrics {
					if m.Undefined {
						continue
					}
					if i == 0 {
						mains.add(m.Value)
					}
					if m.F1 {
						f1s.add(m.Value)
					}
					figures[HeadMetric(task.Task, head.Head, m.Name)] = m.Value
				}
			}
			if labelled {
				losses.add(loss)
				figures[TaskLoss(task.Task)] = loss
			}
		}
	}
	losses.into(figures, Loss)
	mains.into(figures, Overall)
	f1s.into(figures, OverallF1)
	rights.into(figures, AllRight)
	return figures
}

// MainMetric returns the name and value of the main metric of a head in metrics; "" and nil where it has none, or the
// data gives it no meaning.
func MainMetric(groups []multitask.GroupMetrics, task, head string) (name string, value *float64) {
	for _, c := range Changes(groups) {
		if c.Task == task && c.Head == head {
			return c.Metric, c.Before
		}
	}
	return "", nil
}

// Change is the main metric of a head on dev before and after its model was changed; nil where it is unknown.
type Change struct {
	Task   string   `json:"task"`
	Head   string   `json:"head"`
	Metric string   `json:"metric,omitempty"`
	Before *float64 `json:"before"`
	After  *float64 `json:"after"`
}

// Changes returns the heads of an evaluation before a change whose main metric is defined.
func Changes(before []multitask.GroupMetrics) (all []Change) {
	for _, group := range before {
		for _, task := range group.Tasks {
			for _, head := range task.Heads {
				if len(head.Metrics) > 0 && !head.Metrics[0].Undefined {
					m := head.Metrics[0]
					all = append(all, Change{Task: task.Task, Head: head.Head, Metric: m.Name, Before: &m.Value})
				}
			}
		}
	}
	return all
}

// SetAfter returns changes with the metrics of an evaluation after the change.
func SetAfter(changes []Change, after []multitask.GroupMetrics) []Change {
	changes = slices.Clone(changes)
	for i, c := range changes {
		name, value := MainMetric(after, c.Task, c.Head)
		changes[i].After = nil
		if c.Before == nil || name == c.Metric {
			changes[i].After = value
		}
	}
	return changes
}

// Difference returns by how much the metric is higher after the change; known is false where one of both is not.
func (c Change) Difference() (higher float64, known bool) {
	if c.Before == nil || c.After == nil {
		return 0, false
	}
	return *c.After - *c.Before, true
}

type mean struct{ sum, n float64 }

func (m *mean) add(v float64) { m.sum += v; m.n++ }

func (m *mean) into(figures map[string]float64, name string) {
	if m.n > 0 {
		figures[name] = m.sum / m.n
	}
}

// Only returns the metrics of one task; all if task is "".
func Only(groups []multitask.GroupMetrics, task string) []multitask.GroupMetrics {
	if task == "" {
		return groups
	}
	for _, g := range groups {
		for _, t := range g.Tasks {
			if t.Task == task {
				return []multitask.GroupMetrics{{Tasks: []multitask.TaskMetrics{t}}}
			}
		}
	}
	return nil
}

// EvalLine is the JSON of an evaluation, in metrics.jsonl and by `eval --json`.
type EvalLine struct {
	Event   string              `json:"event,omitempty"`
	Split   string              `json:"split"`
	Step    int                 `json:"step,omitempty"`
	Epoch   float64             `json:"epoch,omitempty"`
	Tasks   map[string]TaskLine `json:"tasks"`
	Groups  []GroupLine         `json:"groups,omitempty"`
	Overall map[string]float64  `json:"overall,omitempty"` // metrics of the evaluation as a whole
	// Fusion has numbers of the fusion by task: for a mix, the weight of each layer.
	Fusion map[string][]float32 `json:"fusion,omitempty"`
	// Precision is that of the encoder's products, if it is not float32; only by eval.
	Precision string `json:"precision,omitempty"`
	// Device is what the encoder computes on, if it is not the processor; only by eval.
	Device string `json:"device,omitempty"`
	// Unfinished is how far the training of the run came, if it did not come to its end; only by eval.
	Unfinished *State `json:"unfinished,omitempty"`
	// Against is another run on the same texts; only by eval.
	Against *Against `json:"against,omitempty"`
	// OtherTexts has what heads find in texts of other tasks; only by eval.
	OtherTexts []HeadRates `json:"other_texts,omitempty"`
}

// HeadRates is how often a head finds something in texts of its own task, and in those of other tasks.
type HeadRates struct {
	Task   string      `json:"task"`
	Head   string      `json:"head"`
	Own    Rate        `json:"own"`
	Others []OtherRate `json:"others"`
}

// Rate is how often a head finds something: the fraction of words in spans, or of questions with an answer, or the mean
// number of labels of a text.
type Rate struct {
	Texts int     `json:"texts"` // their number
	Rate  float64 `json:"rate"`
}

// OtherRate is a head's Rate in texts of other tasks.
type OtherRate struct {
	Tasks []string `json:"tasks"` // that read the texts
	Texts int      `json:"texts"`
	Rate  float64  `json:"rate"`
	// Reference is the rate of a model of the head's task alone; nil: there is none.
	Reference *float64 `json:"reference,omitempty"`
	High      bool     `json:"high"` // Rate is far above that, or above the head's own
}

// Against is the main metric of each head that another run has too: before is that run's, after that of this one.
type Against struct {
	Run   string   `json:"run"` // its folder
	Heads []Change `json:"heads"`
}

// TaskLine has the metrics of each head by name, with its mean loss. A head without labelled examples has none.
type TaskLine struct {
	Heads    map[string]HeadLine `json:"heads"`
	Examples int                 `json:"examples,omitempty"`
	// Factor is that of the task's gradient of the shared parameters, where a weighting reports it.
	Factor *float64 `json:"factor,omitempty"`
}

// HeadLine has metrics by name, null where the targets leave one undefined, "examples", the number of labelled
// examples, and for outputs that are labels the tables "labels" and "confusion".
type HeadLine map[string]any

// GroupLine has the metric of all tasks that read the same texts.
type GroupLine struct {
	Tasks    []string `json:"tasks"`
	AllRight float64  `json:"all_right"`
}

// EvalLineOf returns the line of an evaluation on a split.
func EvalLineOf(split string, groups []multitask.GroupMetrics) EvalLine {
	line := EvalLine{Split: split, Tasks: map[string]TaskLine{}, Overall: map[string]float64{}}
	for _, g := range groups {
		for _, task := range g.Tasks {
			t := TaskLine{Heads: map[string]HeadLine{}, Examples: task.Examples}
			for _, head := range task.Heads {
				figures := HeadLine{}
				if head.Examples > 0 {
					figures["examples"] = head.Examples
				}
				if head.Loss.Units > 0 {
					figures["loss"] = head.Loss.Mean()
				}
				for _, m := range head.Metrics {
					figures[m.Name] = m.Value
					if m.Undefined {
						figures[m.Name] = nil
					}
				}
				if head.Tables != nil {
					figures["labels"] = head.Tables.Labels
					if head.Tables.Confusion != nil {
						figures["confusion"] = head.Tables.Confusion
					}
				}
				t.Heads[head.Head] = figures
			}
			line.Tasks[task.Task] = t
		}
		if g.AllRight != nil {
			line.Groups = append(line.Groups, GroupLine{Tasks: g.DiscreteTasks(), AllRight: *g.AllRight})
		}
	}
	all := Metrics(groups)
	for _, name := range []string{Loss, Overall, OverallF1, AllRight} {
		if value, ok := all[name]; ok {
			line.Overall[name] = value
		}
	}
	return line
}
