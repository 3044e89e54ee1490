//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package corpus

import (
	"path/filepath"
	"syscall"
	"testing"
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
