// Package othertexts measures what heads predict on texts of tasks that are not theirs: no example has taught them what
// is right there.
package othertexts

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/experiments/memory"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/tasks"
)

// Most is how many texts of a group are read at most, evenly spread: enough for rates, and few beside a large dev.
const Most = 1000

// Model is a trained model, and the dataset that says how its groups read texts.
type Model struct {
	Data    *dataset.Dataset
	Model   *multitask.Model
	Machine memory.Machine
}

// Texts are the examples of a split that a group of tasks reads. They are not changed.
type Texts struct {
	Tasks    []string
	Examples []*corpus.Example
}

// TextsOf returns the texts of a split that a dataset has read, group by group, without groups that have none.
func TextsOf(d *dataset.Dataset, split string) (all []Texts) {
	for _, group := range d.Groups {
		if len(group.Examples[split]) == 0 {
			continue
		}
		texts := Texts{Examples: group.Examples[split]}
		for _, number := range group.Tasks {
			texts.Tasks = append(texts.Tasks, d.Experiment.Tasks[number].Name)
		}
		all = append(all, texts)
	}
	return all
}

// paired reports whether all examples are pairs, and whether none is.
func (t Texts) paired() (all, none bool) {
	all, none = true, true
	for _, e := range t.Examples {
		all, none = all && e.Paired, none && !e.Paired
	}
	return all, none
}

func (t Texts) areOf(task string) bool { return slices.Contains(t.Tasks, task) }

// Reference is what a head is compared with on texts of other tasks: the teacher's task, with a head of the same name,
// or one alone. A teacher of that task alone has no example of them either; that of a run of several tasks may.
type Reference struct {
	Model
	Task string
}

// Heads returns the heads of m that Measure measures on some texts that are not theirs: those that may find nothing in
// a text, and neither hide tokens nor are fitted.
func Heads(m *multitask.Model, texts []Texts) (all []multitask.HeadName) {
	for _, g := range m.Groups {
		for _, task := range g.Tasks {
			if !slices.ContainsFunc(texts, func(t Texts) bool { return !t.areOf(task.Name) && reads(task, t) }) {
				continue
			}
			for _, head := range measured(task) {
				all = append(all, multitask.HeadName{Task: task.Name, Head: head.Name})
			}
		}
	}
	return all
}

// measured returns the heads of a task that may find nothing in a text.
func measured(task multitask.Task) (all []multitask.Head) {
	if !mayFindNothing(task.Type) {
		return nil
	}
	for _, head := range task.Heads {
		if about := head.Head.Describe(); about.Prepare == nil && about.Fitter == nil {
			all = append(all, head)
		}
	}
	return all
}

// mayFindNothing reports whether predictions of a task's heads may be empty: tags that mark spans, any number of
// labels, answers to questions.
func mayFindNothing(t tasks.Task) bool {
	kind := t.Output()
	return kind.Finds != nil && (!kind.PerWord || tasks.DescriptionOf(t).Spans != nil)
}

// reads reports whether a task can read texts: all are pairs where it was trained on pairs only, and none is where it
// was trained on single texts only.
func reads(task multitask.Task, t Texts) bool {
	pairs, single := t.paired()
	return (!task.Pairs || pairs) && (!task.Single || single)
}

// Measure returns how often the Heads of m find something in texts of their own and of other tasks, by their
// predictions for at most Most texts of each. reference returns what a task is compared with on the texts of others;
// it may be nil, and return nil. Neither the model nor a random stream is changed.
func Measure(ctx context.Context, m Model, texts []Texts, reference func(task string) (*Reference, error)) (
	[]report.HeadRates, error) {
	measures := Heads(m.Model, texts)
	counts := make([]map[multitask.HeadName]count, len(texts))
	for i, t := range texts {
		var err error
		if counts[i], err = m.count(ctx, t, func(name multitask.HeadName) bool {
			return slices.Contains(measures, name)
		}); err != nil {
			return nil, err
		}
	}

	var all []report.HeadRates
	for _, name := range measures {
		rates := report.HeadRates{Task: name.Task, Head: name.Head}
		for i, t := range texts {
			n, read := counts[i][name]
			switch {
			case !read:
			case t.areOf(name.Task):
				rates.Own = n.rate()
			default:
				other := report.OtherRate{Tasks: t.Tasks, Texts: n.texts, Rate: n.rate().Rate}
				var err error
				if other.Reference, err = usual(ctx, reference, name, t); err != nil {
					return nil, err
				}
				rates.Others = append(rates.Others, other)
			}
		}
		for i, other := range rates.Others {
			rates.Others[i].High = high(rates.Own, other)
		}
		all = append(all, rates)
	}
	return all, nil
}

// usual returns how often the reference of a head finds something in texts; nil without one.
func usual(ctx context.Context, reference func(task string) (*Reference, error), name multitask.HeadName, t Texts) (
	*float64, error) {
	if reference == nil {
		return nil, nil
	}
	of, err := reference(name.Task)
	if of == nil || err != nil {
		return nil, err
	}
	return of.rate(ctx, name, t)
}

// rate returns how often the head of the reference that stands for one of a name finds something in texts; nil where it
// has none, or does not read them.
func (r *Reference) rate(ctx context.Context, name multitask.HeadName, t Texts) (*float64, error) {
	counts, err := r.count(ctx, t, func(of multitask.HeadName) bool { return of.Task == r.Task })
	if err != nil {
		return nil, err
	}
	n, found := counts[multitask.HeadName{Task: r.Task, Head: name.Head}]
	if !found && len(counts) == 1 {
		for _, n = range counts {
			found = true
		}
	}
	if !found || n.units == 0 {
		return nil, nil
	}
	rate := n.rate().Rate
	return &rate, nil
}

// Bounds of a rate that is too high. By docs/multi-task.md a head of WNUT 17's entities beside EWT and SNIPS has 4.1
// and 2.6 times the rate of a model of them alone on the same texts, 17 and 19 points more. That model has 2.2 times
// the rate on SNIPS that it has on EWT, 6 points more: corpora differ, so that neither bound is enough. A head that
// finds something in every other word of its own texts, as one of SNIPS' slots, is never above both.
const (
	leastRatio = 2.5
	leastMore  = 0.1 // of the words, the questions, or a label for each text
	few        = 20  // texts, of which a rate may be anything
)

// high reports whether a head finds far more in texts of others than its reference, or, without one, than in its own.
func high(own report.Rate, other report.OtherRate) bool {
	usual := own.Rate
	switch {
	case other.Texts < few:
		return false
	case other.Reference != nil:
		usual = *other.Reference
	case own.Texts < few:
		return false
	}
	return other.Rate-usual >= leastMore && other.Rate >= leastRatio*usual
}

// count is what a head finds in texts.
type count struct{ found, units, texts int }

func (n count) rate() report.Rate {
	r := report.Rate{Texts: n.texts}
	if n.units > 0 {
		r.Rate = float64(n.found) / float64(n.units)
	}
	return r
}

// count counts what heads find in texts, those of the tasks that can read them. Tasks that read them in the same way
// share a pass of the encoder.
func (m Model) count(ctx context.Context, t Texts, wants func(multitask.HeadName) bool) (
	map[multitask.HeadName]count, error) {
	type way struct {
		windowing corpus.Windowing
		words     string // the way that texts without words are split; "": none is, or all have words
		adapter   string
	}
	given := !slices.ContainsFunc(t.Examples, func(e *corpus.Example) bool { return !e.WordsGiven })
	var ways []way
	groups := map[way]*multitask.Group{}
	for g, group := range m.Model.Groups {
		own := way{windowing: m.Data.Windowing(&m.Data.Groups[g]), adapter: group.Adapter}
		perWord := func(t multitask.Task) bool { return t.Type.Output().PerWord }
		if !given && slices.ContainsFunc(group.Tasks, perWord) {
			of := m.Data.Experiment.Tasks[m.Data.Groups[g].Tasks[0]]
			own.words = cmp.Or(of.Data.SplitWords, corpus.SplitPunctuation)
		}
		for _, task := range group.Tasks {
			task.Heads = slices.DeleteFunc(measured(task), func(h multitask.Head) bool {
				return !wants(multitask.HeadName{Task: task.Name, Head: h.Name})
			})
			if len(task.Heads) == 0 || !reads(task, t) {
				continue
			}
			if groups[own] == nil {
				ways, groups[own] = append(ways, own), &multitask.Group{Name: task.Name, Adapter: own.adapter}
			}
			groups[own].Tasks = append(groups[own].Tasks, task)
		}
	}

	counts := map[multitask.HeadName]count{}
	for _, way := range ways {
		var split func(text string) []corpus.Span
		if way.words != "" {
			split = corpus.Splitter(way.words, m.Data.Tokenizer)
		}
		if err := m.add(ctx, counts, groups[way], m.encoded(t, way.windowing, split)); err != nil {
			return nil, err
		}
	}
	return counts, nil
}

// encoded returns at most Most of the texts as a group reads them, without targets. Those without words of their own
// get them by split; nil: they have none.
func (m Model) encoded(t Texts, windowing corpus.Windowing, split func(text string) []corpus.Span) []*corpus.Example {
	all := make([]*corpus.Example, min(Most, len(t.Examples)))
	for i := range all {
		e := *t.Examples[i*len(t.Examples)/len(all)]
		e.Targets = nil
		if !e.WordsGiven {
			e.Words = nil
			if split != nil {
				e.Words = split(e.Text)
			}
		}
		e.Windows = windowing.Encode(m.Data.Tokenizer, &e)
		all[i] = &e
	}
	return all
}

// add adds what the heads of a group find in examples.
func (m Model) add(ctx context.Context, counts map[multitask.HeadName]count, g *multitask.Group,
	examples []*corpus.Example) error {
	e := m.Data.Experiment
	t := e.Training
	sizes := multitask.EvaluationSizes(examples, t.BatchSize, t.BatchTokens)
	if err := m.Machine.FitsEvaluation(m.Model, sizes, e.Place("training.batch_size")); err != nil {
		return err
	}
	model := multitask.Cached{Model: m.Model, Finite: true}
	_, predicted, _, err := model.PredictAll(ctx, g, examples, t.BatchSize, t.BatchTokens, nil)
	if err != nil {
		return err
	}
	h := 0
	for _, task := range g.Tasks {
		for _, head := range task.Heads {
			n := count{texts: len(examples)}
			for _, p := range predicted[h] {
				found, units := task.Type.Output().Finds(p)
				n.found, n.units = n.found+found, n.units+units
			}
			counts[multitask.HeadName{Task: task.Name, Head: head.Name}] = n
			h++
		}
	}
	return nil
}

// Remedy says what makes the heads of an experiment learn on texts of other tasks; "" where nothing can.
func Remedy(e *config.Experiment) string {
	switch {
	case e.Model.LoRA.PerTask: // which needs no teacher, and has none
		return ""
	case e.Training.Rehearse > 0: // which has none beside it
		return "With training: {rehearse: 0}, teacher: RUN in a task trains its heads to predict on texts of other " +
			"tasks what the run RUN predicts, as the base run can be"
	}
	return "training: {teachers: alone} makes a model of each task alone, and trains its heads to predict the " +
		"same on texts of other tasks; teacher: RUN in a task takes the run RUN for that"
}

// Warnings returns a warning for each head that finds far too much in texts of other tasks. d is the dataset of the
// model, split the name of what the texts are of.
func Warnings(d *dataset.Dataset, split string, heads []report.HeadRates) (all []string) {
	for _, h := range heads {
		text := func(rate float64) string { return RateText(d, h.Task, rate) }
		var on []string
		taught := true
		for _, other := range h.Others {
			if !other.High {
				continue
			}
			of := fmt.Sprintf("%s on %s of %s", text(other.Rate), split, Named(other.Tasks))
			if other.Reference != nil {
				of += fmt.Sprintf(" (its teacher %s)", text(*other.Reference))
			}
			on, taught = append(on, of), taught && other.Reference != nil
		}
		if len(on) == 0 {
			continue
		}
		why := "no example says what is right on texts of other tasks"
		if remedy := Remedy(d.Experiment); remedy != "" {
			why += ". " + remedy
		}
		if taught {
			why = "it has not learned what its teacher predicts there; more epochs may help"
		}
		all = append(all, fmt.Sprintf("task %q: head %q predicts %s, and %s on its own: %s", h.Task, h.Head,
			strings.Join(on, ", "), text(h.Own.Rate), why))
	}
	return all
}

// RateText describes how often a head of a task finds something.
func RateText(d *dataset.Dataset, task string, rate float64) string {
	at := slices.IndexFunc(d.Experiment.Tasks, func(t config.Task) bool { return t.Name == task })
	return d.Tasks[at].Output().Rate(rate)
}

// Named names tasks: task "a", tasks "a", "b".
func Named(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = strconv.Quote(name)
	}
	if len(names) == 1 {
		return "task " + quoted[0]
	}
	return "tasks " + strings.Join(quoted, ", ")
}
