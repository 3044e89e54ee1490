package corpus

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/text/transform"
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
	d.parse()
	return d.finish(name)
}

// parse reads the file.
func (d *reader) parse() {
	switch d.format.Type {
	case "jsonl":
		d.jsonl()
	case "json":
		d.json()
	case "csv", "tsv":
		d.table()
	case "conll", "conllu":
		d.sentences()
	}
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
	offset  int64  // of the byte after that line
	line    []byte // or record, as its bytes are read
	records []Record
	scan    *scan // of a Stream; nil: all records are kept

	decoded   bool // from another encoding than UTF-8
	utf16     bool // from UTF-16, where invalid units are notUTF8 and U+FFFD is a character of the file
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
		var decoder transform.Transformer = encoding.NewDecoder()
		if name := encodingName(f.Encoding); strings.HasPrefix(name, "utf-16") {
			head, _ := d.in.Peek(2)
			d.utf16, decoder = true, newUTF16Decoder(name, head)
		}
		d.in = bufio.NewReaderSize(transform.NewReader(d.in, decoder), 1<<16)
		if head, _ := d.in.Peek(len(byteOrderMark)); string(head) == byteOrderMark {
			d.in.Discard(len(byteOrderMark)) // decoders of a given byte order, as utf-16le, leave it
		}
	}
	return d
}

// byteOrderMark is U+FEFF in UTF-8.
const byteOrderMark = "\ufeff"

// mark skips UTF-8's byte-order mark, if there is one. It returns an error if the file has another encoding than its
// format says.
func (d *reader) mark(decoded bool) error {
	head, _ := d.in.Peek(len(byteOrderMark))
	utf16 := bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff"))
	switch marked := string(head) == byteOrderMark; {
	case utf16 && !strings.HasPrefix(encodingName(d.format.Encoding), "utf-16"):
		return errors.New("the file is UTF-16; encoding: utf-16 reads it")
	case marked && decoded:
		return fmt.Errorf("the file begins with UTF-8's byte-order mark; leave out encoding: %s", d.format.Encoding)
	case marked:
		d.marked = true
		d.in.Discard(len(byteOrderMark))
		d.offset = int64(len(byteOrderMark))
	}
	return nil
}

// stop ends the reading: what follows in the file is skipped.
func (d *reader) stop() { d.in.Reset(bytes.NewReader(nil)) }

// addRecord adds a record.
func (d *reader) addRecord(r Record) {
	if d.scan != nil {
		d.scan.add(r)
		return
	}
	d.records = append(d.records, r)
}

// finish returns the records, or the mistakes as one error.
func (d *reader) finish(name string) ([]Record, error) {
	if n := d.invalids - 1; n > 0 {
		d.add(Place{File: d.file}, "%s with such bytes", counted(n, "more line"))
	}
	if err := d.err(name); err != nil {
		return nil, err
	}
	if len(d.records) == 0 && (d.scan == nil || len(d.scan.ends) == 0) {
		return nil, fmt.Errorf("%s: no records; want at least one", name)
	}
	return d.records, nil
}
