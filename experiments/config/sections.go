package config

import (
	"slices"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/plugin"
)

// Sections lists the keys of the sections of an experiment file, without those of the parts that they name. It has the
// methods of a registry.
type Sections struct{}

// Kind returns the word for a section in lists.
func (Sections) Kind() string { return "section" }

// Names returns the names of the listed sections.
func (Sections) Names() []string {
	return []string{"model", "tokenizer", "task", "data", "head", "training"}
}

// Fields returns the keys of a section. It panics if name is not one of Names.
func (Sections) Fields(name string) []plugin.Field {
	switch name {
	case "model":
		return slices.Concat(documented(modelDefaults), plugin.FieldsOf("lora.", loraDefaults))
	case "tokenizer":
		return slices.Concat(documented(tokenizerDefaults), plugin.FieldsOf("train.", vocabularyDefaults))
	case "task":
		return documented(taskDefaults)
	case "data":
		return slices.Concat(documented(dataDefaults), plugin.FieldsOf("split.", Split{}))
	case "head":
		return documented(headDefaults)
	case "training":
		return documented(trainingDefaults)
	}
	panic("config: no section " + name)
}

// documented returns the keys with a doc tag. The others choose parts, have keys of their own, or are for files of
// Jenga-NLP and have no effect.
func documented(options any) []plugin.Field {
	return slices.DeleteFunc(plugin.FieldsOf("", options), func(f plugin.Field) bool { return f.Doc == "" })
}

// experimentOptions are the keys of an experiment file.
type experimentOptions struct {
	ProjectName string          `yaml:"project_name"`
	Seed        uint64          `yaml:"seed" range:"[0,)"`
	Model       *plugin.Section `yaml:"model"`
	Tokenizer   *plugin.Section `yaml:"tokenizer"`
	Tasks       *plugin.Section `yaml:"tasks"`
	Training    *plugin.Section `yaml:"training"`
}

var experimentDefaults = experimentOptions{Seed: 42}

// modelOptions are the keys of `model` beside `encoder` and `fusion`, which name parts. With `base_model` the encoder's
// weights, sizes and tokenizer are those of a trained model. With `lora: {}` its weights W are frozen, and A and B of
// rank r are trained, with W + alpha/r·A·B in place of W (Hu et al. 2022, "LoRA"); checkpoints have the merged weight.
type modelOptions struct {
	BaseModel    *plugin.Section `yaml:"base_model,omitempty" doc:"folder or .onnx file of the initial weights, or a model's name in the Hugging Face cache; none: the encoder is trained from scratch"`
	Dropout      float64         `yaml:"dropout" range:"[0,1)" doc:"dropout rate of the encoder's states and attention weights, and of the inputs of heads without a dropout of their own; where it is not given, the encoder of a base model has that of its config.json"`
	Freeze       string          `yaml:"freeze" doc:"frozen weights of the encoder: none, embeddings, all, or a number N: the embeddings and the first N layers. An encoder that is frozen as a whole has no dropout and encodes each text once"`
	LoRA         *plugin.Section `yaml:"lora,omitempty"`
	Encoder      *plugin.Section `yaml:"encoder,omitempty"`
	Fusion       *plugin.Section `yaml:"fusion"`
	BackboneType string          `yaml:"backbone_type,omitempty" listed:"no"`
}

var (
	modelDefaults = modelOptions{Dropout: 0.1, Freeze: encoders.FreezeNone, BackboneType: "text"}
	loraDefaults  = encoders.LoRA{Rank: 8, Alpha: 16, Targets: []string{"query", "value"}}
)

// tokenizerOptions are the keys of `tokenizer`. A base model's tokenizer is beside its weights: WordPiece, or in a
// jenga built with -tags native any tokenizer.json of byte pairs (BPE) or Unigram (see scripts/native.sh). For an
// encoder that is trained from scratch the vocabulary is learned from the training texts: pieces of words, by merging
// the most frequent pair of neighbours (Sennrich et al. 2016), or the most frequent whole words. Texts of more than
// `max_length` tokens are truncated or divided, as their task's `long` says.
type tokenizerOptions struct {
	MaxLength int    `yaml:"max_length" range:"[3,65536]" doc:"most tokens of a text or pair, special ones included"`
	Type      string `yaml:"type,omitempty" choice:"wordpiece|words" doc:"what a token is, for training from scratch"`

	Vectors    *plugin.Section `yaml:"vectors,omitempty" doc:"text file of words and their vectors, as GloVe's (Pennington et al. 2014), with which the embeddings of type: words are initialised; none: they are initialised randomly"`
	Train      *plugin.Section `yaml:"train,omitempty"`
	Truncation bool            `yaml:"truncation,omitempty" listed:"no"`
	Padding    *plugin.Section `yaml:"padding,omitempty" listed:"no"`
	PadTokenID *plugin.Section `yaml:"pad_token_id,omitempty" listed:"no"`
}

var (
	tokenizerDefaults  = tokenizerOptions{MaxLength: 128, Type: WordPieces, Truncation: true}
	vocabularyDefaults = Vocabulary{VocabSize: 8000, Lowercase: true}
)

// taskOptions are the keys of an entry of `tasks` beside `type`, which names the part, and `data`.
type taskOptions struct {
	Name     string          `yaml:"name" doc:"of the task: 1 to 64 letters, digits, _, - or blanks within"`
	DataPath *plugin.Section `yaml:"data_path,omitempty" listed:"no"`
	Data     *plugin.Section `yaml:"data"`

	Long   string   `yaml:"long,omitempty" choice:"truncate|windows" doc:"texts of more than max_length tokens are truncated, or read in windows whose predictions are merged: the mean of labels and numbers, for a word the tag of the window where it is furthest from the ends, the best answer to a question; default for question_answering: windows"`
	Stride int      `yaml:"stride" range:"[0,)" doc:"common tokens of two windows; default: 64, at most half a window"`
	Labels []string `yaml:"labels,omitempty" doc:"for heads without their own, in order; none: the training data's"`

	LabelMaps map[string]map[int]string `yaml:"label_maps,omitempty" doc:"names of numbered labels: {HEAD: {0: NAME}}"`

	Heads *plugin.Section `yaml:"heads" doc:"list; none: one of the default type for its outputs, named as the task"`
}

var taskDefaults = taskOptions{Long: "truncate", Stride: 64}

// headOptions are the keys of an entry of a task's `heads` beside `type`, which names the part.
type headOptions struct {
	Name      string   `yaml:"name" doc:"of the head; default for a single head: the task's name"`
	Weight    float64  `yaml:"weight" range:"[0,)" doc:"factor of its loss"`
	NumLabels int      `yaml:"num_labels,omitempty" range:"[1,)" doc:"number of labels that the data must have"`
	Labels    []string `yaml:"labels,omitempty" doc:"in the order of their numbers; none: the task's"`
}

var headDefaults = headOptions{Weight: 1}

// dataOptions are the keys of a task's `data`: one file that `split` divides (`path`), or a file for each split, or the
// task whose texts are read (`same_as`). Paths are relative to the experiment file, else to $JENGA_DATA.
type dataOptions struct {
	SameAs string `yaml:"same_as,omitempty" doc:"task whose texts it reads, each encoded once; beside it only columns"`

	Path  *plugin.Section `yaml:"path,omitempty" doc:"one file, which split divides"`
	Train *plugin.Section `yaml:"train,omitempty" doc:"file of the training examples"`
	Dev   *plugin.Section `yaml:"dev,omitempty" doc:"file of the examples that select the best checkpoint"`
	Test  *plugin.Section `yaml:"test,omitempty" doc:"file of the examples for the final evaluation"`

	Format    string `yaml:"format,omitempty" doc:"of the files: csv, tsv, json, jsonl, conll, conllu, or slots for a folder with seq.in, seq.out and label; none: by file extension"`
	Delimiter string `yaml:"delimiter,omitempty" doc:"of columns; none: comma (csv), tab (tsv), tab or blanks (conll)"`
	Quote     string `yaml:"quote,omitempty" doc:"of cells; none: quotation marks are letters; default: as RFC 4180"`
	Encoding  string `yaml:"encoding,omitempty" doc:"of the characters: utf-8 or latin1; default: utf-8"`

	Header  bool     `yaml:"header" doc:"whether the first line of csv and tsv names the columns"`
	Columns []string `yaml:"columns,omitempty" doc:"names by position, in place of a header; _: a column not read"`

	Split *plugin.Section `yaml:"split,omitempty"`

	Limit int `yaml:"limit,omitempty" range:"[0,)" doc:"training examples that are used, the first ones; 0: all"`

	columnOptions `yaml:",inline"`
}

// columnOptions are the names of the columns, or keys of JSON, that tasks read, where these differ from the defaults.
type columnOptions struct {
	Text     *plugin.Section `yaml:"text,omitempty" doc:"column of the text; default here and below: the key itself"`
	Pair     *plugin.Section `yaml:"pair,omitempty" doc:"column of a second text"`
	Words    *plugin.Section `yaml:"words,omitempty" doc:"column of the text as a list of words"`
	Label    *plugin.Section `yaml:"label,omitempty" doc:"column of the label, or {HEAD: COLUMN}"`
	Labels   *plugin.Section `yaml:"labels,omitempty" doc:"column of a list of labels, or {HEAD: COLUMN}"`
	Tags     *plugin.Section `yaml:"tags,omitempty" doc:"column of the words' tags, or {HEAD: COLUMN}"`
	Entities *plugin.Section `yaml:"entities,omitempty" doc:"column of labelled spans"`
	Value    *plugin.Section `yaml:"value,omitempty" doc:"column of a number, or {HEAD: COLUMN}"`
	Question *plugin.Section `yaml:"question,omitempty" doc:"column of a question"`
	Context  *plugin.Section `yaml:"context,omitempty" doc:"column of the text that the question is about"`
	Answers  *plugin.Section `yaml:"answers,omitempty" doc:"column of the parts of the context that answer it"`
}

var dataDefaults = dataOptions{Header: true}

// trainingOptions are the keys of `training`. `sampling` and `weighting` name parts.
type trainingOptions struct {
	Training  `yaml:",inline"`
	Sampling  *plugin.Section `yaml:"sampling"`
	Weighting *plugin.Section `yaml:"weighting"`
	OutputDir *plugin.Section `yaml:"output_dir,omitempty" doc:"run folder; none: runs/PROJECT_NAME"`
	CacheFile *plugin.Section `yaml:"cache_file" doc:"folder of a temporary file for the states of a frozen encoder beyond cache_memory; true, the default: the run folder; false: no file, they are computed each time"`
}

var trainingDefaults = trainingOptions{Training: Training{
	LearningRate: 2e-5, WeightDecay: 0.01, BatchSize: 16, NumEpochs: 3, MaxGradNorm: 1, GradientAccumulationSteps: 1,
	Precision: "float32", EvalStrategy: "epoch", EvalSteps: 500, SaveStrategy: "epoch", LoadBestModelAtEnd: true,
	CacheMemory: 2048, Device: "auto", LoggingSteps: 10,
}}
