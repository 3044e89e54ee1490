package corpus

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/internal/shared"
)

// publishedCorpora have the counts of their own descriptions, see SOURCE.txt in each folder.
var publishedCorpora = []struct {
	path    string
	format  Format
	records int
	words   int            // 0: without tags
	fields  map[string]any // of the first record
}{
	{"trec6/TREC.train.all", labelTextFormat("latin1"), 5452, 0,
		map[string]any{"label": "0", "text": "How did serfdom develop in and then leave Russia ?"}},
	{"trec6/TREC.test.all", labelTextFormat("latin1"), 500, 0, map[string]any{"label": "5"}},
	{"sst/stsa.binary.train", labelTextFormat(""), 6920, 0, map[string]any{"label": "1"}},
	{"sst/stsa.binary.dev", labelTextFormat(""), 872, 0,
		map[string]any{"label": "0", "text": "one long string of cliches ."}},
	{"sst/stsa.binary.test", labelTextFormat(""), 1821, 0, nil},
	{"sst/stsa.fine.train", labelTextFormat(""), 8544, 0, nil},
	{"sst/stsa.fine.dev", labelTextFormat(""), 1101, 0, nil},
	{"sst/stsa.fine.test", labelTextFormat(""), 2210, 0, nil},
	{"snips/train", Format{}, 13084, 117700, nil},
	{"snips/valid", Format{}, 700, 6384, map[string]any{"label": "AddToPlaylist"}},
	{"snips/test", Format{}, 700, 6354, nil},
	{"wnut17/wnut17train.conll", Format{}, 3394, 62730, nil},
	{"wnut17/emerging.dev.conll", Format{}, 1009, 15733, nil},
	{"wnut17/emerging.test.annotated", Format{Type: "conll"}, 1287, 23394, nil},
	{"ud_ewt/en_ewt-ud-train.conllu", Format{}, 12544, 204577, nil},
	{"ud_ewt/en_ewt-ud-dev.conllu", Format{}, 2001, 25147, nil},
	{"ud_ewt/en_ewt-ud-test.conllu", Format{}, 2077, 25094, nil},
	{"mrpc/msr-para-train.tsv", mrpc, 3576, 0, map[string]any{"label": "1", "#1 ID": "702876"}},
	{"mrpc/msr-para-val.tsv", mrpc, 500, 0, nil},
	{"mrpc/msr-para-test.tsv", mrpc, 1725, 0, map[string]any{"label": "1", "#1 ID": "1089874"}},
	{"banking77/train.csv", banking, 10003, 0,
		map[string]any{"text": "I am still waiting on my card?", "label": "card_arrival"}},
	{"banking77/test.csv", banking, 3080, 0, nil},
	{"stsb/sts-train.csv", stsb, 5749, 0,
		map[string]any{"value": "5.000", "text": "A plane is taking off.", "pair": "An air plane is taking off."}},
	{"stsb/sts-dev.csv", stsb, 1500, 0, nil},
	{"stsb/sts-test.csv", stsb, 1379, 0, nil},
	{"sick/SICK_train.txt", sick, 4500, 0, nil},
	{"sick/SICK_trial.txt", sick, 500, 0, map[string]any{"pair_ID": "4", "label": "CONTRADICTION"}},
	{"sick/SICK_test_annotated.txt", sick, 4927, 0, nil},
	{"goemotions/train.tsv", goemotions, 43410, 0,
		map[string]any{"text": "My favourite food is anything I didn't have to cook myself.", "labels": "27"}},
	{"goemotions/dev.tsv", goemotions, 5426, 0, nil},
	{"goemotions/test.tsv", goemotions, 5427, 0, nil},
}

// labelTextFormat is the format of lines that are a label and a text.
func labelTextFormat(encoding string) Format {
	return Format{Delimiter: " ", NoHeader: true, Columns: []string{"label", "text"}, Encoding: encoding}
}

var (
	mrpc = Format{Quote: "none", Fields: map[string]string{"text": "#1 String", "pair": "#2 String",
		"label": "Quality"}}
	banking = Format{Fields: map[string]string{"label": "category"}}
	stsb    = Format{Delimiter: "\t", Quote: "none", NoHeader: true,
		Columns: []string{"", "", "", "_", "value", "text", "pair"}}
	sick = Format{Type: "tsv", Fields: map[string]string{"text": "sentence_A", "pair": "sentence_B",
		"label": "entailment_judgment"}}
	goemotions = Format{Quote: "none", NoHeader: true, Columns: []string{"text", "labels"}}
)

func TestPublishedCorpora(t *testing.T) {
	dir := filepath.Join(shared.Dir(t), "data")
	for _, c := range publishedCorpora {
		t.Run(c.path, func(t *testing.T) {
			records, err := Open(t.Context(), filepath.Join(dir, filepath.FromSlash(c.path)), c.format)
			if err != nil {
				t.Fatal(err)
			}
			if len(records) != c.records {
				t.Errorf("got %d records, want %d", len(records), c.records)
			}
			for field, want := range c.fields {
				if got := records[0].Fields[field]; got != want {
					t.Errorf("field %q of the first record is %q, want %q", field, got, want)
				}
			}
			words := 0
			for _, r := range records {
				e, err := r.Example()
				if err != nil {
					t.Fatal(err)
				}
				if e.Text == "" {
					t.Errorf("%s: no text", r.Place)
				}
				words += len(e.Words)
				if tags, ok, err := r.Strings("tags"); err != nil || ok != (c.words > 0) || len(tags) != len(e.Words) {
					t.Fatalf("%s: %d tags for %d words, %v", r.Place, len(tags), len(e.Words), err)
				}
			}
			if words != c.words {
				t.Errorf("got %d words, want %d", words, c.words)
			}
		})
	}
}

func TestLatin1ReadsLetters(t *testing.T) {
	path := filepath.Join(shared.Dir(t), "data/trec6/TREC.train.all")
	records, err := Open(t.Context(), path, labelTextFormat("latin1"))
	if err != nil {
		t.Fatal(err)
	}
	// the only byte of the file above 0x7f is 0xf0
	if !slices.ContainsFunc(records, func(r Record) bool {
		return slices.Contains([]rune(r.Fields["text"].(string)),
			'ð')
	}) {
		t.Error("no ð in any question")
	}
}

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
	records, err := Open(context.Background(), name, f)
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
