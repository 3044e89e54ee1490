// Package model builds the model of an experiment for its dataset.
package model

import (
	"errors"
	"fmt"
	"slices"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/fusion"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
)

// mode is the purpose for which a model is built.
type mode int

const (
	fresh     mode = iota // for training; the encoder has the weights of the base model, or random ones
	resumed               // to continue the training of a run; otherwise as fresh
	inference             // for predictions of a trained run; all weights are frozen
)

// Assembled is a model and the dataset that it was built for.
type Assembled struct {
	Data        *dataset.Dataset
	Model       *multitask.Model
	EncoderPath string   // of the encoder's weights; "": initialised randomly
	Warnings    []string // of the data and the model

	Kept []multitask.Group // tasks of the base run that are not trained
}

// New builds the model that an experiment trains on its data.
func New(data *dataset.Dataset) (*Assembled, error) {
	return assemble(data, fresh, data.Experiment.Model.Encoder, data.Experiment.Model.BaseModel.Name)
}

// Resume builds the model of a run that is continued. data has the labels and the tokenizer of its checkpoint. The
// caller restores the trained weights from a snapshot. The encoder is read from the base model, not from the
// checkpoint: a checkpoint has LoRA merged into its weights, and frozen weights are in no snapshot.
func Resume(data *dataset.Dataset) (*Assembled, error) {
	return assemble(data, resumed, data.Experiment.Model.Encoder, data.Experiment.Model.BaseModel.Name)
}

// Open builds the model of a trained run for predictions, with an encoder that is read from path. The caller reads the
// weights of fusion and heads.
func Open(data *dataset.Dataset, encoder encoderChoice, path string) (*Assembled, error) {
	return assemble(data, inference, encoder, path)
}

// encoderChoice is the encoder of an experiment.
type encoderChoice = plugin.Choice[encoders.Env, encoders.Encoder]

// builder builds a model.
type builder struct {
	*Assembled
	mode     mode
	mistakes plugin.Mistakes
}

func assemble(data *dataset.Dataset, mode mode, choice encoderChoice, path string) (*Assembled, error) {
	e := data.Experiment
	m := &multitask.Model{Params: nn.NewParams(e.Seed)}
	built := &Assembled{Data: data, Model: m, EncoderPath: path, Warnings: slices.Clone(data.Warnings)}
	b := &builder{Assembled: built, mode: mode}

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
	var err error
	if m.Fusion, err = e.Model.Fusion.Build(env); err != nil {
		b.mistakes.Append(err)
	}
	b.warn(e.Model.Fusion.Place, m.Fusion)

	// tasks and their heads
	for g := range data.Groups {
		of := &data.Groups[g]
		group := multitask.Group{Name: e.Tasks[of.Tasks[0]].Name, Adapter: b.adapter(of)}
		for _, number := range of.Tasks {
			group.Tasks = append(group.Tasks, b.task(of, e.Tasks[number], data.Tasks[number]))
		}
		m.Groups = append(m.Groups, group)
	}
	b.mistakes.Append(b.keep())
	if b.mode == fresh {
		b.Warnings = append(b.Warnings, PassesWarnings(e.Place("model.lora.per_task"), slices.Concat(m.Groups, b.Kept))...)
	}
	if err := b.mistakes.Err(); err != nil {
		return nil, err
	}
	return built, nil
}

// CheckEncoder returns the mistakes of an experiment's encoder, whose data has mistakes. nil without a tokenizer, whose
// mistake is one of the data.
func CheckEncoder(e *config.Experiment) error {
	tokenizer, err := dataset.OpenTokenizer(e)
	if err != nil {
		return nil
	}
	b := &builder{mode: fresh, Assembled: &Assembled{
		Data:        &dataset.Dataset{Experiment: e, Tokenizer: tokenizer},
		Model:       &multitask.Model{Params: nn.NewParams(e.Seed)},
		EncoderPath: e.Model.BaseModel.Name,
	}}
	if err := b.encoder(e.Model.Encoder); err != nil {
		b.mistakes.Append(err)
	}
	return b.mistakes.Err()
}

// encoder builds the encoder.
func (b *builder) encoder(choice encoderChoice) error {
	e := b.Data.Experiment
	freeze, lora, adapters := e.Model.Freeze, e.Model.LoRA, b.adapters()
	if b.mode == inference && len(adapters) == 0 { // LoRA is merged into the saved weights
		freeze, lora = encoders.FreezeAll, encoders.LoRA{}
	}
	encoder, err := choice.Build(encoders.Env{
		Model:      b.EncoderPath,
		Vocabulary: b.Data.Tokenizer.Size(),
		MaxLength:  e.Tokenizer.MaxLength,
		Dropout:    e.Model.Dropout,
		DropoutSet: e.Model.DropoutSet || b.EncoderPath == "",
		Freeze:     freeze,
		LoRA:       lora,
		Adapters:   adapters,
		Params:     multitask.EncoderParams(b.Model.Params),
	})
	if err != nil {
		return b.placed(err)
	}
	if b.mode != inference && encoder.Describe().Precision != nn.Float32 {
		return errors.Join(&plugin.Mistake{Place: e.Model.BaseModel.Place, Err: fmt.Errorf("model: base_model: %s: %w",
			b.EncoderPath, encoders.ErrQuantized)}, encoders.Close(encoder))
	}
	if b.Data.Vectors != nil {
		if err := b.setVectors(encoder); err != nil {
			return err
		}
	}
	b.Model.Encoder = encoder
	b.freezeAdapters()
	if err := checkSaves(b.Model, b.EncoderPath); err != nil {
		b.mistakes.Add(choice.Place, "encoder %q %w", choice.Type, err)
	}
	b.warn(choice.Place, encoder)
	if b.mode == fresh {
		b.warnIdle()
	}
	return nil
}

// warn adds the warnings of a part, if the model is built for training.
func (b *builder) warn(at plugin.Place, part any) {
	if b.mode != fresh {
		return
	}
	for _, warning := range plugin.WarningsOf(part) {
		b.Warnings = append(b.Warnings, plugin.Warning(at, "%s", warning))
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
	b.Warnings = append(b.Warnings, plugin.Warning(place, "%d of the vocabulary's %d tokens have vectors",
		len(b.Data.Vectors.Words), b.Data.Tokenizer.Size()))
	return nil
}
