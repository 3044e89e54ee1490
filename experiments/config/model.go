package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/fusion"
	"github.com/jenga-nlp/jenga/plugin"
)

// Model is the section `model`. With `base_model` the encoder's
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
type Model struct {
	// folder or .onnx file of the initial weights, or the name of a model in the Hugging Face cache, or a run, whose
	// heads and fusion are trained on too; none: the encoder is trained from scratch
	BaseModel File `yaml:"base_model,omitempty" takes:"a path or a model's name"`
	// tasks of the run that base_model names which this experiment does not train, and which the model has all the
	// same: all, or a list of their names; without it they are dropped
	KeepTasks *plugin.Section `yaml:"keep_tasks,omitempty" takes:"all or a list of tasks" default:""`
	// run that has all tasks, the teacher of those without a teacher of their own: tasks have the key too
	Teacher File `yaml:"teacher,omitempty" takes:"a path"`
	// dropout rate of the encoder's states and attention weights, and of the inputs of heads without a dropout of their
	// own; where it is not given, the encoder of a base model has that of its config.json
	Dropout float64 `yaml:"dropout" range:"[0,1)"`
	// frozen weights of the encoder; a number N: the embeddings and the first N layers. An encoder that is frozen as a
	// whole has no dropout and encodes each text once
	Freeze Freeze        `yaml:"freeze" takes:"none, embeddings, all, {…} or a whole number" default:"none"`
	LoRA   encoders.LoRA `yaml:"lora,omitempty"`
	// encoder and its own keys, as jenga parts encoder lists them, or a run's, by from; required without base_model
	Encoder plugin.Choice[encoders.Env, encoders.Encoder] `yaml:"encoder,omitempty" default:"(by base_model)"`
	// what is between encoder and tasks, with its own keys, as jenga parts fusion lists them
	Fusion plugin.Choice[fusion.Env, fusion.Fusion] `yaml:"fusion"`
	// for files of Jenga-NLP, no effect
	BackboneType string `yaml:"backbone_type,omitempty" listed:"no" takes:"the word text"`

	BaseRun       *BaseRun `yaml:"-"` // that base_model names, BaseModel being its encoder; nil: it names no run
	From          string   `yaml:"-"` // what encoder.from names, BaseModel being its encoder; "": nothing
	FromRun       *BaseRun `yaml:"-"` // that it names, if it is a run or a checkpoint of one; nil where a run is opened
	Layers        []int    `yaml:"-"` // encoder.layers of BaseModel that the encoder is made of, in order; nil: all
	DropoutSet    bool     `yaml:"-"` // else the base model's config.json applies
	EncoderOfBase bool     `yaml:"-"` // no encoder is named: Encoder is of the type in the base model's config.json
}

// Fixed reports whether the training of a task leaves the encoder as it is for the others.
func (m Model) Fixed() bool { return m.Freeze.Always == encoders.FreezeAll || m.LoRA.PerTask }

var (
	modelDefaults = Model{Dropout: 0.1, Encoder: encoders.Registry().Unset(), Fusion: fusion.Registry().Unset(),
		BackboneType: "text"}
	loraDefaults = encoders.LoRA{Rank: 8, Alpha: 16, Targets: []string{"query", "value"}} // of a file with lora: {}
)

func (d *decoding) model(s *plugin.Section) {
	m := &d.e.Model
	*m = modelDefaults
	if s.Has("lora") {
		m.LoRA = loraDefaults
	}
	base := File{}
	s, of := d.student(s)
	switch {
	case s.Has("base_model"):
		base = d.baseModel(s.At("base_model"), baseModelKey, d.baseRun)
	case of.From.given():
		base = d.baseModel(of.From.section, fromKey, d.fromRun)
		if m.From = base.Name; m.FromRun != nil {
			m.From = m.FromRun.Folder
		}
	case s.Kind == plugin.Null:
		d.mistakes.Add(s.Place, "experiment without a model; %s", modelRule())
	case s.Kind == plugin.Mapping && !s.Has("encoder") && of.place == (plugin.Place{}):
		d.mistakes.Add(s.Place, "model: neither base_model nor encoder; %s", modelRule())
	}
	m.Encoder.Type = encoderType(base.Name)
	s.Decode("model", m, &d.mistakes)

	m.BaseModel, m.KeepTasks = base, nil // see withKept
	m.Teacher = d.teacherAt(s.At("teacher"), "model")
	if m.BackboneType != "text" {
		d.mistakes.Add(s.At("backbone_type").Place, "model: %s",
			plugin.Unknown("backbone_type", m.BackboneType, []string{"text"}))
	}
	m.BackboneType = "" // is not written
	m.DropoutSet = s.Has("dropout") || !base.given()
	if !d.inheritLoRA(s.At("lora")) && s.Has("lora") {
		d.lora(s.At("lora"))
	}
	m.EncoderOfBase = m.Encoder.Place == (plugin.Place{})
	d.inheritParts(s)
	if m.BaseModel.given() {
		d.checkBase(s.At("encoder"))
	}
	d.checkLayers(of)
}

// studentKeys has the keys of `encoder` beside those of its type, which make it of layers of a trained encoder.
type studentKeys struct {
	// run, or a checkpoint of one, or what base_model takes: the encoder begins with its weights, in place of
	// base_model. Of a run nothing else is taken, neither heads nor fusion; its max_length is the default
	From File `yaml:"from,omitempty" takes:"a path or a model's name"`
	// layers of the encoder that from or base_model names, numbered from 0, of which the encoder is made, in this
	// order; without it, all. Embeddings, and all else that is not of a layer, are those of that encoder
	Layers []int `yaml:"layers,omitempty" range:"[0,1023]" takes:"a list of numbers of layers"`

	place plugin.Place `yaml:"-"` // of the layers
}

// What names the weights of an encoder, in errors.
const (
	baseModelKey = "base_model"
	fromKey      = "encoder: from"
)

// BaseKey returns the key that names the encoder's initial weights, as errors have it.
func (m Model) BaseKey() string {
	if m.From != "" {
		return fromKey
	}
	return baseModelKey
}

// SetBase replaces the base model by the encoder in a folder, all of it.
func (m *Model) SetBase(folder string) {
	m.BaseModel.Name, m.From, m.FromRun, m.Layers = folder, "", nil, nil
}

// student reads studentKeys in the section model, and returns the section without them: layers may also be the number
// that types of encoders have under this key.
func (d *decoding) student(s *plugin.Section) (rest *plugin.Section, of studentKeys) {
	encoder, own := s.At("encoder"), &plugin.Section{Kind: plugin.Mapping}
	if encoder == nil || encoder.Kind != plugin.Mapping {
		return s, of
	}
	other := *encoder
	other.Entries = slices.DeleteFunc(slices.Clone(encoder.Entries), func(e plugin.Entry) bool {
		is := e.Key == "from" || e.Key == "layers" && e.Value.Kind == plugin.List
		if is {
			own.Entries = append(own.Entries, e)
		}
		return is
	})
	if len(own.Entries) == 0 {
		return s, of
	}
	own.Decode("model: encoder", &of, &d.mistakes)
	if at := own.At("layers"); at != nil {
		of.place = at.Place
	}

	all := *s
	all.Entries = slices.Clone(s.Entries)
	all.Put("encoder", &other)
	if len(other.Entries) == 0 {
		all.Remove("encoder")
	}
	if of.From.given() && s.Has("base_model") {
		d.mistakes.Add(of.From.Place, "model: encoder: from: base_model names other weights; leave out one of them")
	}
	return &all, of
}

// checkLayers sets the layers of a student, and adds its mistakes, but those of layers that the weights lack.
func (d *decoding) checkLayers(of studentKeys) {
	wrong := func(format string, args ...any) {
		d.mistakes.Add(of.place, "model: encoder: layers: %s", fmt.Sprintf(format, args...))
	}
	m := &d.e.Model
	switch {
	case of.place == (plugin.Place{}):
		return
	case !m.BaseModel.given():
		wrong("a list names layers of a trained encoder; want from: RUN beside it, or base_model, or the number of " +
			"layers to train from scratch")
	case m.BaseRun != nil:
		wrong("base_model is a run, whose heads read all of its layers; want encoder: {from: %s, layers: …} in its "+
			"place, which begins with new heads", m.BaseRun.Folder)
	case of.Layers != nil && len(of.Layers) == 0:
		wrong("the list is empty; want at least one number, such as [0], or leave it out for all layers")
	}
	for i, number := range of.Layers {
		if slices.Contains(of.Layers[:i], number) {
			wrong("duplicate layer %d; want each once", number)
			break
		}
	}
	m.Layers = of.Layers
}

// EvenLayers returns n numbers of layers of an encoder that has so many, evenly spread, the first and the last among
// them; of one layer the first. It panics if n is not from 1 to layers.
func EvenLayers(n, layers int) []int {
	if n < 1 || n > layers {
		panic(fmt.Sprintf("config: %d of %d layers", n, layers))
	}
	all := make([]int, n)
	for i := 1; i < n; i++ {
		all[i] = i * (layers - 1) / (n - 1)
	}
	return all
}

func modelRule() string {
	const rule = "base_model is a folder or an .onnx file of weights, encoder: {type: %s} is trained from scratch"
	return fmt.Sprintf(rule, encoders.Registry().Default())
}

func (d *decoding) checkBase(s *plugin.Section) {
	part := d.e.Model.Encoder
	if !sized(part.Options) || s == nil {
		return
	}
	i := slices.IndexFunc(s.Entries, func(e plugin.Entry) bool { return e.Key != "type" })
	switch {
	case i >= 0 && s.Entries[i].Key == "layers":
		d.mistakes.Add(s.Entries[i].Value.Place, "encoder %q: %w; layers: [0, 2] would keep these two of its layers",
			part.Type, encoders.ErrSized)
	case i >= 0 && d.e.Model.From != "":
		d.mistakes.Add(s.Entries[i].Value.Place, "encoder %q: its sizes are those of what from names; leave out the "+
			"keys beside type, from and layers", part.Type)
	case i >= 0:
		d.mistakes.Add(s.Entries[i].Value.Place, "encoder %q: %w", part.Type, encoders.ErrSized)
	}
}

func sized(options any) bool {
	_, is := options.(encoders.SizedByBase)
	return is
}

// Freeze is what of an encoder does not learn.
type Freeze struct {
	// with freeze.unfreeze: what stays frozen for the whole training
	Always   string   `yaml:"always" takes:"none, embeddings or a whole number"`
	Unfreeze Unfreeze `yaml:"unfreeze"`
}

// Unfreeze is when the layers of an encoder begin to learn; the zero value is from the start.
type Unfreeze struct {
	// number of epochs after which each layer of the encoder begins to learn, from the last one down; before, heads and
	// fusion learn alone
	Every float64 `yaml:"every" range:"(0,)"`
}

var freezeDefaults = Freeze{Always: encoders.FreezeNone, Unfreeze: Unfreeze{Every: 1}} // of a mapping

// Read implements plugin.Option. What is frozen is a word or a number of layers; it may be in a mapping.
func (Freeze) Read(s *plugin.Section, mistakes *plugin.Mistakes) any {
	words, what := encoders.FreezeWords(), "model: freeze"
	f, frozen := freezeDefaults, s
	if s != nil && s.Kind == plugin.Mapping {
		s.Decode(what, &f, mistakes)
		if s.At("unfreeze") == nil {
			mistakes.Add(s.Place, "model: freeze: want unfreeze: {every: 1}, or %s or a number of layers",
				strings.Join(words, ", "))
		}
		words, what, frozen = []string{encoders.FreezeNone, encoders.FreezeEmbeddings}, what+": always", s.At("always")
	} else {
		f.Unfreeze = Unfreeze{}
	}
	if frozen == nil || frozen.Kind == plugin.Null {
		return f
	}

	f.Always = frozen.Text
	n, err := strconv.Atoi(f.Always)
	switch want := strings.Join(words, ", "); {
	case frozen.Kind >= plugin.List:
		mistakes.Add(frozen.Place, "%s: want %s or a number of layers, have %s", what, want, frozen)
	case (err != nil || n < 0) && !slices.Contains(words, f.Always):
		mistakes.Add(frozen.Place, "%s: want %s or a number of layers, have %q", what, want, f.Always)
	}
	return f
}

// Section implements plugin.Option.
func (f Freeze) Section() *plugin.Section {
	if f.Unfreeze == (Unfreeze{}) {
		return plugin.SectionOf(f.Always)
	}
	type mapping Freeze
	return plugin.SectionOf(mapping(f))
}

// lora rejects options of the section lora, s, that leave nothing to learn.
func (d *decoding) lora(s *plugin.Section) {
	m := d.e.Model
	if m.Freeze.Always == encoders.FreezeAll {
		d.mistakes.Add(s.Place, "model: lora: freeze: all leaves nothing to learn; leave one of them out")
	}
	if m.LoRA.Targets != nil && len(m.LoRA.Targets) == 0 {
		d.mistakes.Add(s.At("targets").Place, "model: lora: targets: want at least one weight")
	}
}

func (f *writing) model() *plugin.Section {
	m := f.e.Model
	hasBase := m.BaseModel.Name != ""
	m.BaseModel.section = f.path(m.BaseModel.Name)
	if m.BaseRun != nil {
		m.BaseModel.section = f.path(m.BaseRun.Folder)
	}
	m.Teacher.section = f.path(m.Teacher.Name)
	student := studentKeys{Layers: m.Layers}
	if m.From != "" {
		m.BaseModel, student.From.section = File{}, f.path(m.From)
	}
	omitted := m.EncoderOfBase && hasBase // the base model determines it
	if omitted {
		m.Encoder = plugin.Choice[encoders.Env, encoders.Encoder]{}
	}
	s := plugin.SectionOf(m)
	if encoder := s.At("encoder"); !omitted && hasBase && sized(m.Encoder.Options) {
		encoder.Entries = slices.DeleteFunc(encoder.Entries, func(e plugin.Entry) bool { return e.Key != "type" })
	}
	if own := plugin.SectionOf(student); len(own.Entries) > 0 {
		if s.At("encoder") == nil {
			s.Put("encoder", &plugin.Section{Kind: plugin.Mapping})
		}
		s.At("encoder").Entries = append(s.At("encoder").Entries, own.Entries...)
	}
	if !m.DropoutSet {
		s.Remove("dropout")
	}
	return s
}

// Vocabulary has the options of training a tokenizer.
type Vocabulary struct {
	// most tokens of the vocabulary, special tokens included; default: 8000, with type: words 30000
	VocabSize int  `yaml:"vocab_size" range:"[100,1000000]" default:"(8000 or 30000)"`
	Lowercase bool `yaml:"lowercase" doc:"whether text is lowercased"`
}

// Tokenizer is the section `tokenizer`. A base model's tokenizer is beside its weights: a tokenizer.json of
// WordPiece, byte pairs (BPE) or Unigram, or the older vocab.txt, or vocab.json with merges.txt. For an encoder that is
// trained from scratch the vocabulary is learned from the training texts: pieces of words, by merging the most frequent
// pair of neighbours (Sennrich et al. 2016), or the most frequent whole words. Texts of more than `max_length` tokens
// are truncated or divided, as their task's `long` says.
type Tokenizer struct {
	MaxLength int    `yaml:"max_length" range:"[3,65536]" doc:"most tokens of a text or pair, special tokens included"`
	Type      string `yaml:"type,omitempty" choice:"wordpiece|words" doc:"what a token is, for training from scratch"`

	// text file of words and their vectors, as GloVe's (Pennington et al. 2014), with which the embeddings of type:
	// words are initialised; their width is that of the encoder's embeddings. Words of the file that training texts
	// lack enter the vocabulary too, as far as train.vocab_size allows. None: all embeddings are initialised randomly
	Vectors File       `yaml:"vectors,omitempty" takes:"a path"`
	Train   Vocabulary `yaml:"train,omitempty"`
	// for files of Jenga-NLP, no effect: a task's long says what becomes of long texts
	Truncation bool `yaml:"truncation,omitempty" listed:"no"`
	// for files of Jenga-NLP, no effect: batches have no padding
	Padding *plugin.Section `yaml:"padding,omitempty" listed:"no" takes:"anything"`
	// for files of Jenga-NLP, no effect: batches have no padding
	PadTokenID *plugin.Section `yaml:"pad_token_id,omitempty" listed:"no" takes:"anything"`
}

var tokenizerDefaults = Tokenizer{
	MaxLength: 128, Type: WordPieces, Train: Vocabulary{VocabSize: 8000, Lowercase: true}, Truncation: true,
}

// Types of tokenizers that are trained on an experiment's texts.
const (
	WordPieces = "wordpiece"
	WholeWords = "words"
)

func (d *decoding) tokenizer(s *plugin.Section) {
	t := &d.e.Tokenizer
	*t = tokenizerDefaults
	if run := cmp.Or(d.base, d.from); run != nil {
		t.MaxLength = run.Tokenizer.MaxLength
	}
	s.Decode("tokenizer", t, &d.mistakes)
	if !t.Truncation {
		d.warn(s.At("truncation").Place, "truncation: false has no effect: texts are truncated at max_length")
	}
	for _, key := range []string{"padding", "pad_token_id"} {
		if s.Has(key) {
			d.warn(s.At(key).Place, "%s has no effect: nothing is padded", key)
		}
	}
	t.Truncation, t.Padding, t.PadTokenID = false, nil, nil // are not written

	if d.e.Model.BaseModel.given() {
		for _, key := range []string{"train", "type", "vectors"} {
			if at := s.At(key); s.Has(key) && at.Kind != plugin.Null {
				d.mistakes.Add(at.Place,
					"tokenizer: %s: the base model has a tokenizer; leave out one of %s and %s", key, key,
					d.e.Model.BaseKey())
			}
		}
		t.Type, t.Train, t.Vectors = "", Vocabulary{}, File{}
		return
	}
	if t.Type == WholeWords && !s.At("train").Has("vocab_size") {
		t.Train.VocabSize = 30000
	}
	t.Vectors = d.dataFile(t.Vectors.section, "tokenizer", "vectors")
	if t.Vectors.given() && t.Type != WholeWords {
		d.mistakes.Add(t.Vectors.Place,
			"tokenizer: vectors: unexpected with type: %s; vectors are of whole words, want type: words",
			t.Type)
	}
}

func (f *writing) tokenizer() *plugin.Section {
	t := f.e.Tokenizer
	t.Vectors.section = f.path(t.Vectors.Name)
	if f.e.Model.BaseModel.Name != "" {
		t = Tokenizer{MaxLength: t.MaxLength}
	}
	return plugin.SectionOf(t)
}
