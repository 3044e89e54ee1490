package config

import (
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/plugin"
)

// TestSectionsListEveryKey compares the lists with what the decoder reads.
func TestSectionsListEveryKey(t *testing.T) {
	read := map[string][]plugin.Field{
		"experiment": plugin.FieldsOf("", experimentOptions{}),
		"model":      append(plugin.FieldsOf("", Model{}), plugin.FieldsOf("lora.", loraDefaults)...),
		"tokenizer":  plugin.FieldsOf("", tokenizerDefaults),
		"task":       append(plugin.FieldsOf("", taskOptions{}), plugin.Field{Key: "type"}),
		"data":       append(plugin.FieldsOf("", Data{}), plugin.FieldsOf("split.", Split{})...),
		"head":       append(plugin.FieldsOf("", Head{}), plugin.Field{Key: "type"}),
		"training":   plugin.FieldsOf("", trainingDefaults),
		"logging":    plugin.FieldsOf("", Logging{}),
	}
	expanded := []string{"lora", "train", "split"} // mappings whose keys are listed in place of their own
	for _, section := range (Sections{}).Names() {
		var listed []string
		for _, f := range (Sections{}).Fields(section) {
			listed = append(listed, f.Key)
		}
		if len(read[section]) == 0 {
			t.Errorf("section %s is not compared", section)
		}
		for _, f := range read[section] {
			isMapping := slices.Contains(expanded, f.Key) && (section != "data" || f.Key != "train")
			if !isMapping && !slices.Contains(listed, f.Key) {
				t.Errorf("section %s does not list %s", section, f.Key)
			}
		}
	}
}
