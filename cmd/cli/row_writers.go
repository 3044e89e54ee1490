package cli

import (
	"encoding/json"
	"errors"
	"io"
	"os"

	"github.com/jenga-nlp/jenga/corpus"
)

// rowWriter writes the rows of a table. A cell is nil, a field of a record, or what an output kind has in data files.
type rowWriter interface {
	begin(w io.Writer, columns []string) error
	row(w io.Writer, cells []any) error
	end(w io.Writer) error // after the last row, also if there was none
}

// textRows writes csv or tsv.
type textRows struct{ format corpus.Format }

func (t textRows) begin(w io.Writer, columns []string) error {
	if t.format.NoHeader {
		return nil
	}
	return t.format.WriteRow(w, columns)
}

func (t textRows) row(w io.Writer, cells []any) error {
	texts := make([]string, len(cells))
	for i, value := range cells {
		texts[i] = cell(value)
	}
	return t.format.WriteRow(w, texts)
}

func (textRows) end(io.Writer) error { return nil }

// cell writes a value as data files have it: lists and objects as JSON.
func cell(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	text, err := json.Marshal(v)
	if err != nil {
		panic("cli: " + err.Error()) // values come from JSON, or from an output kind
	}
	return string(text)
}

// parquetRows writes a parquet file in the end, when the types of its columns are known. Until then the rows are in a
// temporary file, as lines of JSON.
type parquetRows struct {
	columns []string
	waiting *os.File
}

func newParquetRows() (*parquetRows, error) {
	waiting, err := os.CreateTemp("", "jenga-*.jsonl")
	return &parquetRows{waiting: waiting}, err
}

// close removes the temporary file.
func (p *parquetRows) close() error {
	return errors.Join(p.waiting.Close(), os.Remove(p.waiting.Name()))
}

func (p *parquetRows) begin(_ io.Writer, columns []string) error {
	p.columns = columns
	return nil
}

func (p *parquetRows) row(_ io.Writer, cells []any) error { return writeLine(p.waiting, cells) }

func (p *parquetRows) end(w io.Writer) error { return corpus.WriteParquet(w, p.columns, p.each) }

// each calls row for the rows so far.
func (p *parquetRows) each(row func(cells []any) error) error {
	if _, err := p.waiting.Seek(0, io.SeekStart); err != nil {
		return err
	}
	lines := json.NewDecoder(p.waiting)
	lines.UseNumber()
	for {
		var cells []any
		err := lines.Decode(&cells)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := row(cells); err != nil {
			return err
		}
	}
}
