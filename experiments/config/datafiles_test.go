package config

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/internal/sample"
)

// filesOf is an experiment in a folder whose task has the given data.
func filesOf(t *testing.T, data string, files ...string) (*Experiment, string, error) {
	t.Helper()
	contents := map[string]string{"exp.yaml": "model: {encoder: {type: transformer, layers: 1}}\n" +
		"tasks: [{name: mood, type: classification, data: {" + data + "}}]\n"}
	for _, name := range files {
		contents[name] = "{}\n"
	}
	dir := sample.Folder(t, contents)
	e, err := Read(filepath.Join(dir, "exp.yaml"), nil)
	return e, dir, err
}

func TestSeveralFilesASplit(t *testing.T) {
	files := []string{"data/part-10.jsonl", "data/part-2.jsonl", "data/part-1.jsonl", "data/other.jsonl", "dev.jsonl"}
	for _, test := range []struct {
		data  string
		train []string
	}{
		{`train: "data/part-*.jsonl"`, []string{"data/part-1.jsonl", "data/part-10.jsonl", "data/part-2.jsonl"}},
		{`train: ["data/part-1?.jsonl", data/other.jsonl]`, []string{"data/part-10.jsonl", "data/other.jsonl"}},
		{`train: {path: [data/part-2.jsonl, data/other.jsonl], encoding: cp1252}`,
			[]string{"data/part-2.jsonl", "data/other.jsonl"}},
		{`train: "data/part-[12].jsonl", stream: true`, []string{"data/part-1.jsonl", "data/part-2.jsonl"}},
	} {
		e, dir, err := filesOf(t, test.data+", dev: dev.jsonl", files...)
		if err != nil {
			t.Errorf("%s: %v", test.data, err)
			continue
		}
		want := make([]string, len(test.train))
		for i, name := range test.train {
			want[i] = filepath.Join(dir, name)
		}
		if got := e.Tasks[0].Data.Train.Paths(); !slices.Equal(got, want) {
			t.Errorf("%s: files %q, want %q", test.data, got, want)
		}

		// the written experiment names the same files
		var text bytes.Buffer
		run := filepath.Join(dir, "run")
		if err := os.MkdirAll(run, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := e.Write(&text, run); err != nil {
			t.Fatal(err)
		}
		written := filepath.Join(run, "experiment.yaml")
		if err := os.WriteFile(written, text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		again, err := Read(written, nil)
		if err != nil {
			t.Errorf("%s is written as\n%s: %v", test.data, &text, err)
			continue
		}
		d := again.Tasks[0].Data
		if got := d.Train.Paths(); !slices.Equal(got, want) {
			t.Errorf("%s: written files %q, want %q", test.data, got, want)
		}
		if strings.Contains(test.data, "cp1252") != (d.FormatOf(d.Train.Name).Encoding == "cp1252") {
			t.Errorf("%s: the written format is %+v", test.data, d.FormatOf(d.Train.Name))
		}
		if d.Stream != strings.Contains(test.data, "stream") {
			t.Errorf("%s: stream is written as %v", test.data, d.Stream)
		}
	}
}

func TestErrorsOfSeveralFiles(t *testing.T) {
	t.Setenv("JENGA_DATA", "")
	for data, want := range map[string]string{
		`train: "data/part-*.csv"`:                 `matches no file, nor below $JENGA_DATA, which is not set; `,
		`train: "none/*.jsonl"`:                    "there is no folder ",
		`train: "data/[.jsonl"`:                    `"data/[.jsonl" is no pattern: syntax error in pattern; * and`,
		`train: []`:                                "data: train: the list is empty; want a path at least",
		`train: [dev.jsonl, "*.jsonl"]`:            "duplicate file ",
		`train: [dev.jsonl, [a]]`:                  "want a path or a pattern, have a list",
		`train: dev.jsonl.gz, stream: true`:        "dev.jsonl.gz: a gzip file has no places to read from; unpack it",
		`train: data, stream: true, format: slots`: "data is a folder, which is read as a whole; want a file",
		`train: a.json, stream: true`:              "a.json: format json is read as a whole; want one of jsonl, csv",
		`path: a.json, stream: true`:               "a.json: format json is read as a whole; want one of jsonl, csv",
	} {
		_, _, err := filesOf(t, data, "data/part-1.jsonl", "dev.jsonl", "dev.jsonl.gz", "a.json")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", data, err, want)
		}
	}
	_, dir, err := filesOf(t, `train: "data/part-*.csv"`, "data/part-1.jsonl", "data/b")
	if want := filepath.Join(dir, "data") + " has b, part-1.jsonl"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
}

// TestPatternsInFoldersWithSigns reads patterns in folders whose own names have the signs of a pattern.
func TestPatternsInFoldersWithSigns(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("names have no * and ? on Windows")
	}
	const data = `train: ["part-*.jsonl", "more/[ab].jsonl"], dev: dev.jsonl`
	experiment := "model: {encoder: {type: transformer, layers: 1}}\n" +
		"tasks: [{name: mood, type: classification, data: {" + data + "}}]\n"
	names := []string{"part-1.jsonl", "part-2.jsonl", "more/a.jsonl"}
	for _, test := range []struct{ experiment, data string }{
		{"a[1] *?", "a[1] *?"},
		{"a", `b[x]\c*`}, // below $JENGA_DATA
	} {
		contents := map[string]string{test.experiment + "/exp.yaml": experiment, test.data + "/dev.jsonl": "{}\n"}
		for _, name := range names {
			contents[test.data+"/"+name] = "{}\n"
		}
		dir := sample.Folder(t, contents, "run/experiment.yaml")
		t.Setenv("JENGA_DATA", filepath.Join(dir, test.data))
		var want []string
		for _, name := range names {
			want = append(want, filepath.Join(dir, test.data, name))
		}
		e, err := Read(filepath.Join(dir, test.experiment, "exp.yaml"), nil)
		if err != nil {
			t.Errorf("%q: %v", test.data, err)
			continue
		}
		if got := e.Tasks[0].Data.Train.Paths(); !slices.Equal(got, want) {
			t.Errorf("files %q, want %q", got, want)
		}

		// the experiment of a run elsewhere names the same files
		t.Setenv("JENGA_DATA", "")
		var text bytes.Buffer
		if err := e.Write(&text, filepath.Join(dir, "run")); err != nil {
			t.Fatal(err)
		}
		written := filepath.Join(dir, "run/experiment.yaml")
		sample.Write(t, written, text.String())
		again, err := Read(written, nil)
		if err != nil {
			t.Errorf("%q is written as\n%s: %v", test.data, &text, err)
			continue
		}
		if got := again.Tasks[0].Data.Train.Paths(); !slices.Equal(got, want) {
			t.Errorf("written files %q, want %q", got, want)
		}
	}
}
