package model

import (
	"slices"

	"github.com/jenga-nlp/jenga/multitask"
)

// keep builds the heads of the tasks that are kept and not trained, and freezes them and what the fusion has for them.
// Where the encoder is fixed it freezes what they share with others too.
func (b *builder) keep() error {
	data := b.Data.Kept
	if data == nil {
		return nil
	}
	kept := &builder{mode: inference, Assembled: &Assembled{Data: data, Model: b.Model}}
	var names []string
	for g := range data.Groups {
		of := &data.Groups[g]
		group := multitask.Group{Name: data.Experiment.Tasks[of.Tasks[0]].Name, Adapter: kept.adapter(of)}
		for _, number := range of.Tasks {
			task := data.Experiment.Tasks[number]
			names = append(names, task.Name)
			group.Tasks = append(group.Tasks, kept.task(of, task, data.Tasks[number]))
			for _, w := range b.Model.Params.In("heads").In(task.Name).All() {
				w.Frozen = true
			}
		}
		b.Kept = append(b.Kept, group)
	}
	if err := kept.mistakes.Err(); err != nil {
		return err
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
