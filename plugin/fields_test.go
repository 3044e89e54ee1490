package plugin

import (
	"reflect"
	"testing"
)

// The tags takes and default replace what the type and the registered value say; no value has no text.
func TestFieldsOfTags(t *testing.T) {
	type options struct {
		Path    *Section       `yaml:"path" takes:"a path"`
		Any     *Section       `yaml:"any"`
		Name    string         `yaml:"name"`
		Scale   []float64      `yaml:"scale" range:"[0,)"`
		Layers  []int          `yaml:"layers"`
		Targets []string       `yaml:"targets" choice:"query|key"`
		Ends    []float64      `yaml:"ends" takes:"[LEAST, MOST]"`
		Of      map[string]int `yaml:"of"`
		Size    int            `yaml:"size" range:"[1,)" default:"(8 or 9)"`
		Labels  int            `yaml:"labels" range:"[1,)" default:""`
	}
	want := []Field{
		{"path", "a path", "", ""},
		{"any", "a value", "", ""},
		{"name", "text", "", ""},
		{"scale", "a list of numbers of at least 0", "", ""},
		{"layers", "a list of whole numbers", "[1, 2]", ""},
		{"targets", "a list of query or key", "[key]", ""},
		{"ends", "[LEAST, MOST]", "[0.0, 1.0]", ""},
		{"of", "a mapping", "", ""},
		{"size", "a whole number of at least 1", "(8 or 9)", ""},
		{"labels", "a whole number of at least 1", "", ""},
	}
	defaults := options{Layers: []int{1, 2}, Targets: []string{"key"}, Ends: []float64{0, 1}, Size: 8}
	if got := FieldsOf("", defaults); !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}
