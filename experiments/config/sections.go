package config

import (
	"cmp"
	"slices"

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

// descriptions are the descriptions of keys, by section and key, that are too long for a tag doc of their field.
var descriptions = map[string]string{
	"experiment.project_name": "name of the experiment, and of its folder in runs/",
	"experiment.tasks":        "mappings with the keys of the section task; required",

	"model.base_model": "folder or .onnx file of the initial weights, or the name of a model in the Hugging Face " +
		"cache, or a run, whose heads and fusion are trained on too; none: the encoder is trained from scratch",
	"model.keep_tasks": "tasks of the run that base_model names which this experiment does not train, and which the " +
		"model has all the same: all, or a list of their names; without it they are dropped",
	"model.dropout": "dropout rate of the encoder's states and attention weights, and of the inputs of heads " +
		"without a dropout of their own; where it is not given, the encoder of a base model has that of its " +
		"config.json",
	"model.freeze": "frozen weights of the encoder; a number N: the embeddings and the first N layers. An encoder " +
		"that is frozen as a whole has no dropout and encodes each text once",
	"model.freeze.always": "with freeze.unfreeze: what stays frozen for the whole training",
	"model.freeze.unfreeze.every": "number of epochs after which each layer of the encoder begins to learn, from the " +
		"last one down; before, heads and fusion learn alone",

	"model.encoder":       "encoder and its own keys, as jenga parts encoder lists them; required without base_model",
	"model.fusion":        "what is between encoder and tasks, with its own keys, as jenga parts fusion lists them",
	"model.backbone_type": "for files of Jenga-NLP, no effect",

	"tokenizer.train.vocab_size": "most tokens of the vocabulary, special tokens included; default: 8000, with " +
		"type: words 30000",
	"tokenizer.vectors": "text file of words and their vectors, as GloVe's (Pennington et al. 2014), with which " +
		"the embeddings of type: words are initialised; their width is that of the encoder's embeddings. Words of " +
		"the file that training texts lack enter the vocabulary too, as far as train.vocab_size allows. None: all " +
		"embeddings are initialised randomly",
	"tokenizer.truncation":   "for files of Jenga-NLP, no effect: a task's long says what becomes of long texts",
	"tokenizer.padding":      "for files of Jenga-NLP, no effect: batches have no padding",
	"tokenizer.pad_token_id": "for files of Jenga-NLP, no effect: batches have no padding",

	"task.from": "task of the run that base_model names, whose heads this one takes over and trains on; default: " +
		"that of its name, if there is one. With keep: true another name for a task that is kept",
	"task.keep": "whether it is a task of the run that base_model names as model.keep_tasks has them: not trained; " +
		"keys that are left out, of data too, are those of the run",
	"task.data_path": "for files of Jenga-NLP: the same as data: {path: …}",
	"task.data":      "files and columns of its examples: the section data; required",
	"task.long": "texts of more than max_length tokens are truncated, or divided into windows whose predictions " +
		"are merged: the mean of the probabilities of labels, of numbers and of distances; for a word the logits of " +
		"the window where it is furthest from the ends, of which crf finds the best tags of the whole text; the best " +
		"answer to a question (docs/formulas.md). Default: windows for question_answering, else truncate",
	"task.stride": "tokens that two windows have in common, at most half of a window. Default: 64, or half of a " +
		"window if that is less",
	"task.labels": "for its heads without labels of their own, in the order of their numbers; none: those of the " +
		"training data",
	"task.label_maps": "names of labels that are numbers in the data, from 0 on",
	"task.heads": "its heads, mappings with the keys of the section head; none: one, with the task's name and the " +
		"default type for its outputs",

	"data.split.dev": "examples of the training file that dev takes: below 1 a fraction of them, from 1 on a " +
		"number of examples. Default: 0.2 of path, 0.1 of train if there is no dev file, else 0",
	"data.split.seed": "random seed of the order in which they are taken; default: the experiment's seed",
	"data.split.by": "field, or path as patient.id, whose examples with the same value stay in one split, which is " +
		"not stratified then; none: each example by itself. A split takes the groups, in random order, that do not " +
		"take its number of examples further from the wanted one; where all are too large, the smallest",
	"data.same_as": "task whose texts this one reads too: each is encoded once for both; only columns may be given " +
		"beside it",
	"data.train": "file of the training examples, or several: a list, or a pattern as data/part-*.jsonl, whose files " +
		"are read in the order of their names; path, dev and test take these too",
	"data.path": "one file, or several as of train, which split divides",
	"data.test": "file of test examples, or several as of train",
	"data.stream": "whether training examples are read from their file when a batch needs them, for files larger " +
		"than memory: jsonl, csv, tsv, conll and conllu, unpacked and in utf-8. A first pass finds labels, lengths and " +
		"the places of records; the weights are the same bytes as without",
	"data.dev":         "file of the examples that select the best checkpoint",
	"data.split_words": "where a text without words is split into words, for tasks with an output for each word",
	"data.limit":       "number of training examples to use, a random sample; 0: all",
	"data.format":      "format of the files; slots is a folder with seq.in, seq.out and label",
	"data.delimiter": "what stands between columns; default: a comma in csv, a tab in tsv, a tab or spaces in " +
		"conll",
	"data.quote": "quoting of csv and tsv cells: none leaves quotation marks as they are; default: they are read " +
		"as in RFC 4180",
	"data.encoding": "character encoding of the files, by a name of IANA or the WHATWG: cp1252, utf-16, …",
	"data.columns":  "names of the columns by position, in place of a header; _ is a column that is not read",
	"data.entities": "column of labelled spans, if there are no tags; their start and end count characters",
	"data.answers":  "column of the parts of the context that answer it; an answer_start counts characters",

	"head.name":       "name of the head; required beside other heads",
	"head.num_labels": "expected number of labels in the data; an error if it differs",
	"head.labels":     "its labels, in the order of their numbers; none: the task's",

	"training.learning_rate": "peak learning rate, a factor of the optimizer's updates; it rises linearly to it in " +
		"the warmup, and changes by lr_scheduler then",
	"training.head_learning_rate": "peak learning rate of heads and fusion",
	"training.layer_decay": "factor of the learning rate of each layer of the encoder to that of the layer above it; " +
		"the last layer has learning_rate, the embeddings the smallest rate; 1: all have the same",
	"training.weight_decay": "for weight matrices only: with AdamW and Adafactor the fraction, times the learning " +
		"rate, by which an update shrinks them; with SGD the multiple of them that is added to their gradient",
	"training.ema": "decay rate of running means of the weights, which follow them by 1 minus it at each update; " +
		"evaluations judge the means and checkpoints hold them; 0: none",
	"training.optimizer": "how gradients change weights, with its own keys, as jenga parts optimizer lists them",
	"training.lr_scheduler": "the learning rate after the warmup, with its own keys, as jenga parts lr_scheduler " +
		"lists them",
	"training.batch_size":   "most examples (texts or pairs, each with all its windows) in a batch",
	"training.batch_tokens": "most tokens in a batch, all texts together; 0: no limit",
	"training.max_steps":    "number of updates to make, overrules num_epochs; 0: num_epochs",
	"training.warmup_steps": "number of updates until the peak; overrules warmup_ratio",
	"training.max_grad_norm": "Euclidean norm of all gradients together above which they are scaled down to it, by " +
		"max_grad_norm/(norm + 1e-6) as in PyTorch; 0: no clipping",
	"training.on_bad_loss": "what becomes of a step whose loss or gradient is not finite, or whose loss explodes: an " +
		"error ends the training, with the task and the texts; or its update is left out with a warning, and 10 such " +
		"steps in a row end the training",
	"training.loss_limit": "multiple of a head's usual loss above which its loss in a step explodes: of the median of " +
		"its first 20 steps, or of its running mean (decay rate 0.98) where that is larger; above 1, or " +
		"0: none explodes",
	"training.gradient_accumulation_steps": "number of batches whose gradients are summed for one update",
	"training.rehearse": "fraction of batches that are of the tasks that model.keep_tasks names, where the encoder " +
		"learns: the probability of each batch; 0: these tasks are not trained, and may get worse",
	"training.shards": "number of parts of each batch, a power of two: each is a forward and a backward pass of its " +
		"own. The processes of a training that mpirun starts divide them; the model does not depend on the number of " +
		"processes, but on that of shards",
	"training.gradient_dtype": "type of the gradients that shards sum: bf16 rounds each shard's and each sum of two, " +
		"of which processes send half the bytes; moments and parameters stay float32",
	"training.all_reduce": "how processes sum gradients: in a tree, whose bits do not depend on their number, or by " +
		"the MPI library (native), whose order of addition is its own: faster on some networks, but not exact",
	"training.recompute":  "whether activations are recomputed in the backward pass: less memory, more time",
	"training.eval_steps": "number of updates between evaluations, with eval_strategy: steps",
	"training.save_strategy": "when last/ is saved, with the state from which jenga train --resume goes on, beside " +
		"after each evaluation: at the end of each epoch, every save_steps updates or every save_minutes; no: never, " +
		"and no checkpoint has that state, but for one that a signal leaves",
	"training.save_steps":   "number of updates between checkpoints, with save_strategy: steps",
	"training.save_minutes": "number of minutes between checkpoints, with save_strategy: minutes",
	"training.save_total_limit": "number of checkpoints that training can be resumed from, last/ among them; earlier " +
		"ones are in checkpoints/step-N, and the oldest are removed; 0: all are kept",
	"training.load_best_model_at_end": "for files of Jenga-NLP, no effect: predictions are made by the best " +
		"checkpoint",
	"training.metric_for_best_model": "metric of dev that selects the best checkpoint: eval_overall, the mean of " +
		"all heads' main metrics, eval_loss, eval_all_right, eval_TASK_loss, eval_TASK_HEAD_METRIC, …; " +
		"{intent: 2, slots: 1} is the weighted mean of those tasks' main metrics",
	"training.greater_is_better": "whether a higher value of metric_for_best_model is better; false for losses and " +
		"errors",
	"training.early_stopping_patience": "number of evaluations without a new best after which training ends; 0: " +
		"off",
	"training.cache_memory":  "MiB of memory for the states of a frozen encoder, which are computed once",
	"training.device":        "for files of Jenga-NLP, no effect: training runs on the CPU",
	"training.logging_steps": "number of updates between lines of the run's metrics.jsonl",
	"training.sampling":      "which task's batch trains next, with its own keys, as jenga parts sampling lists them",
	"training.weighting": "how the losses are combined into one, with its own keys, as jenga parts weighting lists " +
		"them",
	"training.output_dir": "run folder, for checkpoints and metrics",
	"training.cache_file": "folder of a temporary file for the states of a frozen encoder beyond cache_memory; " +
		"true: the run folder, of processes beside the first the system's temporary folder; false: no file, they are " +
		"computed each time",
}
