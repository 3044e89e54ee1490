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
func (Sections) Names() []string { return []string{"model", "tokenizer", "task", "head"} }

// Fields lists the keys of a section. It panics on another name than those of Names.
func (Sections) Fields(name string) []plugin.Field {
	switch name {
	case "model":
		return slices.Concat(documented(modelDefaults), plugin.FieldsOf("lora.", loraDefaults))
	case "tokenizer":
		return slices.Concat(documented(tokenizerDefaults), plugin.FieldsOf("train.", vocabularyDefaults))
	case "task":
		return documented(taskDefaults)
	case "head":
		return documented(headDefaults)
	}
	panic("config: no section " + name)
}

// documented lists the keys that say what they are: others choose parts, have keys of their own, or are for files of
// Jenga-NLP and have no effect.
func documented(options any) []plugin.Field {
	return slices.DeleteFunc(plugin.FieldsOf("", options), func(f plugin.Field) bool { return f.Doc == "" })
}

// modelOptions are the keys of `model` beside `encoder` and `fusion`, which name parts. With `base_model` the encoder's
// weights, sizes and tokenizer are a trained model's. With `lora: {}` its weights stay as they are, and what learns in
// their place is W + alpha/r·A·B of rank r (Hu et al. 2022, "LoRA"); saved, they are one weight again.
type modelOptions struct {
	BaseModel    *plugin.Section `yaml:"base_model" doc:"folder or .onnx file of the weights to start from, or a model's name in the hub's local cache; none: the encoder starts from nothing"`
	Encoder      *plugin.Section `yaml:"encoder"`
	Fusion       *plugin.Section `yaml:"fusion"`
	Dropout      float64         `yaml:"dropout" range:"[0,1)" doc:"share hidden in training of the encoder's states and attention weights, and of what heads see that name none; where it is not given, a base model's own for the encoder"`
	Freeze       string          `yaml:"freeze" doc:"what of the encoder does not learn: none, embeddings, all, or a number N: the embeddings and the first N layers. Where nothing of it learns it drops nothing, and each text is encoded once"`
	LoRA         *plugin.Section `yaml:"lora"`
	BackboneType string          `yaml:"backbone_type"`
}

var (
	modelDefaults = modelOptions{Dropout: 0.1, Freeze: "none", BackboneType: "text"}
	loraDefaults  = encoders.LoRA{Rank: 8, Alpha: 16, Targets: []string{"query", "value"}}
)

// tokenizerOptions are the keys of `tokenizer`. A base model's lies beside its weights: WordPiece, or in a jenga that
// is built with -tags native any tokenizer.json of byte pairs (BPE) or Unigram (scripts/native.sh says how). An encoder
// that starts from nothing learns a vocabulary from the training texts: pieces of words, by merging the two neighbours
// that stand together most often (Sennrich et al. 2016), or whole words, the most frequent ones.
type tokenizerOptions struct {
	MaxLength  int             `yaml:"max_length" range:"[3,65536]" doc:"tokens that a text or pair may have, special ones included; longer ones are cut, see long"`
	Type       string          `yaml:"type" choice:"wordpiece|words" doc:"wordpiece: a token is a piece of a word; words: a word. Of an encoder that starts from nothing"`
	Vectors    *plugin.Section `yaml:"vectors" doc:"text file of words and their vectors, as GloVe's (Pennington et al. 2014), that the embeddings of type: words begin with; none: they are drawn at random"`
	Train      *plugin.Section `yaml:"train"`
	Truncation bool            `yaml:"truncation"`
	Padding    *plugin.Section `yaml:"padding"`
	PadTokenID *plugin.Section `yaml:"pad_token_id"`
}

var (
	tokenizerDefaults  = tokenizerOptions{MaxLength: 128, Type: WordPieces, Truncation: true}
	vocabularyDefaults = Vocabulary{VocabSize: 8000, Lowercase: true}
)

// taskOptions are the keys of an entry of `tasks` beside `type`, which names the part, and `data`.
type taskOptions struct {
	Name      string                    `yaml:"name" doc:"of the task: 1 to 64 letters, digits, _, - or blanks within"`
	DataPath  *plugin.Section           `yaml:"data_path"`
	Data      *plugin.Section           `yaml:"data"`
	Heads     *plugin.Section           `yaml:"heads" doc:"list of its heads; none: one, of the task's name and the type that its answers take"`
	Labels    []string                  `yaml:"labels" doc:"of all its heads that name none, in the order of their numbers; none: those of the training data"`
	LabelMaps map[string]map[int]string `yaml:"label_maps" doc:"names of labels that the data numbers: {HEAD: {0: NAME, 1: NAME}}"`
	Long      string                    `yaml:"long" choice:"truncate|windows" doc:"texts of more than max_length tokens lose their end, or are read in windows, whose answers are merged: the mean of labels and numbers, of a word the tag of the window where it stands furthest from the ends, the best answer to a question; question_answering: windows where it is not given"`
	Stride    int                       `yaml:"stride" range:"[0,)" doc:"tokens that two windows share, at most half of a window's; 64, or what is less of both"`
}

var taskDefaults = taskOptions{Long: "truncate", Stride: 64}

// headOptions are the keys of an entry of a task's `heads` beside `type`, which names the part.
type headOptions struct {
	Name      string   `yaml:"name" doc:"of the head; a single one has the task's where it is not given"`
	Weight    float64  `yaml:"weight" range:"[0,)" doc:"factor of its loss"`
	NumLabels int      `yaml:"num_labels" range:"[1,)" doc:"how many labels the data is to have; it is checked"`
	Labels    []string `yaml:"labels" doc:"in the order of their numbers; none: the task's"`
}

var headDefaults = headOptions{Weight: 1}
