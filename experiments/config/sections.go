package config

import (
	"cmp"
	"slices"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/fusion"
	"github.com/jenga-nlp/jenga/multitask"
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
	return []string{"experiment", "model", "tokenizer", "task", "data", "head", "training", "logging"}
}

// Fields returns the keys of a section. It panics if name is not one of Names.
func (Sections) Fields(name string) []plugin.Field {
	fields := keysOf(name)
	for i, f := range fields {
		fields[i].Doc = cmp.Or(f.Doc, descriptions[name+"."+f.Key])
	}
	return fields
}

// keysOf returns the keys of a section, as the tags of their fields describe them.
func keysOf(name string) []plugin.Field {
	switch name {
	case "experiment":
		return plugin.FieldsOf("", experimentDefaults)
	case "model":
		fields := nested(plugin.FieldsOf("", modelDefaults), "lora", loraDefaults)
		fields = slices.Insert(fields, indexOf(fields, "freeze")+1, freezeFields()...)
		field(fields, "fusion").Default = fusion.Registry().Default()
		return fields
	case "tokenizer":
		return nested(plugin.FieldsOf("", tokenizerDefaults), "train", vocabularyDefaults)
	case "task":
		return append([]plugin.Field{typeField("task", "")}, plugin.FieldsOf("", taskDefaults)...)
	case "data":
		return dataFields()
	case "head":
		return append([]plugin.Field{typeField("head", "(by the task)")}, plugin.FieldsOf("", headDefaults)...)
	case "training":
		fields := plugin.FieldsOf("", trainingDefaults)
		field(fields, "optimizer").Default = multitask.Optimizers().Default()
		field(fields, "lr_scheduler").Default = multitask.Schedules().Default()
		field(fields, "sampling").Default = multitask.Samplers().Default()
		field(fields, "weighting").Default = multitask.Weightings().Default()
		return fields
	case "logging":
		return plugin.FieldsOf("", Logging{})
	}
	panic("config: no section " + name)
}

// nested returns fields with the keys of a mapping, whose values are the defaults, in place of its own key.
func nested(fields []plugin.Field, key string, defaults any) []plugin.Field {
	at := indexOf(fields, key)
	return slices.Replace(fields, at, at+1, plugin.FieldsOf(key+".", defaults)...)
}

// field returns the field of a key.
func field(fields []plugin.Field, key string) *plugin.Field { return &fields[indexOf(fields, key)] }

func indexOf(fields []plugin.Field, key string) int {
	return slices.IndexFunc(fields, func(f plugin.Field) bool { return f.Key == key })
}

// typeField describes the key `type`, which names a part of a kind.
func typeField(kind, byDefault string) plugin.Field {
	doc := "the kind of " + kind + ", whose own keys stand beside it: `jenga parts " + kind + "` lists them"
	if byDefault == "" {
		doc += "; required"
	}
	return plugin.Field{Key: "type", Type: "a type of " + kind, Default: byDefault, Doc: doc}
}

// dataFields returns the keys of `data`. One that names a column, as the field of each output kind does, is by default
// the column of its own name.
func dataFields() []plugin.Field {
	fields := nested(plugin.FieldsOf("", dataDefaults), "split", Split{})
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
	return fields
}

// experimentOptions are the keys of an experiment file. The sections that it names are described by `jenga parts
// section NAME`.
type experimentOptions struct {
	ProjectName string          `yaml:"project_name" takes:"a name" default:"(the file's name)"`
	Seed        uint64          `yaml:"seed" range:"[0,)" doc:"random seed of all random numbers"`
	Model       *plugin.Section `yaml:"model" takes:"{KEY: …}" doc:"the section model; required"`
	Tokenizer   *plugin.Section `yaml:"tokenizer" takes:"{KEY: …}" doc:"the section tokenizer"`
	Tasks       *plugin.Section `yaml:"tasks" takes:"a list of tasks"`
	Training    *plugin.Section `yaml:"training" takes:"{KEY: …}" doc:"the section training"`
}

var experimentDefaults = experimentOptions{Seed: 42}

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
	BaseModel    *plugin.Section `yaml:"base_model,omitempty" takes:"a path or a model's name"`
	KeepTasks    *plugin.Section `yaml:"keep_tasks,omitempty" takes:"all or a list of tasks" default:""`
	Dropout      float64         `yaml:"dropout" range:"[0,1)"`
	Freeze       *plugin.Section `yaml:"freeze" takes:"none, embeddings, all, {…} or a whole number" default:"none"`
	LoRA         *plugin.Section `yaml:"lora,omitempty"`
	Encoder      *plugin.Section `yaml:"encoder,omitempty" takes:"a type or {type: …}" default:"(by base_model)"`
	Fusion       *plugin.Section `yaml:"fusion" takes:"a type or {type: …}"`
	BackboneType string          `yaml:"backbone_type,omitempty" listed:"no" takes:"the word text"`
}

var (
	modelDefaults = modelOptions{Dropout: 0.1, BackboneType: "text"}
	loraDefaults  = encoders.LoRA{Rank: 8, Alpha: 16, Targets: []string{"query", "value"}}
)

// tokenizerOptions are the keys of `tokenizer`. A base model's tokenizer is beside its weights: a tokenizer.json of
// WordPiece, byte pairs (BPE) or Unigram, or the older vocab.txt, or vocab.json with merges.txt. For an encoder that is
// trained from scratch the vocabulary is learned from the training texts: pieces of words, by merging the most frequent
// pair of neighbours (Sennrich et al. 2016), or the most frequent whole words. Texts of more than `max_length` tokens
// are truncated or divided, as their task's `long` says.
type tokenizerOptions struct {
	MaxLength int    `yaml:"max_length" range:"[3,65536]" doc:"most tokens of a text or pair, special tokens included"`
	Type      string `yaml:"type,omitempty" choice:"wordpiece|words" doc:"what a token is, for training from scratch"`

	Vectors    *plugin.Section `yaml:"vectors,omitempty" takes:"a path"`
	Train      *plugin.Section `yaml:"train,omitempty"`
	Truncation bool            `yaml:"truncation,omitempty" listed:"no"`
	Padding    *plugin.Section `yaml:"padding,omitempty" listed:"no" takes:"anything"`
	PadTokenID *plugin.Section `yaml:"pad_token_id,omitempty" listed:"no" takes:"anything"`
}

var (
	tokenizerDefaults  = tokenizerOptions{MaxLength: 128, Type: WordPieces, Truncation: true}
	vocabularyDefaults = Vocabulary{VocabSize: 8000, Lowercase: true}
)

// taskOptions are the keys of an entry of `tasks`; those of its `type` stand beside them.
type taskOptions struct {
	Name     string          `yaml:"name" takes:"a name" doc:"1 to 64 letters, digits, _, - or spaces within; required"`
	From     string          `yaml:"from,omitempty" takes:"a task's name" default:"(its name)"`
	Keep     bool            `yaml:"keep,omitempty"`
	DataPath *plugin.Section `yaml:"data_path,omitempty" listed:"no" takes:"a path"`
	Data     *plugin.Section `yaml:"data" takes:"{KEY: …}"`

	Long   string   `yaml:"long,omitempty" choice:"truncate|windows" default:"(by type)"`
	Stride int      `yaml:"stride" range:"[0,)" default:"(64 or less)"`
	Labels []string `yaml:"labels,omitempty" takes:"a list of labels"`

	LabelMaps map[string]map[int]string `yaml:"label_maps,omitempty" takes:"{HEAD: {NUMBER: LABEL}}"`

	Heads *plugin.Section `yaml:"heads" takes:"a list of heads" default:"(one head)"`
}

var taskDefaults = taskOptions{Long: "truncate", Stride: 64}

// headOptions are the keys of an entry of a task's `heads`; those of its `type` stand beside them.
type headOptions struct {
	Name      string   `yaml:"name" takes:"a name" default:"(the task's)"`
	Weight    float64  `yaml:"weight" range:"[0,)" doc:"factor of its loss in the sum of all losses"`
	NumLabels int      `yaml:"num_labels,omitempty" range:"[1,)" default:""`
	Labels    []string `yaml:"labels,omitempty" takes:"a list of labels"`
}

var headDefaults = headOptions{Weight: 1}

// dataOptions are the keys of a task's `data`: one file that `split` divides (`path`), or a file for each split, or the
// task whose texts are read (`same_as`). Paths are relative to the experiment file, else to $JENGA_DATA. A file that is
// written in another way than the others is a mapping of its path and its own `format`, `delimiter`, `quote`,
// `encoding`, `header` and `columns`, as `dev: {path: dev.csv, header: false, columns: [text, label]}`. Several files are
// a list, or a pattern as `data/part-*.jsonl`, whose files are read in the order of their names. A column's name
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
	SameAs string `yaml:"same_as,omitempty" takes:"a task's name"`

	Path  *plugin.Section `yaml:"path,omitempty" takes:"a path, a list of paths or {path: …}"`
	Train *plugin.Section `yaml:"train,omitempty" takes:"a path, a list of paths or {path: …}"`
	Dev   *plugin.Section `yaml:"dev,omitempty" takes:"a path, a list of paths or {path: …}"`
	Test  *plugin.Section `yaml:"test,omitempty" takes:"a path, a list of paths or {path: …}"`

	fileOptions `yaml:",inline"`

	SplitWords string `yaml:"split_words,omitempty" choice:"auto|punctuation|ends|clitics|treebank|whitespace"`

	Split *plugin.Section `yaml:"split,omitempty"`
	Limit int             `yaml:"limit,omitempty" range:"[0,)"`

	Stream bool `yaml:"stream,omitempty"`

	columnOptions `yaml:",inline"`
}

// fileOptions are how files are written; the keys of a file's mapping beside its path.
type fileOptions struct {
	Format    string   `yaml:"format,omitempty" takes:"csv, tsv, json, jsonl, parquet, conll, conllu or slots" default:"(by file extension)"`
	Delimiter string   `yaml:"delimiter,omitempty" takes:"any text" default:"(by format)"`
	Quote     string   `yaml:"quote,omitempty" takes:"the word none" default:"(RFC 4180)"`
	Encoding  string   `yaml:"encoding,omitempty" takes:"a name" default:"utf-8"`
	Header    bool     `yaml:"header" doc:"whether the first line of csv and tsv names the columns"`
	Columns   []string `yaml:"columns,omitempty" takes:"a list of column names"`
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
	Entities *plugin.Section `yaml:"entities,omitempty"`
	Value    *plugin.Section `yaml:"value,omitempty" doc:"column of a number; without it that of label, else score"`
	Question *plugin.Section `yaml:"question,omitempty" doc:"column of a question"`
	Context  *plugin.Section `yaml:"context,omitempty" doc:"column of the text that the question is about"`
	Answers  *plugin.Section `yaml:"answers,omitempty"`
}

var dataDefaults = dataOptions{fileOptions: fileOptions{Header: true}, SplitWords: autoSplit}

// trainingOptions are the keys of `training`. An update is one step of the optimizer.
type trainingOptions struct {
	Training  `yaml:",inline"`
	Optimizer *plugin.Section `yaml:"optimizer" takes:"a type or {type: …}"`
	Scheduler *plugin.Section `yaml:"lr_scheduler" takes:"a type or {type: …}"`
	Sampling  *plugin.Section `yaml:"sampling" takes:"a type or {type: …}"`
	Weighting *plugin.Section `yaml:"weighting" takes:"a type or {type: …}"`
	Metric    *plugin.Section `yaml:"metric_for_best_model" takes:"a name or {TASK: WEIGHT}" default:"eval_overall"`
	OutputDir *plugin.Section `yaml:"output_dir,omitempty" takes:"a path" default:"(runs/PROJECT_NAME)"`
	CacheFile *plugin.Section `yaml:"cache_file" takes:"true, false or a path" default:"true"`
}

// DefaultTraining returns the section training with all defaults, but for the parts that it names.
func DefaultTraining() Training { return trainingDefaults.Training }

var trainingDefaults = trainingOptions{Training: Training{
	LearningRate: 2e-5, LayerDecay: 1, WeightDecay: 0.01,
	BatchSize: 16, NumEpochs: 3, MaxGradNorm: 1, OnBadLoss: "stop", LossLimit: 1000, GradientAccumulationSteps: 1,
	Precision: "float32", GradientDtype: "float32", AllReduce: "tree",
	EvalStrategy: "epoch", EvalSteps: 500, LoadBestModelAtEnd: true,
	SaveStrategy: "epoch", SaveSteps: 500, SaveMinutes: 30, SaveTotalLimit: 1,
	CacheMemory: DefaultCacheMemory, Device: "auto", LoggingSteps: 10,
}}
