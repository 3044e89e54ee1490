package config

import (
	"slices"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/plugin"
)

// Sections lists what sections of an experiment file take beside the parts that they name, as a registry lists what its
// parts take.
type Sections struct{}

// Kind returns what lists call a section.
func (Sections) Kind() string { return "section" }

// Names returns the sections that are listed.
func (Sections) Names() []string {
	return []string{"model", "tokenizer", "task", "data", "head", "training"}
}

// Fields lists the keys of a section. It panics on another name than those of Names.
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

// documented lists the keys that say what they are: others choose parts, have keys of their own, or are for files of
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
// weights, sizes and tokenizer are a trained model's. With `lora: {}` its weights stay as they are, and what learns in
// their place is W + alpha/r·A·B of rank r (Hu et al. 2022, "LoRA"); saved, they are one weight again.
type modelOptions struct {
	BaseModel    *plugin.Section `yaml:"base_model,omitempty" doc:"folder or .onnx file of the weights to start from, or a model's name in the hub's local cache; none: the encoder starts from nothing"`
	Dropout      float64         `yaml:"dropout" range:"[0,1)" doc:"share hidden in training of the encoder's states and attention weights, and of what heads see that name none; where it is not given, a base model's own for the encoder"`
	Freeze       string          `yaml:"freeze" doc:"what of the encoder does not learn: none, embeddings, all, or a number N: the embeddings and the first N layers. Where nothing of it learns it drops nothing, and each text is encoded once"`
	LoRA         *plugin.Section `yaml:"lora,omitempty"`
	Encoder      *plugin.Section `yaml:"encoder,omitempty"`
	Fusion       *plugin.Section `yaml:"fusion"`
	BackboneType string          `yaml:"backbone_type,omitempty"`
}

var (
	modelDefaults = modelOptions{Dropout: 0.1, Freeze: encoders.FreezeNone, BackboneType: "text"}
	loraDefaults  = encoders.LoRA{Rank: 8, Alpha: 16, Targets: []string{"query", "value"}}
)

// tokenizerOptions are the keys of `tokenizer`. A base model's lies beside its weights: WordPiece, or in a jenga that
// is built with -tags native any tokenizer.json of byte pairs (BPE) or Unigram (scripts/native.sh says how). An encoder
// that starts from nothing learns a vocabulary from the training texts: pieces of words, by merging the two neighbours
// that stand together most often (Sennrich et al. 2016), or whole words, the most frequent ones.
type tokenizerOptions struct {
	MaxLength  int             `yaml:"max_length" range:"[3,65536]" doc:"tokens that a text or pair may have, special ones included; longer ones are cut, see long"`
	Type       string          `yaml:"type,omitempty" choice:"wordpiece|words" doc:"wordpiece: a token is a piece of a word; words: a word. Of an encoder that starts from nothing"`
	Vectors    *plugin.Section `yaml:"vectors,omitempty" doc:"text file of words and their vectors, as GloVe's (Pennington et al. 2014), that the embeddings of type: words begin with; none: they are drawn at random"`
	Train      *plugin.Section `yaml:"train,omitempty"`
	Truncation bool            `yaml:"truncation,omitempty"`
	Padding    *plugin.Section `yaml:"padding,omitempty"`
	PadTokenID *plugin.Section `yaml:"pad_token_id,omitempty"`
}

var (
	tokenizerDefaults  = tokenizerOptions{MaxLength: 128, Type: WordPieces, Truncation: true}
	vocabularyDefaults = Vocabulary{VocabSize: 8000, Lowercase: true}
)

// taskOptions are the keys of an entry of `tasks` beside `type`, which names the part, and `data`.
type taskOptions struct {
	Name      string                    `yaml:"name" doc:"of the task: 1 to 64 letters, digits, _, - or blanks within"`
	DataPath  *plugin.Section           `yaml:"data_path,omitempty"`
	Data      *plugin.Section           `yaml:"data"`
	Long      string                    `yaml:"long,omitempty" choice:"truncate|windows" doc:"texts of more than max_length tokens lose their end, or are read in windows, whose answers are merged: the mean of labels and numbers, of a word the tag of the window where it stands furthest from the ends, the best answer to a question; question_answering: windows where it is not given"`
	Stride    int                       `yaml:"stride" range:"[0,)" doc:"tokens that two windows share, at most half of a window's; 64, or what is less of both"`
	Labels    []string                  `yaml:"labels,omitempty" doc:"of all its heads that name none, in the order of their numbers; none: those of the training data"`
	LabelMaps map[string]map[int]string `yaml:"label_maps,omitempty" doc:"names of labels that the data numbers: {HEAD: {0: NAME, 1: NAME}}"`
	Heads     *plugin.Section           `yaml:"heads" doc:"list of its heads; none: one, of the task's name and the type that its answers take"`
}

var taskDefaults = taskOptions{Long: "truncate", Stride: 64}

// headOptions are the keys of an entry of a task's `heads` beside `type`, which names the part.
type headOptions struct {
	Name      string   `yaml:"name" doc:"of the head; a single one has the task's where it is not given"`
	Weight    float64  `yaml:"weight" range:"[0,)" doc:"factor of its loss"`
	NumLabels int      `yaml:"num_labels,omitempty" range:"[1,)" doc:"how many labels the data is to have; it is checked"`
	Labels    []string `yaml:"labels,omitempty" doc:"in the order of their numbers; none: the task's"`
}

var headDefaults = headOptions{Weight: 1}

// dataOptions are the keys of a task's `data`. It names one file that `split` divides (`path`), or a file for each
// split, or the task whose texts are read (`same_as`). Paths are relative to the experiment file, else below
// $JENGA_DATA.
type dataOptions struct {
	SameAs    string          `yaml:"same_as,omitempty" doc:"task whose texts this one reads too: each is encoded once for both; beside it only columns are named"`
	Path      *plugin.Section `yaml:"path,omitempty" doc:"one file, which split divides"`
	Train     *plugin.Section `yaml:"train,omitempty" doc:"file of the training examples"`
	Dev       *plugin.Section `yaml:"dev,omitempty" doc:"file of the examples that the best checkpoint is chosen by"`
	Test      *plugin.Section `yaml:"test,omitempty" doc:"file of the examples for a last evaluation"`
	Format    string          `yaml:"format,omitempty" doc:"of the files: csv, tsv, json, jsonl, conll, conllu, or slots for a folder with seq.in, seq.out and label; none: as their names end"`
	Delimiter string          `yaml:"delimiter,omitempty" doc:"between columns, any string; none: a comma in csv, a tab in tsv, a tab or blanks in conll"`
	Quote     string          `yaml:"quote,omitempty" doc:"of csv and tsv cells: none leaves quotation marks as they are; where it is not given they quote as RFC 4180 says"`
	Encoding  string          `yaml:"encoding,omitempty" doc:"of the characters: utf-8 or latin1; where it is not given utf-8"`
	Header    bool            `yaml:"header" doc:"whether the first line of csv and tsv names the columns"`
	Columns   []string        `yaml:"columns,omitempty" doc:"names of the columns by position, in place of a header's; _ is one that is not read"`
	Split     *plugin.Section `yaml:"split,omitempty"`
	Limit     int             `yaml:"limit,omitempty" range:"[0,)" doc:"training examples that are used, the first ones; 0: all"`

	columnOptions `yaml:",inline"`
}

// columnOptions name the columns, or keys of JSON, that hold what tasks read, where they have other names than these.
type columnOptions struct {
	Text     *plugin.Section `yaml:"text,omitempty" doc:"column of the text; each of these columns has its key's name where it is not given"`
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
	CacheFile *plugin.Section `yaml:"cache_file" doc:"folder of a temporary file for the states of a frozen encoder that are beyond cache_memory; true: the run folder; false: they are computed each time; true where it is not given"`
}

var trainingDefaults = trainingOptions{Training: Training{
	LearningRate: 2e-5, WeightDecay: 0.01, BatchSize: 16, NumEpochs: 3, MaxGradNorm: 1, GradientAccumulationSteps: 1,
	Precision: "float32", EvalStrategy: "epoch", EvalSteps: 500, SaveStrategy: "epoch", LoadBestModelAtEnd: true,
	CacheMemory: 2048, Device: "auto", LoggingSteps: 10,
}}
