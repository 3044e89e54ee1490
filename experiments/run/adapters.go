package run

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/model"
	"github.com/jenga-nlp/jenga/internal/checkpoint"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
)

// savedAdapter is an adapter as a checkpoint has it.
type savedAdapter struct {
	name   string
	params []*nn.Param
	scope  nn.Params
}

// savedAdapters returns the adapters of the encoder.
func (r *Run) savedAdapters() []savedAdapter {
	var all []savedAdapter
	for _, name := range adaptersOf(slices.Concat(r.Model.Groups, r.built.Kept)) {
		at := multitask.AdapterParams(r.Model.Params, name)
		all = append(all, savedAdapter{name, at.All(), at})
	}
	return all
}

// write writes the adapter to a checkpoint's folder, as a file.
func (a savedAdapter) write(folder string) error {
	path := model.AdapterFile(folder, a.name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return checkpoint.Write(path, a.params, a.scope)
}

// readAdapters reads the adapters of the model's groups from a checkpoint's folder.
func readAdapters(folder string, m *multitask.Model) error {
	for _, name := range adaptersOf(m.Groups) {
		if err := model.ReadAdapter(model.AdapterFile(folder, name), m, name); err != nil {
			return err
		}
	}
	return nil
}

// adaptersOf returns the names of the adapters of groups.
func adaptersOf(groups []multitask.Group) []string {
	var names []string
	for _, g := range groups {
		if g.Adapter != "" && !slices.Contains(names, g.Adapter) {
			names = append(names, g.Adapter)
		}
	}
	return names
}

// checkAdapters returns an error for a task of the checkpoint, described in the file path, with an adapter that has no
// task's name: it becomes the name of a file.
func (c Checkpoint) checkAdapters(path string) error {
	for _, task := range c.Tasks {
		known := slices.ContainsFunc(c.Tasks, func(t CheckpointTask) bool { return t.Name == task.Adapter })
		local := filepath.Base(task.Adapter) == task.Adapter && filepath.IsLocal(task.Adapter)
		if task.Adapter != "" && !(known && local) {
			return fmt.Errorf("%s: task %q: adapter %q is not the name of a task", path, task.Name, task.Adapter)
		}
	}
	return nil
}

// SetAdapters gives the tasks of an experiment the adapters that the checkpoint has for them.
func (c Checkpoint) SetAdapters(e *config.Experiment) {
	for _, tasks := range [][]config.Task{e.Tasks, e.Kept} {
		for i := range tasks {
			for _, task := range c.Tasks {
				if task.Name == tasks[i].Name {
					tasks[i].Adapter = task.Adapter
				}
			}
		}
	}
}
