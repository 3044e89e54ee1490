package config

import (
	"slices"

	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/tasks"
)

// What Jenga-NLP's files call a type by another name than ours.
func init() {
	for alias, name := range map[string]string{
		"single_label_classification":             "classification",
		"single_head_single_label_classification": "classification",
		"multi_label_classification":              "multi_label",
	} {
		tasks.Registry().Alias(alias, name)
	}
}

// jengaNLP lists the keys that Jenga-NLP's files have, by the section they stand in; those of label_maps are heads.
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

// speaksJengaNLP tells whether a file uses only keys that Jenga-NLP's files have.
func speaksJengaNLP(root *plugin.Section) bool { return speaks("", root) }

func speaks(section string, s *plugin.Section) bool {
	known, ok := jengaNLP[section]
	if !ok {
		return true // a value, or a mapping by the author's own names
	}
	for _, item := range s.Items {
		if !speaks(section, item) {
			return false
		}
	}
	for _, e := range s.Entries {
		if !slices.Contains(known, e.Key) || !speaks(e.Key, e.Value) {
			return false
		}
	}
	return true
}
