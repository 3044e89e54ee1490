package run

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/internal/sample"
)

// What is wrong with options, files, records, labels, tokenizer and encoder is one list, as far as one does not depend
// on another.
func TestMistakesOfAllKindsAreOneList(t *testing.T) {
	t.Setenv("JENGA_DATA", "")
	t.Setenv("JENGA_MODELS", "")
	sample.Tasks(t, `  - {name: a, type: classification, data: {train: a.jsonl, dev: gone.jsonl}}
  - {name: b, type: regression, data: {train: b.csv, dev: b.csv}}
  - {name: c, type: classification, data: {train: b.csv, dev: b.csv, labl: x}}
  - {name: d, type: regression, data: {train: d.csv, dev: d.csv}}
  - {name: e, type: tagging, data: {train: e.jsonl, dev: e.jsonl}}
  - {name: f, type: classification, data: {same_as: c}}
training: {num_epoch: 3}
`, map[string]string{
		"a.jsonl": `{"text": "x", "label": "y"}` + "\n" + `{"txt": 1}` + "\n",
		"b.csv":   "text,value\nfoo,1\nbar,zwei\n", "d.csv": "text,valu\nfoo,1\nbar,2\n",
		"e.jsonl": `{"text": "x y", "tags": ["O"]}` + "\n",
	})
	wanted := []string{
		`task "a": gone.jsonl: no such file`,
		`a.jsonl:2: task "a": no text`,
		`b.csv:3: task "b": field "value" has 1 number, 1 other: zwei`,
		`task "c": data has no option "labl"`,
		`task "d": head "d" has no value in its training data, d.csv`,
		`training has no option "num_epoch"`,
	}
	const tags = `e.jsonl:1: task "e": field "tags" has 1 tag for 2 words`
	for _, test := range []struct {
		set, want string
		tagged    bool // the tokenizer splits the texts of tags
	}{
		{"seed=1", tags, true},
		{"model={base_model: gone}", `base_model: no folder or .onnx file "gone"`, false},
		{"model.encoder={type: transformer, width: 30, heads: 7}", `width 30 is not a multiple of 7 heads`, true},
	} {
		e, err := config.Read(t.Context(), "exp.yaml", []string{test.set})
		if err != nil {
			err = Mistakes(t.Context(), e, err, config.Train, config.Dev)
		}
		for _, want := range append([]string{test.want}, wanted...) {
			if err == nil || strings.Count(err.Error(), want) != 1 {
				t.Errorf("%s: not once %q in\n%v", test.set, want, err)
			}
		}
		if err != nil && strings.Contains(err.Error(), tags) != test.tagged {
			t.Errorf("%s: %v, want an error of tags: %v", test.set, err, test.tagged)
		}
	}
}

// Whatever is wrong with a file, looking for more mistakes ends.
func TestMistakesOfBadFiles(t *testing.T) {
	t.Setenv("JENGA_DATA", "")
	t.Setenv("JENGA_MODELS", "")
	t.Chdir("../config/testdata/bad")
	files, err := filepath.Glob("*.yaml")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d files, %v; want at least 30", len(files), err)
	}
	for i, file := range files {
		if testing.Short() && i%4 != 0 {
			continue
		}
		e, err := config.Read(t.Context(), file, nil)
		if all := Mistakes(t.Context(), e, err, config.Train, config.Dev, config.Test); !strings.Contains(all.Error(),
			strings.Split(err.Error(), "\n")[0]) {
			t.Errorf("%s: %v, want also %v", file, all, err)
		}
	}
}
