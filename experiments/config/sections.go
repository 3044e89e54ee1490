package config

import (
	"slices"

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
	switch name {
	case "experiment":
		return plugin.FieldsOf("", experimentDefaults)
	case "model":
		defaults := modelDefaults
		defaults.LoRA = loraDefaults
		fields := plugin.FieldsOf("", defaults)
		after := 1 + slices.IndexFunc(fields, func(f plugin.Field) bool { return f.Key == "freeze" })
		fields = slices.Insert(fields, after, plugin.FieldsOf("freeze.", freezeDefaults)...)
		after = 1 + slices.IndexFunc(fields, func(f plugin.Field) bool { return f.Key == "encoder" })
		return slices.Insert(fields, after, plugin.FieldsOf("encoder.", studentKeys{})...)
	case "tokenizer":
		return plugin.FieldsOf("", tokenizerDefaults)
	case "task":
		return append([]plugin.Field{typeField("task", "")}, plugin.FieldsOf("", taskDefaults)...)
	case "data":
		return dataFields()
	case "head":
		return append([]plugin.Field{typeField("head", "(by the task)")}, plugin.FieldsOf("", headDefaults)...)
	case "training":
		return plugin.FieldsOf("", trainingDefaults)
	case "logging":
		return plugin.FieldsOf("", Logging{})
	}
	panic("config: no section " + name)
}

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
	fields := plugin.FieldsOf("", dataDefaults)
	for _, kind := range outputs.Kinds() {
		if slices.Contains(targetFields(), kind.Field) {
			fields = append(fields, plugin.Field{Key: kind.Field, Doc: "column of " + kind.String()})
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
