package config

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/plugin"
)

// For a key of another program, or of another section, the error names the key that stands for it.
func TestKeysOfOtherProgramsAndOtherSections(t *testing.T) {
	dir := sample.Folder(t, map[string]string{"exp.yaml": `
model: {encoder: transformer}
tasks: [{name: mood, type: classification, data: {train: train.jsonl}}]
`}, "train.jsonl")
	for set, want := range map[string]string{
		"training.lr=1":                               `"lr"; did you mean "learning_rate"? it takes all_`,
		"training.batch=1":                            `did you mean "batch_size"?`, // not match
		"training.num_train_epochs=1":                 `did you mean "num_epochs"?`,
		"training.per_device_train_batch_size=1":      `did you mean "batch_size"?`,
		"training.early_stopping=1":                   `did you mean "early_stopping_patience"?`,
		"training.seed=1":                             `did you mean "seed" at the top of the file?`,
		"training.max_len=1":                          `did you mean "tokenizer.max_length"?`,
		"training.max_length=1":                       `did you mean "tokenizer.max_length"?`,
		"training.label_smoothing=0.1":                `did you mean "tasks.TASK.heads.HEAD.label_smoothing"?`,
		"training.optimizer={type: adamw, lr: 1}":     `did you mean "training.learning_rate"?`,
		"training.optimizer.weight_decay=1":           `did you mean "training.weight_decay"?`,
		"training.sampling={type: uniform, ema: 0.5}": `sampling "uniform" has no option "ema"; it takes`, // of a part
		"model.model_name=x":                          `model has no option "model_name"; did you mean "base_model"?`,
		"model.pretrained_model_name_or_path=x":       `did you mean "base_model"?`,
		"model.lora_r=1":                              `did you mean "lora.r"?`,
		"model.batch_size=1":                          `did you mean "training.batch_size"?`,
		"model.teachers=alone":                        `did you mean "teacher"?`, // not training.teachers
		"tasks.mood.data.text_column=x":               `data has no option "text_column"; did you mean "text"?`,
		"tasks.mood.data.label_column=x":              `did you mean "label"?`,
		"tasks.mood.data.split={validation: 0.1}":     `data: split has no option "validation"; did you mean "dev"?`,
		"tasks.mood.data.sep=x":                       `did you mean "delimiter"?`,
		"tasks.mood.data.train_file=x":                `did you mean "train"?`,
		"tasks.mood.data.validation_file=x":           `did you mean "dev"?`,
		"tasks.mood.data.validation_split=1":          `did you mean "split.dev"?`,
		"tasks.mood.dev=x":                            `did you mean "data.dev"?`,
		"tasks.mood.id2label={}":                      `did you mean "label_maps"?`,
		"tasks.mood.heads.mood.loss_weight=2":         `did you mean "weight"?`,
		// a section may have a key of its own that is also the name of one in the path
		"tasks.mood.data.vocab_size=1":                    `did you mean "tokenizer.train.vocab_size"?`,
		"tasks.mood.data.do_lower_case=true":              `did you mean "tokenizer.train.lowercase"?`,
		"tasks.mood.data.label_list=x":                    `did you mean "tasks.TASK.labels"?`,
		"tasks.mood.data.class_names=x":                   `did you mean "tasks.TASK.labels"?`,
		"tasks.mood.data.dev_size=1":                      `did you mean "split.dev"?`,
		"tasks.mood.data.split.dev_size=1":                `did you mean "dev"?`,
		"tasks.mood.label_list=[x]":                       `did you mean "labels"?`,
		"tasks.mood.num_classes=2":                        `did you mean "heads.HEAD.num_labels"?`,
		"tasks.mood.heads.mood.num_classes=2":             `did you mean "num_labels"?`,
		"tasks.mood.heads.mood.score=x":                   `head "linear" has no option "score"; it takes`,
		"tasks.mood.data.train={path: a, sep: x}":         `did you mean "delimiter"?`,
		"training.unlabelled={path: a, text_column: x}":   `did you mean "text"?`,
		"tasks.mood.data.train={path: a, text_column: x}": `did you mean "tasks.TASK.data.text"?`,
		"training.unlabelled={path: a, label_column: x}":  `unlabelled has no option "label_column"; it takes`,
		"learning_rate=1":                                 `"learning_rate"; did you mean "training.learning_rate"?`,
		"experiments=1":                                   `experiment has no option "experiments"; it takes model, `,
	} {
		_, err := Read(t.Context(), filepath.Join(dir, "exp.yaml"), []string{set})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--set %s: %v, want %s", set, err, want)
		}
	}
}

// Each key that stands for one of another program is there, and none of the other programs stands for two.
func TestOtherProgramsKeysStandForKeysThatAreThere(t *testing.T) {
	linear, err := heads.Registry().FromString("linear", "")
	if err != nil {
		t.Fatal(err)
	}
	all := plugin.KeysOf(linear.Options)
	for prefix, section := range map[string]string{"": "experiment", "model.": "model", "tokenizer.": "tokenizer",
		"training.": "training", "tasks.TASK.": "task", "tasks.TASK.data.": "data", "tasks.TASK.heads.HEAD.": "head"} {
		for _, field := range (Sections{}).Fields(section) {
			all = append(all, prefix+field.Key)
		}
	}
	first := map[string]string{}
	for whole, others := range ofOtherPrograms {
		name := strings.TrimPrefix(whole, "tasks.TASK.heads.HEAD.") // of a part
		if !slices.Contains(all, whole) && !slices.Contains(all, name) {
			t.Errorf("no key %s", whole)
		}
		for other := range strings.FieldsSeq(others) {
			if first[other] != "" {
				t.Errorf("%s stands for %s and for %s", other, first[other], whole)
			}
			first[other] = whole
		}
	}
}
