package predict

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/tasks"
)

// windowGroup has the tasks with the same windowing, by the way in which they read a text.
type windowGroup struct {
	windowing  corpus.Windowing
	splitWords string // the way that texts without words are split
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

func (o *Opened) windowGroups(names []string) (groups []*windowGroup) {
	for g, group := range o.Model.Groups {
		named := slices.DeleteFunc(slices.Clone(group.Tasks), func(t multitask.Task) bool {
			return len(names) > 0 && !slices.Contains(names, t.Name)
		})
		if len(named) == 0 {
			continue
		}
		own := windowGroup{windowing: o.Data.Windowing(&o.Data.Groups[g]), splitWords: corpus.SplitPunctuation}
		way := asText
		perWord := func(t multitask.Task) bool { return t.Type.Output().PerWord }
		if slices.ContainsFunc(group.Tasks, perWord) { // also if the named tasks are not: as without names
			way = byWords
			own.splitWords = cmp.Or(o.Data.Experiment.Tasks[o.Data.Groups[g].Tasks[0]].Data.SplitWords, own.splitWords)
		}
		at := slices.IndexFunc(groups, func(other *windowGroup) bool {
			return other.windowing == own.windowing && other.splitWords == own.splitWords &&
				other.tasks[asBoth].Adapter == group.Adapter
		})
		if at < 0 {
			at = len(groups)
			groups = append(groups, &own)
			for way := range own.tasks {
				own.tasks[way].Adapter = group.Adapter
			}
		}
		groups[at].tasks[way].Tasks = append(groups[at].tasks[way].Tasks, named...)
	}
	for _, g := range groups {
		g.tasks[asBoth].Tasks = slices.Concat(g.tasks[asText].Tasks, g.tasks[byWords].Tasks)
	}
	return groups
}

// check returns an error for an example whose texts cannot be read, and one that no task that a form writes reads: all
// need a pair, or none was trained on one.
func (m *Model) check(e *corpus.Example, form *Form) error {
	if !form.Rows {
		if err := checkTexts(e); err != nil {
			return err
		}
	}
	pairs, single := true, true
	for _, g := range m.groups {
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

// TextWarnings returns a warning if some of the texts so far were truncated, and one if texts without words were split
// into other words than the training data has; tasks whose data differ have one each.
func (m *Model) TextWarnings() []plugin.Warning {
	m.mu.Lock()
	defer m.mu.Unlock()
	var warnings []plugin.Warning
	for i, g := range m.groups {
		n, first := 0, true // groups of the same windowing differ in the words of a text alone
		for j, other := range m.groups {
			if other.windowing == g.windowing {
				n, first = max(n, other.truncated), first && j >= i
			}
		}
		if n > 0 && first {
			warnings = append(warnings, plugin.Warn(plugin.Place{}, "%s",
				dataset.Truncated(n, plugin.Count(m.texts, "text"), g.windowing)))
		}
	}
	names := map[float64][]string{} // of tasks, which have the same agreement if they read the same texts
	for _, name := range slices.Sorted(maps.Keys(m.split)) {
		if f1 := m.run.splitAgreement[name]; m.split[name] {
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

func sameTokens(a, b *corpus.Example) bool {
	return slices.EqualFunc(a.Windows, b.Windows, func(x, y corpus.Encoding) bool {
		return slices.Equal(x.IDs, y.IDs) && slices.Equal(x.Offsets, y.Offsets) && slices.Equal(x.Segments, y.Segments)
	})
}

// maxBatchTokens is the most tokens of a batch, except for a single longer text.
const maxBatchTokens = 1 << 14

// predictAll adds the predictions for examples that were read, each encoded once for all tasks that read the same
// tokens. An example that does not fit into memory has an error.
func (m *Model) predictAll(all []*reading) error {
	for at, g := range m.groups {
		for way := range g.tasks {
			var examples []*corpus.Example
			var of []*reading // the examples
			for _, r := range all {
				if r.prediction.Err != nil || r.by[at].encoded[way] == nil {
					continue
				}
				e := r.by[at].encoded[way]
				if e.Tokens() > maxBatchTokens {
					if err := m.run.machine.FitsText(m.run.Model, multitask.SizeOf(e)); err != nil {
						r.prediction.Err = refused(e, err)
						continue
					}
				}
				examples, of = append(examples, e), append(of, r)
			}
			examples, of, predicted, err := m.predictFinite(&g.tasks[way], examples, of)
			if err != nil {
				return err
			}
			for b, r := range of {
				m.answer(r, g.tasks[way].Tasks, examples[b], predicted, b)
			}
		}
	}
	return nil
}

// predictFinite returns the predictions for the examples of readings whose states are finite numbers, with those
// examples and readings. The others have an error.
func (m *Model) predictFinite(g *multitask.Group, examples []*corpus.Example, of []*reading) ([]*corpus.Example,
	[]*reading, [][]corpus.Prediction, error) {
	for len(examples) > 0 {
		predicted, err := m.run.Model.Predict(m.pass, g, examples)
		var bad *multitask.StatesError
		if !errors.As(err, &bad) {
			return examples, of, predicted, err
		}
		for _, b := range slices.Backward(bad.Numbers) {
			of[b].prediction.Err = refused(examples[b], errors.New(multitask.NotFinite))
			examples, of = slices.Delete(examples, b, b+1), slices.Delete(of, b, b+1)
		}
	}
	return nil, nil, nil, nil
}

func (m *Model) input(r *reading, task multitask.Task, head multitask.Head, e *corpus.Example) outputs.Input {
	in := outputs.Input{Example: e, Labels: head.Labels, Tokenizer: m.run.Data.Tokenizer, Unit: r.form.Unit,
		Top: r.form.Top, SplitWords: !r.words}
	if task.Type.Output().PerWord { // others have no tags, and a description takes memory
		in.Spans = tasks.DescriptionOf(task.Type).Spans
	}
	return in
}

// answer adds those of predicted, [heads of the tasks][examples], for example b. Tasks that need a pair have none for a
// single text.
func (m *Model) answer(r *reading, of []multitask.Task, e *corpus.Example, predicted [][]corpus.Prediction, b int) {
	h := 0
	for _, task := range of {
		first := h
		h += len(task.Heads)
		if task.Pairs && !e.Paired || !r.form.writes(task.Name) {
			continue
		}
		kind := task.Type.Output()
		all, data := map[string]any{}, map[string]any{}
		for i, head := range task.Heads {
			p, in := predicted[first+i][b], m.input(r, task, head, e)
			if kind.Decides() && r.form.decides() {
				kind.Decide(p, r.form.decision(task.Name, head), head.Labels)
			}
			all[head.Name] = kind.JSON(p, in)
			if value := kind.Data(p, in); value != nil {
				data[head.Name] = value
			}
		}
		r.prediction.Tasks[task.Name], r.prediction.Data[task.Name] = all, data
		if !kind.PerWord {
			continue
		}
		r.prediction.Words = e.Words
		if _, low := m.run.splitAgreement[task.Name]; low && !r.words {
			m.mu.Lock()
			m.split[task.Name] = true
			m.mu.Unlock()
		}
	}
}

// reading is an example as the groups of a model read it, and what is predicted for it.
type reading struct {
	paired, words bool // the example is a pair; it came with words
	form          *Form
	by            []groupReading // by group; nil with an error
	tokens        int            // that the encoder reads, of all groups
	prediction    Prediction     // with an error if it is not read
}

// groupReading has copies of an example with their tokens, nil where no task reads it so.
type groupReading struct {
	encoded   [ways]*corpus.Example
	truncated int // tokens that are not read, of the copy that lost most
}

// read encodes an example for all groups; one that has more tokens than most, if that is not 0, has an error. The
// example may change afterwards. Several goroutines may call it at once. Where ctx ends before, it returns the
// context's error.
func (m *Model) read(ctx context.Context, e *corpus.Example, form *Form, most int) (*reading, error) {
	tokenizer, done, err := m.reader.bound(ctx, m.run.Data.Tokenizer, most)
	if err != nil {
		return nil, err
	}
	defer done()
	return m.readBy(tokenizer, e, form, most), readError(tokenizer)
}

func (m *Model) readBy(tokenizer corpus.Tokenizer, e *corpus.Example, form *Form, most int) *reading {
	r := &reading{paired: e.Paired, words: e.Words != nil, form: form, prediction: Prediction{
		Text: e.Text, Pair: e.Pair, Paired: e.Paired, Tasks: map[string]map[string]any{},
		Data: map[string]map[string]any{}, Err: m.check(e, form),
	}}
	to := &r.prediction
	if to.Err != nil {
		return r
	}
	given := slices.Clone(e.Words)
	r.by = make([]groupReading, len(m.groups))
	for i, g := range m.groups {
		by := &r.by[i]
		for _, way := range []int{asText, byWords} {
			if len(g.tasks[way].Tasks) == 0 {
				continue
			}
			own := *e
			if own.Words = given; way == byWords && !r.words {
				own.Words = corpus.Splitter(g.splitWords, m.run.Data.Tokenizer)(own.Text)
			}
			own.Windows = g.windowing.Encode(tokenizer, &own)
			by.encoded[way] = &own
			truncated, windows, words := g.windowing.TruncatedTokens(tokenizer, &own), 0, 0
			for _, w := range own.Windows {
				if !w.Second { // a pair that is encoded separately has its own
					windows++
				}
				for _, word := range w.Words {
					words = max(words, int(word)+1)
				}
			}
			by.truncated = max(by.truncated, truncated)
			to.Truncated, to.Windows = max(to.Truncated, truncated), max(to.Windows, windows)
			if truncated > 0 && !r.words && !form.Rows {
				own.Words = slices.Clone(own.Words[:words])
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

// countedTokens is how many tokens of a text are counted, of those that are not read too, where a text may have fewer.
const countedTokens = 1 << 14

// reader bounds how many texts are divided into tokens at once, each of which takes memory: more than there are cores
// would not end sooner.
type reader chan struct{}

func newReader() reader { return make(reader, min(runtime.GOMAXPROCS(0), 16)) }

// mostCounted returns how many tokens are counted of a text that may have most of them.
func mostCounted(most int) int { return max(countedTokens, most+1) }

// bound returns the tokenizer for a text that may have most tokens, 0 for any number, once there is room for it. The
// caller calls done after it.
func (r reader) bound(ctx context.Context, t corpus.Tokenizer, most int) (_ corpus.Tokenizer, done func(), err error) {
	if most == 0 {
		return t, func() {}, nil
	}
	select {
	case r <- struct{}{}:
		return corpus.Bound(ctx, t, mostCounted(most)), func() { <-r }, nil
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
}

// readError returns the error of a context that ended while a tokenizer of reader.bound read a text.
func readError(t corpus.Tokenizer) error {
	if bounded, ok := t.(*corpus.Bounded); ok {
		return bounded.Err()
	}
	return nil
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
