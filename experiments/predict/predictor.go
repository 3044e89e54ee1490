package predict

import (
	"fmt"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/experiments/run"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

// Predictor answers questions about texts that are given one by one. It is for one goroutine.
type Predictor struct {
	model     *multitask.Model
	tokenizer corpus.Tokenizer
	machine   run.Machine
	groups    []windowGroup
	pass      *nn.Pass

	texts     int                      // that were answered
	truncated map[corpus.Windowing]int // how many of them lost their end to it
}

// cutGroup is the tasks whose texts are cut alike: those of groups that ask about words, which read a text word by
// word, and the others, which read it as it is.
type windowGroup struct {
	windowing   corpus.Windowing
	words, text multitask.Group
}

// Predictor returns a predictor of the run's model.
func (o *Opened) Predictor() *Predictor {
	p := &Predictor{
		model: o.Model, tokenizer: o.Data.Tokenizer, machine: o.machine,
		pass: nn.NewPass(0), truncated: map[corpus.Windowing]int{},
	}
	for g := range o.Data.Groups {
		cut := o.Data.Windowing(&o.Data.Groups[g])
		at := slices.IndexFunc(p.groups, func(c windowGroup) bool { return c.windowing == cut })
		if at < 0 {
			at = len(p.groups)
			p.groups = append(p.groups, windowGroup{windowing: cut})
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
func (p *Predictor) Predict(examples []*corpus.Example) ([]Prediction, error) {
	answers := make([]Prediction, len(examples))
	for b, e := range examples {
		answers[b] = Prediction{Text: e.Text, Pair: e.Pair, Tasks: map[string]map[string]any{}}
	}
	p.texts += len(examples)
	for _, g := range p.groups {
		if err := p.predictGroup(g, examples, answers); err != nil {
			return nil, err
		}
	}
	for b, e := range examples {
		if answers[b].Err == nil && len(answers[b].Tasks) == 0 {
			answers[b].Err = fmt.Errorf("%s: no pair: the model answers about two texts; want a JSON object with "+
				"text and pair, or with question and context, and no text or words beside those", e.Place)
		}
	}
	return answers, nil
}

// Warnings says how many of the texts so far lost their end.
func (p *Predictor) Warnings() []string {
	var warnings []string
	for _, g := range p.groups {
		if n := p.truncated[g.windowing]; n > 0 {
			warnings = append(warnings, dataset.Truncated(n, fmt.Sprintf("%d texts", p.texts), g.windowing))
		}
	}
	return warnings
}

// answer adds what the tasks of a group say.
func (p *Predictor) predictGroup(g windowGroup, examples []*corpus.Example, answers []Prediction) error {
	var text, words []*corpus.Example
	if len(g.text.Tasks) > 0 {
		text = p.read(g.windowing, examples, false)
	}
	if len(g.words.Tasks) > 0 {
		words = p.read(g.windowing, examples, true)
	}
	for b := range examples {
		loses := func(read []*corpus.Example) bool { return read != nil && g.windowing.Truncates(p.tokenizer, read[b]) }
		if loses(text) || loses(words) {
			p.truncated[g.windowing]++
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
func (p *Predictor) read(cut corpus.Windowing, examples []*corpus.Example, words bool) []*corpus.Example {
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
func (p *Predictor) predict(g *multitask.Group, examples []*corpus.Example, answers []Prediction) error {
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

// predictBatch adds what a group's tasks say of the examples of those numbers. What is asked of pairs has no answer of
// a single text.
func (p *Predictor) predictBatch(g *multitask.Group, examples []*corpus.Example, numbers []int,
	answers []Prediction) error {
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
