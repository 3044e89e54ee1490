// Generate writes the notes, in the folder it is run in: those of the quickstart, and packed in folders of their own
// those of claims.yaml.
package main

import (
	"bytes"
	"compress/gzip"
	"log"
	"os"
	"path/filepath"

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
		var file bytes.Buffer
		if err := claims.Write(&file, split); err != nil {
			return err
		}
		if err := os.WriteFile(split.Name+".jsonl", file.Bytes(), 0o644); err != nil {
			return err
		}
	}

	for _, set := range claims.Sets {
		if err := os.MkdirAll(set.Folder, 0o755); err != nil {
			return err
		}
		for _, split := range set.Splits {
			var file bytes.Buffer
			packed, err := gzip.NewWriterLevel(&file, gzip.BestCompression)
			if err != nil {
				return err
			}
			if err := set.Write(packed, split); err != nil {
				return err
			}
			if err := packed.Close(); err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(set.Folder, split.Name+".jsonl.gz"), file.Bytes(), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}
