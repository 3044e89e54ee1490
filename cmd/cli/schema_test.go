package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"
)

// unseen are the files of experiments/config/testdata/bad whose mistake the schema does not see: one of several keys
// together, of other files, of names that the file itself defines, of YAML, or a value that only a comment excludes.
var unseen = []string{
	"anneal_without_weight", "base_model_missing", "batch_of_one_pair", "best_without_evaluation",
	"cache_file_folder_not_found", "column_of_unknown_head", "computed_rate_with_rate",
	"data_file_missing", "data_path_missing",
	"duplicate_head", "duplicate_task", "early_stopping_without_evaluation", "eval_steps", "extension",
	"head_of_another_output_kind", "headless_metric", "label_maps_head", "long_of_the_same_texts",
	"loss_limit", "metrics_of_one_name", "mlm_on_texts_of_another_task", "model_teacher_missing", "nothing_learned",
	"num_labels", "path_and_data_path", "path_beside_dev", "path_beside_train", "same_as_beside_train", "same_as_cycle",
	"same_as_unknown_task", "second_head_of_mlm", "separator_empty", "shard_of_one_pair",
	"sizes_beside_base_model", "split_beside_dev", "split_of_one_and_a_half", "split_takes_all",
	"split_without_sizes", "student_and_base_model", "student_from_missing", "student_of_nothing", "student_with_sizes",
	"stride_of_whole_windows", "stride_without_windows", "tag", "text_and_question",
	"tokenizer_of_a_base_model", "train_beside_base_model", "two_documents", "two_formats_of_a_file",
	"unknown_metric", "unlabelled_without_teachers", "where_without_values",
}

func compiledSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(mustCall(t, "", "schema")))
	if err != nil {
		t.Fatal(err)
	}
	if err := compiler.AddResource("schema.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// valuesOf returns the value of a YAML text as JSON has it, whose keys are text; ok is false for one that is no YAML.
func valuesOf(t *testing.T, text []byte) (value any, ok bool) {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		return nil, false
	}
	data, err := json.Marshal(withTextKeys(v))
	if err != nil {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		t.Fatal(err)
	}
	return value, true
}

func withTextKeys(v any) any {
	switch v := v.(type) {
	case map[any]any:
		all := map[string]any{}
		for key, value := range v {
			text, err := yaml.Marshal(key)
			if err != nil {
				panic(err)
			}
			all[strings.TrimSpace(string(text))] = withTextKeys(value)
		}
		return all
	case map[string]any:
		for key, value := range v {
			v[key] = withTextKeys(value)
		}
	case []any:
		for i, item := range v {
			v[i] = withTextKeys(item)
		}
	}
	return v
}

func TestTheSchemaAcceptsEveryExperimentThatShips(t *testing.T) {
	schema := compiledSchema(t)
	files, err := filepath.Glob("../../experiments/*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	more, err := filepath.Glob("../../experiments/config/testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range slices.Concat(files, more) {
		value, ok := valuesOf(t, []byte(readFile(t, file)))
		if !ok {
			t.Errorf("%s is no YAML", file)
		} else if err := schema.Validate(value); err != nil {
			t.Errorf("%s: %#v", file, err)
		}
	}
}

func TestTheSchemaRejectsBadExperiments(t *testing.T) {
	schema := compiledSchema(t)
	files, err := filepath.Glob("../../experiments/config/testdata/bad/*.yaml")
	if err != nil || len(files) < 100 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		value, ok := valuesOf(t, text)
		if !ok {
			continue
		}
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		if err := schema.Validate(value); (err == nil) != slices.Contains(unseen, name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A file with every default, as a run folder has it, is valid too.
func TestTheSchemaAcceptsTheExperimentOfARun(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, ".", "mails.csv", mails())
	writeFile(t, ".", "experiment.yaml", smallExperiment)
	mustCall(t, "", "train", "--set", "training.max_steps=1")
	value, _ := valuesOf(t, []byte(readFile(t, "runs/mails/experiment.yaml")))
	if err := compiledSchema(t).Validate(value); err != nil {
		t.Errorf("%#v", err)
	}
}

// Values of an experiment, valid and not.
func TestTheSchemaOfValues(t *testing.T) {
	schema := compiledSchema(t)
	for set, valid := range map[string]bool{
		"training: {learning_rate: 1.0e-4}":                                                   true,
		"training: {learning_rate: 0}":                                                        false,
		"training: {optimizer: sgd}":                                                          true,
		"training: {optimizer: {type: sgd, momentum: 0.9}}":                                   true,
		"training: {optimizer: {type: adamw, momentum: 0.9}}":                                 false,
		"training: {recompute: yes, num_epochs: null}":                                        true,
		"training: {recompute: perhaps}":                                                      false,
		"training: {eval_strategy: no}":                                                       true,
		"training: {sampling: {type: weights, weights: {a: 2}}}":                              true,
		"training: {sampling: {type: weights, weights: {a: 0}}}":                              false,
		"training: {weighting: {type: fixed, rate: 1}}":                                       false,
		"training: {metric_for_best_model: {a: 2}}":                                           true,
		"model: {encoder: {from: run, layers: [0, 2]}}":                                       true,
		"model: {encoder: {from: run}}":                                                       true,
		"model: {base_model: m, encoder: {type: transformer, layers: [0, 2]}}":                true,
		"model: {encoder: {type: bilstm, layers: 2, hidden: 8}}":                              true,
		"model: {encoder: {layers: 0}}":                                                       false,
		"model: {encoder: {from: run, layers: []}}":                                           false,
		"model: {encoder: {from: run, layer: [1]}}":                                           false,
		"tokenizer: {max_length: 2}":                                                          false,
		"tokenizer: {train: {vocab_size: 400}}":                                               true,
		"model: {base_model: m, lora: {r: 0}}":                                                false,
		"model: {base_model: m, freeze: {unfreeze: {every: 1}}}":                              true,
		"model: {base_model: m, fusion: {type: attention, scale: exact}}":                     true,
		"model: {base_model: m, fusion: {type: mix, scale: exact}}":                           false,
		"tasks: [{name: a, type: ner, data: {train: [a.csv, b.csv], limit: 5}}]":              true,
		"tasks: [{name: a, type: ner, data: {train: {path: a.csv, rows: 5}}}]":                false,
		"tasks: [{name: a, type: ner, data: {path: a.csv}, heads: [{type: crf, weight: 2}]}]": true,
		"tasks: [{name: a, type: ner, heads: [{type: crf, threshold: 0.5}]}]":                 false,
		"tasks: [{name: a, keep: true}]":                                                      true,
		"tasks: [{name: a}]":                                                                  false,
	} {
		whole := map[string]any{"model": map[string]any{"base_model": "m"},
			"tasks": []any{map[string]any{"name": "a", "type": "ner", "data": map[string]any{"path": "a.csv"}}}}
		value, _ := valuesOf(t, []byte(set))
		for key, v := range value.(map[string]any) {
			whole[key] = v
		}
		if err := schema.Validate(whole); (err == nil) != valid {
			t.Errorf("%s: %v", set, err)
		}
	}
}

func TestInitNamesTheSchemaBesideIt(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("JENGA_MODELS", "")
	t.Setenv("HF_HOME", t.TempDir())
	writeFile(t, ".", "mails.csv", mails())
	mustCall(t, "", "init", "mails.csv")
	const line = "# yaml-language-server: $schema=experiment.schema.json\n"
	if strings.Contains(readFile(t, "experiment.yaml"), line) {
		t.Error("init names a schema that is not there")
	}
	writeFile(t, ".", "experiment.schema.json", mustCall(t, "", "schema"))
	mustCall(t, "", "init", "mails.csv", "--force")
	text := readFile(t, "experiment.yaml")
	if !strings.HasPrefix(text, line) {
		t.Errorf("init does not name the schema: %.200s", text)
	}
	value, _ := valuesOf(t, []byte(text))
	if err := compiledSchema(t).Validate(value); err != nil {
		t.Errorf("%#v", err)
	}
}
