package dataset

import (
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/plugin"
)

// Unused is the name, in Group.Divided, of the training examples that `limit` leaves out.
const Unused = "unused"

// division divides the examples of a group's training file, by their numbers in it.
type division struct {
	*reader
	task     config.Task // the first of the group
	all      *divisible
	parts    map[string][]uint32
	warnings []splitWarning
}

type splitWarning struct {
	Split   string
	Warning plugin.Warning
}

func (r *reader) warnOf(requested []string, warnings []splitWarning) {
	for _, w := range warnings {
		if slices.Contains(requested, w.Split) {
			r.warnings = append(r.warnings, w.Warning)
		}
	}
}

// divisible is what a division depends on of the examples of a training file.
type divisible struct {
	n       int
	groups  []uint32 // of the examples with the same value of split: by; nil without
	labels  []uint32 // of the group's first head, from 1; 0: none
	several bool     // an example has several labels
	numbers map[string]uint32
	byGroup map[string]uint32
	place   func(number int) corpus.Place
}

func newDivisible(place func(number int) corpus.Place) *divisible {
	return &divisible{numbers: map[string]uint32{}, byGroup: map[string]uint32{}, place: place}
}

// add adds the next example. kind is the output of the group's first task.
func (d *divisible) add(e *corpus.Example, kind *outputs.Kind, byGroup bool) {
	if d.n++; byGroup {
		d.groups = append(d.groups, numberOf(d.byGroup, e.Group))
	}
	if d.several || !kind.HasLabels || kind.PerWord {
		return
	}
	label := uint32(0)
	kind.Names(e.Targets[0], func(name *string) {
		d.several = d.several || label != 0
		label = numberOf(d.numbers, *name)
		if *name == "" {
			label = 0
		}
	})
	d.labels = append(d.labels, label)
}

// numberOf returns the number of a name, from 1, which it adds to numbers.
func numberOf(numbers map[string]uint32, name string) uint32 {
	number, known := numbers[name]
	if !known {
		number = uint32(len(numbers) + 1)
		numbers[name] = number
	}
	return number
}

// stratified reports whether the division keeps the fractions of the labels: the output of the group's first head has
// labels, and one for an example.
func (d *divisible) stratified() bool { return !d.several && len(d.numbers) > 0 }

// TrainingFile returns the file of the training examples.
func TrainingFile(d config.Data) config.File {
	if d.Path.Name != "" {
		return d.Path
	}
	return d.Train
}

// divide takes the splits without a file of their own from the examples of a group's training file. It returns the
// numbers of the examples of each split, and warnings of them.
func (r *reader) divide(group *Group, all *divisible) (map[string][]uint32, []splitWarning) {
	task := r.e.Tasks[group.Tasks[0]]
	d := task.Data
	v := division{reader: r, task: task, all: all, parts: map[string][]uint32{config.Train: numbersTo(all.n)}}

	// splits
	if d.Test.Name == "" {
		v.take(config.Test, d.Split.Test)
	}
	if d.Dev.Name == "" {
		v.take(config.Dev, d.Split.Dev)
	}
	if len(v.parts[config.Train]) == 0 && all.n > 0 { // otherwise the error is reported already
		r.mistakes.Add(r.e.Place("tasks."+task.Name+".data.split"),
			"task %q: data: split: {dev: %v, test: %v} of the %d examples of %s leaves none to train on; take fewer",
			task.Name, d.Split.Dev, d.Split.Test, all.n, TrainingFile(d).Name)
	}

	// limit
	v.limit()

	group.setDivided(v.parts, all.place)
	return v.parts, v.warnings
}

func numbersTo(n int) []uint32 {
	numbers := make([]uint32, n)
	for i := range numbers {
		numbers[i] = uint32(i)
	}
	return numbers
}

func (g *Group) setDivided(parts map[string][]uint32, place func(number int) corpus.Place) {
	if len(parts) < 2 {
		return
	}
	g.Divided = map[string]iter.Seq[corpus.Place]{}
	for name, numbers := range parts {
		g.Divided[name] = func(yield func(corpus.Place) bool) {
			for _, n := range numbers {
				if !yield(place(int(n))) {
					return
				}
			}
		}
	}
}

// take moves an amount of the training examples, a value of config.Split, to another split.
func (v *division) take(split string, amount float64) {
	d := v.task.Data
	n := count(amount, v.all.n)
	if n == 0 && amount > 0 && v.all.n > 0 {
		v.warn(split, plugin.Warn(v.e.Place("tasks."+v.task.Name+".data.split."+split),
			"task %q: data: split: %s has no examples: %v of the %d examples of %s rounds to 0", v.task.Name, split,
			amount, v.all.n, TrainingFile(d).Name))
	}
	if n == 0 {
		return
	}

	what, how := "", "" // is taken, and how
	train := v.parts[config.Train]
	if d.Split.By != "" {
		v.parts[config.Train], v.parts[split] = corpus.SplitGroups(train, valuesOf(v.all.groups, train), n,
			d.Split.Seed)
		if len(v.parts[split]) == 0 {
			v.mistakes.Add(v.e.Place("tasks."+v.task.Name+".data.split.by"),
				"task %q: data: split: by: %s leaves none of the %d examples of %s for %s: it has one value alone; "+
					"name another field", v.task.Name, d.Split.By, len(train), TrainingFile(d).Name, split)
		}
		what, how = v.byGroups(v.parts[split], n)
	} else {
		var strata []uint32
		strata, how = v.strata(train)
		v.parts[config.Train], v.parts[split] = corpus.SplitN(train, strata, n, d.Split.Seed)
	}
	v.warn(split, plugin.Warn(plugin.Place{},
		"task %q has no %s file: %d of the %d examples of %s are taken%s (seed %d%s)", v.task.Name, split,
		len(v.parts[split]), v.all.n, TrainingFile(d).Name, what, d.Split.Seed, how))
}

func (v *division) warn(split string, warning plugin.Warning) {
	v.warnings = append(v.warnings, splitWarning{split, warning})
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
	v.warn(config.Train, taskWarning(v.task, "limit: %d of the %d training examples of %s are used (seed %d%s)", n,
		len(train), TrainingFile(v.task.Data).Name, v.e.Seed, how))
}

// strata returns the label of each example, and the end of a warning that says so; nil where a division is not
// stratified.
func (v *division) strata(numbers []uint32) (strata []uint32, how string) {
	if !v.all.stratified() {
		return nil, ""
	}
	return valuesOf(v.all.labels, numbers), ", stratified by label"
}

func valuesOf(values, numbers []uint32) []uint32 {
	some := make([]uint32, len(numbers))
	for i, n := range numbers {
		some[i] = values[n]
	}
	return some
}

func count(amount float64, n int) int {
	if amount >= 1 {
		return int(min(amount, float64(n))) // which may be larger than an int
	}
	return int(math.Round(amount * float64(n)))
}

// byGroups describes what a split has taken by groups, and the end of the line that says so. Both totals are of the
// whole file.
func (v *division) byGroups(taken []uint32, wanted int) (what, how string) {
	moved := map[uint32]bool{}
	for _, group := range valuesOf(v.all.groups, taken) {
		moved[group] = true
	}
	what = fmt.Sprintf(", in %d of its %s by %s", len(moved), plugin.Count(len(v.all.byGroup), "group"),
		v.task.Data.Split.By)
	if len(taken) != wanted {
		what += fmt.Sprintf(", where %s %s wanted", plugin.Count(wanted, "example"),
			plugin.Agree(wanted, "was", "were"))
	}
	if v.all.stratified() {
		how = ", not stratified by label"
	}
	return what, how
}
