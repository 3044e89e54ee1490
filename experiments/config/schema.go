package config

import (
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/tasks"
)

// Schema returns the JSON Schema of experiment files: all keys of this program's parts. It accepts every file that Read
// does; mistakes that depend on several keys, or on the data, it does not see. describe is as that of plugin.Schemas.
func Schema(describe func(kind, name, key string) string) plugin.Schema {
	m := plugin.Schemas{Describe: describe, Forms: forms()}
	section := func(name string, defaults any) plugin.Schema { return m.Options("section", name, defaults) }
	top := section("experiment", experimentDefaults)
	keys := properties(top)

	defaults := modelDefaults
	defaults.LoRA = loraDefaults
	model := section("model", defaults)
	freeze := properties(model)["freeze"].(plugin.Schema)
	freeze["anyOf"] = []any{plugin.Schema{"enum": append(slices.Clone(encoders.FreezeWords()), "")},
		plugin.Schema{"type": []string{"integer", "null"}, "minimum": 0}, plugin.Schema{
			"type": "object", "required": []string{"unfreeze"}, "additionalProperties": false,
			"properties": m.Options("section", "model", freezeDefaults)["properties"]}}
	put(properties(model), "encoder", encoderSchema(m))
	model["anyOf"] = []any{plugin.Schema{"required": []string{"base_model"}},
		plugin.Schema{"required": []string{"encoder"}}}
	put(keys, "model", model)
	put(keys, "tokenizer", section("tokenizer", tokenizerDefaults))
	training, unlabelled := section("training", trainingDefaults), section("training", unlabelledKeys{})
	unlabelled["required"] = []string{Path}
	put(properties(training), "unlabelled", plugin.Schema{"anyOf": []any{plugin.TextSchema(),
		listOf(plugin.TextSchema()), unlabelled}})
	put(keys, "training", training)

	task := section("task", taskDefaults)
	head := section("head", headDefaults)
	for _, named := range []any{keys["project_name"], properties(task)["name"], properties(head)["name"]} {
		named.(plugin.Schema)["pattern"] = namePattern
	}
	var untyped []string
	for _, kind := range outputs.Kinds() {
		untyped = append(untyped, heads.Default(kind))
	}
	put(properties(task), "heads", plugin.Schema{"type": []string{"array", "null"}, "minItems": 1,
		"items": heads.Registry().Schema(m, head, untyped...), "if": plugin.Schema{"minItems": 2},
		"then": plugin.Schema{"items": plugin.Schema{"required": []string{"name"}}}})
	put(properties(task), "data", dataSchema(section))
	entry := tasks.Registry().Schema(m, task)
	entry["required"] = []string{"name"}
	kept := plugin.Schema{"required": []string{"keep"},
		"properties": plugin.Schema{"keep": plugin.Schema{"const": true}}}
	// of a kept task type and data are the base run's
	entry["if"], entry["else"] = kept, plugin.Schema{"required": []string{"type"}, "anyOf": []any{
		plugin.Schema{"required": []string{"data"}}, plugin.Schema{"required": []string{"data_path"}}}}
	put(keys, "tasks", plugin.Schema{"type": "array", "items": entry, "minItems": 1})

	top["type"], top["required"] = "object", []string{"model", "tasks"}
	top["$schema"], top["title"] = "https://json-schema.org/draft/2020-12/schema", "jenga experiment"
	return top
}

func properties(s plugin.Schema) plugin.Schema { return s["properties"].(plugin.Schema) }

// encoderSchema returns the schema of the section encoder: a type, or a mapping with its keys and studentKeys, of which
// layers may also be a number, as types of encoders have it.
func encoderSchema(m plugin.Schemas) plugin.Schema {
	own := m
	if m.Describe != nil {
		own.Describe = func(kind, name, key string) string { return m.Describe(kind, name, "encoder."+key) }
	}
	student := own.Options("section", "model", studentKeys{})
	layers := plugin.Schema{"anyOf": []any{
		plugin.Schema{"type": []string{"integer", "null"}, "minimum": 1, "maximum": 1024},
		plugin.Schema{"type": "array", "minItems": 1, "uniqueItems": true,
			"items": plugin.Schema{"type": "integer", "minimum": 0}}}}
	put(properties(student), "layers", layers)
	of := encoders.Registry()
	mapping := of.Schema(m, student, of.Default())
	return plugin.Schema{"anyOf": []any{properties(mapping)["type"], mapping, plugin.Schema{"type": "null"}}}
}

// put sets the schema of a key, and keeps its description.
func put(keys plugin.Schema, key string, s plugin.Schema) {
	if doc, ok := keys[key].(plugin.Schema)["description"]; ok {
		s["description"] = doc
	}
	keys[key] = s
}

// dataSchema returns the schema of the section data. A column is a name, and where heads have columns of their own a
// mapping of their names.
func dataSchema(section func(name string, defaults any) plugin.Schema) plugin.Schema {
	data := section("data", dataDefaults)
	file := section("data", ownFile{})
	file["required"] = []string{"path"}
	for _, key := range []string{Path, Train, Dev, Test} {
		forms := []any{plugin.TextSchema(), listOf(plugin.TextSchema()), file}
		put(properties(data), key, plugin.Schema{"anyOf": forms})
	}
	for _, f := range dataFields() {
		if !slices.Contains(fieldNames(), f.Key) {
			continue
		}
		column := plugin.TextSchema()
		if perHead(f.Key) != "" {
			column = plugin.Schema{"anyOf": []any{column, plugin.Schema{"type": "object",
				"additionalProperties": plugin.TextSchema()}}}
		}
		if properties(data)[f.Key] == nil { // of another module's output kind
			column["description"] = f.Doc
			properties(data)[f.Key] = column
			continue
		}
		put(properties(data), f.Key, column)
	}
	return data
}

func formatsOrNone() []any {
	all := []any{nil, ""} // that of the file's extension
	for _, format := range corpus.FormatTypes() {
		all = append(all, format)
	}
	return all
}

func listOf(item plugin.Schema) plugin.Schema {
	return plugin.Schema{"type": []string{"array", "null"}, "items": item}
}

// forms are the schemas of values that sections and parts read themselves, by the tag takes.
func forms() map[string]plugin.Schema {
	all := map[string]plugin.Schema{
		"a list of labels": {"type": []string{"array", "null"}, "minItems": 1, "uniqueItems": true,
			"items": plugin.Schema{"type": []string{"string", "number", "boolean"}, "minLength": 1}},
		"{HEAD: {NUMBER: LABEL}}": {"type": []string{"object", "null"}, "additionalProperties": plugin.Schema{
			"type": "object", "propertyNames": plugin.Schema{"pattern": "^[0-9]+$"},
			"additionalProperties": plugin.TextSchema()}},
		"none, embeddings or a whole number": {"anyOf": []any{plugin.Schema{"enum": []string{"none", "embeddings"}},
			plugin.Schema{"type": []string{"integer", "null"}, "minimum": 0}}},
		"a format":               {"enum": formatsOrNone()},
		"a list of column names": {"type": []string{"array", "null"}, "items": plugin.TextSchema(), "minItems": 1},
		"all or a list of tasks": {"anyOf": []any{plugin.Schema{"const": "all"}, listOf(plugin.TextSchema())}},
		"true, false or a path":  {"type": []string{"boolean", "string", "null"}},
		"the word text":          {"enum": []any{"text", nil}},
		"auto, cpu or cuda:N":    {"type": []string{"string", "null"}, "pattern": "^(auto|cpu|cuda:[0-9]+)$"},
		"a whole number of at least 1, or all": {"type": []string{"integer", "string", "null"}, "minimum": 1,
			"pattern": "^([1-9][0-9]*|all)?$"},
		"[LEAST, MOST]": {"type": []string{"array", "null"}, "items": plugin.Schema{"type": "number"},
			"minItems": 2, "maxItems": 2},
		"a name or {TASK: WEIGHT}": {"anyOf": []any{plugin.TextSchema(), plugin.Schema{"type": "object",
			"additionalProperties": plugin.Schema{"type": "number"}}}},
	}
	for _, takes := range []string{"a path", "a name", "a path or a model's name"} {
		all[takes] = plugin.TextSchema()
	}
	return all
}
