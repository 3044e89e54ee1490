package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/fusion"
	"github.com/jenga-nlp/jenga/plugin"
)

// Model is the model section.
type Model struct {
	BaseModel  File     // folder or .onnx file of the weights; no name: trained from scratch
	BaseRun    *BaseRun // that base_model names, BaseModel being its encoder; nil: it names no run
	Dropout    float64
	DropoutSet bool          // else the base model's config.json applies
	Freeze     string        // none | embeddings | all | a number of layers
	Unfreeze   float64       // epochs between layers that begin to learn; 0: all learn from the start
	LoRA       encoders.LoRA // of rank 0: none
	Encoder    plugin.Choice[encoders.Env, encoders.Encoder]
	Fusion     plugin.Choice[fusion.Env, fusion.Fusion]

	EncoderOfBase bool // no encoder is named: Encoder is of the type in the base model's config.json
}

// Fixed reports whether the training of a task leaves the encoder as it is for the others.
func (m Model) Fixed() bool { return m.Freeze == encoders.FreezeAll || m.LoRA.PerTask }

// modelOptions are the keys of `model`. With `base_model` the encoder's
// weights, sizes and tokenizer are those of a trained model. With `lora: {}` its weights W are frozen, and A and B of
// rank r are trained, with W + alpha/r·A·B in place of W (Hu et al. 2022, "LoRA"); checkpoints have the merged weight,
// and beside it A and B as PEFT reads them (docs/checkpoints.md).
// With `lora: {per_task: true}` each group of tasks that read the same texts has A and B of its own, which checkpoints
// have in files of their own, beside one base; predictions of k groups take k passes of the encoder.
//
// Where `base_model` is a run, its encoder, its fusion and the heads of its tasks are trained on: a task of the same
// name takes over the run's heads, `from` names another one, and `keep_tasks` has those tasks that the model keeps and
// this experiment does not train (docs/growing.md).
//
// With `freeze: {unfreeze: {every: 1}}` heads and fusion learn alone in the first epoch, the encoder's last layer from
// the second epoch on, one layer more in each epoch, and last the embeddings (Howard & Ruder 2018, "Universal Language
// Model Fine-tuning for Text Classification").
type modelOptions struct {
	// folder or .onnx file of the initial weights, or the name of a model in the Hugging Face cache, or a run, whose
	// heads and fusion are trained on too; none: the encoder is trained from scratch
	BaseModel *plugin.Section `yaml:"base_model,omitempty" takes:"a path or a model's name"`
	// tasks of the run that base_model names which this experiment does not train, and which the model has all the
	// same: all, or a list of their names; without it they are dropped
	KeepTasks *plugin.Section `yaml:"keep_tasks,omitempty" takes:"all or a list of tasks" default:""`
	// dropout rate of the encoder's states and attention weights, and of the inputs of heads without a dropout of their
	// own; where it is not given, the encoder of a base model has that of its config.json
	Dropout float64 `yaml:"dropout" range:"[0,1)"`
	// frozen weights of the encoder; a number N: the embeddings and the first N layers. An encoder that is frozen as a
	// whole has no dropout and encodes each text once
	Freeze *plugin.Section `yaml:"freeze" takes:"none, embeddings, all, {…} or a whole number" default:"none"`
	LoRA   *plugin.Section `yaml:"lora,omitempty"`
	// encoder and its own keys, as jenga parts encoder lists them; required without base_model
	Encoder *plugin.Section `yaml:"encoder,omitempty" takes:"a type or {type: …}" default:"(by base_model)"`
	// what is between encoder and tasks, with its own keys, as jenga parts fusion lists them
	Fusion plugin.Choice[fusion.Env, fusion.Fusion] `yaml:"fusion"`
	// for files of Jenga-NLP, no effect
	BackboneType string `yaml:"backbone_type,omitempty" listed:"no" takes:"the word text"`
}

var (
	modelDefaults = modelOptions{Dropout: 0.1, Fusion: fusion.Registry().Unset(), BackboneType: "text"}
	loraDefaults  = encoders.LoRA{Rank: 8, Alpha: 16, Targets: []string{"query", "value"}}
)

func (d *decoding) model(s *plugin.Section) {
	m := modelDefaults
	s.Decode("model", &m, &d.mistakes)

	switch {
	case m.BaseModel != nil && m.BaseModel.Kind != plugin.Null:
		d.e.Model.BaseModel = d.baseModel(m.BaseModel)
	case s.Kind == plugin.Null:
		d.mistakes.Add(s.Place, "experiment without a model; %s", modelRule())
	case s.Kind == plugin.Mapping && !s.Has("encoder"):
		d.mistakes.Add(s.Place, "model: neither base_model nor encoder; %s", modelRule())
	}
	if m.BackboneType != "text" {
		d.mistakes.Add(s.At("backbone_type").Place, "model: %s",
			plugin.Unknown("backbone_type", m.BackboneType, []string{"text"}))
	}
	d.e.Model.Dropout, d.e.Model.DropoutSet = m.Dropout, s.Has("dropout") || !s.Has("base_model")
	d.freeze(m.Freeze)
	if !d.inheritLoRA(m.LoRA) {
		d.lora(m.LoRA)
	}
	d.e.Model.Encoder = encoders.Registry().Choose(m.Encoder, encoderType(d.e.Model.BaseModel.Name), nil, &d.mistakes)
	d.e.Model.EncoderOfBase = d.e.Model.Encoder.Place == (plugin.Place{})
	d.e.Model.Fusion = m.Fusion
	d.inheritParts(s)
	if d.e.Model.BaseModel.given() {
		d.checkBase(s.At("encoder"))
	}
}

func modelRule() string {
	const rule = "base_model is a folder or an .onnx file of weights, encoder: {type: %s} is trained from scratch"
	return fmt.Sprintf(rule, encoders.Registry().Default())
}

// checkBase rejects keys of the section encoder that are fixed by the base model.
func (d *decoding) checkBase(s *plugin.Section) {
	part := d.e.Model.Encoder
	if !sized(part.Options) || s == nil {
		return
	}
	i := slices.IndexFunc(s.Entries, func(e plugin.Entry) bool { return e.Key != "type" })
	if i >= 0 {
		d.mistakes.Add(s.Entries[i].Value.Place, "encoder %q: %w", part.Type, encoders.ErrSized)
	}
}

// sized reports whether a base model determines all options of an encoder.
func sized(options any) bool {
	_, is := options.(encoders.SizedByBase)
	return is
}

type freezeOptions struct {
	// with freeze.unfreeze: what stays frozen for the whole training
	Always   string          `yaml:"always" takes:"none, embeddings or a whole number"`
	Unfreeze *plugin.Section `yaml:"unfreeze"`
}

type unfreezeOptions struct {
	// number of epochs after which each layer of the encoder begins to learn, from the last one down; before, heads and
	// fusion learn alone
	Every float64 `yaml:"every" range:"(0,)"`
}

var (
	freezeDefaults   = freezeOptions{Always: encoders.FreezeNone}
	unfreezeDefaults = unfreezeOptions{Every: 1}
)

func (d *decoding) freeze(s *plugin.Section) {
	switch {
	case s == nil || s.Kind == plugin.Null:
		d.e.Model.Freeze = encoders.FreezeNone
		return
	case s.Kind != plugin.Mapping:
		d.frozen("model: freeze", s, encoders.FreezeWords())
		return
	}
	o := freezeDefaults
	s.Decode("model: freeze", &o, &d.mistakes)
	d.e.Model.Freeze = o.Always
	if s.Has("always") {
		d.frozen("model: freeze: always", s.At("always"), []string{encoders.FreezeNone, encoders.FreezeEmbeddings})
	}
	if o.Unfreeze == nil {
		d.mistakes.Add(s.Place, "model: freeze: want unfreeze: {every: 1}, or %s or a number of layers",
			strings.Join(encoders.FreezeWords(), ", "))
		return
	}
	u := unfreezeDefaults
	o.Unfreeze.Decode("model: freeze: unfreeze", &u, &d.mistakes)
	d.e.Model.Unfreeze = u.Every
}

// frozen reads what is frozen: one of words, or a number of layers.
func (d *decoding) frozen(what string, s *plugin.Section, words []string) {
	n, err := strconv.Atoi(s.Text)
	switch want := strings.Join(words, ", "); {
	case s.Kind >= plugin.List:
		d.mistakes.Add(s.Place, "%s: want %s or a number of layers, have %s", what, want, s)
	case (err != nil || n < 0) && !slices.Contains(words, s.Text):
		d.mistakes.Add(s.Place, "%s: want %s or a number of layers, have %q", what, want, s.Text)
	}
	d.e.Model.Freeze = s.Text
}

func (f *writing) freeze() *plugin.Section {
	m := f.e.Model
	if m.Unfreeze == 0 {
		return plugin.SectionOf(m.Freeze)
	}
	return plugin.SectionOf(freezeOptions{
		Always: m.Freeze, Unfreeze: plugin.SectionOf(unfreezeOptions{Every: m.Unfreeze}),
	})
}

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

func (f *writing) model() *plugin.Section {
	m := f.e.Model
	base := m.BaseModel.Name
	if m.BaseRun != nil {
		base = m.BaseRun.Folder
	}
	o := modelOptions{
		BaseModel: f.path(base), Dropout: m.Dropout, Freeze: f.freeze(), Fusion: m.Fusion,
	}
	if m.LoRA.Rank > 0 {
		o.LoRA = plugin.SectionOf(m.LoRA)
	}
	if !m.EncoderOfBase || m.BaseModel.Name == "" {
		o.Encoder = m.Encoder.Section() // else the base model determines it
		if m.BaseModel.Name != "" && sized(m.Encoder.Options) {
			o.Encoder.Entries = slices.DeleteFunc(o.Encoder.Entries, func(e plugin.Entry) bool {
				return e.Key != "type"
			})
		}
	}
	s := plugin.SectionOf(o)
	if !m.DropoutSet {
		s.Remove("dropout")
	}
	return s
}

// Tokenizer is the tokenizer section.
type Tokenizer struct {
	MaxLength int // tokens of a text or pair, special tokens included
	// Set for an encoder trained from scratch, zero where the base model has a tokenizer:
	Type    string // wordpiece | words
	Train   Vocabulary
	Vectors File // of whole words, initial values of the embeddings; no name: initialised randomly
}

// Vocabulary has the options of training a tokenizer.
type Vocabulary struct {
	// most tokens of the vocabulary, special tokens included; default: 8000, with type: words 30000
	VocabSize int  `yaml:"vocab_size" range:"[100,1000000]" default:"(8000 or 30000)"`
	Lowercase bool `yaml:"lowercase" doc:"whether text is lowercased"`
}

// tokenizerOptions are the keys of `tokenizer`. A base model's tokenizer is beside its weights: a tokenizer.json of
// WordPiece, byte pairs (BPE) or Unigram, or the older vocab.txt, or vocab.json with merges.txt. For an encoder that is
// trained from scratch the vocabulary is learned from the training texts: pieces of words, by merging the most frequent
// pair of neighbours (Sennrich et al. 2016), or the most frequent whole words. Texts of more than `max_length` tokens
// are truncated or divided, as their task's `long` says.
type tokenizerOptions struct {
	MaxLength int    `yaml:"max_length" range:"[3,65536]" doc:"most tokens of a text or pair, special tokens included"`
	Type      string `yaml:"type,omitempty" choice:"wordpiece|words" doc:"what a token is, for training from scratch"`

	// text file of words and their vectors, as GloVe's (Pennington et al. 2014), with which the embeddings of type:
	// words are initialised; their width is that of the encoder's embeddings. Words of the file that training texts
	// lack enter the vocabulary too, as far as train.vocab_size allows. None: all embeddings are initialised randomly
	Vectors *plugin.Section `yaml:"vectors,omitempty" takes:"a path"`
	Train   Vocabulary      `yaml:"train,omitempty"`
	// for files of Jenga-NLP, no effect: a task's long says what becomes of long texts
	Truncation bool `yaml:"truncation,omitempty" listed:"no"`
	// for files of Jenga-NLP, no effect: batches have no padding
	Padding *plugin.Section `yaml:"padding,omitempty" listed:"no" takes:"anything"`
	// for files of Jenga-NLP, no effect: batches have no padding
	PadTokenID *plugin.Section `yaml:"pad_token_id,omitempty" listed:"no" takes:"anything"`
}

var tokenizerDefaults = tokenizerOptions{
	MaxLength: 128, Type: WordPieces, Train: Vocabulary{VocabSize: 8000, Lowercase: true}, Truncation: true,
}

// Types of tokenizers that are trained on an experiment's texts.
const (
	WordPieces = "wordpiece"
	WholeWords = "words"
)

func (d *decoding) tokenizer(s *plugin.Section) {
	t := tokenizerDefaults
	if d.base != nil {
		t.MaxLength = d.base.Tokenizer.MaxLength
	}
	s.Decode("tokenizer", &t, &d.mistakes)
	d.e.Tokenizer.MaxLength = t.MaxLength
	if !t.Truncation {
		d.warn(s.At("truncation").Place, "truncation: false has no effect: texts are truncated at max_length")
	}
	for _, key := range []string{"padding", "pad_token_id"} {
		if s.Has(key) {
			d.warn(s.At(key).Place, "%s has no effect: nothing is padded", key)
		}
	}

	if d.e.Model.BaseModel.given() {
		for _, key := range []string{"train", "type", "vectors"} {
			if at := s.At(key); s.Has(key) && at.Kind != plugin.Null {
				d.mistakes.Add(at.Place,
					"tokenizer: %s: the base model has a tokenizer; leave out one of %s and base_model", key, key)
			}
		}
		return
	}
	own := &d.e.Tokenizer
	own.Type, own.Train = t.Type, t.Train
	if t.Type == WholeWords && !s.At("train").Has("vocab_size") {
		own.Train.VocabSize = 30000
	}
	own.Vectors = d.dataFile(t.Vectors, "tokenizer", "vectors")
	if own.Vectors.given() && t.Type != WholeWords {
		d.mistakes.Add(own.Vectors.Place,
			"tokenizer: vectors: unexpected with type: %s; vectors are of whole words, want type: words",
			t.Type)
	}
}

func (f *writing) tokenizer() *plugin.Section {
	t := f.e.Tokenizer
	o := tokenizerOptions{MaxLength: t.MaxLength}
	if f.e.Model.BaseModel.Name == "" {
		o.Type, o.Vectors, o.Train = t.Type, f.path(t.Vectors.Name), t.Train
	}
	return plugin.SectionOf(o)
}
