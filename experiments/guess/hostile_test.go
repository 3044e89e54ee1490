//go:build !race

package guess

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// The race detector makes them ten times as slow.

// Each takes some 0.2 s, and minutes where columns are compared with all others, a file is read for each of its
// columns, or a path of keys is joined for each array in it.
func TestHostileFilesTakeLinearTime(t *testing.T) {
	keys := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"nested.json":    strings.Repeat(`{"a":[],"b":`, 20000) + "1" + strings.Repeat("}", 20000),
		"keys.jsonl":     "{" + keys(20000, `"k%d":"a b [c] d",`) + `"text":"so it is"}` + "\n",
		"entities.jsonl": `{"text":"so it is",` + keys(20000, `"entities%d":[[0,2,"X"]],`) + `"n":1}` + "\n",
		"words.jsonl":    `{"tokens":["a","b"],` + keys(20000, `"tags%d":["O","B-X"],`) + `"n":1}` + "\n",
		"list.json":      `[["so it is"` + strings.Repeat(`,"a b c d"`, 20000) + "]]",
		"columns.json":   "{" + keys(20000, `"k%d":["a b c d"],`) + `"text":["so it is"]}`,
		"label_studio.json": `[{"data":{"text":"so it is"},"annotations":[{"result":[` +
			keys(10000, `{"from_name":"n%d","type":"labels",`+
				`"value":{"start":0,"end":2,"labels":["X"]}},`) + `{}]}]}]`,
		"quotes.csv": strings.Repeat(`""`+"\n", 5_000_000),
		"tabs.tsv":   strings.Repeat("so it is\t", 1500) + "\n" + strings.Repeat("so it is\t", 1501) + "\n",
		"long_contexts.json": `{"data":[{"paragraphs":[{"context":"` + strings.Repeat("a ", 300_000) +
			`","qas":[` + keys(5000, `{"question":"q","id":"%d",`+
			`"answers":[{"text":"a","answer_start":2}]},`) + `{"question":"q","answers":[]}]}]}]}`,
	} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		var e *Experiment
		var err error
		took := time.Hour
		for attempts := 0; took > 6*time.Second && attempts < 3; attempts++ { // others may use the machine
			begin := time.Now()
			e, err = Files(t.Context(), []string{name})
			took = min(took, time.Since(begin))
		}
		if took > 6*time.Second {
			t.Errorf("%s: %v", name, took)
		}
		if err == nil && len(e.Sets[0].columns) > maxColumns {
			t.Errorf("%s: %d columns", name, len(e.Sets[0].columns))
		}
	}
}

func TestOfManyColumnsTextsAndLabelsAreKept(t *testing.T) {
	var b strings.Builder
	for i := range 30 {
		b.WriteString(`{"a_key": 1`)
		for k := range 400 {
			fmt.Fprintf(&b, `, "f%d": %d.5`, k, i)
		}
		fmt.Fprintf(&b, `, "zz": "this is text number %d", "zz_label": "%s"}`+"\n", i, []string{"a", "b"}[i%2])
	}
	write(t, map[string]string{"a.jsonl": b.String()})
	e, err := Files(t.Context(), []string{"a.jsonl"})
	if err != nil {
		t.Fatal(err)
	}
	s := e.Sets[0]
	if fieldsOf(s) != "text=zz" || !strings.Contains(tasksOf(s), "classification label=zz_label") {
		t.Errorf("%s, %s", fieldsOf(s), tasksOf(s))
	}
	if notes := strings.Join(s.Notes, "\n"); !strings.Contains(notes, "at most 200 columns") {
		t.Errorf("no note of the other columns: %s", notes)
	}
}
