package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/othertexts"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/predict"
)

// evalAgainst evaluates the run that --against names, and returns the main metric of each head that both runs have. It
// returns an error if their texts are not the same: metrics of different texts cannot be compared.
func (c *commands) evalAgainst(ctx context.Context, f evalFlags, files map[string][]string, opened *predict.Opened,
	metrics []multitask.GroupMetrics) (*report.Against, error) {
	other, err := openIn(ctx, f.machine, predict.OpenRunOn, f.against)
	if err != nil {
		return nil, err
	}
	defer other.Close()
	if err := other.CheckEncoder(ctx); err != nil {
		return nil, err
	}
	shared, err := sharedTasks(opened, other, metrics)
	if err != nil {
		return nil, err
	}
	if err := other.Data.Experiment.SetData(ofTasks(f.set, opened.Model.TaskNames(), shared)); err != nil {
		return nil, err
	}
	ofShared, only := map[string][]string{}, "" // all groups of the other run, or that of one task
	for _, task := range shared {
		if files[task] != nil {
			ofShared[task] = files[task]
		}
	}
	if len(shared) == 1 {
		only = shared[0]
	}
	name, err := readData(ctx, other, f.split, only, ofShared)
	if err != nil {
		return nil, namingSetData(err)
	}
	if err := sameTexts(opened, other, f.split, shared); err != nil {
		return nil, err
	}
	c.warn(other.Warnings)

	bar := c.newBar(name+" by "+f.against, !f.json)
	others, err := other.Evaluate(ctx, f.split, bar.reach)
	bar.clear()
	if err != nil {
		return nil, err
	}
	changes := report.SetAfter(report.Changes(others), metrics)
	changes = slices.DeleteFunc(changes, func(h report.Change) bool { return h.After == nil }) // of the other run alone
	if len(changes) == 0 {
		return nil, fmt.Errorf("%s and %s have no head of the same name and metric", opened.Folder, f.against)
	}
	return &report.Against{Run: f.against, Heads: changes}, nil
}

// sharedTasks returns the names of the tasks that were evaluated and that the other run has too.
func sharedTasks(opened, other *predict.Opened, metrics []multitask.GroupMetrics) (shared []string, err error) {
	var own []string
	for _, group := range metrics {
		for _, task := range group.Tasks {
			own = append(own, task.Task)
			if _, _, err := other.Model.Group(task.Task); err == nil {
				shared = append(shared, task.Task)
			}
		}
	}
	if shared == nil {
		return nil, fmt.Errorf("no task of %s is one of those that %s is evaluated on, %s; it has %s; jenga tasks "+
			"%[1]s --rename gives a task another name", other.Folder, opened.Folder, othertexts.Named(own),
			othertexts.Named(other.Model.TaskNames()))
	}
	return shared, nil
}

// sameTexts returns an error for each task whose texts of a split are not the same in both runs, in the same order.
func sameTexts(a, b *predict.Opened, split string, tasks []string) error {
	var mistakes []error
	same := func(a, b *corpus.Example) bool { return a.Text == b.Text && a.Pair == b.Pair }
	for _, task := range tasks {
		ours, theirs := a.Data.ExamplesOf(task, split), b.Data.ExamplesOf(task, split)
		if !slices.EqualFunc(ours, theirs, same) {
			mistakes = append(mistakes, fmt.Errorf("task %q: the %s of %s are not the %d of %s; --data %s=FILE reads "+
				"one file for both", task, plugin.Count(len(ours), "text"), split, len(theirs), b.Folder, task))
		}
	}
	return errors.Join(mistakes...)
}

// ofTasks returns the --set-data of all tasks and of those that are shared, without those of the run's other tasks.
func ofTasks(sets, all, shared []string) []string {
	return slices.DeleteFunc(slices.Clone(sets), func(set string) bool {
		key, _, _ := strings.Cut(set, "=")
		task, _, named := strings.Cut(key, ".")
		return named && slices.Contains(all, task) && !slices.Contains(shared, task)
	})
}

func writeAgainst(w io.Writer, against report.Against) error {
	rows := [][]string{{"task", "head", "metric in %", "there", "here", "difference"}}
	for _, h := range against.Heads {
		rows = append(rows, changeRow(h))
	}
	_, err := fmt.Fprintf(w, "\nagainst %s, on the same texts:\n%s", against.Run, aligned(rows))
	return err
}
