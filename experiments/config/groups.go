package config

import (
	"maps"
	"slices"

	"github.com/jenga-nlp/jenga/plugin"
)

// Groups divides the tasks by the texts they read, and lists the numbers of each group's tasks: a task that says
// same_as belongs to the group of the task it names.
func (e *Experiment) Groups() [][]int {
	var groups [][]int
	of := map[string]int{} // task name → its group
	for len(of) < len(e.Tasks) {
		for i, task := range e.Tasks {
			if _, done := of[task.Name]; done {
				continue
			}
			g, follows := of[task.Data.SameAs]
			switch {
			case follows:
				groups[g] = append(groups[g], i)
			case task.Data.SameAs == "":
				g = len(groups)
				groups = append(groups, []int{i})
			default:
				continue // the task it follows has no group yet
			}
			of[task.Name] = g
		}
	}
	return groups
}

// follow gives tasks that say same_as the texts of the task they name.
func (d *decoding) follow() {
	byName := map[string]*Task{}
	for i := range d.e.Tasks {
		byName[d.e.Tasks[i].Name] = &d.e.Tasks[i]
	}
	for i := range d.e.Tasks {
		task := &d.e.Tasks[i]
		from := task
		for n := 0; from.Data.SameAs != ""; n++ {
			next := byName[from.Data.SameAs]
			if next == nil {
				if from == task {
					others := slices.DeleteFunc(slices.Collect(maps.Keys(byName)),
						func(name string) bool { return name == task.Name })
					d.mistakes.Add(task.Place, "task %q: data: same_as: %s", task.Name,
						plugin.Unknown("task", task.Data.SameAs, others))
				}
				break
			}
			if n == len(d.e.Tasks) {
				d.mistakes.Add(task.Place, "task %q: data: same_as leads back to itself; one of the tasks has a file",
					task.Name)
				break
			}
			from = next
		}
		if from != task && from.Data.SameAs == "" {
			if task.Windowing.Separate != from.Windowing.Separate {
				d.mistakes.Add(task.Place,
					"task %q: data: same_as: task %q reads pairs in another way: one of them encodes their texts "+
						"apart; give each files of its own", task.Name, from.Name)
			}
			if task.Hides || from.Hides {
				d.mistakes.Add(task.Place,
					"task %q: data: same_as: of tasks %q and %q one hides tokens that the other would read; give "+
						"each files of its own", task.Name, task.Name, from.Name)
			}
			task.Data, task.Windowing = from.Data.seenBy(task.Data), from.Windowing
		}
	}
}

// seenBy returns the data of a task that reads the texts of d under fields of its own.
func (d Data) seenBy(own Data) Data {
	own.Train, own.Dev, own.Test, own.Path, own.Limit = d.Train, d.Dev, d.Test, d.Path, d.Limit
	own.Split = d.Split
	fields := maps.Clone(own.Format.Fields)
	own.Format = d.Format
	for _, name := range []string{"text", "pair", "words", "question", "context"} {
		if column, named := d.Format.Fields[name]; named && fields[name] == "" {
			if fields == nil {
				fields = map[string]string{}
			}
			fields[name] = column
		}
	}
	own.Format.Fields = fields
	return own
}
