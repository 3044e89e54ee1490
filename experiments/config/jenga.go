package config

import (
	"slices"

	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/tasks"
)

// Names of task types in Jenga-NLP's files that differ from ours.
func init() {
	for alias, name := range map[string]string{
		"single_label_classification":             "classification",
		"single_head_single_label_classification": "classification",
		"multi_label_classification":              "multi_label",
	} {
		tasks.Registry().Alias(alias, name)
	}
}

// jengaNLP lists the keys of Jenga-NLP's files by section. The keys of label_maps are names of heads.
var jengaNLP = map[string][]string{
	"":          {"project_name", "tasks", "model", "tokenizer", "training"},
	"tasks":     {"name", "type", "data_path", "heads", "labels", "label_maps"},
	"heads":     {"name", "num_labels", "weight"},
	"model":     {"base_model", "dropout", "backbone_type", "fusion"},
	"fusion":    {"type", "hidden_size"},
	"tokenizer": {"max_length", "padding", "truncation", "pad_token_id"},
	"training": {
		"output_dir", "learning_rate", "batch_size", "num_epochs", "weight_decay", "warmup_steps", "eval_strategy",
		"save_strategy", "load_best_model_at_end", "metric_for_best_model", "greater_is_better",
		"early_stopping_patience", "device", "logging",
	},
	"logging": {"service", "experiment_name", "tracking_uri"},
}

// hasKnownKeys reports whether a section and those in it use only keys of Jenga-NLP's files.
func hasKnownKeys(section string, s *plugin.Section) bool {
	known, ok := jengaNLP[section]
	if !ok {
		return true // a value, or a mapping with the user's own names as keys
	}
	for _, item := range s.Items {
		if !hasKnownKeys(section, item) {
			return false
		}
	}
	for _, e := range s.Entries {
		if !slices.Contains(known, e.Key) || !hasKnownKeys(e.Key, e.Value) {
			return false
		}
	}
	return true
}
