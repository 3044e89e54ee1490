package cli

import (
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/tasks"
)

func TestWriteLabels(t *testing.T) {
	tables := tasks.Tables{
		Labels: map[string]tasks.LabelMetrics{"good": {Precision: 0.5, Recall: 1, F1: 2. / 3, Support: 4,
			Predicted: 8}, "bad": {Support: 9}, "fine": {Predicted: 2}},
		Confusion: map[string]map[string]int{"good": {"good": 4}, "bad": {"good": 4, "a": 1, "b": 3, "c": 1}},
	}
	groups := []multitask.GroupMetrics{{Tasks: []multitask.TaskMetrics{{Task: "mood",
		Heads: []multitask.HeadMetrics{{Head: "tone", Tables: &tables}, {Head: "amount"}}}}}}
	var out strings.Builder
	if err := writeLabels(&out, groups); err != nil {
		t.Fatal(err)
	}
	want := `
mood, tone
label  precision  recall  f1     support  confused with
bad    -          0.00    0.00   9        good 4, b 3, a 1
fine   0.00       -       0.00   0        
good   50.00      100.00  66.67  4        
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
