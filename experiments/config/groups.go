package config

import (
	"maps"
	"slices"

	"github.com/jenga-nlp/jenga/plugin"
)

// KeepsAll reports whether a group, by the numbers of its tasks, has only tasks that are kept of a base run.
func (e *Experiment) KeepsAll(group []int) bool {
	return !slices.ContainsFunc(group, func(number int) bool { return !e.Tasks[number].Keep })
}

// Groups groups the tasks that read the same texts, and returns the task numbers of each group. A task with same_as
// belongs to the group of the task that same_as names.
func (e *Experiment) Groups() [][]int {
	var groups [][]int
	of := map[string]int{} // task name → its group
	for len(of) < len(e.Tasks) {
		for i, task := range e.Tasks {
			if _, done := of[task.Name]; done {
				continue
			}
			g, found := of[task.Data.SameAs]
			switch {
			case found:
				groups[g] = append(groups[g], i)
			case task.Data.SameAs == "":
				g = len(groups)
				groups = append(groups, []int{i})
			default:
				continue // the task of same_as has no group yet
			}
			of[task.Name] = g
		}
	}
	return groups
}

// Readable returns an experiment with the tasks whose data can be read, of one that Read returned with an error: those
// without mistakes of their own, apart from files that do not exist.
func (e *Experiment) Readable() *Experiment {
	readable := *e
	readable.Tasks = nil
	names := map[string]bool{"": true} // same_as may name them
	for found := true; found; {
		found = false
		for _, task := range e.Tasks {
			if !task.mistaken && !names[task.Name] && names[task.Data.SameAs] {
				names[task.Name], found = true, true
				readable.Tasks = append(readable.Tasks, task)
			}
		}
	}
	return &readable
}

// resolveSameAs copies the data of the task that same_as names to each task with same_as.
func (d *decoding) resolveSameAs() {
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
				d.mistakes.Add(task.Place, "task %q: data: same_as is circular; one of these tasks must have files",
					task.Name)
				break
			}
			from = next
		}
		if from != task && from.Data.SameAs == "" {
			if task.Windowing.Separate != from.Windowing.Separate {
				d.mistakes.Add(task.Place,
					"task %q: data: same_as: task %q reads pairs in another way: one of the two encodes the texts of "+
						"a pair separately; give each files of its own", task.Name, from.Name)
			}
			if task.HidesTokens || from.HidesTokens {
				d.mistakes.Add(task.Place,
					"task %q: data: same_as: of tasks %q and %q one hides tokens that the other would read; give "+
						"each files of its own", task.Name, task.Name, from.Name)
			}
			task.Data, task.Windowing = from.Data.withFields(task.Data), from.Windowing
		}
	}
}

// textFields are the fields of texts, which tasks that read the same texts have in common.
var textFields = []string{"text", "pair", "words", "question", "context"}

// sameText has the two names of the first text, and of the second.
var sameText = map[string]string{"text": "question", "question": "text", "pair": "context", "context": "pair"}

// withFields returns d with the fields of own. Fields of the texts that own does not name are those of d.
func (d Data) withFields(own Data) Data {
	own.Train, own.Dev, own.Test, own.Path, own.Limit = d.Train, d.Dev, d.Test, d.Path, d.Limit
	own.Split, own.Formats, own.SplitWords, own.Stream = d.Split, d.Formats, d.SplitWords, d.Stream
	own.unset = nil
	fields := maps.Clone(own.Format.Fields)
	own.Format = d.Format
	for _, name := range textFields {
		if column, named := d.Format.Fields[name]; named && fields[name] == "" && fields[sameText[name]] == "" {
			if fields == nil {
				fields = map[string]string{}
			}
			fields[name] = column
		}
	}
	own.Format.Fields = fields
	return own
}
