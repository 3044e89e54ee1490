// Generate writes the quickstart's notes: train.jsonl, dev.jsonl and test.jsonl in the folder it is run in.
package main

import (
	"bytes"
	"log"
	"os"

	"github.com/jenga-nlp/jenga/experiments/claims"
)

func main() {
	log.SetFlags(0)
	for _, split := range claims.Splits {
		var file bytes.Buffer
		if err := claims.Write(&file, split); err != nil {
			log.Fatal(err)
		}
		if err := os.WriteFile(split.Name+".jsonl", file.Bytes(), 0o644); err != nil {
			log.Fatal(err)
		}
	}
}
