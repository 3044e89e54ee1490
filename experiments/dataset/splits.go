package dataset

import (
	"math"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/plugin"
)

// Unused is the name, in Group.Divided, of the training examples that `limit` leaves out.
const Unused = "unused"

// division divides the examples of a group's training file.
type division struct {
	*reader
	task      config.Task // the first of the group
	requested []string    // splits
	all       []*corpus.Example
	labels    map[*corpus.Example]string // of the group's first head; nil: not stratified
	parts     map[string][]*corpus.Example
}

// TrainingFile returns the file of the training examples.
func TrainingFile(d config.Data) config.File {
	if d.Path.Name != "" {
		return d.Path
	}
	return d.Train
}

// divide takes the splits without a file of their own from the examples of a group's training file, and warns of those
// in requested.
func (r *reader) divide(group *Group, all []*corpus.Example, requested []string) map[string][]*corpus.Example {
	task := r.e.Tasks[group.Tasks[0]]
	d := task.Data
	v := division{r, task, requested, all, r.labels(group, all), map[string][]*corpus.Example{config.Train: all}}

	// splits
	if d.Test.Name == "" {
		v.take(config.Test, d.Split.Test)
	}
	if d.Dev.Name == "" {
		v.take(config.Dev, d.Split.Dev)
	}
	if len(v.parts[config.Train]) == 0 && len(all) > 0 { // otherwise the error is reported already
		r.mistakes.Add(r.e.Place("tasks."+task.Name+".data.split"),
			"task %q: data: split: {dev: %v, test: %v} of the %d examples of %s leaves none to train on; take fewer",
			task.Name, d.Split.Dev, d.Split.Test, len(all), TrainingFile(d).Name)
	}

	// limit
	v.limit()

	// places
	if len(v.parts) > 1 {
		group.Divided = map[string][]corpus.Place{}
		for name, examples := range v.parts {
			for _, e := range examples {
				group.Divided[name] = append(group.Divided[name], e.Place)
			}
		}
	}
	return v.parts
}

// take moves an amount of the training examples, a value of config.Split, to another split.
func (v *division) take(split string, amount float64) {
	d, wanted := v.task.Data, slices.Contains(v.requested, split)
	n := count(amount, len(v.all))
	if n == 0 && amount > 0 && len(v.all) > 0 && wanted {
		v.warnings = append(v.warnings, plugin.Warning(v.e.Place("tasks."+v.task.Name+".data.split"),
			"task %q: data: split: %s has no examples: %v of the %d examples of %s rounds to 0", v.task.Name, split,
			amount, len(v.all), TrainingFile(d).Name))
	}
	if n == 0 {
		return
	}

	how := ""
	train := v.parts[config.Train]
	if d.Split.By != "" {
		v.parts[config.Train], v.parts[split] = corpus.SplitGroups(train, n, d.Split.Seed)
		if len(v.parts[split]) == 0 {
			v.mistakes.Add(v.e.Place("tasks."+v.task.Name+".data.split"),
				"task %q: data: split: by: %s leaves none of the %d examples of %s for %s: it has one value alone; "+
					"name another field", v.task.Name, d.Split.By, len(train), TrainingFile(d).Name, split)
		}
		how = v.byGroups(v.parts[config.Train], v.parts[split], n)
	} else {
		var strata []string
		strata, how = v.strata(train)
		v.parts[config.Train], v.parts[split] = corpus.SplitN(train, strata, n, d.Split.Seed)
	}
	if wanted {
		v.warnings = append(v.warnings, plugin.Warning(plugin.Place{},
			"task %q has no %s file: %d of the %d examples of %s are taken (seed %d%s)", v.task.Name, split,
			len(v.parts[split]), len(v.all), TrainingFile(d).Name, d.Split.Seed, how))
	}
}

// limit moves the training examples beyond the task's limit to Unused. The others are a sample by the experiment's
// seed, which `split` may not have.
func (v *division) limit() {
	train, n := v.parts[config.Train], v.task.Data.Limit
	if n == 0 || n >= len(train) {
		return
	}
	strata, how := v.strata(train)
	v.parts[config.Train], v.parts[Unused] = corpus.Sample(train, strata, n, v.e.Seed)
	if slices.Contains(v.requested, config.Train) {
		v.warnings = append(v.warnings, taskWarning(v.task, "limit: %d of the %d training examples of %s are used "+
			"(seed %d%s)", n, len(train), TrainingFile(v.task.Data).Name, v.e.Seed, how))
	}
}

// strata returns the label of each example, and the end of a warning that says so; nil where a division is not
// stratified.
func (v *division) strata(examples []*corpus.Example) (strata []string, how string) {
	if v.labels == nil {
		return nil, ""
	}
	for _, e := range examples {
		strata = append(strata, v.labels[e])
	}
	return strata, ", stratified by label"
}

// labels returns the label of each example for the first head of a group, "" for none; nil if the head's output has no
// labels, or several for an example.
func (r *reader) labels(group *Group, examples []*corpus.Example) map[*corpus.Example]string {
	kind := r.types[group.Tasks[0]].Output()
	if !kind.HasLabels || kind.PerWord {
		return nil
	}
	labels, several := map[*corpus.Example]string{}, false
	for _, e := range examples {
		kind.Names(e.Targets[0], func(name *string) {
			_, second := labels[e]
			several = several || second
			labels[e] = *name
		})
	}
	if several || len(labels) == 0 {
		return nil
	}
	return labels
}

// count returns the number of n examples for a value of config.Split.
func count(amount float64, n int) int {
	if amount >= 1 {
		return min(int(amount), n)
	}
	return int(math.Round(amount * float64(n)))
}
