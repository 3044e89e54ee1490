package dataset

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/config"
)

// The error of a file that is read in place of a task's own names the task that it was given to, though another task of
// the same texts comes first.
func TestTheTaskThatAFileWasGivenToIsNamed(t *testing.T) {
	const all = "  - {name: mood, type: classification, data: {path: a.csv, split: {dev: 2}, label: mood}}\n" +
		"  - {name: tone, type: classification, data: {same_as: mood, label: tone}}\n" +
		"  - {name: other, type: classification, data: {path: b.csv, split: {dev: 2}, label: mood}}\n"
	rows := "text,mood,tone\na,x,y\nb,z,w\nc,x,y\nd,z,w\ne,x,w\nf,z,y\n"
	data, err := load(t, all, map[string]string{"a.csv": rows, "b.csv": rows})
	if err != nil {
		t.Fatal(err)
	}
	asked := map[string][]string{}
	data.Missing = func(task config.Task, _ config.File) string {
		return fmt.Sprintf("%s was given %d", task.Name, len(asked[task.Name]))
	}
	other := filepath.Join(t.TempDir(), "semicolons.csv")
	if err := os.WriteFile(other, []byte(strings.ReplaceAll(rows, ",", ";")), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		files map[string][]string
		want  []string // in the error
	}{
		{map[string][]string{"tone": {"nope.csv"}}, []string{`task "tone": nope.csv: no such file; tone was given 1`}},
		{map[string][]string{"mood": {"nope.csv"}}, []string{`task "mood": nope.csv: no such file; mood was given 1`}},
		{map[string][]string{"tone": {"no.csv", "not.csv"}}, []string{`task "tone": no.csv: no such file`,
			`task "tone": not.csv: no such file; tone was given 2`}},
		{map[string][]string{"tone": {other}}, []string{`task "tone": ` + other + ":1: "}},
		{map[string][]string{"tone": {"nope.csv"}, "other": {other}}, []string{`task "tone": nope.csv: no such file`,
			`task "other": ` + other + ":1: "}},
	} {
		asked = test.files
		err := data.Read(t.Context(), config.Dev, "", test.files)
		for _, want := range test.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v: %v, want %s", test.files, err, want)
			}
		}
	}
}

// Of a file in place of a task's own, read for one task, the columns of the other tasks of its texts are not read.
func TestTheColumnsOfTasksThatAreNotSelectedAreNotRead(t *testing.T) {
	const all = "  - {name: mood, type: classification, data: {path: a.jsonl, split: {dev: 2}, label: mood, missing: " +
		"{mood: [none]}}}\n" +
		"  - {name: tone, type: classification, data: {same_as: mood, label: tone, clean: {lower: true}}}\n" +
		"  - {name: stars, type: regression, data: {same_as: mood, value: stars}}\n" +
		"  - {name: names, type: ner, data: {same_as: mood, tags: tags}}\n" +
		"  - {name: label, type: classification, data: {same_as: mood}}\n"
	var rows strings.Builder
	for i := range 10 {
		fmt.Fprintf(&rows, `{"words": ["a", "w%d"], "mood": "m%d", "tone": "t%d", "stars": %[1]d, "label": "l%d", `+
			`"tags": ["O", "B-X"]}`+"\n", i, i%2, i%2, i%2)
	}
	data, err := load(t, all, map[string]string{"a.jsonl": rows.String()})
	if err != nil {
		t.Fatal(err)
	}
	before := len(data.Warnings)
	columns := map[string]string{"mood": "mood", "tone": "tone", "stars": "stars", "names": "tags", "label": "label"}
	right := map[string]any{"mood": "m1", "tone": "T1", "stars": 2, "tags": []string{"O", "B-X"}, "label": "l1"}
	wrong := map[string]any{"mood": []any{"a", map[string]int{}}, "tone": []int{1, 2}, "stars": "n/a",
		"tags": []string{"O"}, "label": map[string]int{"a": 1}}
	for task, column := range columns {
		for others, fields := range map[string]map[string]any{"no other columns": {}, "wrong values in others": wrong} {
			t.Run(task+", "+others, func(t *testing.T) {
				record := maps.Clone(fields)
				record["words"], record[column] = []string{"b", "c"}, right[column]
				content, err := json.Marshal(record)
				file := filepath.Join(t.TempDir(), "b.jsonl")
				if err := errors.Join(err, os.WriteFile(file, content, 0o644)); err != nil {
					t.Fatal(err)
				}
				if err := data.Read(t.Context(), config.Dev, task, map[string][]string{task: {file}}); err != nil {
					t.Fatal(err)
				}
				for h, of := range data.Heads(&data.Groups[0]) {
					for _, e := range data.Groups[0].Examples[config.Dev] {
						if got := e.Targets[h] != nil; got != (of.Task.Name == task) {
							t.Errorf("a target of %s: %v", of.Task.Name, got)
						}
					}
				}
				if more := data.Warnings[before:]; len(more) > 0 {
					t.Errorf("warnings %v", more)
				}
			})
		}
	}
}
