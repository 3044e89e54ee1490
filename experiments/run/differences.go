package run

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/multitask/train"
	"github.com/jenga-nlp/jenga/plugin"
)

// What may differ between a training and the checkpoint that it is resumed from.
const (
	changedExperiment = "experiment"
	changedData       = "data"
	changedJenga      = "jenga"
	changedKernels    = "kernels"
)

// Changes lists what Resume may be allowed to let differ.
var Changes = []string{changedExperiment, changedData, changedJenga, changedKernels}

// difference is a value that a resumed training has otherwise than its checkpoint.
type difference struct {
	of       string // one of Changes
	what     string
	was, now string
	fixed    string // why the checkpoint allows no other value; "": it does
}

// differences is the error of a training that is not resumed because of what differs.
type differences struct {
	checkpoint string
	all        []difference
}

func (d differences) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s: what differs from when it was saved would change the result:\n", d.checkpoint)
	var kinds []string
	for _, one := range d.all {
		name := one.of
		if one.what != "" {
			name += ": " + one.what
		}
		fmt.Fprintf(&text, "  %s: was %s, is %s", name, one.was, one.now)
		switch {
		case one.fixed != "":
			text.WriteString(": " + one.fixed)
		case !slices.Contains(kinds, one.of):
			kinds = append(kinds, one.of)
		}
		text.WriteString("\n")
	}
	undo := "undo the change, or"
	switch fixed := slices.ContainsFunc(d.all, isFixed); {
	case len(kinds) == 0:
		return text.String() + "undo the change, or train a new run"
	case fixed:
		undo = "undo the changes of what the checkpoint fixes; undo the others, or"
	}
	return fmt.Sprintf("%s%s go on all the same by --allow-changes %s", &text, undo, strings.Join(kinds, ","))
}

func isFixed(d difference) bool { return d.fixed != "" }

// refused returns an error of the differences that are not allowed, nil if there are none.
func refused(checkpoint string, all []difference, allowed []string) error {
	all = slices.DeleteFunc(all, func(d difference) bool { return !isFixed(d) && slices.Contains(allowed, d.of) })
	if len(all) == 0 {
		return nil
	}
	return differences{checkpoint, all}
}

// programDifferences compares the program with the one that saved a state.
func (s savedState) programDifferences() []difference {
	var all []difference
	was, now := s.Jenga, Version
	if s.Build != "" {
		was, now = s.Build, Build()
	}
	if was != now {
		all = append(all, difference{of: changedJenga, was: was, now: now})
	}
	if now := kernel.Name(); s.Kernels != now {
		was := fmt.Sprintf("%s (JENGA_KERNEL=%[1]s selects them)", s.Kernels)
		all = append(all, difference{of: changedKernels, was: was, now: now})
	}
	return all
}

// settingDifferences compares a training with a snapshot: its data, and what follows from the experiment, such as that
// there is no data of a task. Where the data differs, the number of steps follows from that.
func settingDifferences(t *train.Training, s *train.Snapshot) []difference {
	var all []difference
	settings := t.Differences(s)
	isData := func(d train.Difference) bool {
		ofData := d.Of == train.OfTrainingData || d.Of == train.OfDevData
		return ofData && d.Was != "" && d.Now != ""
	}
	data := slices.ContainsFunc(settings, isData)
	for _, d := range settings {
		of := changedExperiment
		if isData(d) || data && d.Of == train.OfSteps {
			of = changedData
		}
		all = append(all, difference{of: of, what: d.Name, was: orNone(d.Was), now: orNone(d.Now)})
	}
	return all
}

func orNone(value string) string {
	if value == "" {
		return "none"
	}
	return value
}

// unimportant are the keys of an experiment that change no result.
var unimportant = []string{
	"project_name", "training.output_dir", "training.cache_memory", "training.cache_file",
	"training.save_strategy", "training.save_steps", "training.save_minutes", "training.save_total_limit",
}

// shardsKey is the key that a resumed training takes from its checkpoint where its file does not have it.
const shardsKey = "training.shards"

// isUnimportant reports whether a key of an experiment changes no result: also stream of a task's data, with which
// training learns from the same examples in the same order.
func isUnimportant(key string) bool {
	return slices.Contains(unimportant, key) ||
		strings.HasPrefix(key, "tasks.") && strings.HasSuffix(key, ".data.stream")
}

// fixedBy returns why a checkpoint allows no other value of a key of an experiment, "" if it may: the key is of the
// tokenizer or of the initial weights, which the checkpoint has whatever the experiment says; or it is of what its
// weights compute, though not of their sizes.
func fixedBy(key, was, now string) string {
	switch {
	case key == "tokenizer.type" || key == "tokenizer.vectors" || strings.HasPrefix(key, "tokenizer.train.") ||
		key == "model.encoder.initializer_range":
		return "the checkpoint has it already"
	case key == "model.encoder.heads" && now != "": // of attention, which divide the same weights otherwise
		return "the weights of the checkpoint are those of " + was + " attention heads"
	}
	return ""
}

// experimentDifferences compares two texts of an experiment file of a run, that of its checkpoint and the one that
// training would go on with, by their keys. A key that the first one lacks, which an earlier version may have written,
// has its default there.
func experimentDifferences(file string, was, now []byte) ([]difference, error) {
	before, err := keysOf("the experiment of the checkpoint", was)
	if err != nil {
		return nil, err
	}
	after, err := keysOf("the experiment", now)
	if err != nil {
		return nil, err
	}

	var all []difference
	keys := slices.Collect(maps.Keys(before))
	for key := range after {
		if _, both := before[key]; !both {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	defaults := defaultsOf(file, was)
	for _, key := range keys {
		// before the data is read it is not known how words are split if the file does not say it; and a run has not
		// always left out what its metric implies, or sizes beside a base model
		sized := strings.HasPrefix(key, "model.encoder.") && after["model.encoder.type"] != "" &&
			after["model.base_model"] != ""
		chosen := sized && after[key] == "" ||
			strings.HasSuffix(key, ".split_words") && (after[key] == "" || after[key] == "auto") ||
			key == shardsKey && after[key] == "" ||
			key == "training.greater_is_better" && after[key] == "" && isImplied(file, was)
		was, both := before[key]
		if !both {
			was = defaults[key]
		}
		if orNone(was) != orNone(after[key]) && !chosen && !isUnimportant(key) {
			one := difference{of: changedExperiment, what: key, was: orNone(was), now: orNone(after[key])}
			if both {
				one.fixed = fixedBy(key, was, after[key])
			}
			all = append(all, one)
		}
	}
	return all, nil
}

// defaultsOf returns the values of the text of an experiment file by their keys with all defaults filled in, none where
// that cannot be read any more.
func defaultsOf(file string, text []byte) map[string]string {
	e, err := config.Parse(file, text, nil)
	if err != nil {
		return nil
	}
	if text, err = experimentText(e, filepath.Dir(file)); err != nil {
		return nil
	}
	keys, err := keysOf(file, text)
	if err != nil {
		return nil
	}
	return keys
}

// isImplied reports whether the direction of the metric in the text of an experiment file is the one that the metric
// implies.
func isImplied(file string, text []byte) bool {
	e, err := config.Parse(file, text, nil)
	return err == nil && !e.Training.Reversed
}

// keysOf returns the values of an experiment file by their keys.
func keysOf(name string, text []byte) (map[string]string, error) {
	var mistakes plugin.Mistakes
	root := plugin.Parse(name, text, &mistakes)
	if root == nil {
		return nil, mistakes.Err()
	}
	keys := map[string]string{}
	flatten("", root, keys)
	return keys, nil
}

// flatten adds the values of a section by their keys, as --set names them.
func flatten(path string, s *plugin.Section, into map[string]string) {
	named := s.Kind == plugin.List && len(s.Items) > 0
	for _, item := range s.Items {
		named = named && item.Has("name")
	}
	join := func(key string) string { return strings.TrimPrefix(path+"."+key, ".") }
	switch {
	case s.Kind == plugin.Mapping:
		for _, e := range s.Entries {
			flatten(join(e.Key), e.Value, into)
		}
	case named:
		var names []string
		for _, item := range s.Items {
			names = append(names, item.At("name").Text)
			flatten(join(item.At("name").Text), item, into)
		}
		into[path] = strings.Join(names, ", ") // their order
	case s.Kind == plugin.List:
		for i, item := range s.Items {
			flatten(join(strconv.Itoa(i+1)), item, into)
		}
	default:
		into[path] = s.Text
	}
}

// misfits is the error of a checkpoint whose state a training cannot continue, whatever is allowed to differ.
type misfits struct {
	run, checkpoint string
	state           train.Misfits
	differ          []difference // of the experiment, those that are allowed too
}

// explainMisfits returns err, of the state in a checkpoint, with the changed keys that it follows from.
func (s *resumption) explainMisfits(err error) error {
	var state train.Misfits
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
func reasonOf(m train.Misfit) string {
	switch m.Of {
	case train.OfOptimizer:
		return "the state of its optimizer does not fit"
	case train.OfSampler:
		return "the state of its sampler does not fit"
	case train.OfWeighting:
		return "the state of its weighting does not fit"
	case train.OfTasks:
		return "the losses that it has are of other heads"
	case train.OfOrder:
		return fmt.Sprintf("its parameters are in another order, such as %q", m.Params)
	case train.OfPosition:
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
func (m misfits) causes(of train.Misfit) []difference {
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

// lists stands for the lists of tasks and of their heads among the beginnings of keys.
const lists = "lists of tasks and heads"

// causesOf are the beginnings of the keys that a part of a state other than parameters depends on.
var causesOf = map[string][]string{
	train.OfOrder:     {lists, "model.keep_tasks", "training.rehearse"},
	train.OfTasks:     {lists, "model.keep_tasks", "training.rehearse"},
	train.OfOptimizer: {"training.optimizer", "training.ema"},
	train.OfSampler:   {lists, "training.sampling", "training.rehearse", "model.keep_tasks"},
	train.OfWeighting: {lists, "training.weighting", "training.rehearse", "model.keep_tasks"},
	train.OfPosition: {lists, "training.num_epochs", "training.max_steps", "training.rehearse",
		"model.keep_tasks"},
}

// sizeless are the last parts of keys of a model on which its parameters do not depend.
var sizeless = []string{"dropout", "weight", "label_smoothing", "focal_gamma", "threshold", "tune"}

// mayCause reports whether a misfit may follow from another value of a key.
func mayCause(key string, m train.Misfit) bool {
	starts := causesOf[m.Of]
	if m.Of == train.OfParams {
		starts = causesOfParams(m.Params)
		if slices.Contains(sizeless, key[strings.LastIndexByte(key, '.')+1:]) || strings.Contains(key, ".data.") {
			return false
		}
	}
	return slices.ContainsFunc(starts, func(start string) bool {
		return start == lists && isList(key) || key == start || strings.HasPrefix(key, start+".")
	})
}

// causesOfParams returns the beginnings of the keys that parameters depend on, also on whether they learn.
func causesOfParams(names []string) []string {
	all := []string{lists, "model.keep_tasks", "training.rehearse"}
	for _, name := range names {
		switch parts := strings.SplitN(name, ".", 4); {
		case parts[0] == "encoder":
			all = append(all, "model.base_model", "model.encoder", "model.freeze", "model.lora", "tokenizer")
		case parts[0] == "fusion":
			all = append(all, "model.fusion", "model.freeze")
		case parts[0] == "heads" && len(parts) == 4:
			task := "tasks." + parts[1]
			all = append(all, task+".heads."+parts[2], task+".type", task+".labels")
		default:
			all = append(all, "model", "tasks")
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
