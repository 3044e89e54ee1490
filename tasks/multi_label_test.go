package tasks_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/tasks"
)

func newMultiLabel(t *testing.T, heads ...string) tasks.Task {
	t.Helper()
	task, err := tasks.NewMultiLabel(tasks.MultiLabelOptions{Separator: ","}, tasks.Env{Heads: heads})
	if err != nil {
		t.Fatal(err)
	}
	return task
}

// presentLabels is the target of a list of labels.
func presentLabels(labels ...string) corpus.Target {
	return &outputs.LabelsTarget{Labels: append([]string{}, labels...)}
}

// binaryLabels is the target of a list of 0 and 1.
func binaryLabels(labels, absent []string) corpus.Target {
	return &outputs.LabelsTarget{Labels: labels, Absent: absent}
}

// sameForBoth returns a target for each of two heads.
func sameForBoth(t corpus.Target) [2]corpus.Target { return [2]corpus.Target{t, t} }

func TestMultiLabelTargets(t *testing.T) {
	one, zero := json.Number("1"), json.Number("0")
	for _, c := range []struct {
		rule   string
		fields map[string]any
		want   [2]corpus.Target // of the heads opening and closing
	}{
		{"a list of names", map[string]any{"labels": []any{"joy", "love"}},
			sameForBoth(presentLabels("joy", "love"))},
		{"an empty list: no label holds", map[string]any{"labels": []any{}},
			sameForBoth(presentLabels())},
		{"names with a separator", map[string]any{"label": "2, 5"},
			sameForBoth(presentLabels("2", "5"))},
		{"a number", map[string]any{"label": json.Number("27")},
			sameForBoth(presentLabels("27"))},
		{"the labels of a head precede those of the task",
			map[string]any{"labels": []any{"joy"}, "label.closing": []any{"love"}},
			[2]corpus.Target{presentLabels("joy"), presentLabels("love")}},
		{"0 and 1 for each head", map[string]any{"labels": map[string]any{"opening": []any{one},
			"closing": []any{zero, one, one}}},
			[2]corpus.Target{binaryLabels([]string{"0"}, []string{}), binaryLabels([]string{"1", "2"}, []string{"0"})}},
		{"0 and 1 for each head, as JSON in a string",
			map[string]any{"labels": `{"opening": [0], "closing": [1, 0, 0]}`},
			[2]corpus.Target{binaryLabels([]string{}, []string{"0"}), binaryLabels([]string{"0"}, []string{"1", "2"})}},
		{"a head may be missing", map[string]any{"labels": map[string]any{"opening": []any{true}}},
			[2]corpus.Target{binaryLabels([]string{"0"}, []string{}), nil}},
		{"numbers with a point", map[string]any{"labels": map[string]any{"opening": []any{json.Number("1.0"),
			json.Number("0.0")}, "closing": []any{json.Number("0"), json.Number("1.00")}}},
			[2]corpus.Target{binaryLabels([]string{"0"}, []string{"1"}), binaryLabels([]string{"1"}, []string{"0"})}},
		{"a list of names, as JSON in a string", map[string]any{"labels": ` ["joy", "true love, and more"]`},
			sameForBoth(presentLabels("joy", "true love, and more"))},
		{"an empty list, as JSON in a string", map[string]any{"label": "[]"},
			sameForBoth(presentLabels())},
		{"no field", map[string]any{}, [2]corpus.Target{}},
		{"an empty cell", map[string]any{"label": ""}, [2]corpus.Target{}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			c.fields["text"] = "a text"
			e, err := newMultiLabel(t, "opening", "closing").Example(record(c.fields))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(e.Targets, c.want[:]) {
				t.Errorf("targets %+v, want %+v", e.Targets, c.want)
			}
		})
	}
}

// oneHot is the error of a list of 0 and 1 that is no list of names.
const oneHot = `data.jsonl:7: field "labels" is a list of 0 and 1 for each label; want the names of the labels that ` +
	`hold, or {"opening": [1, 0]}, whose labels are numbered from 0`

// What the error names works: the values under the head's name, or names of the labels.
func TestTheRemediesForAListOfZeroAndOneWork(t *testing.T) {
	for _, labels := range []any{
		map[string]any{"opening": []any{json.Number("1"), json.Number("0")}},
		map[string]any{"opening": []any{json.Number("1.0"), json.Number("0.0")}}, []any{"good"},
	} {
		e, err := newMultiLabel(t, "opening").Example(record(map[string]any{"text": "a", "labels": labels}))
		if err != nil || e.Targets[0] == nil {
			t.Errorf("%v: %v, %v", labels, e.Targets, err)
		}
	}
}

func TestInvalidMultiLabels(t *testing.T) {
	for _, c := range []struct {
		labels any
		want   string
	}{
		{[]any{"joy", "joy"}, `data.jsonl:7: field "labels": duplicate label "joy"; want each name once, or lists ` +
			`of 0 and 1 as {HEAD: [1, 0]}`},
		{[]any{"joy", ""}, `data.jsonl:7: field "labels": label 2 is empty`},
		{"a,,b", `data.jsonl:7: field "labels": label 2 is empty`},
		{map[string]any{"opening": []any{json.Number("2")}},
			`data.jsonl:7: field "labels": opening has 2 at position 1; want 0 or 1`},
		{map[string]any{"opening": []any{json.Number("1.0"), json.Number("0.3")}},
			`data.jsonl:7: field "labels": opening has 0.3 at position 2; want 0 or 1`},
		{[]any{json.Number("1.0"), json.Number("0.0")}, oneHot}, {[]any{json.Number("0.0")}, oneHot},
		{[]any{false, true}, oneHot}, {[]any{json.Number("0"), json.Number("1"), json.Number("0")}, oneHot},
		{"[1.0, 0.0]", oneHot},
		{map[string]any{"opening": "yes"}, `data.jsonl:7: field "labels": opening is not a list of 0 and 1`},
		{`{"opening": [1`, `data.jsonl:7: field "labels" begins with {, but is not a JSON object`},
		{`['joy', love]`, `data.jsonl:7: field "labels" begins with [, but is not a JSON list; want ["joy", ` +
			`"love"] or joy,love`},
	} {
		_, err := newMultiLabel(t, "opening").Example(record(map[string]any{"text": "a", "labels": c.labels}))
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v: error %v, want %s", c.labels, err, c.want)
		}
	}
}

func TestBinaryListsHaveOneLength(t *testing.T) {
	task := newMultiLabel(t, "opening")
	labels := func(n int) corpus.Record {
		list := make([]any, n)
		for i := range list {
			list[i] = json.Number("1")
		}
		return record(map[string]any{"text": "a", "labels": map[string]any{"opening": list}})
	}
	if _, err := task.Example(labels(2)); err != nil {
		t.Fatal(err)
	}
	_, err := task.Example(labels(3))
	if want := `data.jsonl:7: field "labels": opening is a list of 3, where earlier records have 2`; err == nil ||
		err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
