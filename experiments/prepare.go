package experiments

import (
	"io/fs"
	"os"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/tasks"
)

// Run is an experiment made ready: its model, and the texts that were read.
type Run struct {
	Experiment *Experiment
	Model      *multitask.Model
	Tokenizer  corpus.Tokenizer
	Texts      []Texts // of each of the model's groups
	Remarks    []string

	answers     bool              // opened to answer: nothing learns
	vectors     *corpus.Vectors   // of words, that the encoder's embeddings begin with; nil: none
	judged      bool              // whether evaluations on dev have anything to judge
	encoderPath string            // what the encoder was read from; "" from scratch
	encoderSums map[string]string // of its files, where they are not copied
	machine     fs.FS             // the machine's files, which tell what memory it has
}

// Prepare reads the data of an experiment's splits, of which training is one, and builds its model. The error lists
// all that is wrong.
func Prepare(e *Experiment, splits ...string) (*Run, error) {
	r := &Run{Experiment: e, Remarks: slices.Clone(e.Remarks), encoderPath: e.Model.BaseModel.Name, Texts: e.group(), machine: os.DirFS("/")}
	var mistakes plugin.Mistakes

	// texts and targets
	if err := r.openTokenizer(); err != nil {
		mistakes.Append(err)
	}
	if !mistakes.None() {
		return nil, mistakes.Err()
	}
	kinds := e.kinds(r.Tokenizer, &mistakes)
	if !mistakes.None() {
		return nil, mistakes.Err()
	}
	in := reader{e: e, kinds: kinds, mistakes: &mistakes}
	for g := range r.Texts {
		in.read(&r.Texts[g], splits...)
	}
	if !mistakes.None() {
		return nil, mistakes.Err()
	}
	r.Remarks = append(r.Remarks, in.remarks...)
	for i, task := range e.Tasks {
		r.remark(task.Place, kinds[i])
	}

	// labels
	labels := map[headPlace]*corpus.Labels{}
	for _, texts := range r.Texts {
		r.label(texts, kinds, labels, &mistakes)
	}
	slices.Sort(r.Remarks[len(e.Remarks):])

	// tokens
	if err := r.trainTokenizer(); err != nil {
		mistakes.Append(err)
	}
	if !mistakes.None() {
		return nil, mistakes.Err()
	}
	for _, texts := range r.Texts {
		for _, split := range []string{Train, Dev, Test} {
			r.encode(texts.Examples[split], r.cut(texts))
			r.remarkCut(texts, split)
		}
		r.remarkLost(texts)
	}

	if err := r.build(kinds, labels, &mistakes); err != nil {
		return nil, err
	}
	if e.Training.EvalStrategy == "no" {
		r.remarkUntuned()
	} else if slices.Contains(splits, Dev) {
		r.checkDev(&mistakes)
	}
	if _, err := r.plan(""); err != nil { // sampler and weighting are made for this model
		mistakes.Append(err)
	}
	if !mistakes.None() {
		return nil, mistakes.Err()
	}
	return r, nil
}

// kinds makes the tasks that know how examples are written and judged.
func (e *Experiment) kinds(tokenizer corpus.Tokenizer, mistakes *plugin.Mistakes) []tasks.Task {
	var kinds []tasks.Task
	for _, task := range e.Tasks {
		kind, err := task.Part.Build(tasks.Site{Name: task.Name, Heads: headNames(task.Heads), Split: tokenizer.Split})
		if err != nil {
			mistakes.Append(err)
		}
		kinds = append(kinds, kind)
	}
	return kinds
}
