// Package claims generates the data that experiments/quickstart.yaml and experiments/claims.yaml train on: notes that
// members of a health insurance write when they claim expenses, drawn at random from a fixed seed. Each note has a
// claim type, an urgency and its entities. The notes of claims.yaml have more labels, and come with policy clauses and
// questions, too.
//
// Many notes mention several expenses of which one is claimed; the others were settled, declined or mentioned by
// mistake. So the claim type depends on the sentence structure, not on the words alone. Sentence patterns and entity
// values of the dev and test splits do not occur in the train split, though their words do.
package claims

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
)

//go:generate go run ./generate

// Split is one of the three splits of a data set.
type Split struct {
	Name     string // train, dev or test
	size     int    // number of records
	seed     uint64
	index    int // 0 train, 1 dev, 2 test: the index of its sentences and the owner of its entity values
	patterns *patterns
}

// Splits are the splits of the quickstart's notes.
var Splits = []Split{
	{"train", 4000, 1, 0, &trainPatterns},
	{"dev", 300, 2, 1, &devPatterns},
	{"test", 500, 3, 2, &testPatterns},
}

// File is the name of the file of a split of the quickstart's notes. The train split is compressed; dev and test are
// plain text, so that people can read some notes.
func (s Split) File() string {
	if s.Name == "train" {
		return "train.jsonl.gz"
	}
	return s.Name + ".jsonl"
}

// Write writes a split of the quickstart's notes as JSON lines. The bytes are the same in each call.
func Write(w io.Writer, split Split) error {
	if err := writeLines(w, split.notes()); err != nil {
		return fmt.Errorf("%s notes: %w", split.Name, err)
	}
	return nil
}

// writeLines writes a JSON line per record.
func writeLines[R any](w io.Writer, records []R) error {
	lines := json.NewEncoder(w)
	lines.SetEscapeHTML(false)
	for _, record := range records {
		if err := lines.Encode(record); err != nil {
			return err
		}
	}
	return nil
}

// distinctRecords returns the records of a split in random order. It calls generate with the number of records so far
// and drops a record whose text an earlier one has.
func distinctRecords[R any](s Split, generate func(w *writer, n int) R, text func(R) string) []R {
	r := rand.New(rand.NewPCG(s.seed, 0))
	seen := map[string]bool{}
	var records []R
	for len(records) < s.size {
		record := generate(newWriter(r, s), len(records))
		if !seen[text(record)] {
			seen[text(record)] = true
			records = append(records, record)
		}
	}
	r.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
	return records
}
