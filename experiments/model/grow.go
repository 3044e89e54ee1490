package model

import (
	"errors"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/fusion"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
)

// RenamedFusionParams returns the names of the parameters of an experiment's fusion on an encoder for tasks with the
// names was, and for the same tasks with the names now, each parameter at the same place.
func RenamedFusionParams(
	e *config.Experiment, encoder encoders.Encoder, was, now []string,
) (before, after []string, err error) {
	if before, err = fusionParams(e, encoder, was); err != nil {
		return nil, nil, err
	}
	if after, err = fusionParams(e, encoder, now); err != nil {
		return nil, nil, err
	}
	if len(before) != len(after) {
		return nil, nil, errors.New("its fusion does not depend on tasks by name alone")
	}
	return before, after, nil
}

// fusionParams returns the names of the parameters of an experiment's fusion on an encoder, if it has these tasks.
func fusionParams(e *config.Experiment, encoder encoders.Encoder, tasks []string) ([]string, error) {
	about, root := encoder.Describe(), nn.NewParams(0)
	env := fusion.Env{Tasks: tasks, Width: about.Width, Layers: about.Layers, Params: multitask.FusionParams(root)}
	if _, err := e.Model.Fusion.Build(env); err != nil {
		return nil, err
	}
	var names []string
	for _, w := range root.All() {
		names = append(names, w.Name)
	}
	return names, nil
}

// keep builds the heads of the tasks that are kept and not trained, and freezes them and what the fusion has for them.
// Where the encoder is fixed it freezes what they share with others too.
func (b *builder) keep() error {
	data := b.Data.Kept
	if data == nil {
		return nil
	}
	kept := &builder{inference: true, Assembled: &Assembled{Data: data, Model: b.Model}}
	b.Kept = kept.groups()
	if err := kept.mistakes.Err(); err != nil {
		return err
	}
	var names []string
	for _, task := range data.Experiment.Tasks {
		names = append(names, task.Name)
		for _, w := range b.Model.Params.In("heads").In(task.Name).All() {
			w.Frozen = true
		}
	}

	// fusion
	frozen, err := fusionParams(b.Data.Experiment, b.Model.Encoder, names)
	if err != nil {
		return err
	}
	if !b.Data.Experiment.Model.Fixed() {
		shared, err := fusionParams(b.Data.Experiment, b.Model.Encoder, nil)
		if err != nil {
			return err
		}
		frozen = slices.DeleteFunc(frozen, func(name string) bool { return slices.Contains(shared, name) })
	}
	for _, w := range multitask.FusionParams(b.Model.Params).All() {
		w.Frozen = w.Frozen || slices.Contains(frozen, w.Name)
	}
	return nil
}

// With LoRA.PerTask each group of tasks that is trained has an adapter of the encoder, of the name of its first task. A
// group that is kept has that of the run it comes from, or none.

// adapter returns the name of a group's adapter, "" for none.
func (b *builder) adapter(group *dataset.Group) string {
	first := b.Data.Experiment.Tasks[group.Tasks[0]]
	switch {
	case !b.Data.Experiment.Model.LoRA.PerTask:
		return ""
	case b.inference: // of a checkpoint
		return first.Adapter
	}
	return first.Name
}

func (b *builder) adapters() []string {
	var all []string
	add := func(of *builder) {
		for g := range of.Data.Groups {
			if name := of.adapter(&of.Data.Groups[g]); name != "" && !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	add(b)
	if b.Data.Kept != nil {
		add(&builder{inference: true, Assembled: &Assembled{Data: b.Data.Kept}})
	}
	return all
}

// freezeAdapters freezes the adapters of groups that are not trained; for predictions the whole encoder.
func (b *builder) freezeAdapters() {
	if b.inference {
		for _, w := range multitask.EncoderParams(b.Model.Params).All() {
			w.Frozen = true
		}
		return
	}
	if b.Data.Kept != nil {
		for _, task := range b.Data.Kept.Experiment.Tasks {
			if task.Adapter != "" {
				for _, w := range multitask.AdapterParams(b.Model.Params, task.Adapter).All() {
					w.Frozen = true
				}
			}
		}
	}
}

// PassesWarnings returns a warning if a text takes several passes of the encoder, where groups have adapters. names are
// the tasks that are predicted, none for all.
func PassesWarnings(at plugin.Place, groups []multitask.Group, names ...string) []plugin.Warning {
	different := map[string]bool{}
	for _, g := range groups {
		different[g.Adapter] = true
	}
	if len(different) < 2 {
		return nil
	}
	of := "all tasks"
	if len(names) > 0 {
		of = "tasks " + strings.Join(names, ", ")
	}
	return []plugin.Warning{plugin.Warn(at, "lora: per_task: predictions of %s take %d passes of the encoder for a "+
		"text, one with each adapter, and one without where tasks have none", of, len(different))}
}
