package merge

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/run"
	"github.com/jenga-nlp/jenga/multitask"
)

// Runs with lora: {per_task: true} have their base model unchanged, and changes of the encoder for single tasks beside
// it, its adapters. Where all runs have the base unchanged, the merged run has it too, and each task keeps its adapter.

// adapted returns the first task of the run that has an adapter, "" if none has.
func (s *source) adapted() string {
	for _, task := range s.opened.About.Tasks {
		if task.Adapter != "" {
			return task.Name
		}
	}
	return ""
}

// firstAdapted returns the first of some runs that has adapters, nil if none has.
func firstAdapted(sources []*source) *source {
	i := slices.IndexFunc(sources, func(s *source) bool { return s.adapted() != "" })
	if i < 0 {
		return nil
	}
	return sources[i]
}

// checkAdapters returns an error if a run has adapters and another one an encoder that has learned, or other options of
// adapters: a run has one frozen base, and the same options for all tasks.
func checkAdapters(sources []*source) error {
	first := firstAdapted(sources)
	if first == nil {
		return nil
	}
	for _, s := range sources {
		if !s.frozen() {
			return fmt.Errorf("%s: task %q has changes of the encoder of its own (lora: {per_task: true}), beside the "+
				"base model as it was; the encoder of %s has learned; want runs that leave it as it was, by freeze: "+
				"all or lora: {per_task: true}", first.folder, first.adapted(), s.folder)
		}
		if s.adapted() != "" && !reflect.DeepEqual(changesOf(s.experiment), changesOf(first.experiment)) {
			return fmt.Errorf("%s and %s have changes of the encoder for each task with different options of lora "+
				"or freeze; want runs with the same", first.folder, s.folder)
		}
	}
	return nil
}

// changesOf returns the options on which the shapes of adapters depend.
func changesOf(e *config.Experiment) []any {
	return []any{e.Model.LoRA, e.Model.Freeze, e.Model.Unfreeze}
}

// checkRefit returns an error for runs with adapters, to which a merge does nothing that training would mend.
func (m *Merge) checkRefit() error {
	if firstAdapted(m.sources) == nil {
		return nil
	}
	return errors.New("--refit: the tasks have changes of the encoder of their own (lora: {per_task: true}), and " +
		"predict as in their own runs; leave it out")
}

// joinedAdapters returns the adapters of all runs, under the names of the merged run.
func joinedAdapters(sources []*source) []run.JoinedAdapter {
	var all []run.JoinedAdapter
	for _, s := range sources {
		known := map[string]bool{}
		for _, task := range s.opened.About.Tasks {
			if task.Adapter != "" && !known[task.Adapter] {
				known[task.Adapter] = true
				params := multitask.AdapterParams(s.opened.Model.Params, task.Adapter)
				all = append(all, run.JoinedAdapter{Name: s.names[task.Adapter], Params: params})
			}
		}
	}
	return all
}
