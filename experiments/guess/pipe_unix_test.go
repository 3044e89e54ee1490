//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package guess

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A named pipe that nobody writes to would block init for ever: a mistake here shows as the test's timeout.
func TestANamedPipeIsRefused(t *testing.T) {
	for _, name := range []string{"p.json", "p.jsonl", "p.parquet", "p.csv", "p"} {
		folder := t.TempDir()
		path := filepath.Join(folder, name)
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, given := range []string{path, folder} {
			_, err := Files(t.Context(), []string{given})
			if err == nil || !strings.Contains(err.Error(), "a named pipe; want a regular file, since it is read "+
				"several times: write its records to one first") && name != "p" {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestRecordsInsideOfUTF16(t *testing.T) {
	records := strings.TrimSuffix(rows(30, `{"text": "`+text2+`", "label": "%[2]s"},`), ",\n")
	for name, text := range map[string]string{
		"under data":   `{"data": [` + records + "]}",
		"under others": `{"n": 1, "all": {"rows": [` + records + "]}}",
		"columns":      `{"text": ["so it is", "no it is not", "it rains", "it is so"], "label": ["a", "b", "a", "b"]}`,
		"an array":     "[" + records + "]",
	} {
		t.Chdir(t.TempDir())
		if err := os.WriteFile("a.json", []byte("\xff\xfe"+utf16le(text)), 0o666); err != nil {
			t.Fatal(err)
		}
		e, err := FilesAs(t.Context(), []string{"a.json"}, "utf-16", "")
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if s := e.Sets[0]; tasksOf(s) != "classification label=label" || s.Format.Encoding != "utf-16" {
			t.Errorf("%s: %s, %s", name, tasksOf(s), s.Format.Encoding)
		}
		if _, err := FilesAs(t.Context(), []string{"a.json"}, "nosuch", ""); err == nil {
			t.Errorf("%s: no error of an unknown encoding", name)
		}
	}
}
