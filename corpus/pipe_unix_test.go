//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package corpus

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A named pipe that nobody writes to would block the reader for ever: a mistake here shows as the test's timeout.
func TestATokenizerThatIsANamedPipeIsAnError(t *testing.T) {
	for _, name := range []string{"tokenizer_config.json", "tokenizer.json", "vocab.txt"} {
		folder := t.TempDir()
		if name == "tokenizer_config.json" {
			folder = writeFiles(t, "tokenizer.json", smallTokenizer)
		}
		path := filepath.Join(folder, name)
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		want := path + ": a named pipe; want a regular file"
		if _, err := OpenTokenizer(folder); err == nil || err.Error() != want {
			t.Errorf("OpenTokenizer: %v, want %s", err, want)
		}
	}
}

// Files that are read beside others, or a second time, are no pipes.
func TestAPipeBesideOtherFilesIsAnError(t *testing.T) {
	t.Chdir(t.TempDir())
	slots := []string{"seq.in", "seq.out", "label"}
	for _, pipe := range append(slots, "seq.in.gz", "seq.out.gz", "label.gz", "1.txt", "1.ann", "a.csv", "a.conll") {
		t.Run(pipe, func(t *testing.T) {
			path := filepath.Join(pipe+".d", pipe)
			for _, name := range slots {
				write(t, filepath.Join(pipe+".d", name), "a\n")
			}
			f := Format{Type: "slots"}
			if strings.HasPrefix(pipe, "1.") {
				f.Type = bratForm
				write(t, filepath.Join(pipe+".d", "1.txt"), "a")
			}
			os.Remove(strings.TrimSuffix(path, ".gz"))
			if err := syscall.Mkfifo(path, 0o600); err != nil {
				t.Fatal(err)
			}
			read := func() (err error) { _, err = Open(t.Context(), pipe+".d", f); return err }
			switch pipe {
			case "a.csv": // for its columns alone
				read = func() (err error) { _, err = Columns(path, Format{}); return err }
			case "a.conll": // to copy its lines
				read = func() (err error) {
					_, err = NewSentenceWriter(Format{Type: "conll"}, []string{"tags"}, path, false)
					return err
				}
			}
			ended := make(chan error, 1)
			go func() { ended <- read() }()
			reason := map[string]string{
				"a.csv":   "its columns are read before its rows; predictions in jsonl read a pipe",
				"a.conll": "its lines are read again, to be copied; predictions in jsonl read a pipe",
			}
			want := path + ": a named pipe; want a regular file, since " + cmp.Or(reason[pipe], besideOthers)
			select {
			case err := <-ended:
				if err == nil || err.Error() != want {
					t.Errorf("%v, want %s", err, want)
				}
			case <-time.After(10 * time.Second):
				t.Error("it waits for the pipe")
			}
		})
	}
}

// A pipe is read as a file is. Where no process opens it, or none writes to it, reading ends with the context.
func TestReadingAPipeEndsWithItsContext(t *testing.T) {
	const row = `{"text": "a", "label": "b"}` + "\n"
	for _, name := range []string{"a.jsonl", "a.json", "a.parquet", "a.csv.gz", "vectors.txt"} {
		path := filepath.Join(t.TempDir(), name)
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, opened := range []bool{false, true} {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			if opened { // by a process that writes nothing
				writer, err := os.OpenFile(path, os.O_RDWR, 0)
				if err != nil {
					t.Fatal(err)
				}
				defer writer.Close()
			}
			ended := make(chan error, 1)
			go func() {
				var err error
				if name == "vectors.txt" {
					_, err = OpenVectors(ctx, path, func(string) bool { return true })
				} else {
					_, err = Open(ctx, path, Format{})
				}
				ended <- err
			}()
			select {
			case err := <-ended:
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s, opened: %v: %v, want %v", name, opened, err, context.DeadlineExceeded)
				}
			case <-time.After(10 * time.Second):
				t.Fatalf("%s, opened: %v: it waits for the pipe", name, opened)
			}
		}
	}
	path := filepath.Join(t.TempDir(), "a.jsonl")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	go os.WriteFile(path, []byte(strings.Repeat(row, 10_000)), 0) // more than a pipe holds, and than is read at once
	if records, err := Open(t.Context(), path, Format{}); len(records) != 10_000 {
		t.Errorf("%d records, %v; want 10000", len(records), err)
	}
}
