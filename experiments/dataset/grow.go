package dataset

import (
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/tasks"
)

// Grow reads the data of an experiment that trains on from a run, as Load does. base are the labels of heads that are
// taken over from the run, by the names that the experiment gives them: they keep their numbers, and further labels of
// the training data follow. The tasks that are kept have no examples. watch is that of LoadWatched.
func Grow(
	e *config.Experiment, base map[multitask.HeadName]*corpus.Labels, watch Watch, splits ...string,
) (*Dataset, error) {
	tokenizer, err := OpenTokenizer(e)
	if err != nil {
		return nil, Check(e, splits...)
	}
	d := newDataset(e)
	d.base = base
	return d.load(tokenizer, nil, watch, splits)
}

// openKept opens the dataset of the tasks that are kept and not trained, if there are any, with their labels.
func (d *Dataset) openKept() (err error) {
	if len(d.Experiment.Kept) == 0 {
		return nil
	}
	e := *d.Experiment
	e.Tasks, e.Kept, e.Warnings = e.Kept, nil, nil
	if d.Kept, err = Open(&e, d.Tokenizer, d.base); err != nil {
		return err
	}
	for t, task := range e.Tasks {
		learned := corpus.Record{Fields: map[string]any{}} // all labels of training
		for _, head := range task.Heads {
			if set := d.base[multitask.HeadName{Task: task.Name, Head: head.Name}]; set != nil {
				learned.Fields[d.Kept.Tasks[t].Output().Field()+"."+head.Name] = set.Names()
			}
		}
		tasks.SurveyRecords(d.Kept.Tasks[t], []corpus.Record{learned})
	}
	return nil
}

// grown returns the labels of a head: those of the base run first, if it is taken over, then those of names that the
// run lacks.
func (d *Dataset) grown(name multitask.HeadName, names []string) []string {
	known := d.base[name]
	if known == nil {
		return names
	}
	all := slices.Clone(known.Names())
	for _, label := range names {
		if known.ID(label) < 0 {
			all = append(all, label)
		}
	}
	return all
}
