package dataset

import (
	"fmt"
	"hash/maphash"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/plugin"
)

// Unused is the name, in Group.Divided, of the training examples that `limit` and `dedupe` leave out.
const Unused = "unused"

// division divides the examples of a group's training file, by their numbers in it.
type division struct {
	*reader
	task     config.Task // the first of the group
	all      *divisible
	n        int // examples of train before others are taken
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
	data    config.Data
	kinds   []*outputs.Kind // of the heads
	n       int
	groups  []uint32 // of the examples with the same value of split: by; nil without
	labels  []uint32 // of the group's first head, from 1; 0: none
	several bool     // an example has several labels
	numbers map[string]uint32
	byGroup map[string]uint32
	place   func(number int) corpus.Place

	splits   []uint8           // numbers of splits by split: column, len(splits) for other values
	unknown  map[string]*other // these values
	values   map[string]string // the other values, and the split that each names
	repeated []uint32          // numbers of examples that dedupe leaves out
	before   *earlier
}

// other is a value of split: column that names no split.
type other struct{ n, first int }

func newDivisible(data config.Data, kinds []*outputs.Kind, place func(number int) corpus.Place) *divisible {
	return &divisible{data: data, kinds: kinds, numbers: map[string]uint32{}, byGroup: map[string]uint32{},
		place:   place,
		unknown: map[string]*other{}, values: map[string]string{}, before: newEarlier(data, kinds)}
}

// add adds the next example.
func (d *divisible) add(e *corpus.Example) {
	if d.data.Split.By != "" {
		group := e.Group
		if group == "" {
			group = fmt.Sprint("\x00", d.n) // it has no value of the field
		}
		d.groups = append(d.groups, numberOf(d.byGroup, group))
	}
	if d.data.Split.Column != "" {
		d.addSplit(e.Split)
	}
	if d.before.has(e) {
		d.repeated = append(d.repeated, uint32(d.n))
	}
	d.n++
	kind := d.kinds[0]
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

func (d *divisible) addSplit(value string) {
	value = strings.TrimSpace(value)
	split, known := corpus.SplitNamed(value)
	if known {
		d.values[value] = split
	} else {
		const most = 1000 // different values
		if d.unknown[value] == nil && len(d.unknown) < most {
			d.unknown[value] = &other{first: d.n}
		}
		if found := d.unknown[value]; found != nil {
			found.n++
		}
		d.splits = append(d.splits, uint8(len(splits)))
		return
	}
	d.splits = append(d.splits, uint8(slices.Index(splits, split)))
}

// earlier are the examples of a file so far, for dedupe: checksums of their texts, and of their targets too.
type earlier struct {
	kinds []*outputs.Kind // none: texts alone count
	seen  map[uint64]bool // nil: nothing is left out
}

func newEarlier(data config.Data, kinds []*outputs.Kind) *earlier {
	switch data.Dedupe {
	case "true":
		return &earlier{kinds, map[uint64]bool{}}
	case "keep_first":
		return &earlier{seen: map[uint64]bool{}}
	}
	return &earlier{}
}

// has reports whether an earlier example is the same as e, which it adds.
func (b *earlier) has(e *corpus.Example) bool {
	if b.seen == nil {
		return false
	}
	var sum maphash.Hash
	sum.SetSeed(sumSeed)
	sum.WriteString(strings.TrimSpace(e.Text) + "\x00" + strings.TrimSpace(e.Pair))
	for h, kind := range b.kinds {
		sum.WriteString("\x00")
		if e.Targets[h] != nil {
			sum.Write(kind.MarshalTarget(e.Targets[h]))
		}
	}
	key := sum.Sum64()
	known := b.seen[key]
	b.seen[key] = true
	return known
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

	// records that repeat others, and the splits that records name
	v.leaveOutRepeated()
	named := v.byColumn()
	v.n = len(v.parts[config.Train])

	// splits
	if d.Test.Name == "" && v.parts[config.Test] == nil {
		v.take(config.Test, d.Split.Test)
	}
	if d.Dev.Name == "" && v.parts[config.Dev] == nil {
		v.take(config.Dev, d.Split.Dev)
	}
	if len(v.parts[config.Train]) == 0 && all.n > 0 && named { // otherwise the error is reported already
		r.mistakes.Add(r.e.Place("tasks."+task.Name+".data.split"),
			"task %q: data: split: {dev: %v, test: %v} of the %d examples of %s leaves none to train on; take fewer",
			task.Name, d.Split.Dev, d.Split.Test, v.n, TrainingFile(d).Name)
	}

	// limit
	v.limit()

	v.readListed()
	group.setDivided(v.parts, all.place)
	return v.parts, v.warnings
}

// readListed divides as the run lists its records, if it lists all of the file and no others. What divided the file may
// have gone from the experiment: the labels of a task that was dropped from the run, whose fractions it keeps.
func (v *division) readListed() {
	if v.data.Listed == nil || len(v.parts) < 2 {
		return
	}
	paths := map[string]string{} // name of a file → its path, the same for each of its names
	place := func(at corpus.Place) corpus.Place {
		if paths[at.File] == "" {
			path, err := runfolder.RealPath(at.File)
			if err != nil { // it is gone, or a pipe
				path = at.File
			}
			paths[at.File] = path
		}
		at.File = paths[at.File]
		return at
	}
	numbers := map[corpus.Place]uint32{}
	for n := range v.all.n {
		numbers[place(v.all.place(n))] = uint32(n)
	}
	parts, listed := map[string][]uint32{config.Train: nil}, 0
	err := v.data.Listed(func(tasks []string, split string, at corpus.Place) {
		at = place(at)
		n, known := numbers[at]
		ofSplit := slices.Contains(splits, split) || split == Unused
		if !known || !ofSplit || !slices.Contains(tasks, v.task.Name) {
			return
		}
		delete(numbers, at) // listed once
		parts[split] = append(parts[split], n)
		listed++
	})
	if err != nil {
		v.mistakes.Append(err)
	} else if listed == v.all.n && len(parts) > 1 {
		v.parts = parts
	}
}

func (v *division) leaveOutRepeated() {
	if len(v.all.repeated) == 0 {
		return
	}
	left := map[uint32]bool{}
	for _, n := range v.all.repeated {
		left[n] = true
	}
	v.parts[Unused] = v.all.repeated
	v.parts[config.Train] = slices.DeleteFunc(v.parts[config.Train], func(n uint32) bool { return left[n] })
	v.warn(config.Train, taskWarning(v.task, "%s", repeatedText(v.task.Data, len(left), v.all.n,
		TrainingFile(v.task.Data).Name)))
}

func repeatedText(data config.Data, n, all int, file string) string {
	what := "the texts and targets"
	if data.Dedupe == "keep_first" {
		what = "the texts"
	}
	return fmt.Sprintf("dedupe: %d of %s of %s %s left out: earlier ones have %s", n, plugin.Count(all, "example"),
		file,
		plugin.Agree(n, "is", "are"), what)
}

// byColumn moves the examples to the splits that split: column says. It returns false after a mistake.
func (v *division) byColumn() bool {
	d, file := v.task.Data, TrainingFile(v.task.Data).Name
	if d.Split.Column == "" {
		return true
	}
	at, before := v.e.Place("tasks."+v.task.Name+".data.split.column"), v.mistakes.Len()
	if len(v.all.unknown) > 0 {
		v.mistakes.Add(at, "task %q: data: split: column: %s", v.task.Name, v.all.otherSplits())
	}
	all := v.parts[config.Train]
	v.parts[config.Train] = nil
	for _, n := range all {
		if number := int(v.all.splits[n]); number < len(splits) {
			v.parts[splits[number]] = append(v.parts[splits[number]], n)
		}
	}
	for split, own := range map[string]config.File{config.Dev: d.Dev, config.Test: d.Test} {
		if n := len(v.parts[split]); n > 0 && own.Name != "" {
			v.mistakes.Add(at, "task %q: data: split: column: %s of %s %s of %s, and data has a %[5]s file; leave "+
				"that "+
				"out, or the records by where_not: {%[6]s: %[7]s}", v.task.Name, plugin.Count(n, "record"), file,
				plugin.Agree(n, "is", "are"), split, flow(d.Split.Column), flowList(v.all.namesOf(split)))
		}
	}
	if len(v.parts[config.Train]) == 0 && v.mistakes.Len() == before && v.all.n > 0 {
		v.mistakes.Add(at, "task %q: data: split: column: no record of %s is of train by field %q; want some to "+
			"train on",
			v.task.Name, file, d.Split.Column)
	}
	return v.mistakes.Len() == before
}

// namesOf returns the values of split: column that name a split.
func (d *divisible) namesOf(split string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(d.values)),
		func(value string) bool { return d.values[value] != split })
}

// otherSplits describes the values of split: column that name no split.
func (d *divisible) otherSplits() string {
	values := slices.SortedFunc(maps.Keys(d.unknown), func(a,
		b string) int {
		return d.unknown[a].first - d.unknown[b].first
	})
	var shown []string
	for _, value := range values {
		found := d.unknown[value]
		shown = append(shown, fmt.Sprintf("%q %s (first: %s)", value, plugin.Count(found.n, "time"),
			d.place(found.first)))
	}
	text := fmt.Sprintf("field %q has %s that %s no split: %s; want train, dev (val, valid, validation) or test",
		d.data.Split.Column, plugin.Count(len(values), "value"), plugin.Agree(len(values), "names", "name"),
		list(shown))
	if len(values) > mostMarks || len(d.values) == 0 { // or it names no split at all
		return text
	}
	return fmt.Sprintf("%s; where_not: {%s: %s} leaves these out", text, flow(d.data.Split.Column), flowList(values))
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
	n := count(amount, v.n)
	if n == 0 && amount > 0 && v.n > 0 {
		v.warn(split, plugin.Warn(v.e.Place("tasks."+v.task.Name+".data.split."+split),
			"task %q: data: split: %s has no examples: %v of the %d examples of %s rounds to 0", v.task.Name, split,
			amount, v.n, TrainingFile(d).Name))
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
		len(v.parts[split]), v.n, TrainingFile(d).Name, what, d.Split.Seed, how))
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
	sample, rest := corpus.Sample(train, strata, n, v.e.Seed)
	v.parts[config.Train], v.parts[Unused] = sample, append(v.parts[Unused], rest...)
	slices.Sort(v.parts[Unused])
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
