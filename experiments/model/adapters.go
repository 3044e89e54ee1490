package model

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/internal/checkpoint"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/plugin"
)

// With LoRA.PerTask each group of tasks that is trained has an adapter of the encoder, of the name of its first task. A
// group that is kept has that of the run it comes from, or none.

// adapter returns the name of a group's adapter, "" for none.
func (b *builder) adapter(group *dataset.Group) string {
	first := b.Data.Experiment.Tasks[group.Tasks[0]]
	switch {
	case !b.Data.Experiment.Model.LoRA.PerTask:
		return ""
	case b.mode == inference: // of a checkpoint
		return first.Adapter
	}
	return first.Name
}

// adapters returns the names of all adapters.
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
		add(&builder{mode: inference, Assembled: &Assembled{Data: b.Data.Kept}})
	}
	return all
}

// freezeAdapters freezes the adapters of groups that are not trained; for predictions the whole encoder.
func (b *builder) freezeAdapters() {
	if b.mode == inference {
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
func PassesWarnings(at plugin.Place, groups []multitask.Group, names ...string) []string {
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
	return []string{plugin.Warning(at, "lora: per_task: predictions of %s take %d passes of the encoder for a text, "+
		"one with each adapter, and one without where tasks have none", of, len(different))}
}

// AdapterFile returns the path of an adapter's parameters in the folder of a checkpoint.
func AdapterFile(folder, adapter string) string {
	return filepath.Join(folder, "adapters", adapter+".safetensors")
}

// ReadAdapter sets the parameters of an adapter to those of a file.
func ReadAdapter(path string, m *multitask.Model, adapter string) error {
	at := multitask.AdapterParams(m.Params, adapter)
	return checkpoint.Read(path, fmt.Sprintf("adapter %q", adapter), at.All(), at)
}

// adapters sets the adapters of groups to those of the run that they come from.
func (t *takeover) adapters() {
	read := map[string]bool{}
	for _, groups := range [][]multitask.Group{t.Model.Groups, t.Kept} {
		for _, group := range groups {
			for _, of := range group.Tasks {
				from := t.base.taskNamed(of.Name, t.tasks())
				if group.Adapter == "" || from == nil || from.Adapter == "" || read[group.Adapter] {
					continue
				}
				read[group.Adapter] = true
				path := AdapterFile(filepath.Dir(t.base.Weights), from.Adapter)
				t.mistakes.Append(ReadAdapter(path, t.Model, group.Adapter))
			}
		}
	}
}
