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
	differ          []difference // of the experiment, those that are allowed too
}

// explainMisfits returns err, of the state in a checkpoint, with the changed keys that it follows from.
func (s *resumption) explainMisfits(err error) error {
	var state multitask.Misfits
	if !errors.As(err, &state) {
		return fmt.Errorf("%s: %w", s.checkpoint, err)
	}
	m := misfits{s.folder, s.checkpoint, state, s.differ}
	for _, one := range state {
		if len(m.causes(one)) > 0 {
			return m
		}
	}
	return fmt.Errorf("%s: %w", s.checkpoint, err) // it is not the experiment
}

// Error implements error.
func (m misfits) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s: training cannot go on with what differs from when it was saved:\n", m.checkpoint)
	replaces := true // whether base_model is a remedy
	listed := map[string]bool{}
	for _, one := range m.state {
		for _, d := range m.causes(one) {
			if listed[d.what] { // one reason is enough
				continue
			}
			listed[d.what] = true
			fmt.Fprintf(&text, "  %s: was %s, is %s: %s\n", d.what, d.was, d.now, reasonOf(one))
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
	case multitask.OfTasks:
		return "the losses that it has are of other heads"
	case multitask.OfOrder:
		return fmt.Sprintf("its parameters are in another order, such as %q", m.Params)
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
		if d.of == changedExperiment && mayCause(d.what, of) {
			all = append(all, d)
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(d difference) bool {
		return slices.ContainsFunc(all, func(other difference) bool { return other.implies(d) })
	})
}

// implies reports whether another difference follows from d: of a part of another type, those of its options; of a
// list, those of what only one of the two has.
func (d difference) implies(other difference) bool {
	if part, isType := strings.CutSuffix(d.what, ".type"); isType && d.what != other.what {
		return strings.HasPrefix(other.what, part+".")
	}
	inner, within := strings.CutPrefix(other.what, d.what+".")
	if !within || !isList(d.what) {
		return false
	}
	name, _, _ := strings.Cut(inner, ".")
	return slices.Contains(strings.Split(d.was, ", "), name) != slices.Contains(strings.Split(d.now, ", "), name)
}

// isList reports whether a key is of the list of tasks, or of a task's heads.
func isList(key string) bool {
	return key == "tasks" || strings.HasPrefix(key, "tasks.") && strings.HasSuffix(key, ".heads")
}
