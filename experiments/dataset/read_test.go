package dataset

import (
	"fmt"
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
