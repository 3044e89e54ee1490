package cli

import (
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/experiments/predict"
)

func TestDataIsNamedByTask(t *testing.T) {
	// b and c read the same texts; d has no examples
	group := func(split string, tasks ...int) dataset.Group {
		return dataset.Group{Tasks: tasks, Examples: map[string][]*corpus.Example{split: {{}}}}
	}
	opened := &predict.Opened{Data: &dataset.Dataset{
		Experiment: &config.Experiment{Tasks: []config.Task{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}},
		Groups:     []dataset.Group{group("dev", 0), group("dev", 1, 2), group("train", 3)},
	}}
	for _, test := range []struct {
		want  string
		files map[string][]string
	}{
		{"dev", nil},
		{"a: x.csv; others: dev", map[string][]string{"a": {"x.csv"}}},
		{"b, c: x.csv; others: dev", map[string][]string{"c": {"x.csv"}}},
		{"a: x.csv; b, c: y.csv", map[string][]string{"a": {"x.csv"}, "b": {"y.csv"}}},
		{"x.csv", map[string][]string{"a": {"x.csv"}, "b": {"x.csv"}}},
		{"a: x.csv, y.csv; others: dev", map[string][]string{"a": {"x.csv", "y.csv"}}},
	} {
		if got := dataName(opened, "dev", test.files); got != test.want {
			t.Errorf("files %v: %q, want %q", test.files, got, test.want)
		}
	}
}

func TestWarningsNameTheFileThatIsReadInPlaceOfASplit(t *testing.T) {
	trainMails(t)
	writeFile(t, ".", "odd.csv", "body,team\nthe card,sales\n")
	status, _, log := call("", "eval", "runs/mails", "--data", "team=odd.csv")
	if status != 0 || !strings.Contains(log, `odd.csv has label "sales" 1 time, which train does not have`) {
		t.Errorf("%d, %s", status, log)
	}
}
