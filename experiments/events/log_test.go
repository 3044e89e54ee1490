package events

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/jenga-nlp/jenga/multitask/train"
)

func TestALogThatCannotBeCutKeepsItsLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	const want = `{"event":"step","step":1}` + "\n"
	if err := os.WriteFile(path, []byte(want), 0o666); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	log := &Log{file: file, at: Place{Bytes: -1}} // no file can be cut to a negative size
	if err := log.Cut(); err == nil {
		t.Fatal("Cut succeeded")
	}
	if err := log.Event(train.Warning{Text: "the disk is full"}); err != nil {
		t.Errorf("Event = %v", err)
	}
	if err := log.Close(); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("the file is %q, %v; want %q", got, err, want)
	}
}

func TestALogIsNotOpenedThroughALink(t *testing.T) {
	path, victim := filepath.Join(t.TempDir(), "metrics.jsonl"), filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte("private"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, path); err != nil {
		t.Fatal(err)
	}
	log, err := OpenLog(path, Place{})
	if want := path + ": a symbolic link; want a regular file"; err == nil || err.Error() != want {
		t.Errorf("OpenLog = %v, want %s", err, want)
	}
	if err == nil {
		log.Cut()
		log.Close()
	}
	if got, err := os.ReadFile(victim); string(got) != "private" {
		t.Errorf("the file that the link names is %q, %v", got, err)
	}
}
