package corpus

import (
	"bytes"
	"compress/gzip"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file that stands for another, or has it inside, is named in each form and wherever it is read.
func TestDataThatStandsForOtherFiles(t *testing.T) {
	const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 91\n"
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	z.Write([]byte(`{"text": "a"}`))
	z.Close()
	dir := t.TempDir()
	for _, name := range []string{"a.jsonl", "a.json", "a.csv", "a.tsv", "a.conll", "a.conllu", "a.parquet",
		"a.jsonl.gz"} {
		for what, content := range map[string]string{"a pointer of Git LFS": pointer,
			"compressed by gzip": zipped.String()} {
			if strings.HasSuffix(name, ".gz") && content != pointer {
				continue
			}
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
				t.Fatal(err)
			}
			_, err := Open(context.Background(), path, Format{})
			checkNamed(t, name, err, path, what)
			if strings.Contains(name, "json") && !strings.HasSuffix(name, "json") && !strings.HasSuffix(name, ".gz") {
				_, err = Scan(context.Background(), []string{path}, Format{}, func(Record, int64) {})
				checkNamed(t, name+", streamed", err, path, what)
			}
			if strings.HasSuffix(name, "sv") || strings.HasSuffix(name, "parquet") {
				_, err = Columns(path, Format{})
				checkNamed(t, name+", its columns", err, path, what)
			}
			_, err = OpenVectors(context.Background(), path, func(string) bool { return true })
			checkNamed(t, name+", as vectors", err, path, what)
		}
	}
}

func checkNamed(t *testing.T, name string, err error, path, want string) {
	t.Helper()
	if err == nil || !strings.HasPrefix(err.Error(), path) || !strings.Contains(err.Error(), want) ||
		strings.Contains(err.Error(), "\n") {
		t.Errorf("%s: error %v, want %s alone", name, err, want)
	}
}
