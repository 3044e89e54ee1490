package experiments

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/fusion"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/tasks"
)

// build makes the model of all parts.
func (r *Run) build(kinds []tasks.Task, labels map[headPlace]*corpus.Labels, mistakes *plugin.Mistakes) error {
	e := r.Experiment
	m := &multitask.Model{Params: nn.NewParams(e.Seed)}
	freeze, lora := e.Model.Freeze, e.Model.LoRA
	if r.answers { // changes are part of the weights that were saved
		freeze, lora = "all", encoders.LoRA{}
	}
	encoder, err := e.Model.Encoder.Build(encoders.Site{
		Model:      r.encoderPath,
		Vocabulary: r.Tokenizer.Size(),
		MaxLength:  e.Tokenizer.MaxLength,
		Dropout:    e.Model.Dropout,
		DropoutSet: e.Model.DropoutSet || r.encoderPath == "",
		Freeze:     freeze,
		LoRA:       lora,
		Params:     m.Params.In("encoder"),
	})
	if err != nil {
		return r.placed(err)
	}
	if r.vectors != nil {
		if err := r.setVectors(encoder); err != nil {
			return err
		}
	}
	m.Encoder = encoder
	if err := checkSaves(m, r.encoderPath); err != nil {
		mistakes.Add(e.Model.Encoder.Place, "encoder %q %w", e.Model.Encoder.Type, err)
	}
	r.remark(e.Model.Encoder.Place, encoder)
	if !r.answers {
		r.remarkIdle(m)
	}

	site := fusion.Site{Width: encoder.Width(), Params: m.Params.In("fusion")}
	for number, task := range e.Tasks {
		site.Tasks = append(site.Tasks, task.Name)
		if kinds[number].Answer().PerWord() {
			site.Tagged = append(site.Tagged, task.Name)
		}
	}
	if deep, ok := encoder.(encoders.Deep); ok {
		site.Layers = deep.Layers()
	}
	m.Fusion, err = e.Model.Fusion.Build(site)
	if err != nil {
		mistakes.Append(err)
	}
	r.remark(e.Model.Fusion.Place, m.Fusion)
	for _, texts := range r.Texts {
		group := multitask.Group{Name: e.Tasks[texts.Tasks[0]].Name}
		for _, number := range texts.Tasks {
			group.Tasks = append(group.Tasks, r.buildTask(m, texts, e.Tasks[number], kinds[number], labels, mistakes))
		}
		m.Groups = append(m.Groups, group)
	}
	r.Model = m
	return mistakes.Err()
}

// placed gives an error of the encoder the place that asks for what it has not: a file need not name the encoder.
func (r *Run) placed(err error) error {
	e := r.Experiment
	var mistake *plugin.Mistake
	var bounded encoders.Bounded
	switch {
	case !errors.As(err, &mistake):
		return err
	case errors.As(err, &bounded):
		return &plugin.Mistake{Place: e.Tokenizer.LengthPlace, Err: fmt.Errorf("tokenizer: max_length: %w; want at most %d", mistake.Err, bounded.MaxTokens())}
	case mistake.Place == (plugin.Place{}) && !r.answers:
		return &plugin.Mistake{Place: e.Model.BaseModel.Place, Err: mistake.Err}
	}
	return err
}

// checkSaves makes sure that a checkpoint can hold the encoder of m, which was read from path, or name it.
func checkSaves(m *multitask.Model, path string) error {
	_, saves := m.Encoder.(encoders.Saver)
	_, tells := m.Encoder.(encoders.Sourced)
	switch {
	case saves:
		return nil
	case path == "":
		return errors.New("starts from nothing, but cannot be saved; give it a base_model, and freeze: all")
	case !m.Frozen():
		return errors.New("learns, but cannot be saved; freeze: all leaves it as it is")
	case !tells:
		return errors.New("can neither be saved nor tell which files it is read from, so a run could not know it again")
	}
	return nil
}

func (r *Run) buildTask(m *multitask.Model, texts Texts, task Task, kind tasks.Task, labels map[headPlace]*corpus.Labels, mistakes *plugin.Mistakes) multitask.Task {
	train, single := texts.Examples[Train], func(e *corpus.Example) bool { return !e.Paired }
	built := multitask.Task{Name: task.Name, Kind: kind, Pairs: len(train) > 0 && !slices.ContainsFunc(train, single)}
	for _, head := range task.Heads {
		set := labels[headPlace{task.Name, head.Name}]
		site := heads.Site{
			Task: task.Name, Name: head.Name,
			Answer: kind.Answer(), Labels: set.Names(),
			Width: m.Encoder.Width(), Dropout: r.Experiment.Model.Dropout,
			Training: r.trainingOf(task, head, set),
			Mask:     -1,
			Lenses:   r.lenses(m, texts),
			Params:   m.Params.In("heads").In(task.Name).In(head.Name),
		}
		if id, ok := r.Tokenizer.Mask(); ok {
			site.Mask = id
		}
		if shows, ok := m.Encoder.(encoders.Attentive); ok {
			site.Attention.Layers, site.Attention.Heads = shows.Attention()
		}
		if tied, ok := m.Encoder.(encoders.Tied); ok {
			site.Words = tied.Words()
		}
		h, err := head.Part.Build(site)
		if err != nil {
			mistakes.Append(err)
		}
		r.checkAccepted(task, head, h, mistakes)
		r.remark(head.Place, h)
		built.Heads = append(built.Heads, multitask.Head{Name: head.Name, Head: h, Labels: set, Weight: head.Weight})
	}
	return built
}

// lenses lists those of a group's heads.
func (r *Run) lenses(m *multitask.Model, texts Texts) []heads.Lenses {
	var all []heads.Lenses
	for _, of := range r.Experiment.heads(texts) {
		if lensed, ok := of.head.Part.Options.(heads.Lensed); ok {
			name := m.Params.In("heads").In(of.task.Name).In(of.head.Name).In("focus").Path()
			all = append(all, heads.Lenses{Name: name, Count: lensed.Lenses()})
		}
	}
	return all
}

// checkAccepted holds the gold answers that were read against what a head can learn.
func (r *Run) checkAccepted(task Task, head Head, h heads.Head, mistakes *plugin.Mistakes) {
	accepter, ok := h.(heads.Accepter)
	if !ok {
		return
	}
	examples, number := r.targets(task.Name, head.Name)
	for _, e := range examples {
		if err := accepter.Accepts(e.Targets[number]); err != nil {
			mistakes.Append(fmt.Errorf("%s: task %q: head %q: %w", e.Place, task.Name, head.Name, err))
		}
	}
}

// trainingOf is what a head is told of its training data; nothing where the run answers.
func (r *Run) trainingOf(task Task, head Head, labels *corpus.Labels) heads.Training {
	t := heads.Training{Counts: make([]int, len(labels.Names())), Deviation: 1}
	examples, h := r.targets(task.Name, head.Name)
	var sum, squares float64
	for _, e := range examples {
		target := e.Targets[h]
		for _, id := range append([]int{target.LabelID}, append(target.TagIDs, target.LabelIDs...)...) {
			if id >= 0 {
				t.Counts[id]++
			}
		}
		switch {
		case target.TagIDs != nil:
			for _, id := range target.TagIDs {
				if id >= 0 {
					t.Units++
				}
			}
		case target.Labelled():
			t.Units++
		}
		if target.Value != nil {
			sum += *target.Value
		}
	}
	if t.Units == 0 {
		return t
	}
	t.Mean = sum / float64(t.Units)
	least, most := math.Inf(1), math.Inf(-1)
	for _, e := range examples {
		if v := e.Targets[h].Value; v != nil {
			squares += (*v - t.Mean) * (*v - t.Mean)
			least, most = min(least, *v), max(most, *v)
		}
	}
	if least < most { // else rounding may leave squares
		t.Deviation = math.Sqrt(squares / float64(t.Units))
	}
	return t
}

// targets returns the training examples of a task, and which of their targets are a head's.
func (r *Run) targets(task, head string) (examples []*corpus.Example, h int) {
	for _, texts := range r.Texts {
		for h, of := range r.Experiment.heads(texts) {
			if of.task.Name == task && of.head.Name == head {
				return texts.Examples[Train], h
			}
		}
	}
	panic(fmt.Sprintf("experiments: no head %q of task %q", head, task))
}
