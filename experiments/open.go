package experiments

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/internal/checkpoint"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/tasks"
)

// OpenRun opens a trained run to answer and to be judged: a run folder, whose best model it takes, or one checkpoint of
// it (RUN/last, RUN/tasks/NAME). Its encoder is frozen.
func OpenRun(folder string) (*Run, error) {
	file, model, err := findRun(folder)
	if err != nil {
		return nil, err
	}
	about, err := readCheckpoint(model, filepath.Dir(file))
	if err != nil {
		return nil, err
	}
	e, err := readRun(file)
	if err != nil {
		return nil, err
	}
	if e.Model.Encoder, err = e.encoder(about.Encoder.Folder); err != nil {
		return nil, err
	}

	r := &Run{Experiment: e, Texts: e.group(), encoderPath: about.Encoder.Folder, answers: true, machine: os.DirFS("/")}
	if filepath.Dir(model) == filepath.Clean(folder) && filepath.Base(model) == lastDir {
		r.Remarks = append(r.Remarks, fmt.Sprintf("%s: there is no best model, so its last is taken", folder))
	}
	if r.Tokenizer, err = corpus.OpenTokenizer(tokenizerFolder(r.encoderPath)); err != nil {
		return nil, err
	}
	var mistakes plugin.Mistakes
	kinds := e.kinds(r.Tokenizer, &mistakes)
	if !mistakes.None() {
		return nil, mistakes.Err()
	}
	labels := map[headPlace]*corpus.Labels{}
	for _, task := range about.Tasks {
		for _, head := range task.Heads {
			if labels[headPlace{task.Name, head.Name}], err = corpus.LabelsOf(head.Labels); err != nil {
				return nil, fmt.Errorf("%s: task %q: head %q: %w", filepath.Join(model, modelFile), task.Name, head.Name, err)
			}
		}
	}
	for t, task := range e.Tasks {
		learned := corpus.Record{Fields: map[string]any{}} // all labels of training
		for _, head := range task.Heads {
			at := filepath.Join(model, modelFile)
			switch set := labels[headPlace{task.Name, head.Name}]; {
			case set == nil:
				return nil, fmt.Errorf("%s: no head %q of task %q, which %s names", at, head.Name, task.Name, file)
			case kinds[t].Answer().HasLabels() && len(set.Names()) == 0:
				return nil, fmt.Errorf("%s: task %q: head %q: no labels", at, task.Name, head.Name)
			default:
				learned.Fields[kinds[t].Answer().Field()+"."+head.Name] = set.Names()
			}
		}
		if surveyor, ok := kinds[t].(tasks.Surveyor); ok {
			surveyor.Survey([]corpus.Record{learned})
		}
	}
	if err := r.build(kinds, labels, &mistakes); err != nil {
		return nil, err
	}
	if err := about.Encoder.check(readFrom(r.Model.Encoder, r.Tokenizer)); err != nil {
		return nil, err
	}
	for _, task := range about.Tasks {
		if g, t, err := r.Model.Group(task.Name); err == nil {
			g.Tasks[t].Pairs = task.Pairs
		}
	}
	return r, checkpoint.Read(filepath.Join(model, tensorsFile), "the experiment", r.ownParams(), nn.Params{})
}

// encoder returns the encoder of a run whose weights lie in a folder: the one that its experiment file names, else the one
// that the weights say. The base model, which said so when it was trained, may be gone.
func (e *Experiment) encoder(folder string) (plugin.Choice[encoders.Site, encoders.Encoder], error) {
	if e.Model.Encoder.Place != (plugin.Place{}) {
		return e.Model.Encoder, nil
	}
	return encoders.Registry().FromString(encoderType(folder), "")
}

// findRun finds the experiment file and the model of a run folder or of one of its checkpoints.
func findRun(folder string) (file, model string, err error) {
	if whole := whole(folder); isThere(filepath.Join(whole, modelFile)) {
		// RUN/best, RUN/last or RUN/tasks/NAME
		for _, up := range []string{"..", filepath.Join("..", "..")} {
			if file = filepath.Join(folder, up, experimentFile); isThere(file) {
				return file, whole, nil
			}
		}
		return "", "", fmt.Errorf("%s: a model, but no %s above it; want it in the run folder that jenga train has written", folder, experimentFile)
	}
	if !isThere(folder) {
		return "", "", fmt.Errorf("%s: no such folder", folder)
	}
	if file = filepath.Join(folder, experimentFile); isThere(file) {
		for _, name := range []string{bestDir, lastDir} {
			if model := whole(filepath.Join(folder, name)); isThere(model) {
				return file, model, nil
			}
		}
		return "", "", fmt.Errorf("%s: the run has no model yet", folder)
	}
	return "", "", fmt.Errorf("%s: no run; want a folder that jenga train has written", folder)
}

// Read reads the examples of a split for all groups that have a file for it, or for one task's group if task is not
// "". Where data names a file for a task, that is read in place of the experiment's, for all tasks that read the same
// texts; of another group than task's it is an error. What is worth knowing of the examples is added to Remarks.
func (r *Run) Read(split, task string, data map[string]string) error {
	if task != "" {
		if err := r.checkData(task, data); err != nil {
			return err
		}
	}
	var mistakes plugin.Mistakes
	in := reader{e: r.Experiment, kinds: r.kinds(), mistakes: &mistakes}
	read, said := false, len(r.Remarks)
	for g := range r.Texts {
		texts := &r.Texts[g]
		if task != "" && !r.has(*texts, task) {
			continue
		}
		path, err := r.named(*texts, data)
		switch {
		case err != nil:
			mistakes.Append(err)
		case path != "":
			texts.Examples[split] = in.file(texts, File{Name: path})
		default:
			in.read(texts, split)
		}
		if !mistakes.None() {
			continue // the other groups' mistakes are said too
		}
		r.number(&r.Model.Groups[g], texts.Examples[split])
		r.remarkUnknown(*texts, split)
		r.remarkOneKind(&r.Model.Groups[g], texts.Examples[split], split)
		r.encode(texts.Examples[split], r.cut(*texts))
		r.remarkCut(*texts, split)
		read = read || texts.Examples[split] != nil
	}
	if mistakes.None() && !read {
		return fmt.Errorf("%s names no %s data; --data TASK=FILE gives some", r.Experiment.Path, split)
	}
	r.Remarks = append(r.Remarks, in.remarks...)
	slices.Sort(r.Remarks[said:])
	return mistakes.Err()
}

// checkData refuses files for tasks that read other texts than the one that is judged alone.
func (r *Run) checkData(task string, data map[string]string) error {
	for _, texts := range r.Texts {
		if r.has(texts, task) {
			continue
		}
		for _, number := range texts.Tasks {
			if name := r.Experiment.Tasks[number].Name; data[name] != "" {
				return fmt.Errorf("--data %s=%s: task %q, which --task judges alone, reads other texts; leave one of them out", name, data[name], task)
			}
		}
	}
	return nil
}

// kinds lists the tasks as the experiment has them in order.
func (r *Run) kinds() []tasks.Task {
	var kinds []tasks.Task
	for _, task := range r.Experiment.Tasks {
		g, t, err := r.Model.Group(task.Name)
		if err != nil {
			panic("experiments: " + err.Error())
		}
		kinds = append(kinds, g.Tasks[t].Kind)
	}
	return kinds
}

// named is the file that data names for the tasks of a group, "" for none. They read the same texts, so two files are
// an error.
func (r *Run) named(texts Texts, data map[string]string) (string, error) {
	path, of := "", ""
	for _, number := range texts.Tasks {
		name := r.Experiment.Tasks[number].Name
		switch own := data[name]; {
		case own == "" || own == path:
		case path == "":
			path, of = own, name
		default:
			return "", fmt.Errorf("tasks %q and %q read the same texts, but --data names %s and %s; want one file for both", of, name, path, own)
		}
	}
	return path, nil
}

func (r *Run) has(texts Texts, task string) bool {
	for _, number := range texts.Tasks {
		if r.Experiment.Tasks[number].Name == task {
			return true
		}
	}
	return false
}

// number sets the numbers of all targets of a group's examples.
func (r *Run) number(g *multitask.Group, examples []*corpus.Example) {
	for h, head := range g.Heads() {
		for _, e := range examples {
			head.Labels.Number(&e.Targets[h])
		}
	}
}

// Evaluate judges the model on the examples of a split that have been read, if the machine has the memory. done, if it is
// not nil, is told how many examples have been answered.
func (r *Run) Evaluate(ctx context.Context, split string, done func(n int)) ([]multitask.GroupScore, error) {
	n, t := need{weights: r.model().weights}, r.Experiment.Training
	var sizes []multitask.Size
	for _, texts := range r.Texts {
		sizes = append(sizes, multitask.EvaluationSizes(texts.Examples[split], t.BatchSize, t.BatchTokens)...)
	}
	n.batch, n.activations = r.Model.Largest(sizes, encoders.Load{})
	n.activations = multitask.Reserve(n.activations)
	if err := r.fits(n); err != nil {
		return nil, err
	}

	var scores []multitask.GroupScore
	for g, texts := range r.Texts {
		examples := texts.Examples[split]
		if examples == nil {
			continue
		}
		s, err := r.Model.Evaluate(ctx, &r.Model.Groups[g], examples, t.BatchSize, t.BatchTokens, done)
		if err != nil {
			return nil, err
		}
		scores = append(scores, s)
	}
	return scores, nil
}
