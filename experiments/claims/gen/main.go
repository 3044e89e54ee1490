// Gen writes the data that experiments/quickstart.yaml and experiments/claims.yaml train on, to the folder above: notes
// that members of a health insurance write when they claim expenses, drawn at random from a fixed seed. Each note has a
// claim type, an urgency and its entities. The notes of claims.yaml have more labels, and come with policy clauses and
// questions, too. It runs with `go generate ./experiments`. Files whose names end in .gz are compressed.
//
// Many notes mention several expenses of which one is claimed; the others were settled, declined or mentioned by
// mistake. So the claim type depends on the sentence structure, not on the words alone. Sentence patterns and entity
// values of the dev and test splits do not occur in the train split, though their words do.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// dataFolder is where the files are written.
const dataFolder = ".."

func main() {
	log.SetFlags(0)
	if err := generate(); err != nil {
		log.Fatal(err)
	}
}

func generate() error {
	for _, split := range Splits {
		notes := func(w io.Writer) error { return Write(w, split) }
		if err := write(filepath.Join(dataFolder, split.File()), notes); err != nil {
			return err
		}
	}

	for _, set := range Sets {
		folder := filepath.Join(dataFolder, set.Folder)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		for _, split := range set.Splits {
			records := func(w io.Writer) error { return set.Write(w, split) }
			if err := write(filepath.Join(folder, split.Name+".jsonl.gz"), records); err != nil {
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

// Set is a data set of claims.yaml: a folder with the compressed files train.jsonl.gz, dev.jsonl.gz and test.jsonl.gz.
type Set struct {
	Folder  string
	Splits  []Split
	records func(Split) []any
}

// Sets are the data sets of claims.yaml: notes with all their labels, pairs of a note and a policy clause, and
// questions about notes. As in the quickstart's notes, dev and test have their own sentences and entity values, in the
// words of train.
var Sets = []Set{
	{"full", splitsOfSizes(11, 5000, 300, 500), recordsOf(Split.fullNotes)},
	{"clauses", splitsOfSizes(21, 6000, 300, 501), recordsOf(Split.clausePairs)},
	{"questions", splitsOfSizes(31, 3000, 300, 500), recordsOf(Split.questionRecords)},
}

// splitsOfSizes returns the splits with other sizes, and with seeds that count up from seed.
func splitsOfSizes(seed uint64, sizes ...int) []Split {
	splits := slices.Clone(Splits)
	for i := range splits {
		splits[i].size, splits[i].seed = sizes[i], seed+uint64(i)
	}
	return splits
}

// recordsOf returns generate with records of type any, for a Set.
func recordsOf[R any](generate func(Split) []R) func(Split) []any {
	return func(split Split) []any {
		var records []any
		for _, record := range generate(split) {
			records = append(records, record)
		}
		return records
	}
}

// Write writes a split's records as JSON lines. The bytes are the same in each call.
func (s Set) Write(w io.Writer, split Split) error {
	if err := writeLines(w, s.records(split)); err != nil {
		return fmt.Errorf("%s of %s: %w", split.Name, s.Folder, err)
	}
	return nil
}
