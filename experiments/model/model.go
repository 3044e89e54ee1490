// Package model builds the model of an experiment for its dataset.
package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/fusion"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/updates"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/tasks"
)

// Assembled is a model and the dataset that it was built for.
type Assembled struct {
	Data        *dataset.Dataset
	Model       *multitask.Model
	EncoderPath string           // of the encoder's weights; "": initialised randomly
	Warnings    []plugin.Warning // of the data and the model

	Kept []multitask.Group // tasks of the base run that are not trained
}

// New builds the model that an experiment trains on its data. The encoder has the weights of the base model, or random
// ones.
func New(data *dataset.Dataset) (*Assembled, error) {
	m := data.Experiment.Model
	b := newBuilder(data, m.BaseModel.Name)
	return b.assemble(m.Encoder)
}

// Open builds the model of a trained run for predictions, with an encoder that is read from path and computes on a
// device: a value of encoders.Env.Device. The caller reads the weights of fusion and heads.
func Open(data *dataset.Dataset, encoder encoderChoice, path, device string) (*Assembled, error) {
	b := newBuilder(data, path)
	b.inference, b.device = true, device
	return b.assemble(encoder)
}

type encoderChoice = plugin.Choice[encoders.Env, encoders.Encoder]

type builder struct {
	*Assembled
	inference bool   // for predictions of a trained run: all weights are frozen
	device    string // that is asked for
	mistakes  plugin.Mistakes
}

func newBuilder(data *dataset.Dataset, path string) *builder {
	m := &multitask.Model{Params: nn.NewParams(data.Experiment.Seed)}
	return &builder{device: data.Experiment.Training.Device, Assembled: &Assembled{
		Data: data, Model: m, EncoderPath: path, Warnings: slices.Clone(data.Warnings)}}
}

func (b *builder) assemble(choice encoderChoice) (_ *Assembled, err error) {
	m, data, e := b.Model, b.Data, b.Data.Experiment
	defer func() {
		if err != nil && m.Encoder != nil {
			encoders.Close(m.Encoder)
		}
	}()

	// encoder
	if err := b.encoder(choice); err != nil {
		return nil, err
	}

	// fusion
	about := m.Encoder.Describe()
	env := fusion.Env{Width: about.Width, Layers: about.Layers, Params: multitask.FusionParams(m.Params)}
	for number, task := range e.Tasks {
		env.Tasks = append(env.Tasks, task.Name)
		if data.Tasks[number].Output().PerWord {
			env.Tagged = append(env.Tagged, task.Name)
		}
	}
	for _, task := range e.Kept {
		env.Tasks = append(env.Tasks, task.Name)
	}
	if m.Fusion, err = e.Model.Fusion.Build(env); err != nil {
		b.mistakes.Append(err)
	} else {
		b.warn(e.Model.Fusion.Place, m.Fusion.Describe().Warnings)
	}

	// tasks and their heads
	m.Groups = b.groups()
	b.mistakes.Append(b.keep())
	if !b.inference {
		b.Warnings = append(b.Warnings, PassesWarnings(e.Place("model.lora.per_task"), slices.Concat(m.Groups,
			b.Kept))...)
	}
	if err := b.mistakes.Err(); err != nil {
		return nil, err
	}
	return b.Assembled, nil
}

// groups builds the tasks and heads of the data's groups.
func (b *builder) groups() []multitask.Group {
	var all []multitask.Group
	tasks := b.Data.Experiment.Tasks
	for g := range b.Data.Groups {
		of := &b.Data.Groups[g]
		group := multitask.Group{Name: tasks[of.Tasks[0]].Name, Adapter: b.adapter(of)}
		for _, number := range of.Tasks {
			group.Tasks = append(group.Tasks, b.task(of, tasks[number], b.Data.Tasks[number]))
		}
		all = append(all, group)
	}
	return all
}

// CheckEncoder returns the mistakes of an experiment's encoder, whose data has mistakes. nil without a tokenizer, whose
// mistake is one of the data.
func CheckEncoder(e *config.Experiment) error {
	tokenizer, err := dataset.OpenTokenizer(e)
	if err != nil {
		return nil
	}
	b := newBuilder(&dataset.Dataset{Experiment: e, Tokenizer: tokenizer}, e.Model.BaseModel.Name)
	if err := b.encoder(e.Model.Encoder); err != nil {
		b.mistakes.Append(err)
	} else {
		encoders.Close(b.Model.Encoder)
	}
	return b.mistakes.Err()
}

func (b *builder) encoder(choice encoderChoice) error {
	e := b.Data.Experiment
	freeze, lora, adapters := e.Model.Freeze.Always, e.Model.LoRA, b.adapters()
	if b.inference && len(adapters) == 0 { // LoRA is merged into the saved weights
		freeze, lora = encoders.FreezeAll, encoders.LoRA{}
	}
	var layers []int // of a checkpoint's encoder, all
	if !b.inference {
		layers = e.Model.Layers
	}
	device, err := e.DeviceFor(b.device, !b.inference)
	if err != nil {
		return err
	}
	encoder, err := choice.Build(encoders.Env{
		Model:      b.EncoderPath,
		Vocabulary: b.Data.Tokenizer.Size(),
		MaxLength:  e.Tokenizer.MaxLength,
		Dropout:    e.Model.Dropout,
		DropoutSet: e.Model.DropoutSet || b.EncoderPath == "",
		Layers:     layers,
		Freeze:     freeze,
		LoRA:       lora,
		Adapters:   adapters,
		Params:     multitask.EncoderParams(b.Model.Params),
		Device:     device,
	})
	if err != nil {
		return b.placed(err)
	}
	if !b.inference && encoder.Describe().Precision != nn.Float32 {
		return errors.Join(&plugin.Mistake{Place: e.Model.BaseModel.Place, Err: fmt.Errorf("model: %s: %s: %w",
			e.Model.BaseKey(), b.EncoderPath, encoders.ErrQuantized)}, encoders.Close(encoder))
	}
	b.warnOfProcessor(device, encoder.Describe().NoDevice)
	if !b.inference && e.Training.BFloat16 && encoders.CUDA != nil && encoder.Describe().Device == "" {
		if err := e.CheckBFloat16(); err != nil { // which auto has put off
			return errors.Join(err, encoders.Close(encoder))
		}
	}
	if b.Data.Vectors != nil {
		if err := b.setVectors(encoder); err != nil {
			return errors.Join(err, encoders.Close(encoder))
		}
	}
	b.Model.Encoder = encoder
	b.freezeAdapters()
	if err := checkSaves(b.Model, b.EncoderPath); err != nil {
		b.mistakes.Add(choice.Place, "encoder %q %w", choice.Type, err)
	}
	if !b.inference {
		b.warnIdle()
	}
	return nil
}

// warn adds the warnings of a part, if the model is built for training.
func (b *builder) warn(at plugin.Place, warnings []string) {
	if b.inference {
		return
	}
	for _, warning := range warnings {
		b.Warnings = append(b.Warnings, plugin.Warn(at, "%s", warning))
	}
}

// warnOfProcessor adds a warning where auto is the processor of a machine with a GPU. The encoder was made for device,
// and may have a reason.
func (b *builder) warnOfProcessor(device string, reason error) {
	if b.inference || b.device != encoders.AutoDevice {
		return
	}
	e := b.Data.Experiment
	at := e.Place("training.device")
	if reason != nil {
		b.Warnings = append(b.Warnings, plugin.Warn(at,
			"training: device: the encoder computes on the processor: %v", reason))
	}
	if device != encoders.CPU || encoders.CUDA == nil || e.Several {
		return
	}
	if names, err := encoders.CUDA(); err == nil && len(names) > 0 {
		b.Warnings = append(b.Warnings, plugin.Warn(at, "training: device: the encoder computes on the processor, not "+
			"the GPU, which does not have %s; to say that this is meant, write device: cpu",
			strings.Join(e.OfProcessor(), ", ")))
	}
}

// setVectors initialises the embeddings of an encoder with the vectors of words.
func (b *builder) setVectors(encoder encoders.Encoder) error {
	place := b.Data.Experiment.Tokenizer.Vectors.Place
	w := encoder.Describe().WordEmbeddings
	if w == nil {
		return &plugin.Mistake{Place: place,
			Err: errors.New("tokenizer: vectors: the encoder has no word embeddings")}
	}
	if w.Shape[1] != b.Data.Vectors.Width {
		return &plugin.Mistake{Place: place, Err: fmt.Errorf(
			"tokenizer: vectors: they have %d numbers, the encoder's embeddings %d; want the same width",
			b.Data.Vectors.Width, w.Shape[1])}
	}
	for id := range b.Data.Tokenizer.Size() {
		copy(w.Data[id*w.Shape[1]:(id+1)*w.Shape[1]], b.Data.Vectors.Of(b.Data.Tokenizer.Token(int32(id))))
	}
	b.Warnings = append(b.Warnings, plugin.Warn(place, "%d of the vocabulary's %d tokens have vectors",
		len(b.Data.Vectors.Words), b.Data.Tokenizer.Size()))
	return nil
}

// placed returns an error of the encoder with the place of the option that causes it: the file need not name the
// encoder.
func (b *builder) placed(err error) error {
	e := b.Data.Experiment
	var mistake *plugin.Mistake
	var tooLong *encoders.LengthError
	var option *encoders.OptionError
	switch {
	case !errors.As(err, &mistake):
		return err
	case errors.As(err, &tooLong):
		return &plugin.Mistake{Place: e.Place("tokenizer.max_length"),
			Err: fmt.Errorf("tokenizer: max_length: %w; want at most %d", mistake.Err, tooLong.Max)}
	case errors.As(err, &option) && option.Key == "device":
		return b.ofDevice(option)
	case errors.As(err, &option):
		return &plugin.Mistake{Place: e.Place("model." + option.Key), Err: fmt.Errorf("model: %w", option)}
	case mistake.Place == (plugin.Place{}) && !b.inference:
		return &plugin.Mistake{Place: e.Model.BaseModel.Place, Err: mistake.Err}
	}
	return err
}

// ofDevice returns an error of the device: with the place of training.device, which a run that predicts has none of.
func (b *builder) ofDevice(err error) error {
	if b.inference {
		return err
	}
	return &plugin.Mistake{Place: b.Data.Experiment.Place("training.device"), Err: fmt.Errorf("training: %w", err)}
}

// checkSaves returns an error if a checkpoint can neither hold the encoder of m, which was read from path, nor refer to
// its files.
func checkSaves(m *multitask.Model, path string) error {
	encoder := m.Encoder.Describe()
	switch {
	case encoder.Save != nil:
		return nil
	case path == "":
		return errors.New("is trained from scratch, but cannot be saved; want a base_model, and freeze: all")
	case !m.Frozen():
		return errors.New("is trained, but cannot be saved; want freeze: all")
	case len(encoder.Files) == 0:
		return errors.New("can neither be saved nor list the files it is read from, so that a run could not check them")
	}
	return nil
}

func (b *builder) task(group *dataset.Group, task config.Task, taskType tasks.Task) multitask.Task {
	m, about := b.Model, b.Model.Encoder.Describe()
	built := multitask.Task{Name: task.Name, Type: taskType}
	built.Pairs, built.Single = group.Paired()
	for _, head := range task.Heads {
		name := multitask.HeadName{Task: task.Name, Head: head.Name}
		set := b.Data.Labels[name]
		env := heads.Env{
			Task: task.Name, Name: head.Name,
			Output: taskType.Output(), Labels: set.Names(),
			Width: about.Width, Attention: heads.Attention(about.Attention),
			Dropout:  b.Data.Experiment.Model.Dropout,
			Training: b.Data.Statistics(name),
			Mask:     -1,
			Lenses:   b.lenses(group),
			Params:   multitask.HeadParams(m.Params, task.Name, head.Name),
		}
		if id, ok := b.Data.Tokenizer.Mask(); ok {
			env.Mask = id
		}
		if w := about.WordEmbeddings; w != nil && w.Shape[1] == about.Width {
			env.Words = w
		}
		h, err := head.Part.Build(env)
		if err != nil {
			b.mistakes.Append(b.described(err, task, head))
		} else {
			b.checkAccepted(task, head, h)
			b.warn(head.Place, h.Describe().Warnings)
		}
		built.Heads = append(built.Heads, multitask.Head{Name: head.Name, Head: h, Labels: set, Weight: head.Weight})
	}
	return built
}

// described returns an error of a head. Where the head wants other labels, the mistake may be in the data: the error
// then names the task and the file.
func (b *builder) described(err error, task config.Task, head config.Head) error {
	var labels *heads.LabelsError
	var mistake *plugin.Mistake
	if !errors.As(err, &labels) || !errors.As(err, &mistake) {
		return err
	}
	n := b.Data.Labelled(multitask.HeadName{Task: task.Name, Head: head.Name})
	return &plugin.Mistake{Place: mistake.Place, Err: fmt.Errorf("task %q: %w in %s of %s", task.Name, mistake.Err,
		plugin.Count(n, "labelled training example"), dataset.TrainingFile(task.Data).Name)}
}

func (b *builder) lenses(group *dataset.Group) []heads.Lenses {
	var all []heads.Lenses
	for _, of := range b.Data.Heads(group) {
		lenses := heads.TraitsOf(of.Head.Part.Options).Lenses
		if lenses.Count > 0 {
			at := multitask.HeadParams(b.Model.Params, of.Task.Name, of.Head.Name)
			all = append(all, heads.Lenses{Name: at.In(lenses.Name).Path(), Count: lenses.Count})
		}
	}
	return all
}

// checkAccepted reports targets of the training data that a head cannot learn.
func (b *builder) checkAccepted(task config.Task, head config.Head, h heads.Head) {
	check := h.Describe().CheckTarget
	if check == nil {
		return
	}
	err := b.Data.EachTarget(multitask.HeadName{Task: task.Name, Head: head.Name},
		func(at corpus.Place, target corpus.Target) {
			if err := check(target); err != nil {
				b.mistakes.Append(fmt.Errorf("%s: task %q: head %q: %w", at, task.Name, head.Name, err))
			}
		})
	if err != nil {
		b.mistakes.Append(err)
	}
}

// warnIdle warns of options of model and training that have no effect on the encoder, or a harmful one.
func (b *builder) warnIdle() {
	e, m := b.Data.Experiment, b.Model
	t, about, frozen := e.Training, m.Encoder.Describe(), m.Frozen()
	lora, scratch := e.Model.LoRA.Rank > 0, b.EncoderPath == ""
	vectors := e.Model.Freeze.Always == encoders.FreezeEmbeddings && b.Data.Vectors != nil
	own := fmt.Sprintf("encoder %q", e.Model.Encoder.Type)
	const (
		inFrozen = " has no effect: a frozen encoder "
		states   = " has no effect: the encoder learns, so that its states are computed in each step"
		random   = " freezes random weights: the encoder is initialised randomly, without a base_model"
	)
	for _, w := range []struct {
		is   bool
		key  string // whose place the warning has
		text string
	}{
		{t.BFloat16 && frozen, "training.precision", "precision: bf16" + inFrozen + "computes in float32"},
		{t.BFloat16 && !frozen && !about.MixedPrecision, "training.precision",
			"precision: bf16 has no effect: " + own + " computes in float32"},
		{t.TF32 && (frozen || about.Device == "" || t.BFloat16), "training.tf32",
			"tf32 has no effect: it is for an encoder that learns on a GPU in precision: float32"},
		{t.Recompute && frozen, "training.recompute", "recompute" + inFrozen + "keeps nothing of a batch"},
		{t.Recompute && !frozen && !about.Recomputes, "training.recompute",
			"recompute has no effect: " + own + " keeps all of a batch"},
		{!frozen && t.CacheMemory != config.DefaultCacheMemory, "training.cache_memory", "cache_memory" + states},
		{!frozen && (t.NoCacheFile || t.CacheFolder != ""), "training.cache_file", "cache_file" + states},
		{t.WarmupSteps > 0 && t.WarmupRatio > 0, "training.warmup_ratio",
			fmt.Sprintf("warmup_ratio has no effect: warmup_steps: %d overrules it", t.WarmupSteps)},
		{t.Rate > 1 && !updates.ComputesRate(t.Optimizer), "training.learning_rate",
			fmt.Sprintf("learning_rate: %v is larger than any that usually trains, some 1e-5 to 1e-1; jenga lr-find "+
				"measures which ones do", t.Rate)},
		{e.Model.Freeze.Always == encoders.FreezeEmbeddings && lora, "model.freeze",
			"freeze: embeddings has no effect: with lora nothing else of the encoder learns"},
		{scratch && e.Model.Freeze.Always != encoders.FreezeNone && !vectors, "model.freeze",
			"freeze: " + e.Model.Freeze.Always + random},
		{scratch && lora, "model.lora", "lora" + random},
	} {
		if w.is {
			section, _, _ := strings.Cut(w.key, ".")
			b.Warnings = append(b.Warnings, plugin.Warn(e.Place(w.key), "%s: %s", section, w.text))
		}
	}
}
