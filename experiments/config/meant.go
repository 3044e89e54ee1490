package config

import (
	"cmp"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/internal/suggest"
	"github.com/jenga-nlp/jenga/plugin"
)

// ofOtherPrograms has keys of other programs behind the whole names of those that stand for them here: arguments of
// Hugging Face's Trainer and its scripts, of Simple Transformers, Flair, spaCy, Lightning and Keras, and of their
// optimizers.
var ofOtherPrograms = map[string]string{
	"project_name": "run_name experiment_name",
	"seed":         "random_seed random_state manual_seed",

	"training.learning_rate":      "lr learning_rate",
	"training.head_learning_rate": "head_lr classifier_lr",
	"training.layer_decay":        "llrd layerwise_lr_decay",
	"training.weight_decay":       "weight_decay",
	"training.num_epochs":         "epochs num_train_epochs max_epochs n_epochs",
	"training.max_steps":          "total_steps train_steps num_train_steps max_train_steps",
	"training.batch_size": "batch mini_batch_size train_batch_size per_device_train_batch_size " +
		"per_gpu_train_batch_size",
	"training.gradient_accumulation_steps": "accumulate_gradient accumulate_grad_batches gradient_accumulation",
	"training.warmup_steps":                "num_warmup_steps",
	"training.warmup_ratio":                "warmup_proportion warmup_fraction",
	"training.max_grad_norm":               "grad_clip clip_grad_norm gradient_clip_val gradient_clipping",
	"training.lr_scheduler":                "lr_scheduler_type scheduler",
	"training.optimizer":                   "optim optimizer_type",
	"training.precision":                   "bf16 fp16 mixed_precision",
	"training.recompute":                   "gradient_checkpointing activation_checkpointing",
	"training.device":                      "use_cpu no_cuda use_cuda use_gpu accelerator",
	"training.eval_strategy":               "evaluation_strategy",
	"training.eval_steps":                  "evaluate_during_training_steps",
	"training.early_stopping_patience":     "early_stopping patience",
	"training.metric_for_best_model":       "metric main_evaluation_metric early_stopping_metric",

	"model.base_model": "pretrained_model_name_or_path model_name_or_path model_name model_path pretrained_model " +
		"pretrained",
	"model.dropout":      "hidden_dropout_prob dropout_rate",
	"model.freeze":       "freeze_encoder freeze_base freeze_layers",
	"model.lora.r":       "lora_r lora_rank",
	"model.lora.alpha":   "lora_alpha",
	"model.lora.targets": "target_modules lora_target_modules",

	"tokenizer.max_length":       "max_len max_seq_len max_seq_length max_sequence_length model_max_length",
	"tokenizer.train.vocab_size": "vocab_size",
	"tokenizer.train.lowercase":  "do_lower_case lowercase",

	"tasks.TASK.data.path":  "data_file file_name",
	"tasks.TASK.data.train": "train_file train_path train_data train_dataset training_data training_file",
	"tasks.TASK.data.dev": "val valid validation dev_file dev_path dev_data val_file val_path val_data valid_file " +
		"validation_file validation_path validation_data eval_file eval_dataset",
	"tasks.TASK.data.test":       "test_file test_path test_data",
	"tasks.TASK.data.text":       "text_column text_col text_field sentence1 text_a",
	"tasks.TASK.data.pair":       "text_pair pair_column sentence2 text_b",
	"tasks.TASK.data.words":      "tokens words_column",
	"tasks.TASK.data.label":      "label_column label_col label_field target_column",
	"tasks.TASK.data.labels":     "labels_column label_columns",
	"tasks.TASK.data.tags":       "ner_tags pos_tags tags_column tag_column",
	"tasks.TASK.data.value":      "score value_column score_column",
	"tasks.TASK.data.question":   "question_column",
	"tasks.TASK.data.context":    "context_column",
	"tasks.TASK.data.answers":    "answer_column",
	"tasks.TASK.data.delimiter":  "sep",
	"tasks.TASK.data.quote":      "quotechar quoting",
	"tasks.TASK.data.limit":      "max_train_samples max_samples",
	"tasks.TASK.data.dedupe":     "deduplicate drop_duplicates",
	"tasks.TASK.data.stream":     "streaming",
	"tasks.TASK.data.split.dev":  "dev_size val_size val_split validation_split",
	"tasks.TASK.data.split.test": "test_size test_split",

	"tasks.TASK.label_maps":                 "id2label",
	"tasks.TASK.labels":                     "label_list label_names class_names",
	"tasks.TASK.heads.HEAD.weight":          "loss_weight",
	"tasks.TASK.heads.HEAD.num_labels":      "num_labels num_classes",
	"tasks.TASK.heads.HEAD.class_weights":   "class_weight",
	"tasks.TASK.heads.HEAD.label_smoothing": "label_smoothing label_smoothing_factor",
}

// SettingMeant returns the whole name of the key that a user means by one that may be of another program, as
// training.learning_rate for lr and learning_rate; "" if none is known, or if it is a section or a key of a task, of
// which there may be several.
func SettingMeant(key string) string {
	whole := cmp.Or(ofOtherProgram(key), wholeKey(key, ""))
	section := whole == "tasks" || slices.Contains(Sections{}.Names(), whole)
	if section || strings.HasPrefix(whole, "tasks.") {
		return ""
	}
	return whole
}

func ofOtherProgram(key string) string {
	for whole, others := range ofOtherPrograms {
		if slices.Contains(strings.Fields(others), key) {
			return whole
		}
	}
	return ""
}

// meant implements the Meant of an experiment file's mistakes.
func meant(owner, key string, own []string) string {
	whole := wholeMeant(key, own)
	name, within := strings.CutPrefix(whole, pathOf(owner))
	first, _, _ := strings.Cut(name, ".")
	switch {
	case slices.Contains(own, first) && within:
		return name
	case within && !strings.HasPrefix(owner, "task "): // it is of another part, or of files with targets
		return ""
	}
	return whole
}

// pathOf returns what the whole names of the keys begin with that the section of owner has.
func pathOf(owner string) string {
	if strings.HasPrefix(owner, "head ") {
		return "tasks.TASK.heads.HEAD."
	}
	path := strings.ReplaceAll(owner, ": ", ".") + "."
	if strings.HasPrefix(owner, "task ") {
		_, within, _ := strings.Cut(path, ".")
		path = "tasks.TASK." + within
	}
	switch path {
	case "experiment.":
		return ""
	case "tasks.TASK.data.train.", "tasks.TASK.data.dev.", "tasks.TASK.data.test.", "training.unlabelled.":
		return "tasks.TASK.data." // a file's own
	}
	return path
}

func wholeMeant(key string, own []string) string {
	_, similar := suggest.Nearest(key, own)
	ofTask, ofPart := slices.Contains(own, "data"), slices.Contains(own, "type")
	switch other := ofOtherProgram(key); {
	case other == "tasks.TASK.data.dev" && slices.Contains(own, "by"):
		return "tasks.TASK.data.split.dev"
	case ofPart && !ofTask && strings.HasPrefix(other, "tasks.TASK.data."):
		return "" // no column
	case other != "":
		return other
	case similar:
		return ""
	case ofTask:
		return wholeKey(key, "data")
	case ofPart: // other parts have options of such names, as temperature
		return ""
	}
	return wholeKey(key, "")
}

// wholeKey returns the whole name of a key of the file, of one of its sections or of the section other, which may be
// "": training.num_epochs for num_epochs. It returns "" if there is none.
func wholeKey(key, other string) string {
	for _, section := range []string{"experiment", "training", "model", "tokenizer", other} {
		is := func(field plugin.Field) bool { return field.Key == key }
		switch {
		case section == "" || !slices.ContainsFunc(Sections{}.Fields(section), is):
		case section == "experiment":
			return key
		case section == "data":
			return "tasks.TASK.data." + key
		default:
			return section + "." + key
		}
	}
	return ""
}
