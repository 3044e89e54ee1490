package config

import (
	"slices"
	"strconv"

	"github.com/jenga-nlp/jenga/plugin"
)

// rehearses reports whether kept tasks are rehearsed, so that their data is read: the encoder learns, and rehearse is
// not 0.
func (d *decoding) rehearses() bool {
	if d.e.Model.Fixed() || d.e.root == nil {
		return false
	}
	s := d.e.root.At("training").At("rehearse")
	if s == nil || s.Kind >= plugin.List {
		return false
	}
	v, err := strconv.ParseFloat(s.Text, 64)
	return err == nil && v > 0
}

// keepTasks checks the options of kept tasks, and separates the tasks that are not trained.
func (d *decoding) keepTasks() {
	if !d.files {
		return
	}
	e := d.e
	at, learns := e.Place("training.rehearse"), !e.Model.Fixed()
	var kept, trained []Task
	for _, task := range e.Tasks {
		if task.Keep {
			kept = append(kept, task)
		} else {
			trained = append(trained, task)
		}
	}
	given := e.root.At("training").Has("rehearse")
	inherits := e.Model.LoRA.PerTask && !e.root.At("model").Has("lora") // from the base run
	switch {
	case d.base == nil && e.Model.BaseModel.given() && d.wrongBase() == "": // base_model has a mistake of its own
	case len(kept) == 0 && given && e.Training.Rehearse > 0 && d.base == nil:
		d.mistakes.Add(at, "training: rehearse: there is no base run whose tasks could be rehearsed; want "+
			"model.base_model: RUN, and model.keep_tasks")
	case len(kept) == 0 && given && e.Training.Rehearse > 0:
		d.mistakes.Add(at, "training: rehearse: no task of the run is kept; want model.keep_tasks: all, or a list of "+
			"its tasks")
	case len(kept) > 0 && given && e.Training.Rehearse > 0 && inherits:
		d.mistakes.Add(at, "training: rehearse: no effect: this experiment has lora: {per_task: true} of the run %s, "+
			"beside which the kept tasks stay as they are; leave it out", e.Model.BaseRun.Folder)
	case len(kept) > 0 && given && e.Training.Rehearse > 0 && !learns:
		d.mistakes.Add(at, "training: rehearse: no effect: with freeze: all, or lora: {per_task: true}, the kept tasks "+
			"stay as they are; leave it out")
	case len(kept) > 0 && !given && learns:
		d.mistakes.Add(kept[0].Place, "task %q is kept, but the encoder learns, so that it gets worse; want "+
			"training.rehearse: 0.2, which trains it too, or 0, or model.freeze: all, or model.lora: {per_task: true}",
			kept[0].Name)
	}
	if d.baseLength > 0 && len(kept) > 0 && e.Tokenizer.MaxLength != d.baseLength {
		d.mistakes.Add(e.Place("tokenizer.max_length"), "tokenizer: max_length: the kept tasks read texts of %d "+
			"tokens; leave it out", d.baseLength)
	}
	if len(kept) > 0 && len(trained) == 0 {
		d.mistakes.Add(kept[0].Place, "all tasks are kept, so that nothing is trained; want a task of this experiment")
	}
	d.warnSplit(kept)
	if !d.rehearses() {
		e.Tasks, e.Kept = trained, kept
		e.untie()
	}
}

// untie gives tasks files of their own where same_as names a task that is trained, and they are not, or the other way
// round.
func (e *Experiment) untie() {
	for _, list := range [][]Task{e.Tasks, e.Kept} {
		names, first := map[string]bool{}, map[string]string{} // same_as → the first task that names it
		for _, task := range list {
			names[task.Name] = true
		}
		for i := range list {
			same := &list[i].Data.SameAs
			switch {
			case *same == "" || names[*same]:
			case first[*same] != "":
				*same = first[*same]
			default:
				first[*same], *same = list[i].Name, ""
			}
		}
	}
}

// rehearsable reports whether there are kept tasks beside an encoder that learns.
func (e *Experiment) rehearsable() bool {
	keeps := func(t Task) bool { return t.Keep }
	return !e.Model.Fixed() && (slices.ContainsFunc(e.Tasks, keeps) || len(e.Kept) > 0)
}

// Untrained returns the names of the tasks that are kept and not rehearsed.
func (e *Experiment) Untrained() []string {
	var names []string
	rehearsed := !e.Model.Fixed() && e.Training.Rehearse > 0
	for _, task := range slices.Concat(e.Tasks, e.Kept) {
		if task.Keep && !rehearsed {
			names = append(names, task.Name)
		}
	}
	return names
}
