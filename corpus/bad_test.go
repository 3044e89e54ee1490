package corpus

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// badFormats are the formats of those files of testdata/bad whose extension does not determine it.
var badFormats = map[string]Format{
	"ragged_columns.tsv":   {NoHeader: true, Columns: []string{"text", "label"}},
	"ragged_first_row.csv": {NoHeader: true},
	"header_count.csv":     {Columns: []string{"text", "label", "more"}},
	"empty_field.jsonl":    {Fields: map[string]string{"label": "topic"}},
	"no_field.csv": {Fields: map[string]string{"text": "sentence", "label": "category",
		"label.urgency": "urgency"}},
	"not_latin1.csv": {Encoding: "latin1"},
	"no_columns.csv": {NoHeader: true, Columns: []string{}},
	"one_column.txt": {Delimiter: " ", NoHeader: true, Columns: []string{"label", "text"}},
	"typed":          {Type: "csv"},
	"absent":         {Type: "slots"},
	"slots.txt":      {Type: "slots"},
}

// Each file of testdata/bad has a different mistake, and NAME.want beside it has the expected error.
func TestBadFilesAreErrors(t *testing.T) {
	t.Chdir("testdata/bad")
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	for _, entry := range entries {
		name := entry.Name()
		if strings.HasSuffix(name, ".want") {
			continue
		}
		files++
		t.Run(name, func(t *testing.T) {
			want, err := os.ReadFile(name + ".want")
			if err != nil {
				t.Fatal(err)
			}
			got := readAll(name, badFormats[name])
			if got == nil {
				t.Fatalf("no error, want:\n%s", want)
			}
			if got.Error()+"\n" != string(want) {
				t.Errorf("got:\n%v\nwant:\n%s", got, want)
			}
		})
	}
	if files < 20 {
		t.Errorf("%d bad files, want at least 20", files)
	}
}

// readAll opens a file and reads every kind of field of its records.
func readAll(name string, f Format) error {
	records, err := Open(name, f)
	if err != nil {
		return err
	}
	var all []error
	for _, r := range records {
		e, exampleErr := r.Example()
		_, _, labelErr := r.String("label")
		_, _, tagsErr := r.Strings("tags")
		var entitiesErr error
		if exampleErr == nil {
			_, _, entitiesErr = r.Entities(e.Text)
		}
		all = append(all, exampleErr, labelErr, tagsErr, entitiesErr)
	}
	return errors.Join(all...)
}
