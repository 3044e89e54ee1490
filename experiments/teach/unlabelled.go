package teach

import (
	"context"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/inputs"
	"github.com/jenga-nlp/jenga/internal/files"
	"github.com/jenga-nlp/jenga/plugin"
)

// unlabelled are texts without labels that teachers label, by their form.
type unlabelled struct {
	single, pairs []*corpus.Example
	sum           string // their number and a checksum; "": there are none
}

// of returns the texts of a form.
func (u unlabelled) of(f form) []*corpus.Example {
	switch {
	case f.pairs:
		return u.pairs
	case f.single:
		return u.single
	}
	return nil
}

// readUnlabelled reads the texts without labels that the experiment names. Those of a form that none of the classes
// reads, by the numbers of their groups, are a mistake.
func (t *Teachers) readUnlabelled(ctx context.Context, classes [][]int) error {
	from := t.built.Data.Experiment.Training.Unlabelled
	if !from.Given() {
		return nil
	}
	at := t.built.Data.Experiment.Place("training.unlabelled")
	var read form
	for _, parts := range classes {
		if t.teaches(parts) {
			of := t.formOf(parts[0])
			read.single, read.pairs = read.single || of.single, read.pairs || of.pairs
		}
	}
	columns := inputs.ColumnsOf(t.built.Data)
	for name, column := range from.Columns {
		columns.Names[name] = []string{column}
		delete(columns.Names, "question")
	}

	var mistakes plugin.Mistakes
	sum := crc32.New(files.CRC32C)
	for _, path := range from.Files.Paths() {
		format := from.FormatOf(path)
		columns.Missing = format.Missing // that of the tasks is of their files
		lines, err := inputs.Read(ctx, path, format, columns)
		if err == nil {
			err = checkLines(path, lines, from)
		}
		if err != nil {
			how := ""
			if len(from.Columns) == 0 {
				how = "; unlabelled: {path: FILE, text: COLUMN} has the options of data, as text and encoding"
			}
			mistakes.Add(at, "training: unlabelled: %w%s", err, how)
			continue
		}
		single, pairs := len(t.texts.single), len(t.texts.pairs)
		for _, line := range lines {
			if e := line.Example; e.Paired {
				t.texts.pairs = append(t.texts.pairs, e)
			} else {
				t.texts.single = append(t.texts.single, e)
			}
			e := line.Example
			fmt.Fprintf(sum, "%q %t %q %v\n", e.Text, e.Paired, e.Pair, e.Words)
		}
		switch {
		case len(t.texts.single) > single && !read.single:
			mistakes.Add(at, "training: unlabelled: %s has single texts, and no task that has a teacher reads them; "+
				"pair: COLUMN names the column of a second text", path)
		case len(t.texts.pairs) > pairs && !read.pairs:
			mistakes.Add(at, "training: unlabelled: %s has pairs of texts, and no task that has a teacher reads them; "+
				"leave them out", path)
		}
	}
	t.texts.sum = fmt.Sprintf("%d:%08x", len(t.texts.single)+len(t.texts.pairs), sum.Sum32())
	return mistakes.Err()
}

// checkLines returns the first mistake of the records of a file: one that cannot be read, or lacks a column that is
// named.
func checkLines(path string, lines []inputs.Line, from config.Unlabelled) error {
	if len(lines) == 0 {
		return fmt.Errorf("%s has no texts", path)
	}
	var first error
	wrong := 0
	for _, line := range lines {
		err := line.Err
		for _, name := range slices.Sorted(maps.Keys(from.Columns)) {
			if _, found := corpus.Field(line.Given, from.Columns[name]); !found && err == nil {
				err = fmt.Errorf("%s: no field %q, which %s names; available: %s", line.Example.Place,
					from.Columns[name], name, corpus.Record{Fields: line.Given}.FieldNames())
			}
		}
		if err != nil {
			if wrong++; first == nil {
				first = err
			}
		}
	}
	if wrong > 1 {
		return fmt.Errorf("%w (the first of %d such records)", first, wrong)
	}
	return first
}

// encoded returns the texts without labels that a class of groups of the model, by their numbers, reads too, with the
// tokens that examples of its first group have.
func (t *Teachers) encoded(parts []int) []*corpus.Example {
	d := t.built.Data
	windowing := d.Windowing(&d.Groups[parts[0]])
	var all []*corpus.Example
	for _, e := range t.texts.of(t.formOf(parts[0])) {
		own := *e
		own.Windows = windowing.Encode(d.Tokenizer, &own)
		all = append(all, &own)
	}
	return all
}
