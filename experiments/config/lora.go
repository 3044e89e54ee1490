package config

import (
	"reflect"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/plugin"
)

// lora reads the options of LoRA.
func (d *decoding) lora(s *plugin.Section) {
	if s == nil || s.Kind == plugin.Null {
		return
	}
	o := loraDefaults
	s.Decode("model: lora", &o, &d.mistakes)
	if d.e.Model.Freeze == encoders.FreezeAll {
		d.mistakes.Add(s.Place, "model: lora: freeze: all leaves nothing to learn; leave one of them out")
	}
	if o.Targets != nil && len(o.Targets) == 0 {
		d.mistakes.Add(s.At("targets").Place, "model: lora: targets: want at least one weight")
	}
	d.e.Model.LoRA = o
}

// inheritLoRA returns the section lora: that of the base run, if it has changes for each task, which no other options
// can take over.
func (d *decoding) inheritLoRA(s *plugin.Section) *plugin.Section {
	if d.base == nil {
		return s
	}
	base := d.base.At("model").At("lora")
	if base == nil || base.Kind == plugin.Null {
		return s
	}
	var ignored plugin.Mistakes
	was, now := loraDefaults, loraDefaults
	base.Decode("model: lora", &was, &ignored)
	switch {
	case !was.PerTask:
		return s // it is merged into the run's weights
	case d.e.Model.Freeze == encoders.FreezeAll:
		d.mistakes.Add(d.e.Place("model.freeze"), "model: freeze: the tasks of the run %s have changes of their own "+
			"(lora: {per_task: true}), beside which the weights are frozen; leave freeze out", d.e.Model.BaseRun.Folder)
		return nil
	case s == nil || s.Kind == plugin.Null:
		return base
	}
	s.Decode("model: lora", &now, &ignored)
	if ignored.Empty() && !reflect.DeepEqual(was, now) {
		d.mistakes.Add(s.Place, "model: lora: the tasks of the run %s have other changes of their own, of rank %d; leave "+
			"lora out", d.e.Model.BaseRun.Folder, was.Rank)
	}
	return base
}
