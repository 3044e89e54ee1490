// Generate writes the data sets of the quickstart, and in subfolders those of claims.yaml, to the current folder. Files
// whose names end in .gz are compressed.
package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/jenga-nlp/jenga/experiments/claims"
)

func main() {
	log.SetFlags(0)
	if err := generate(); err != nil {
		log.Fatal(err)
	}
}

func generate() error {
	for _, split := range claims.Splits {
		notes := func(w io.Writer) error { return claims.Write(w, split) }
		if err := write(split.File(), notes); err != nil {
			return err
		}
	}

	for _, set := range claims.Sets {
		if err := os.MkdirAll(set.Folder, 0o755); err != nil {
			return err
		}
		for _, split := range set.Splits {
			records := func(w io.Writer) error { return set.Write(w, split) }
			if err := write(filepath.Join(set.Folder, split.Name+".jsonl.gz"), records); err != nil {
				return err
			}
		}
	}
	return nil
}

// write writes a file of JSON lines, compressed if its name ends in .gz: without a modification time, so that the bytes
// depend on the lines alone.
func write(name string, lines func(io.Writer) error) error {
	var file bytes.Buffer
	if !strings.HasSuffix(name, ".gz") {
		if err := lines(&file); err != nil {
			return err
		}
		return os.WriteFile(name, file.Bytes(), 0o644)
	}
	compressed, err := gzip.NewWriterLevel(&file, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := lines(compressed); err != nil {
		return err
	}
	if err := compressed.Close(); err != nil {
		return err
	}
	return os.WriteFile(name, file.Bytes(), 0o644)
}
