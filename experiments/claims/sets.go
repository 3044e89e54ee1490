package claims

import (
	"fmt"
	"io"
	"slices"
)

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
