package run

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/multitask"
)

// misfits is the error of a checkpoint whose state a training cannot continue, whatever is allowed to differ.
type misfits struct {
	run, checkpoint string
	state           multitask.Misfits
	differ          []difference // all, those that are allowed too
}

// explainMisfits returns err, of the state in a checkpoint, with the changed keys that it follows from.
func (s *resumption) explainMisfits(err error, settings []difference) error {
	var state multitask.Misfits
	if !errors.As(err, &state) {
		return fmt.Errorf("%s: %w", s.checkpoint, err)
	}
	data := slices.DeleteFunc(settings, func(d difference) bool { return d.of != changedData })
	m := misfits{s.folder, s.checkpoint, state, slices.Concat(s.differ, data)}
	for _, one := range state {
		if len(m.causes(one)) == 0 { // it is not the experiment
			return fmt.Errorf("%s: %w", s.checkpoint, err)
		}
	}
	return m
}

// Error implements error.
func (m misfits) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s: training cannot go on with what differs from when it was saved:\n", m.checkpoint)
	replaces := true // whether base_model is a remedy
	for _, one := range m.state {
		for _, d := range m.causes(one) {
			what := d.what
			if d.of == changedData {
				what = "data: " + what
			}
			fmt.Fprintf(&text, "  %s: was %s, is %s: %s\n", what, d.was, d.now, reasonOf(one))
			replaces = replaces && !ofEncoder(d.what)
		}
	}
	text.WriteString("undo the change, or train a new run")
	if replaces {
		fmt.Fprintf(&text, " from its weights, with model.base_model: %s", m.run)
	}
	return text.String()
}

// ofEncoder reports whether a key is of the kind or the size of the encoder, which a run that is trained on keeps.
func ofEncoder(key string) bool {
	for _, prefix := range []string{"model.base_model", "model.encoder.", "tokenizer."} {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// reasonOf says what of a checkpoint's state does not fit.
func reasonOf(m multitask.Misfit) string {
	switch m.Of {
	case multitask.OfOptimizer:
		return "the state of its optimizer does not fit"
	case multitask.OfSampler:
		return "the state of its sampler does not fit"
	case multitask.OfWeighting:
		return "the state of its weighting does not fit"
	case multitask.OfPosition:
		return fmt.Sprintf("its position in steps and data does not fit: %v", m.Err)
	}
	if len(m.Params) == 0 {
		return m.Err.Error()
	}
	text := fmt.Sprintf("other parameters learn, or of other sizes, such as %q", m.Params[0])
	if n := len(m.Params); n > 1 {
		text = fmt.Sprintf("%d other parameters learn, or of other sizes, such as %q", n, m.Params[0])
	}
	return text
}

// causes returns the differences that a misfit follows from.
func (m misfits) causes(of multitask.Misfit) []difference {
	var all []difference
	for _, d := range m.differ {
		ofData := d.of == changedData && strings.HasPrefix(d.what, multitask.TrainingData)
		if ofData && of.Of == multitask.OfPosition || d.of == changedExperiment && mayCause(d.what, of) {
			all = append(all, d)
		}
	}
	// of a part of another type, the type
	return slices.DeleteFunc(all, func(d difference) bool {
		return slices.ContainsFunc(all, func(other difference) bool {
			part, isType := strings.CutSuffix(other.what, ".type")
			return isType && d.what != other.what && strings.HasPrefix(d.what, part+".")
		})
	})
}

// causesOf are the beginnings of the keys that a part of a state other than parameters depends on.
var causesOf = map[string][]string{
	multitask.OfOptimizer: {"training.optimizer", "training.ema"},
	multitask.OfSampler:   {"training.sampling", "training.rehearse", "model.keep_tasks"},
	multitask.OfWeighting: {"training.weighting", "tasks"},
	multitask.OfPosition: {"training.batch_size", "training.batch_tokens", "training.gradient_accumulation_steps",
		"training.num_epochs", "training.max_steps", "training.sampling", "training.rehearse", "tasks"},
}

// sizeless are the last parts of keys of a model on which its parameters do not depend.
var sizeless = []string{"dropout", "weight", "label_smoothing", "focal_gamma", "class_weights", "pos_weight",
	"threshold", "tune"}

// mayCause reports whether a misfit may follow from another value of a key.
func mayCause(key string, m multitask.Misfit) bool {
	starts := causesOf[m.Of]
	switch {
	case m.Of == multitask.OfParams:
		starts = causesOfParams(m.Params)
		if slices.Contains(sizeless, key[strings.LastIndexByte(key, '.')+1:]) || strings.Contains(key, ".data.") {
			return false
		}
	case m.Of == multitask.OfPosition && strings.HasPrefix(key, "tasks."):
		return strings.Contains(key, ".data.")
	}
	return slices.ContainsFunc(starts, func(start string) bool {
		return key == start || strings.HasPrefix(key, start+".")
	})
}

// causesOfParams returns the beginnings of the keys that parameters depend on.
func causesOfParams(names []string) []string {
	var all []string
	for _, name := range names {
		part, _, _ := strings.Cut(name, ".")
		switch part {
		case "encoder":
			all = append(all, "model", "tokenizer")
		case "fusion":
			all = append(all, "model.fusion", "model.freeze", "tasks")
		default:
			all = append(all, "model", "tasks")
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
