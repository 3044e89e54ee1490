// Package dataset reads and encodes the data of an experiment's tasks: examples by split, the labels of heads, the
// tokenizer, and the tokens of all examples.
package dataset

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/memory"
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/tasks"
)

// Dataset has the data of an experiment's tasks.
type Dataset struct {
	Experiment *config.Experiment
	Tasks      []tasks.Task // of Experiment.Tasks
	Groups     []Group
	Labels     map[multitask.HeadName]*corpus.Labels
	Tokenizer  corpus.Tokenizer
	Vectors    *corpus.Vectors  // of words, initial values of the encoder's embeddings; nil: none
	Warnings   []plugin.Warning // of the experiment and its data
	// SplitAgreement is the F1 of the words of plain texts against those that the training data gives, by task, where
	// it is low.
	SplitAgreement map[string]float64
	Kept           *Dataset // of the tasks that are kept and not trained, without examples; nil: none
	// Missing returns what would work where Read does not find a file of a task, or the task has none and file is zero,
	// for its error, "" for nothing; it may be nil.
	Missing func(task config.Task, file config.File) string
	// Listed calls visit with the place of each record that the run lists as one of a split, in their order, and the
	// tasks that read it: Read divides training files by it. nil: the run has no list.
	Listed func(visit func(tasks []string, split string, at corpus.Place)) error
	// Skipped says which Groups, by their numbers, Read leaves out of all; nil: none.
	Skipped []bool

	options   Options
	ctx       context.Context                   // of Load: its end ends passes
	machine   memory.Machine                    // whose memory the tokens of examples take
	splitters []func(text string) []corpus.Span // of texts without words, by task
}

// Group has the tasks that read the same texts, and their examples.
type Group struct {
	Tasks    []int                        // numbers of the experiment's tasks
	Examples map[string][]*corpus.Example // by split
	Stream   *Stream                      // of the training examples, which Examples then lacks; nil: Examples has them
	// Divided are the places of the training file's examples by split, those that limit leaves out as Unused; nil where
	// training has all of them.
	Divided map[string]iter.Seq[corpus.Place]

	inPlace map[string]string // by split: the name of what is read in place of the experiment's files

	surveys map[string]*survey    // by split; of training there is none where its examples are not read
	first   map[int]corpus.Record // task number → first record of the first file, by the task's field names
}

func (g *Group) nameOf(split string) string { return cmp.Or(g.inPlace[split], split) }

// Head is a head of a group's tasks.
type Head struct {
	Number int // of its task, among the experiment's
	Task   config.Task
	Head   config.Head
}

func (h Head) name() multitask.HeadName {
	return multitask.HeadName{Task: h.Task.Name, Head: h.Head.Name}
}

// Options are what a dataset takes over from a run, and who observes how it is read. The zero value is for a new run.
type Options struct {
	// Labels of heads that are taken over keep their numbers; further labels of the training data follow. The tasks
	// that are kept have these alone, and no examples.
	Labels map[multitask.HeadName]*corpus.Labels
	// Tokenizer is that of a run whose training goes on: its data must be the same, and have no further labels. nil: it
	// is that of the base model, or trained.
	Tokenizer corpus.Tokenizer
	// Pass is called when a pass over streamed training data begins, and returns what reports its progress, in examples
	// or in KiB where their number is not known. It may be nil.
	Pass func(name string) (progress func(done, of int))
	// Listed is Dataset.Listed; nil: none.
	Listed func(visit func(tasks []string, split string, at corpus.Place)) error
}

// Load reads the data of an experiment's splits, which include training. The error lists all mistakes. The end of ctx
// ends passes over streamed training data, those of EachTarget too.
func Load(ctx context.Context, e *config.Experiment, o Options, splits ...string) (_ *Dataset, err error) {
	d := newDataset(ctx, e)
	defer func() {
		if err != nil {
			d.Close()
		}
	}()
	d.options, d.Listed = o, o.Listed
	if o.Tokenizer == nil {
		if o.Tokenizer, err = OpenTokenizer(e); err != nil {
			return nil, Check(ctx, e, splits...)
		}
	}
	if err := d.open(o.Tokenizer); err != nil {
		return nil, err
	}
	var mistakes plugin.Mistakes
	d.readAll(splits, nil, &mistakes)
	slices.SortFunc(d.Warnings[len(d.Experiment.Warnings):], plugin.CompareWarnings)
	if !mistakes.Empty() {
		return nil, mistakes.Err()
	}

	// tokens
	finish := d.trainTokenizer
	if d.resumes() {
		finish = d.openVectors
	}
	if err := finish(); err != nil {
		return nil, err
	}
	if err := d.encodeAll(); err != nil {
		return nil, err
	}
	return d, d.openKept()
}

// resumes reports whether training goes on: the data must be the same.
func (d *Dataset) resumes() bool { return d.options.Tokenizer != nil }

func newDataset(ctx context.Context, e *config.Experiment) *Dataset {
	return &Dataset{
		Experiment: e, Warnings: slices.Clone(e.Warnings), ctx: ctx, machine: memory.This(),
		Labels: map[multitask.HeadName]*corpus.Labels{}, SplitAgreement: map[string]float64{},
	}
}

// readAll reads the examples and targets of all groups but those that skip reports, which may be nil, and determines
// the labels of those without mistakes.
func (d *Dataset) readAll(splits []string, skip func(*Group) bool, mistakes *plugin.Mistakes) {
	// examples and targets
	in := reader{data: d, e: d.Experiment, types: d.Tasks, mistakes: mistakes}
	var read []*Group
	for g := range d.Groups {
		group, before := &d.Groups[g], mistakes.Len()
		if skip != nil && skip(group) {
			continue
		}
		in.read(group, splits...)
		exists := TrainingFile(d.Experiment.Tasks[group.Tasks[0]].Data).Name != ""
		if mistakes.Len() == before && exists {
			read = append(read, group)
		}
	}
	d.Warnings = append(d.Warnings, in.warnings...)
	for i := range d.Experiment.Tasks {
		d.Warnings = append(d.Warnings, d.taskWarnings(i)...)
	}

	// labels
	for _, group := range read {
		if err := d.survey(group, splits...); err != nil {
			mistakes.Append(err)
			continue
		}
		d.label(group, mistakes)
		d.oneWord(group, mistakes)
		d.noWords(group)
		d.Warnings = append(d.Warnings, d.checkQuality(group)...)
	}
}

func (d *Dataset) taskWarnings(number int) (warnings []plugin.Warning) {
	found := tasks.DescriptionOf(d.Tasks[number]).Warnings
	if found == nil {
		return nil
	}
	for _, warning := range found() {
		warnings = append(warnings, plugin.Warn(d.Experiment.Tasks[number].Place, "%s", warning))
	}
	return warnings
}

// Check reads the data of an experiment that has mistakes, or whose tokenizer cannot be opened, and returns the
// mistakes of tokenizer and data: of the tasks that Readable returns, except those whose training data is streamed and,
// without the base model's tokenizer, those with a target for each word, since it splits texts into words.
func Check(ctx context.Context, e *config.Experiment, splits ...string) error {
	var mistakes plugin.Mistakes
	d := newDataset(ctx, e.Readable())
	tokenizer, err := OpenTokenizer(e)
	opened := err == nil
	if !opened {
		if !e.ModelMistaken {
			mistakes.Append(err)
		}
		standIn := *e
		standIn.Model.BaseModel, standIn.Tokenizer.Train = config.File{}, config.Vocabulary{VocabSize: 8000}
		if tokenizer, err = OpenTokenizer(&standIn); err != nil {
			panic("dataset: no tokenizer for a word: " + err.Error())
		}
	}
	if err := d.open(tokenizer); err != nil {
		mistakes.Append(err)
		return mistakes.Err()
	}
	d.readAll(splits, func(group *Group) bool {
		return streams(d.Experiment, group) || !opened && slices.ContainsFunc(group.Tasks, func(number int) bool {
			return d.Tasks[number].Output().PerWord
		})
	}, &mistakes)
	return mistakes.Err()
}

func (d *Dataset) encodeAll() error {
	for g := range d.Groups {
		group := &d.Groups[g]
		for _, split := range splits {
			encode := func() error { return d.encode(group, split, func(*corpus.Example) {}) }
			if group.Stream != nil && split == config.Train {
				encode = group.Stream.encode
			}
			if err := encode(); err != nil {
				return err
			}
			d.checkTexts(group, split)
		}
		d.truncatedTargets(group)
	}
	return nil
}

// Open returns the dataset of a trained run, whose tokenizer and labels are known, without examples. Its tasks know
// what they read from the training data, which is all labels.
func Open(e *config.Experiment, tokenizer corpus.Tokenizer, labels map[multitask.HeadName]*corpus.Labels) (*Dataset,
	error) {
	d := &Dataset{Experiment: e, Labels: labels, ctx: context.Background(), machine: memory.This()}
	if err := d.open(tokenizer); err != nil {
		return d, err
	}
	for t, task := range e.Tasks {
		learned := corpus.Record{Fields: map[string]any{}}
		for _, head := range task.Heads {
			if set := labels[multitask.HeadName{Task: task.Name, Head: head.Name}]; set != nil {
				learned.Fields[d.Tasks[t].Output().Field+"."+head.Name] = set.Names()
			}
		}
		tasks.SurveyRecords(d.Tasks[t], []corpus.Record{learned})
	}
	return d, nil
}

func (d *Dataset) open(tokenizer corpus.Tokenizer) error {
	d.Tokenizer = tokenizer
	var mistakes plugin.Mistakes
	for number, task := range d.Experiment.Tasks {
		d.splitters = append(d.splitters, corpus.Splitter(task.Data.SplitWords, tokenizer))
		split := func(text string) []corpus.Span { return d.splitters[number](text) } // chooseSplitter may set another
		built, err := task.Part.Build(tasks.Env{Name: task.Name, Heads: task.HeadNames(), Split: split})
		if err != nil {
			mistakes.Append(err)
		}
		d.Tasks = append(d.Tasks, built)
	}
	for _, numbers := range d.Experiment.Groups() {
		d.Groups = append(d.Groups, Group{Tasks: numbers, Examples: map[string][]*corpus.Example{},
			surveys: map[string]*survey{}, first: map[int]corpus.Record{}})
	}
	return mistakes.Err()
}

// Heads returns the heads of a group in the order of its examples' targets: task by task.
func (d *Dataset) Heads(group *Group) []Head {
	var all []Head
	for _, number := range group.Tasks {
		for _, head := range d.Experiment.Tasks[number].Heads {
			all = append(all, Head{number, d.Experiment.Tasks[number], head})
		}
	}
	return all
}

// Windowing returns how the examples of a group are truncated or split into windows.
func (d *Dataset) Windowing(group *Group) corpus.Windowing {
	return d.Experiment.Tasks[group.Tasks[0]].Windowing
}

func (d *Dataset) openKept() (err error) {
	if len(d.Experiment.Kept) == 0 {
		return nil
	}
	e := *d.Experiment
	e.Tasks, e.Kept, e.Warnings = e.Kept, nil, nil
	d.Kept, err = Open(&e, d.Tokenizer, d.options.Labels)
	return err
}

// Counts are the numbers of a split's examples for one head.
type Counts struct {
	Examples int `json:"examples"`
	Labelled int `json:"labelled"` // examples with a target for the head
	Labels   int `json:"labels"`   // different labels of these; 0 where the output has none
}

// Count counts the examples of a split that was loaded for head number h of a group.
func (d *Dataset) Count(group *Group, h int, split string) Counts {
	s := group.surveys[split]
	if s == nil {
		return Counts{}
	}
	return Counts{s.Examples, s.Heads[h].Labelled, len(s.Heads[h].Labels)}
}

const progressEvery = 1000

// pass begins a pass over streamed training data of a group, and returns what reports its progress.
func (d *Dataset) pass(what string, group *Group) (progress func(done, of int)) {
	if d.options.Pass == nil || !streams(d.Experiment, group) {
		return func(int, int) {}
	}
	return d.options.Pass(fmt.Sprintf(what, TrainingFile(d.Experiment.Tasks[group.Tasks[0]].Data).Name))
}

// chunkSize is how many elements one goroutine of inOrder makes.
const chunkSize = 64

// inOrder calls visit with of(0), …, of(n-1), in this order; several goroutines call of. It reports its progress, and
// returns the first error of either function, or that of ctx when it ends.
func inOrder[T any](ctx context.Context, progress func(done, of int), n int, of func(i int) (T, error),
	visit func(i int, v T) error) error {
	type result struct {
		v   T
		err error
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	chunks := make(chan chan []result, kernel.Threads()) // in order; those that it has no room for wait
	go func() {
		defer close(chunks)
		for from := 0; from < n && running.Err() == nil; from += chunkSize {
			done := make(chan []result, 1)
			chunks <- done
			go func() {
				var some []result
				for i := from; i < min(n, from+chunkSize); i++ {
					r := result{err: running.Err()}
					if r.err == nil {
						r.v, r.err = of(i)
					}
					some = append(some, r)
				}
				done <- some
			}()
		}
	}()

	var err error
	i := 0
	for done := range chunks { // all, so that the goroutines have ended
		for _, r := range <-done {
			if err == nil {
				err = r.err
			}
			if err != nil {
				stop()
				break
			}
			err = visit(i, r.v)
			if i++; err == nil && (i%progressEvery == 0 || i == n) {
				progress(i, n)
				err = ctx.Err()
			}
		}
	}
	return cmp.Or(err, ctx.Err())
}
