package config

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/plugin"
)

// unit matches what the description of a number says that it counts or multiplies.
var unit = regexp.MustCompile(`\b(tokens|characters|words|examples|MiB|updates|evaluations|batches|passes|number of|` +
	`fraction|rate|factor|norm|random seed)\b`)

// TestSectionsAreDescribed requires of each key its valid values and a description, of a number also its unit.
func TestSectionsAreDescribed(t *testing.T) {
	described := map[string]bool{}
	for _, section := range (Sections{}).Names() {
		for _, f := range keysOf(section) {
			described[section+"."+f.Key] = f.Doc == ""
		}
		for _, f := range (Sections{}).Fields(section) {
			if f.Type == "" || f.Doc == "" {
				t.Errorf("%s: %s takes %q and is described as %q; want both, in the tags of its field", section, f.Key,
					f.Type, f.Doc)
			}
			if isNumber := strings.Contains(f.Type, " number "); isNumber && !unit.MatchString(f.Doc) {
				t.Errorf("%s: the description of the number %s has no unit: %q", section, f.Key, f.Doc)
			}
		}
	}
	for key := range descriptions {
		if !described[key] {
			t.Errorf("the description of %s is of no key, or of one with a tag doc", key)
		}
	}
}

// TestSectionsListEveryKey compares the lists with what the decoder reads.
func TestSectionsListEveryKey(t *testing.T) {
	read := map[string][]plugin.Field{
		"experiment": plugin.FieldsOf("", experimentOptions{}),
		"model":      append(plugin.FieldsOf("", modelOptions{}), plugin.FieldsOf("lora.", loraDefaults)...),
		"tokenizer":  append(plugin.FieldsOf("", tokenizerOptions{}), plugin.FieldsOf("train.", Vocabulary{})...),
		"task":       append(plugin.FieldsOf("", taskOptions{}), plugin.Field{Key: "type"}),
		"data":       append(plugin.FieldsOf("", dataOptions{}), plugin.FieldsOf("split.", Split{})...),
		"head":       append(plugin.FieldsOf("", headOptions{}), plugin.Field{Key: "type"}),
		"training":   plugin.FieldsOf("", trainingOptions{}),
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
