// Package sample has what the tests of several packages need: a small experiment, files, and messages to compare with.
package sample

import (
	_ "embed"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	_ "github.com/jenga-nlp/jenga/encoders/transformer" // the experiments name it
)

//go:embed mails.jsonl
var mails []byte

//go:embed mails.yaml
var experiment string

// Small writes an experiment of two tasks on the same texts, trained from scratch, and returns its path.
func Small(t testing.TB, more string) string {
	t.Helper()
	path, err := WriteSmall(t.TempDir(), more)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// WriteSmall is Small for a folder that is there.
func WriteSmall(dir, more string) (path string, err error) {
	if err := os.WriteFile(filepath.Join(dir, "mails.jsonl"), mails, 0o644); err != nil {
		return "", err
	}
	path = filepath.Join(dir, "mails.yaml")
	return path, os.WriteFile(path, []byte(experiment+more), 0o644)
}

// Folder makes a folder that holds the named files, empty where content has none for them.
func Folder(t testing.TB, content map[string]string, empty ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range empty {
		content[name] = ""
	}
	for name, text := range content {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Write writes a file.
func Write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// Files reads all files below a folder.
func Files(t testing.TB, folder string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		relative, _ := filepath.Rel(folder, path)
		all[relative] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var update = flag.Bool("update", false, "rewrite the golden files of errors")

// CheckMessage compares the message of an error with a golden file, or with -update writes the file.
func CheckMessage(t testing.TB, err error, file string) {
	t.Helper()
	got := err.Error() + "\n"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || got != string(want) {
		t.Errorf("%s:\n got %swant %s%v", file, got, want, err)
	}
}

// Tasks writes exp.yaml, an experiment of the given tasks on a tiny encoder trained from scratch, and data files to a
// new folder, and makes it the working directory.
func Tasks(t testing.TB, tasks string, data map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range data {
		Write(t, name, text)
	}
	Write(t, "exp.yaml", `model:
  encoder: {type: transformer, layers: 1, width: 8, heads: 2, feed_forward: 8, max_positions: 32}
tokenizer: {max_length: 32, train: {vocab_size: 100}}
tasks:
`+tasks)
}

// KindsTasks are the tasks of an experiment with a task of each kind, whose data are KindsFiles.
const KindsTasks = `  - {name: mood, type: classification, data: {train: mood.jsonl}, heads: [{name: plain, pool: mean},
      {name: lens, type: focus, lstm_layers: 1, lstm_hidden: 4, attention_heads: 2, lens_per_head: true}]}
  - {name: many, type: multi_label, data: {same_as: mood}}
  - {name: value, type: regression, data: {same_as: mood}}
  - {name: hidden, type: mlm, data: {train: mood.jsonl}}
  - {name: names, type: ner, data: {train: names.jsonl}, heads: [{name: plain}, {name: chain, type: crf}]}
  - {name: alike, type: similarity, data: {train: pairs.jsonl}}
  - {name: who, type: question_answering, data: {train: who.jsonl}}
`

// KindsFiles returns the data of KindsTasks by file name.
func KindsFiles() map[string]string {
	return map[string]string{
		"mood.jsonl": `{"text": "so good", "label": "good", "labels": ["a"], "value": 1.5}` + "\n" +
			`{"text": "so bad day", "label": "bad", "labels": ["a", "b"], "value": 3}` + "\n",
		"names.jsonl": `{"words": ["so", "good"], "tags": ["O", "B-name"]}` + "\n",
		"pairs.jsonl": `{"text": "so good", "pair": "so bad", "value": 0.5}` + "\n" +
			`{"text": "a day", "pair": "so good", "value": 1}` + "\n",
		"who.jsonl": `{"question": "so good", "context": "a bad day", "answers": ["day"]}` + "\n",
	}
}
