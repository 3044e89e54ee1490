package resume

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/experiments/checkpoint"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/multitask/snapshots"
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

// Changes lists what CheckExperiment may be told to allow.
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
	return fmt.Sprintf("%s%s go on all the same by %v %s", &text, undo, allowChanges, strings.Join(kinds, ","))
}

// Unwrap returns the argument that Error names.
func (d differences) Unwrap() error { return allowChanges }

// allowChanges takes the kinds of what may differ.
const allowChanges = plugin.Argument("allow-changes")

func isFixed(d difference) bool { return d.fixed != "" }

// refused returns an error of the differences that are not allowed, nil if there are none.
func refused(checkpoint string, all []difference, allowed []string) error {
	all = slices.DeleteFunc(slices.Clone(all), func(d difference) bool {
		return !isFixed(d) && slices.Contains(allowed, d.of)
	})
	if len(all) == 0 {
		return nil
	}
	return differences{checkpoint, all}
}

// CheckExperiment returns an error for what an experiment file and this program have otherwise than the checkpoint, but
// for what is allowed, of Changes. Restore compares the data then.
func (p *Point) CheckExperiment(text []byte, allowed []string) error {
	differ, err := experimentDifferences([]byte(p.State.Experiment), text)
	if err != nil {
		return fmt.Errorf("%s: %w", p.Checkpoint, err)
	}
	p.allowed, p.differ = allowed, slices.Clone(differ)
	isLength := func(d difference) bool { return slices.Contains(lengthKeys, d.what) }
	if p.Ended {
		differ = slices.DeleteFunc(differ, isLength)
	}
	err = refused(p.Checkpoint, slices.Concat(differ, p.State.programDifferences()), allowed)
	if err != nil && p.Ended && p.State.Step >= p.State.Of && !slices.ContainsFunc(p.differ, isLength) &&
		!slices.ContainsFunc(differ, isFixed) { // what is allowed then leaves no steps
		return fmt.Errorf("%w, and %w %s: its training is finished, %s", err, plugin.Argument("set"), larger,
			p.State.after())
	}
	return err
}

func (s State) programDifferences() []difference {
	var all []difference
	if now := checkpoint.Build(); !checkpoint.SameBuild(s.Build, now) {
		all = append(all, difference{of: changedJenga, was: s.Build, now: now})
	}
	if now := kernel.Name(); s.Kernels != now {
		was := fmt.Sprintf("%s (JENGA_KERNEL=%[1]s selects them)", s.Kernels)
		all = append(all, difference{of: changedKernels, was: was, now: now})
	}
	return all
}

// CheckDevice returns an error if the encoder computes elsewhere than it did when the checkpoint was saved, on what has
// that name, "" for the processor, and CheckExperiment was not allowed other kernels.
func (p *Point) CheckDevice(name string) error {
	if p.State.Device == name {
		return nil
	}
	const processor = "the processor (training.device: cpu)"
	other := difference{of: changedKernels, what: "device", was: cmp.Or(p.State.Device, processor),
		now: cmp.Or(name, processor)}
	return refused(p.Checkpoint, []difference{other}, p.allowed)
}

// settingDifferences compares a training with a snapshot: its data, and what follows from the experiment, such as that
// there is no data of a task. Where the data differs, the number of steps follows from that.
func settingDifferences(t *train.Training, s *snapshots.Snapshot) []difference {
	var all []difference
	settings := snapshots.Differences(s.Settings, t.Settings())
	isData := func(d snapshots.Difference) bool { return d.Of == snapshots.OfData && d.Was != "" && d.Now != "" }
	data := slices.ContainsFunc(settings, isData)
	for _, d := range settings {
		of := changedExperiment
		if isData(d) || data && d.Of == snapshots.OfSteps {
			of = changedData
		}
		all = append(all, difference{of: of, what: d.Key, was: cmp.Or(d.Was, "none"), now: cmp.Or(d.Now, "none")})
	}
	return all
}

// misfit returns err, of a state that a training cannot take, with the keys that differ, though they are allowed to.
func (p *Point) misfit(err error) error {
	if len(p.differ) == 0 {
		return fmt.Errorf("%s: %w", p.Checkpoint, err)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s: training cannot go on with what differs from when it was saved:\n", p.Checkpoint)
	ofEncoder := false
	for _, d := range p.differ {
		fmt.Fprintf(&text, "  %s: was %s, is %s\n", d.what, d.was, d.now)
		for _, prefix := range []string{"model.base_model", "model.encoder.", "tokenizer."} {
			ofEncoder = ofEncoder || strings.HasPrefix(d.what, prefix)
		}
	}
	remedy := "undo the change, or train a new run"
	if !ofEncoder { // which a run that is trained on keeps
		remedy += " from its weights, with model.base_model: " + p.Folder
	}
	return fmt.Errorf("%sits state does not fit: %w\n%s", &text, err, remedy)
}

// unimportant are the keys of an experiment that change no result.
var unimportant = []string{
	"project_name", "training.output_dir", "training.cache_memory", "training.cache_file",
	"training.device", // whose name is compared, see CheckDevice
	"training.save_strategy", "training.save_steps", "training.save_minutes", "training.save_total_limit",
	"training.save_task_bests",
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
// training would go on with, by their keys. Of a task that only one of them has, the list of tasks is the difference.
func experimentDifferences(was, now []byte) ([]difference, error) {
	before, err := keysOf("the experiment of the checkpoint", was)
	if err != nil {
		return nil, err
	}
	after, err := keysOf("the experiment", now)
	if err != nil {
		return nil, err
	}

	keys := maps.Clone(before)
	maps.Copy(keys, after)
	var all []difference
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		// before the data is read it is not known how words are split if the file does not say it
		chosen := strings.HasSuffix(key, ".split_words") && (after[key] == "" || after[key] == "auto") ||
			key == shardsKey && after[key] == ""
		was, both := before[key]
		if cmp.Or(was, "none") == cmp.Or(after[key], "none") || chosen || isUnimportant(key) ||
			onlyInOne(key, before, after) {
			continue
		}
		one := difference{of: changedExperiment, what: key, was: cmp.Or(was, "none"), now: cmp.Or(after[key], "none")}
		if both {
			one.fixed = fixedBy(key, was, after[key])
		}
		all = append(all, one)
	}
	return all, nil
}

// onlyInOne reports whether a key is of a task or a head that only one of two experiments has, as the lists of names
// say.
func onlyInOne(key string, before, after map[string]string) bool {
	parts := strings.Split(key, ".")
	for at := 1; at < len(parts); at++ {
		list := strings.Join(parts[:at], ".")
		has := func(in map[string]string) bool { return slices.Contains(strings.Split(in[list], ", "), parts[at]) }
		if has(before) != has(after) {
			return true
		}
	}
	return false
}

// Text returns the file of an experiment whose run is in folder.
func Text(e *config.Experiment, folder string) ([]byte, error) {
	var text bytes.Buffer
	err := e.Write(&text, folder)
	return text.Bytes(), err
}

func keysOf(name string, text []byte) (map[string]string, error) {
	var mistakes plugin.Mistakes
	root := plugin.Parse(name, text, &mistakes)
	if root == nil {
		return nil, mistakes.Err()
	}
	keys := map[string]string{}
	for _, v := range root.Values() {
		keys[v.Key] = v.Text
	}
	return keys, nil
}
