package predict

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/experiments/memory"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/tasks"
)

// predictor predicts the outputs of a model's tasks for examples. Several goroutines may read and explain examples at
// once; one predicts them.
type predictor struct {
	model     *multitask.Model
	tokenizer corpus.Tokenizer
	machine   memory.Machine
	groups    []*windowGroup
	pass      *nn.Pass                                         // of predictions; explanations have their own
	lenses    map[multitask.HeadName]string                    // names of the lenses that heads have
	spans     map[string]func(tags []string) []outputs.TagSpan // of tasks.Description, by task

	splitAgreement map[string]float64 // see Opened

	mu    sync.Mutex      // of what follows, and of truncated of each group
	texts int             // number of examples so far
	split map[string]bool // tasks of splitAgreement that have split plain texts
}

// windowGroup has the tasks with the same windowing, by the way in which they read a text.
type windowGroup struct {
	windowing  corpus.Windowing
	splitWords string // the way that texts without words are split
	adapter    string // of the encoder
	tasks      [ways]multitask.Group
	truncated  int // number of examples so far that were truncated
}

// Ways in which tasks read a text.
const (
	asText  = iota // as it is
	byWords        // word by word: tasks of groups with outputs per word
	asBoth         // all tasks, where both ways have the same tokens
	ways           // their number
)

// predictor returns a predictor of the run's tasks with the given names, of all without names.
func (o *Opened) predictor(names ...string) *predictor {
	p := &predictor{
		model: o.Model, tokenizer: o.Data.Tokenizer, machine: o.machine,
		pass: nn.NewPass(0), lenses: o.lenses(), splitAgreement: o.splitAgreement, split: map[string]bool{},
		spans: map[string]func(tags []string) []outputs.TagSpan{},
	}
	for g := range o.Data.Groups {
		named := slices.DeleteFunc(slices.Clone(o.Model.Groups[g].Tasks), func(t multitask.Task) bool {
			return len(names) > 0 && !slices.Contains(names, t.Name)
		})
		if len(named) == 0 {
			continue
		}
		for _, task := range named {
			p.spans[task.Name] = tasks.DescriptionOf(task.Type).Spans
		}
		cut := o.Data.Windowing(&o.Data.Groups[g])
		perWord := func(t multitask.Task) bool { return t.Type.Output().PerWord }
		byWord, splitWords := slices.ContainsFunc(o.Model.Groups[g].Tasks, perWord), corpus.SplitPunctuation
		if byWord { // also if the named tasks are not: as without names
			splitWords = cmp.Or(o.Data.Experiment.Tasks[o.Data.Groups[g].Tasks[0]].Data.SplitWords, splitWords)
		}
		adapter := o.Model.Groups[g].Adapter
		at := slices.IndexFunc(p.groups, func(c *windowGroup) bool {
			return c.windowing == cut && c.splitWords == splitWords && c.adapter == adapter
		})
		if at < 0 {
			at = len(p.groups)
			p.groups = append(p.groups, &windowGroup{windowing: cut, splitWords: splitWords, adapter: adapter})
		}
		way := asText
		if byWord {
			way = byWords
		}
		group := &p.groups[at].tasks[way]
		group.Tasks = append(group.Tasks, named...)
	}
	for _, g := range p.groups {
		g.tasks[asBoth].Tasks = slices.Concat(g.tasks[asText].Tasks, g.tasks[byWords].Tasks)
		for way := range g.tasks {
			g.tasks[way].Adapter = g.adapter
		}
	}
	return p
}

// predictAll returns the predictions for examples that were read, each encoded once for all tasks that read the same
// tokens.
func (p *predictor) predictAll(all []reading) ([]Prediction, error) {
	predictions := make([]Prediction, len(all))
	for i := range all {
		predictions[i] = all[i].prediction
	}
	p.count(all)
	for at, g := range p.groups {
		for way := range g.tasks {
			var examples []*corpus.Example
			var to []*Prediction // for examples
			for i := range all {
				if all[i].by == nil || predictions[i].Err != nil { // not read, or not by a group before
					continue
				}
				if e := all[i].by[at].encoded[way]; e != nil {
					examples, to = append(examples, e), append(to, &predictions[i])
				}
			}
			if err := p.predict(&g.tasks[way], examples, to); err != nil {
				return nil, err
			}
		}
	}
	return predictions, nil
}

// count counts examples without an error, for warnings.
func (p *predictor) count(all []reading) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range all {
		if all[i].by != nil {
			p.texts++
		}
		for at := range all[i].by {
			if all[i].by[at].truncated > 0 {
				p.groups[at].truncated++
			}
		}
	}
}

// check returns an error for an example whose texts cannot be read, and one that no task that a form writes reads: all
// need a pair, or none was trained on one.
func (p *predictor) check(e *corpus.Example, form Form) error {
	if !form.Rows {
		if err := checkTexts(e); err != nil {
			return err
		}
	}
	pairs, single := true, true
	for _, g := range p.groups {
		for _, task := range g.tasks[asBoth].Tasks {
			if form.writes(task.Name) {
				pairs, single = pairs && task.Pairs, single && task.Single
			}
		}
	}
	switch {
	case pairs && !e.Paired:
		return refused(e, errors.New("no pair: the model needs two texts; want a JSON object with text and pair, or "+
			"with question and context, and no text or words beside those"))
	case single && e.Paired:
		return refused(e, errors.New("a pair of texts, but the model was trained on single ones; want text or words "+
			"alone"))
	}
	return nil
}

// warnings returns a warning if some of the examples so far were truncated, and one if plain texts were split into
// other words than the training data has; tasks whose data differ have one each.
func (p *predictor) warnings() []plugin.Warning {
	p.mu.Lock()
	defer p.mu.Unlock()
	var warnings []plugin.Warning
	for i, g := range p.groups {
		n, first := 0, true // groups of the same windowing differ in the words of a text alone
		for j, other := range p.groups {
			if other.windowing == g.windowing {
				n, first = max(n, other.truncated), first && j >= i
			}
		}
		if n > 0 && first {
			warnings = append(warnings, plugin.Warn(plugin.Place{}, "%s",
				dataset.Truncated(n, plugin.Count(p.texts, "text"), g.windowing)))
		}
	}
	names := map[float64][]string{} // of tasks, which have the same agreement if they read the same texts
	for _, name := range slices.Sorted(maps.Keys(p.split)) {
		if f1 := p.splitAgreement[name]; p.split[name] {
			names[f1] = append(names[f1], strconv.Quote(name))
		}
	}
	for _, f1 := range slices.Sorted(maps.Keys(names)) {
		of := "task "
		if len(names[f1]) > 1 {
			of = "tasks "
		}
		warnings = append(warnings, plugin.Warn(plugin.Place{}, "%s: texts without words are split into words "+
			"that agree with those of the training data by F1 %.1f %%; give words for better predictions",
			of+strings.Join(names[f1], ", "), 100*f1))
	}
	return warnings
}

// sameTokens reports whether two examples have the same input for an encoder.
func sameTokens(a, b *corpus.Example) bool {
	return slices.EqualFunc(a.Windows, b.Windows, func(x, y corpus.Encoding) bool {
		return slices.Equal(x.IDs, y.IDs) && slices.Equal(x.Offsets, y.Offsets) && slices.Equal(x.Segments, y.Segments)
	})
}

// batchTokens is the most tokens of a batch, except for a single longer text.
const batchTokens = 1 << 14

// predict adds the predictions of a group's tasks for encoded examples, or the error for one that does not fit. Tasks
// that need a pair have none for a single text.
func (p *predictor) predict(g *multitask.Group, examples []*corpus.Example, predictions []*Prediction) error {
	if len(examples) == 0 {
		return nil
	}
	lengths := make([]int, len(examples))
	for b, e := range examples {
		lengths[b] = e.Tokens()
	}
	for _, numbers := range corpus.Batches(lengths, len(examples), batchTokens, nil) {
		if n := numbers[0]; lengths[n] > batchTokens {
			if err := p.machine.FitsText(p.model, multitask.SizeOf(examples[n])); err != nil {
				predictions[n].Err = refused(examples[n], err)
				continue
			}
		}
		var batch []*corpus.Example
		for _, n := range numbers {
			batch = append(batch, examples[n])
		}
		predicted, err := p.model.Predict(p.pass, g, batch)
		if err != nil {
			return err
		}
		for b, e := range batch {
			to, h := predictions[numbers[b]], 0
			for _, task := range g.Tasks {
				if (e.Paired || !task.Pairs) && to.form.writes(task.Name) {
					p.add(to, task, e, func(head int) corpus.Prediction { return predicted[h+head][b] })
				}
				h += len(task.Heads)
			}
		}
	}
	return nil
}

func (p *predictor) input(of Prediction, task multitask.Task, head multitask.Head, e *corpus.Example) outputs.Input {
	return outputs.Input{
		Example: e, Labels: head.Labels, Tokenizer: p.tokenizer, Spans: p.spans[task.Name],
		Unit: of.form.Unit, Top: of.form.Top, SplitWords: of.split,
	}
}

// add adds the predictions of a task's heads for an encoded example.
func (p *predictor) add(to *Prediction, task multitask.Task, e *corpus.Example,
	predicted func(head int) corpus.Prediction) {
	kind := task.Type.Output()
	all, data := map[string]any{}, map[string]any{}
	for h, head := range task.Heads {
		if kind.Decides() && to.form.decides() {
			kind.Decide(predicted(h), to.form.decision(task.Name, head), head.Labels)
		}
		in := p.input(*to, task, head, e)
		all[head.Name] = kind.JSON(predicted(h), in)
		if value := kind.Data(predicted(h), in); value != nil {
			data[head.Name] = value
		}
	}
	to.Tasks[task.Name], to.Data[task.Name] = all, data
	if kind.PerWord {
		to.Words = e.Words
		if _, low := p.splitAgreement[task.Name]; low && to.split {
			p.mu.Lock()
			p.split[task.Name] = true
			p.mu.Unlock()
		}
	}
}

// reading is an example as the groups of a predictor read it.
type reading struct {
	*corpus.Example
	prediction Prediction     // without outputs; with an error if it is not read
	by         []groupReading // by group; nil with an error
	tokens     int            // that the encoder reads, of all groups
}

// groupReading has copies of an example with their tokens, nil where no task reads it so.
type groupReading struct {
	encoded   [ways]*corpus.Example
	truncated int // tokens that are not read, of the copy that lost most
}

// read encodes an example for all groups; one that has more tokens than most, if that is not 0, has an error. Several
// goroutines may call it at once.
func (p *predictor) read(e *corpus.Example, form *Form, most int) reading {
	r := reading{Example: e, prediction: Prediction{
		Text: e.Text, Pair: e.Pair, Tasks: map[string]map[string]any{}, Data: map[string]map[string]any{},
		Err: p.check(e, *form), form: form, split: e.Words == nil,
	}}
	if r.prediction.Err != nil {
		return r
	}
	to := &r.prediction
	r.by = make([]groupReading, len(p.groups))
	for i, g := range p.groups {
		by := &r.by[i]
		for _, way := range []int{asText, byWords} {
			if len(g.tasks[way].Tasks) == 0 {
				continue
			}
			own := p.encode(g, e, way == byWords)
			by.encoded[way] = own
			truncated := g.windowing.TruncatedTokens(p.tokenizer, own)
			by.truncated = max(by.truncated, truncated)
			to.Truncated, to.Windows = max(to.Truncated, truncated), max(to.Windows, windowsOf(own))
			if truncated > 0 && e.Words == nil && !form.Rows {
				own.Words = slices.Clone(own.Words[:wordsRead(own)])
			}
		}
		text, words := by.encoded[asText], by.encoded[byWords]
		if text != nil && words != nil && sameTokens(text, words) {
			by.encoded = [ways]*corpus.Example{asBoth: words}
		}
		for _, own := range by.encoded {
			if own != nil {
				r.tokens += own.Tokens()
			}
		}
	}
	if most > 0 && r.tokens > most {
		to.Err = &LengthError{e.Place, r.tokens, most}
		r.by, r.tokens = nil, 0
	}
	return r
}

// cloneExample returns a copy of what is read of an example: a queue may read it after the context of its call has
// ended, when the caller may change its own.
func cloneExample(e *corpus.Example) *corpus.Example {
	own := *e
	own.Words = slices.Clone(e.Words)
	return &own
}

// checkTexts returns an error for an example whose text is empty, or one of whose texts is not UTF-8. A text that is
// read from a file has been checked as it was read, and may be empty: no row of the file is lost.
func checkTexts(e *corpus.Example) error {
	if e.Text == "" {
		return refused(e, errors.New("the text is empty"))
	}
	if err := corpus.CheckUTF8(e.Text); err != nil {
		return refused(e, fmt.Errorf("the text is %w", err))
	}
	if err := corpus.CheckUTF8(e.Pair); err != nil {
		return refused(e, fmt.Errorf("the pair is %w", err))
	}
	return nil
}

// refused returns the error of an example, with its place where that has one.
func refused(e *corpus.Example, err error) error {
	if place := e.Place.String(); place != "" {
		err = fmt.Errorf("%s: %w", place, err)
	}
	return &ExampleError{err}
}

// windowsOf returns the number of windows of an example's text; a pair that is encoded separately has its own.
func windowsOf(e *corpus.Example) (n int) {
	for _, w := range e.Windows {
		if !w.Second {
			n++
		}
	}
	return n
}

// wordsRead returns the number of words of an example up to the last that has a token.
func wordsRead(e *corpus.Example) (n int) {
	for _, w := range e.Windows {
		for _, word := range w.Words {
			n = max(n, int(word)+1)
		}
	}
	return n
}

// encode returns a copy of an example with its tokens; if words is true, by words, which are split from the text if
// need be.
func (p *predictor) encode(g *windowGroup, e *corpus.Example, words bool) *corpus.Example {
	own := *e
	if words && own.Words == nil {
		own.Words = corpus.Splitter(g.splitWords, p.tokenizer)(own.Text)
	}
	own.Windows = g.windowing.Encode(p.tokenizer, &own)
	return &own
}
