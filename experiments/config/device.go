package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/updates"
	"github.com/jenga-nlp/jenga/multitask/weightings"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
)

// device reads the device. Files of Jenga-NLP name devices that this program does not have: training is then on the
// processor, with a warning. A trained run opens whatever it was trained on.
func (d *decoding) device(s *plugin.Section, t *Training) {
	word, place := t.Device, plugin.Place{}
	if s.Has("device") {
		place = s.At("device").Place
	}
	device, err := encoders.ParseDevice(word)
	if err == nil && d.files {
		err = encoders.CheckDevice(device)
	}
	switch t.Device = device; {
	case err == nil:
		return
	case !d.files:
	case d.e.JengaNLP && place.Argument == "" && !encoders.IsCUDA(word): // a number says that cuda is wanted
		d.warn(place, "device %q: training is on the processor: %v", word, err)
	default:
		d.mistakes.Add(place, "training: device: %w", err)
	}
	t.Device = encoders.CPU
}

// processorOnly is an option of an experiment that an encoder on a device does not have.
type processorOnly struct {
	is    bool
	place plugin.Place
	what  string // the option
	why   string // what a device lacks, after "on which"
}

// DeviceFor returns the value of encoders.Env.Device for the experiment's encoder, which trains or predicts on device.
// Where an option is set that the processor alone has, that is the processor in place of encoders.AutoDevice, and an
// error for a CUDA device.
func (e *Experiment) DeviceFor(device string, trains bool) (string, error) {
	if !encoders.IsCUDA(device) && (device != encoders.AutoDevice || encoders.CUDA == nil) {
		return device, nil
	}
	var mistakes plugin.Mistakes
	for _, o := range e.ofProcessor(trains) {
		mistakes.Add(o.place, "%s: not with device: %s, on which %s; leave it out, or write device: cpu", o.what,
			device, o.why)
	}
	if device == encoders.AutoDevice && !mistakes.Empty() {
		return encoders.CPU, nil
	}
	return device, mistakes.Err()
}

// OfProcessor returns the options for which a training of encoders.AutoDevice is on the processor of a machine with a
// GPU.
func (e *Experiment) OfProcessor() (options []string) {
	for _, o := range e.ofProcessor(true) {
		options = append(options, o.what)
	}
	return options
}

// ofProcessor returns the options that are set of those that the processor alone has.
func (e *Experiment) ofProcessor(trains bool) []processorOnly {
	options := e.headsOfProcessor()
	if trains {
		options = append(options, e.trainingOfProcessor()...)
	}
	if e.Model.LoRA.Rank > 0 && (trains || e.Model.LoRA.PerTask) { // else it is merged into a run's weights
		options = append(options,
			processorOnly{true, e.Place("model.lora"), "model: lora", "weights have no low-rank changes"})
	}
	return slices.DeleteFunc(options, func(o processorOnly) bool { return !o.is })
}

// headsOfProcessor returns the heads that read more of the encoder than its states.
func (e *Experiment) headsOfProcessor() (all []processorOnly) {
	for _, task := range e.Tasks {
		for _, head := range task.Heads {
			traits := heads.TraitsOf(head.Part.Options)
			what := fmt.Sprintf("task %q: head %q", task.Name, head.Name)
			all = append(all,
				processorOnly{traits.Words, head.Place, what, "heads do not share the word embeddings"},
				processorOnly{traits.Maps, head.Place, what, "there are no attention maps"})
		}
	}
	return all
}

// trainingOfProcessor returns the options of a training. Those about gradients are for an encoder that learns.
func (e *Experiment) trainingOfProcessor() (all []processorOnly) {
	add := func(is bool, key, why string) {
		all = append(all, processorOnly{is, e.Place(key), strings.ReplaceAll(key, ".", ": "), why})
	}
	t := e.Training
	add(e.Tokenizer.Vectors.given(), "tokenizer.vectors", "embeddings are not initialised from vectors")
	all = append(all, processorOnly{e.Several, e.Place("training.device"), "several processes",
		"processes do not train together"})
	if e.Model.Freeze.Always == encoders.FreezeAll {
		return all
	}
	own := updates.Default().Part
	add(e.updatedOtherwise(own), "training.optimizer", fmt.Sprintf("the optimizer is %v", own))
	add(e.comparesGradients(), "training.weighting", "gradients are not kept by task")
	add(t.Average > 0, "training.ema", "there are no running means of the weights")
	add(t.Shards > 1, "training.shards", "gradients are not summed over shards")
	add(t.RoundGradients, "training.gradient_dtype", "gradients are float32")
	add(t.LayerDecay != 1, "training.layer_decay", "all layers have one learning rate")
	add(e.Model.Freeze.Unfreeze.Every > 0, "model.freeze.unfreeze", "all layers learn from the start")
	return all
}

// updatedOtherwise reports whether the optimizer is not own. Mistakes of a part are reported elsewhere, here and below.
func (e *Experiment) updatedOtherwise(own updates.Part) bool {
	if e.Training.Optimizer.Mistaken() {
		return false
	}
	optimizer, err := e.Training.Optimizer.Build(struct{}{})
	return err == nil && !optimizer.Equal(own)
}

// comparesGradients reports whether the weighting combines the gradients of tasks.
func (e *Experiment) comparesGradients() bool {
	if e.Training.Weighting.Mistaken() {
		return false
	}
	env := weightings.Env{Params: nn.NewParams(e.Seed).In("weighting")}
	for _, task := range e.Tasks {
		for _, head := range task.Heads {
			env.Heads = append(env.Heads, multitask.HeadName{Task: task.Name, Head: head.Name})
		}
	}
	weighting, err := e.Training.Weighting.Build(env)
	return err == nil && weighting.Combine != nil
}
