package report

import "github.com/jenga-nlp/jenga/multitask"

// evaluationLine returns the line of an evaluation in training.
func evaluationLine(e multitask.Evaluation) EvalLine {
	line := EvalLineOf(dev, e.Groups)
	line.Event, line.Step, line.Epoch, line.Fusion = "eval", e.Step, e.Epoch, e.Fusion
	if e.Weighted != nil {
		line.setOverall(Weighted, *e.Weighted)
	}
	return line
}

// EvalLineOf returns the line of an evaluation on a split.
func EvalLineOf(split string, groups []multitask.GroupMetrics) EvalLine {
	line := EvalLine{Split: split, Tasks: map[string]TaskLine{}}
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
			line.setOverall(name, value)
		}
	}
	return line
}

// setOverall sets a metric of the evaluation as a whole.
func (l *EvalLine) setOverall(name string, value float64) {
	if l.Overall == nil {
		l.Overall = map[string]float64{}
	}
	l.Overall[name] = value
}
