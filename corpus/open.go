package corpus

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/text/transform"

	"github.com/jenga-nlp/jenga/internal/suggest"
)

// Open reads all records of a file or folder, at least one. It continues after a mistake: the error lists all mistakes,
// one per line, at most 20 and then a count.
func Open(path string, f Format) ([]Record, error) {
	records, err := open(path, f)
	if err != nil {
		return nil, err
	}
	return f.Rename(path, records)
}

// open is Open with the file's own field names.
func open(path string, f Format) ([]Record, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fileError(path, err)
	}
	if info.IsDir() || f.Type == "slots" {
		return openFolder(path, info.IsDir(), f)
	}
	if kind := info.Mode().Type(); kind != 0 && kind != fs.ModeNamedPipe {
		return nil, fmt.Errorf("%s: not a file; give a file, a pipe or a folder", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fileError(path, err)
	}
	defer file.Close()
	return read(file, path, f)
}

// Read is Open for a file whose bytes are read from r; name is its path.
func Read(r io.Reader, name string, f Format) ([]Record, error) {
	records, err := read(r, name, f)
	if err != nil {
		return nil, err
	}
	return f.Rename(name, records)
}

func read(r io.Reader, name string, f Format) ([]Record, error) {
	if err := f.Check(name); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	f, _ = f.settled(name, false)
	if f.Type == "slots" {
		return nil, fmt.Errorf("%s: a file; format slots is a folder with seq.in, seq.out and label", name)
	}
	d := newReader(r, name, f, &mistakes{})
	switch f.Type {
	case "jsonl":
		d.jsonl()
	case "json":
		d.json()
	case "csv", "tsv":
		d.table()
	case "conll", "conllu":
		d.sentences()
	}
	return d.finish(name)
}

// fileError returns the error that reading path gave, without the name of the system call.
func fileError(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: no such file", path)
	}
	if of := (*fs.PathError)(nil); errors.As(err, &of) {
		err = of.Err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// mistakes collects the errors in a file.
type mistakes struct {
	shown []error
	more  int
}

// mistakesShown is the number of mistakes that are listed; the others are counted.
const mistakesShown = 20

func (m *mistakes) add(at Place, format string, args ...any) {
	if len(m.shown) == mistakesShown {
		m.more++
		return
	}
	m.shown = append(m.shown, fmt.Errorf("%s: "+format, append([]any{at}, args...)...))
}

func (m *mistakes) err(name string) error {
	if m.more == 0 {
		return errors.Join(m.shown...)
	}
	return errors.Join(append(m.shown, fmt.Errorf("%s: and %s", name, counted(m.more, "more mistake")))...)
}

// maxRecord is the largest size of a line, and of a record, in bytes.
const maxRecord = 16 << 20

// reader reads one data file.
type reader struct {
	*mistakes
	file    string
	format  Format // settled
	in      *bufio.Reader
	place   Place  // of the line read last
	line    []byte // or record, as its bytes are read
	records []Record

	decoded   bool // from another encoding than UTF-8
	marked    bool // begins with UTF-8's byte-order mark
	multibyte bool // characters beyond ASCII were read
	invalids  int  // lines or records that are not valid in the encoding
}

// newReader returns a reader of the bytes of r, decompressed if the name ends in .gz, as UTF-8. It adds mistakes to m.
func newReader(r io.Reader, name string, f Format, m *mistakes) *reader {
	d := &reader{mistakes: m, file: name, format: f, place: Place{File: name}}
	if strings.HasSuffix(name, ".gz") {
		r = decompress(r)
	}
	d.in = bufio.NewReaderSize(r, 1<<16)
	encoding, err := encodingOf(f.Encoding)
	if err != nil {
		panic("corpus: " + err.Error()) // Check rejects it
	}
	switch stop := d.mark(encoding != nil); {
	case stop != nil:
		d.add(Place{File: d.file, Line: 1}, "%w", stop)
		d.stop()
	case encoding != nil:
		d.decoded = true
		d.in = bufio.NewReaderSize(transform.NewReader(d.in, encoding.NewDecoder()), 1<<16)
	}
	return d
}

// mark skips UTF-8's byte-order mark, if there is one. It returns an error if the file has another encoding than its
// format says.
func (d *reader) mark(decoded bool) error {
	head, _ := d.in.Peek(3)
	utf16 := bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff"))
	switch marked := string(head) == "\ufeff"; {
	case utf16 && !strings.HasPrefix(strings.ToLower(d.format.Encoding), "utf-16"):
		return errors.New("the file is UTF-16; encoding: utf-16 reads it")
	case marked && decoded:
		return fmt.Errorf("the file begins with UTF-8's byte-order mark; leave out encoding: %s", d.format.Encoding)
	case marked:
		d.marked = true
		d.in.Discard(3)
	}
	return nil
}

// stop ends the reading: what follows in the file is skipped.
func (d *reader) stop() { d.in.Reset(bytes.NewReader(nil)) }

// addRecord adds a record that begins at a place.
func (d *reader) addRecord(at Place, fields map[string]any) {
	d.records = append(d.records, Record{Place: at, Fields: fields})
}

// finish returns the records, or the mistakes as one error.
func (d *reader) finish(name string) ([]Record, error) {
	if n := d.invalids - 1; n > 0 {
		d.add(Place{File: d.file}, "%s with such bytes", counted(n, "more line"))
	}
	if err := d.err(name); err != nil {
		return nil, err
	}
	if len(d.records) == 0 {
		return nil, fmt.Errorf("%s: no records; want at least one", name)
	}
	return d.records, nil
}

// Rename adds the names of Fields to the records of the file at path, which were read without them; Open with Fields
// returns the same records. It is an error if no record has a field that Fields names.
func (f Format) Rename(path string, records []Record) ([]Record, error) {
	if len(f.Fields) == 0 || len(records) == 0 {
		return records, nil
	}
	if err := f.missing(path, records); err != nil {
		return nil, err
	}
	renamed := make([]Record, len(records))
	for i, r := range records {
		// A missing field is null under our name, even if the file has another field of that name.
		ours := maps.Clone(r.Fields)
		for our, theirs := range f.Fields {
			ours[our] = r.Fields[theirs]
		}
		for name, role := range map[string]string{"question": "text", "context": "pair"} {
			// else the file's own field text or pair would take precedence
			if f.Fields[name] != "" && f.Fields[role] == "" {
				ours[role] = ours[name]
			}
		}
		if f.Fields["question"] != "" && f.Fields["context"] == "" && ours["pair"] == nil {
			ours["pair"] = ours["context"] // the file's own field may be called context
		}
		if f.Fields["context"] != "" && f.Fields["question"] == "" && f.Fields["text"] == "" &&
			ours["question"] != nil {
			ours["text"] = ours["question"]
		}
		renamed[i] = Record{r.Place, ours, r.Fields, r.headed}
	}
	return renamed, nil
}

// missing returns an error for the fields that Fields names and no record has. If a table's header names none of them,
// that is one error: it may be a record.
func (f Format) missing(path string, records []Record) error {
	var all mistakes
	found := false
	for _, our := range slices.Sorted(maps.Keys(f.Fields)) {
		theirs := f.Fields[our]
		has := func(r Record) bool { return r.Fields[theirs] != nil }
		_, there := records[0].Fields[theirs]
		found = found || there
		switch {
		case theirs == "" || slices.ContainsFunc(records, has):
		case there:
			all.add(Place{File: path}, "field %q for %s is empty in every record; want a value in one at least", theirs,
				our)
		default:
			mean := ""
			names := slices.Collect(maps.Keys(records[0].Fields))
			if near, ok := suggest.Nearest(theirs, names); ok {
				mean = fmt.Sprintf("did you mean %q? ", start(near))
				found = true
			}
			all.add(Place{File: path}, "no field %q for %s; %savailable: %s", theirs, our, mean,
				listed(records[0].Fields))
		}
	}
	if len(all.shown) > 0 && !found && records[0].headed {
		theirs := slices.Sorted(maps.Values(f.Fields))
		return fmt.Errorf("%s:1: the first line names none of the columns %s; it has %s%s", path,
			listedCells(slices.Compact(theirs)), listed(records[0].Fields), records[0].noHeader())
	}
	return all.err(path)
}
