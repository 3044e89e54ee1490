package predict

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/experiments/run"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

// Answer is what the model says about one text, a line of `predict`, or why it says nothing.
type Answer struct {
	Err  error  `json:"-"`
	Text string `json:"text"`
	Pair string `json:"pair,omitempty"`
	// Tasks has for each task, and for each of its heads, what the kind of its outputs writes of a prediction; without those
	// about pairs, of a single text.
	Tasks map[string]map[string]any `json:"tasks"`
}

// Predictor answers questions about texts that are given one by one. It is for one goroutine.
type Predictor struct {
	model     *multitask.Model
	tokenizer corpus.Tokenizer
	machine   run.Machine
	groups    []cutGroup
	pass      *nn.Pass

	texts int                // that were answered
	lost  map[corpus.Cut]int // how many of them lost their end to it
}

// cutGroup is the tasks whose texts are cut alike: those of groups that ask about words, which read a text word by word,
// and the others, which read it as it is.
type cutGroup struct {
	cut         corpus.Cut
	words, text multitask.Group
}

// Predictor returns a predictor of the run's model.
func (o *Opened) Predictor() *Predictor {
	p := &Predictor{model: o.Model, tokenizer: o.Data.Tokenizer, machine: o.machine, pass: nn.NewPass(0), lost: map[corpus.Cut]int{}}
	for g := range o.Data.Groups {
		cut := o.Data.Cut(&o.Data.Groups[g])
		at := slices.IndexFunc(p.groups, func(c cutGroup) bool { return c.cut == cut })
		if at < 0 {
			at = len(p.groups)
			p.groups = append(p.groups, cutGroup{cut: cut})
		}
		group, perWord := &p.groups[at].text, func(t multitask.Task) bool { return t.Kind.Output().PerWord }
		if slices.ContainsFunc(o.Model.Groups[g].Tasks, perWord) {
			group = &p.groups[at].words
		}
		group.Tasks = append(group.Tasks, o.Model.Groups[g].Tasks...)
	}
	return p
}

// Answer answers all tasks about some texts, each encoded once for all that read the same tokens of it.
func (p *Predictor) Answer(examples []*corpus.Example) ([]Answer, error) {
	answers := make([]Answer, len(examples))
	for b, e := range examples {
		answers[b] = Answer{Text: e.Text, Pair: e.Pair, Tasks: map[string]map[string]any{}}
	}
	p.texts += len(examples)
	for _, g := range p.groups {
		if err := p.answer(g, examples, answers); err != nil {
			return nil, err
		}
	}
	for b, e := range examples {
		if answers[b].Err == nil && len(answers[b].Tasks) == 0 {
			answers[b].Err = fmt.Errorf("%s: no pair: the model answers about two texts; want a JSON object with text and pair, or with question and context, and no text or words beside those", e.Place)
		}
	}
	return answers, nil
}

// Remarks says how many of the texts so far lost their end.
func (p *Predictor) Remarks() []string {
	var remarks []string
	for _, g := range p.groups {
		if n := p.lost[g.cut]; n > 0 {
			remarks = append(remarks, dataset.Truncated(n, fmt.Sprintf("%d texts", p.texts), g.cut))
		}
	}
	return remarks
}

// answer adds what the tasks of a group say.
func (p *Predictor) answer(g cutGroup, examples []*corpus.Example, answers []Answer) error {
	var text, words []*corpus.Example
	if len(g.text.Tasks) > 0 {
		text = p.read(g.cut, examples, false)
	}
	if len(g.words.Tasks) > 0 {
		words = p.read(g.cut, examples, true)
	}
	for b := range examples {
		loses := func(read []*corpus.Example) bool { return read != nil && g.cut.Loses(p.tokenizer, read[b]) }
		if loses(text) || loses(words) {
			p.lost[g.cut]++
		}
	}
	if text != nil && words != nil && slices.EqualFunc(text, words, sameTokens) {
		both := multitask.Group{Tasks: slices.Concat(g.text.Tasks, g.words.Tasks)}
		return p.predict(&both, words, answers)
	}
	if text != nil {
		if err := p.predict(&g.text, text, answers); err != nil {
			return err
		}
	}
	if words != nil {
		return p.predict(&g.words, words, answers)
	}
	return nil
}

// read returns examples encoded, by words also where they have none.
func (p *Predictor) read(cut corpus.Cut, examples []*corpus.Example, words bool) []*corpus.Example {
	all := make([]*corpus.Example, len(examples))
	for b, e := range examples {
		own := *e
		if words && own.Words == nil {
			own.Words = p.tokenizer.Split(own.Text)
		}
		all[b] = &own
	}
	dataset.Encode(p.tokenizer, all, cut)
	return all
}

// sameTokens tells whether two examples are the same to an encoder.
func sameTokens(a, b *corpus.Example) bool {
	return slices.EqualFunc(a.Windows, b.Windows, func(x, y corpus.Encoding) bool {
		return slices.Equal(x.IDs, y.IDs) && slices.Equal(x.Offsets, y.Offsets) && slices.Equal(x.Types, y.Types)
	})
}

// batchTokens is how many tokens are answered about at once, but for a text that has more.
const batchTokens = 1 << 14

// predict adds what a group's tasks say of examples that are encoded, or why a text is left out.
func (p *Predictor) predict(g *multitask.Group, examples []*corpus.Example, answers []Answer) error {
	lengths := make([]int, len(examples))
	for b, e := range examples {
		lengths[b] = e.Tokens()
	}
	for _, numbers := range corpus.Batches(lengths, len(examples), batchTokens, nil) {
		if n := numbers[0]; lengths[n] > batchTokens {
			if answers[n].Err = p.machine.FitsText(p.model, examples[n]); answers[n].Err != nil {
				continue
			}
		}
		if err := p.predictBatch(g, examples, numbers, answers); err != nil {
			return err
		}
	}
	return nil
}

// predictBatch adds what a group's tasks say of the examples of those numbers. What is asked of pairs has no answer of a
// single text.
func (p *Predictor) predictBatch(g *multitask.Group, examples []*corpus.Example, numbers []int, answers []Answer) error {
	var batch []*corpus.Example
	for _, n := range numbers {
		batch = append(batch, examples[n])
	}
	predicted, err := p.model.Predict(p.pass, g, batch)
	if err != nil {
		return err
	}
	for b, e := range batch {
		h := 0
		for _, task := range g.Tasks {
			all := map[string]any{}
			for _, head := range task.Heads {
				in := outputs.Input{Example: e, Labels: head.Labels, Tokenizer: p.tokenizer, Task: task.Kind}
				all[head.Name] = task.Kind.Output().JSON(predicted[h][b], in)
				h++
			}
			if e.Paired || !task.Pairs {
				answers[numbers[b]].Tasks[task.Name] = all
			}
		}
	}
	return nil
}

// Columns are what files call text, pair and words, in the order in which they are looked for; and question, where a task
// asks for a part of a context.
type Columns map[string][]string

// Columns lists what the data of a run's tasks call texts.
func (o *Opened) Columns() Columns {
	columns := Columns{}
	for t, task := range o.Data.Experiment.Tasks {
		for _, named := range [][2]string{{"text", "text"}, {"text", "question"}, {"pair", "pair"}, {"pair", "context"}, {"words", "words"}} {
			role, theirs := named[0], task.Data.Format.Fields[named[1]]
			if theirs != "" && !slices.Contains(columns[role], theirs) {
				columns[role] = append(columns[role], theirs)
			}
		}
		if o.Data.Tasks[t].Output().FromContext {
			columns["question"] = []string{"question"}
		}
	}
	return columns
}

// Input makes an example of line number n: plain text, or a JSON object with text, pair or words, by these names or those
// that columns has, or with question and context, a pair too, which goes before ours where a task asks for it; what else
// that has is left alone. Errors begin with the line.
func Input(line string, n int, columns Columns) (*corpus.Example, error) {
	place := corpus.Place{File: fmt.Sprintf("line %d", n)}
	if n == 1 {
		line = strings.TrimPrefix(line, "\ufeff")
	}
	if !utf8.ValidString(line) {
		return nil, fmt.Errorf("%s: not UTF-8", place)
	}
	record := corpus.Record{Place: place, Fields: map[string]any{"text": line}}
	if strings.HasPrefix(strings.TrimSpace(line), "{") {
		var err error
		if record.Fields, err = object(line, columns); err != nil {
			return nil, fmt.Errorf("%s: %w; want plain text, or a JSON object with text, pair or words, or with question and context", place, err)
		}
	}
	e, err := record.Example()
	if err != nil {
		return nil, err
	}
	return &e, nil
}

// object reads a line's JSON object, which has a text, words or a question.
func object(line string, columns Columns) (map[string]any, error) {
	var fields map[string]any
	d := json.NewDecoder(strings.NewReader(line))
	d.UseNumber()
	if err := d.Decode(&fields); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("the line goes on after the JSON object")
	}
	given := maps.Clone(fields) // a column of one may have the name of another
	taken := map[string]bool{}  // a field is one text, though several tasks may name it
	named := map[string]bool{}  // what columns give
	for _, role := range []string{"text", "pair", "words"} {
		names := columns[role]
		if at := slices.IndexFunc(names, func(name string) bool { return given[name] != nil && !taken[name] }); at >= 0 {
			fields[role], taken[names[at]], named[role] = given[names[at]], true, true
		}
	}
	asked := columns["question"] != nil && given["question"] != nil && given["context"] != nil
	if asked && !named["text"] && !named["words"] {
		fields["text"], fields["pair"], fields["words"] = given["question"], given["context"], nil // whatever else there is
	}
	if fields["text"] == nil && fields["words"] == nil && fields["question"] == nil {
		return nil, errors.New("a JSON object with no text, words or question")
	}
	return fields, nil
}
