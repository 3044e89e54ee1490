package config

import (
	"slices"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/plugin"
)

// Sections lists the keys of the sections of an experiment file, without those of the parts that they name. It has the
// methods of a registry.
type Sections struct{}

// Kind returns the word for a section in lists.
func (Sections) Kind() string { return "section" }

// Names returns the names of the listed sections.
func (Sections) Names() []string {
	return []string{"experiment", "model", "tokenizer", "task", "data", "head", "training"}
}

// Fields returns the keys of a section. It panics if name is not one of Names.
func (Sections) Fields(name string) []plugin.Field {
	switch name {
	case "experiment":
		return documented("", experimentDefaults)
	case "model":
		return slices.Concat(documented("", modelDefaults), freezeFields(), plugin.FieldsOf("lora.", loraDefaults))
	case "tokenizer":
		return slices.Concat(documented("", tokenizerDefaults), plugin.FieldsOf("train.", vocabularyDefaults))
	case "task":
		return documented("", taskDefaults)
	case "data":
		return dataFields()
	case "head":
		return documented("", headDefaults)
	case "training":
		return documented("", trainingDefaults)
	}
	panic("config: no section " + name)
}

// documented returns the keys with a doc tag, each after a prefix. The others choose parts, have keys of their own, or
// are for files of Jenga-NLP and have no effect.
func documented(prefix string, options any) []plugin.Field {
	return slices.DeleteFunc(plugin.FieldsOf(prefix, options), func(f plugin.Field) bool { return f.Doc == "" })
}

// dataFields returns the keys of `data`. One that names a column, as the field of each output kind does, is by default
// the column of its own name.
func dataFields() []plugin.Field {
	fields := documented("", dataDefaults)
	for _, kind := range outputs.Kinds() {
		if slices.Contains(targetFields(), kind.Field()) {
			fields = append(fields, plugin.Field{Key: kind.Field(), Doc: "column of " + kind.String()})
		}
	}
	for i, f := range fields {
		if !slices.Contains(fieldNames(), f.Key) {
			continue
		}
		fields[i].Default, fields[i].Type = f.Key, "a column name"
		if perHead(f.Key) != "" {
			fields[i].Type += " or {HEAD: COLUMN}"
		}
	}
	return append(fields, plugin.FieldsOf("split.", Split{})...)
}

// experimentOptions are the keys of an experiment file beside the sections `model`, `tokenizer`, `tasks`, a list, and
// `training`.
type experimentOptions struct {
	ProjectName string          `yaml:"project_name" takes:"a name" default:"(the file's name)" doc:"of the experiment"`
	Seed        uint64          `yaml:"seed" range:"[0,)" doc:"of all random numbers"`
	Model       *plugin.Section `yaml:"model"`
	Tokenizer   *plugin.Section `yaml:"tokenizer"`
	Tasks       *plugin.Section `yaml:"tasks"`
	Training    *plugin.Section `yaml:"training"`
}

var experimentDefaults = experimentOptions{Seed: 42}

// modelOptions are the keys of `model` beside `encoder` and `fusion`, which name parts. With `base_model` the encoder's
// weights, sizes and tokenizer are those of a trained model. With `lora: {}` its weights W are frozen, and A and B of
// rank r are trained, with W + alpha/r·A·B in place of W (Hu et al. 2022, "LoRA"); checkpoints have the merged weight.
//
// With `freeze: {unfreeze: {every: 1}}` heads and fusion learn alone in the first epoch, the encoder's last layer from
// the second epoch on, one layer more in each epoch, and last the embeddings (Howard & Ruder 2018, "Universal Language
// Model Fine-tuning for Text Classification").
type modelOptions struct {
	BaseModel    *plugin.Section `yaml:"base_model,omitempty" takes:"a path or a model's name" doc:"folder or .onnx file of the initial weights, or the name of a model in the Hugging Face cache; none: the encoder is trained from scratch"`
	Dropout      float64         `yaml:"dropout" range:"[0,1)" doc:"dropout rate of the encoder's states and attention weights, and of the inputs of heads without a dropout of their own; where it is not given, the encoder of a base model has that of its config.json"`
	Freeze       *plugin.Section `yaml:"freeze" takes:"none, embeddings, all, a whole number or {unfreeze: …}" default:"none" doc:"frozen weights of the encoder; a number N: the embeddings and the first N layers. An encoder that is frozen as a whole has no dropout and encodes each text once"`
	LoRA         *plugin.Section `yaml:"lora,omitempty"`
	Encoder      *plugin.Section `yaml:"encoder,omitempty"`
	Fusion       *plugin.Section `yaml:"fusion"`
	BackboneType string          `yaml:"backbone_type,omitempty" listed:"no"`
}

var (
	modelDefaults = modelOptions{Dropout: 0.1, BackboneType: "text"}
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

	Vectors    *plugin.Section `yaml:"vectors,omitempty" takes:"a path" doc:"text file of words and their vectors, as GloVe's (Pennington et al. 2014), with which the embeddings of type: words are initialised; their width is that of the encoder's embeddings. Words of the file that training texts lack enter the vocabulary too, as far as train.vocab_size allows. None: all embeddings are initialised randomly"`
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
	Name     string          `yaml:"name" takes:"a name" doc:"1 to 64 letters, digits, _, - or spaces within; required"`
	DataPath *plugin.Section `yaml:"data_path,omitempty" listed:"no"`
	Data     *plugin.Section `yaml:"data"`

	Long   string   `yaml:"long,omitempty" choice:"truncate|windows" default:"(by type)" doc:"texts of more than max_length tokens are truncated, or divided into windows whose predictions are merged: the mean of labels and numbers, for a word the tag of the window where it is furthest from the ends, the best answer to a question. Default: windows for question_answering, else truncate"`
	Stride int      `yaml:"stride" range:"[0,)" default:"(64 or less)" doc:"tokens that two windows have in common, at most half of a window. Default: 64, or half of a window if that is less"`
	Labels []string `yaml:"labels,omitempty" takes:"a list of labels" doc:"for its heads without labels of their own, in the order of their numbers; none: those of the training data"`

	LabelMaps map[string]map[int]string `yaml:"label_maps,omitempty" takes:"{HEAD: {NUMBER: LABEL}}" doc:"names of labels that are numbers in the data, from 0 on"`

	Heads *plugin.Section `yaml:"heads" takes:"a list of heads" default:"(one head)" doc:"its heads; none: one, with the task's name and the default type for its outputs"`
}

var taskDefaults = taskOptions{Long: "truncate", Stride: 64}

// headOptions are the keys of an entry of a task's `heads` beside `type`, which names the part.
type headOptions struct {
	Name      string   `yaml:"name" takes:"a name" default:"(the task's)" doc:"of the head; required beside others"`
	Weight    float64  `yaml:"weight" range:"[0,)" doc:"factor of its loss"`
	NumLabels int      `yaml:"num_labels,omitempty" range:"[1,)" default:"" doc:"expected number of labels in the data; an error if it differs"`
	Labels    []string `yaml:"labels,omitempty" takes:"a list of labels" doc:"ordered by number; none: the task's"`
}

var headDefaults = headOptions{Weight: 1}

// dataOptions are the keys of a task's `data`: one file that `split` divides (`path`), or a file for each split, or the
// task whose texts are read (`same_as`). Paths are relative to the experiment file, else to $JENGA_DATA. A file that is
// written in another way than the others is a mapping of its path and its own `format`, `delimiter`, `quote`,
// `encoding`, `header` and `columns`, as `dev: {path: dev.csv, header: false, columns: [text, label]}`. A column's name
// may be a path into JSON: `text: user.text` reads {"user": {"text": "…"}}.
//
// `split` and `limit` take random examples, the latter by the experiment's seed, and keep the order of the file; where
// the first head has one label for each text, each label keeps its share, and at least one training example where there
// are enough. The run folder lists in splits.jsonl which lines of the file are in which split.
//
// `split_words` is where texts without words are split for tasks with an output for each word: at white space and at
// every punctuation mark (`punctuation`), at white space and the marks at a word's ends (`ends`), there and before
// English clitics as 's and n't (`clitics`), there and at hyphens, slashes and brackets, where marks that repeat are
// one word, as treebanks of English do (`treebank`), or at white space alone. `auto` is the way that agrees best with
// the words that the training data gives, else `punctuation`; the run folder's experiment.yaml has it.
type dataOptions struct {
	SameAs string `yaml:"same_as,omitempty" takes:"a task's name" doc:"task whose texts this one reads too: each is encoded once for both; only columns may be given beside it"`

	Path  *plugin.Section `yaml:"path,omitempty" takes:"a path or {path: …}" doc:"one file, which split divides"`
	Train *plugin.Section `yaml:"train,omitempty" takes:"a path or {path: …}" doc:"file of the training examples"`
	Dev   *plugin.Section `yaml:"dev,omitempty" takes:"a path or {path: …}" doc:"of examples that select the model"`
	Test  *plugin.Section `yaml:"test,omitempty" takes:"a path or {path: …}" doc:"file of test examples"`

	fileOptions `yaml:",inline"`

	SplitWords string `yaml:"split_words,omitempty" choice:"auto|punctuation|ends|clitics|treebank|whitespace" doc:"how texts are split"`

	Split *plugin.Section `yaml:"split,omitempty"`
	Limit int             `yaml:"limit,omitempty" range:"[0,)" doc:"training examples to use, a sample; 0: all"`

	columnOptions `yaml:",inline"`
}

// fileOptions are how files are written; the keys of a file's mapping beside its path.
type fileOptions struct {
	Format    string   `yaml:"format,omitempty" takes:"csv, tsv, json, jsonl, conll, conllu or slots" default:"(by file extension)" doc:"of the files; slots is a folder with seq.in, seq.out and label"`
	Delimiter string   `yaml:"delimiter,omitempty" takes:"any text" default:"(by format)" doc:"between columns; default: a comma in csv, a tab in tsv, a tab or spaces in conll"`
	Quote     string   `yaml:"quote,omitempty" takes:"the word none" default:"(RFC 4180)" doc:"of csv and tsv cells: none leaves quotation marks as they are; default: they are read as in RFC 4180"`
	Encoding  string   `yaml:"encoding,omitempty" takes:"a name" default:"utf-8" doc:"of the files: cp1252, utf-16, …"`
	Header    bool     `yaml:"header" doc:"whether the first line of csv and tsv names the columns"`
	Columns   []string `yaml:"columns,omitempty" takes:"a list of column names" doc:"names of the columns by position, in place of a header; _ is a column that is not read"`
}

// ownFile are the keys of the mapping of a file with options of its own.
type ownFile struct {
	Path *plugin.Section `yaml:"path"`

	fileOptions `yaml:",inline"`
}

// columnOptions are the names of the columns, or keys of JSON, that tasks read, where these differ from the defaults. A
// key of an object within a record is a path: `text: user.text` reads {"user": {"text": "…"}}.
type columnOptions struct {
	Text     *plugin.Section `yaml:"text,omitempty" doc:"column of the text"`
	Pair     *plugin.Section `yaml:"pair,omitempty" doc:"column of a second text"`
	Words    *plugin.Section `yaml:"words,omitempty" doc:"column of the text as a list of words"`
	Label    *plugin.Section `yaml:"label,omitempty" doc:"column of the label"`
	Labels   *plugin.Section `yaml:"labels,omitempty" doc:"column of a list of labels; without it that of label"`
	Tags     *plugin.Section `yaml:"tags,omitempty" doc:"column of the words' tags"`
	Entities *plugin.Section `yaml:"entities,omitempty" doc:"column of labelled spans, if there are no tags"`
	Value    *plugin.Section `yaml:"value,omitempty" doc:"column of a number; without it that of label, else score"`
	Question *plugin.Section `yaml:"question,omitempty" doc:"column of a question"`
	Context  *plugin.Section `yaml:"context,omitempty" doc:"column of the text that the question is about"`
	Answers  *plugin.Section `yaml:"answers,omitempty" doc:"column of the parts of the context that answer it"`
}

var dataDefaults = dataOptions{fileOptions: fileOptions{Header: true}, SplitWords: autoSplit}

// trainingOptions are the keys of `training`. `optimizer`, `lr_scheduler`, `sampling` and `weighting` name parts.
type trainingOptions struct {
	Training  `yaml:",inline"`
	Optimizer *plugin.Section `yaml:"optimizer"`
	Scheduler *plugin.Section `yaml:"lr_scheduler"`
	Sampling  *plugin.Section `yaml:"sampling"`
	Weighting *plugin.Section `yaml:"weighting"`
	OutputDir *plugin.Section `yaml:"output_dir,omitempty" takes:"a path" default:"(runs/PROJECT_NAME)" doc:"run folder"`
	CacheFile *plugin.Section `yaml:"cache_file" takes:"true, false or a path" default:"true" doc:"folder of a temporary file for the states of a frozen encoder beyond cache_memory; true: the run folder; false: no file, they are computed each time"`
}

var trainingDefaults = trainingOptions{Training: Training{
	LearningRate: 2e-5, LayerDecay: 1, WeightDecay: 0.01,
	BatchSize: 16, NumEpochs: 3, MaxGradNorm: 1, GradientAccumulationSteps: 1,
	Precision: "float32", EvalStrategy: "epoch", EvalSteps: 500, SaveStrategy: "epoch", LoadBestModelAtEnd: true,
	CacheMemory: DefaultCacheMemory, Device: "auto", LoggingSteps: 10,
}}
