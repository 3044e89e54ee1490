package corpus

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"

	"golang.org/x/text/transform"

	"github.com/jenga-nlp/jenga/internal/files"
	"github.com/jenga-nlp/jenga/internal/suggest"
)

// Open reads all records of a file or folder, at least one. It continues after a mistake: the error lists all mistakes,
// one per line, at most 20 and then a count.
func Open(ctx context.Context, path string, f Format) ([]Record, error) {
	return First(ctx, path, f, math.MaxInt)
}

// First is Open for the first n records of a file or folder, or all if there are fewer. A file that a Stream reads is
// read no further, nor after as many mistakes, or millions of lines without a record.
func First(ctx context.Context, path string, f Format, n int) ([]Record, error) {
	records, err := open(ctx, path, f, n)
	if err != nil {
		return nil, err
	}
	return f.Rename(path, records[:min(len(records), n)])
}

// open returns the records by the names in a file or folder, of a file that a Stream reads at most as many as given.
func open(ctx context.Context, path string, f Format, most int) ([]Record, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fileError(path, err)
	}
	if f.Type == bratForm || f.Type == "" && info.IsDir() && IsBratFolder(path) {
		return openBrat(ctx, path, info.IsDir(), f)
	}
	if info.IsDir() || f.Type == "slots" {
		return openFolder(ctx, path, info.IsDir(), f)
	}
	if kind := info.Mode().Type(); kind != 0 && kind != fs.ModeNamedPipe {
		return nil, fmt.Errorf("%s: not a file; give a file, a pipe or a folder", path)
	}
	in, done, err := openFile(ctx, path)
	if err != nil {
		return nil, err
	}
	defer done()
	return read(ctx, in, path, f, most)
}

// openFile opens a file, or a pipe, which is read up to the end of ctx, whether another process writes to it or not.
func openFile(ctx context.Context, path string) (in io.Reader, done func() error, err error) {
	file, err := files.OpenWaiting(ctx, path)
	if err != nil {
		return nil, nil, fileError(path, err)
	}
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
		return file, file.Close, nil
	}
	return files.Interruptible(ctx, file), file.Close, nil
}

// besideOthers is why a file of a folder cannot be a pipe.
const besideOthers = "it is read beside other files"

// openRegular opens a file that cannot be a pipe for a reason.
func openRegular(path, reason string) (*os.File, error) {
	file, err := files.OpenRegular(path)
	if _, ofSystem := errors.AsType[*fs.PathError](err); ofSystem {
		return nil, fileError(path, err)
	}
	if err != nil && files.IsPipe(path) {
		err = fmt.Errorf("%w, since %s", err, reason)
	}
	return file, err
}

func read(ctx context.Context, r io.Reader, name string, f Format, most int) ([]Record, error) {
	if err := f.Check(name); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	f, _ = f.settled(name, false)
	if f.Type == "slots" {
		return nil, fmt.Errorf("%s: a file; format slots is a folder with seq.in, seq.out and label", name)
	}
	if f.Type == "parquet" {
		d := readerOf(strings.NewReader(""), 0, name, f, &mistakes{})
		if err := d.parquet(ctx, r); err != nil {
			d.add(Place{File: name}, "%w", err)
		}
		return d.finish(name)
	}
	beside, err := classesBeside(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	d := newReader(ctx, r, name, f, &mistakes{})
	d.classes = beside
	if slices.Contains(streamable, f.Type) {
		d.most = most
	}
	d.parse()
	return d.finish(name)
}

func (d *reader) parse() {
	if d.stopped {
		return
	}
	switch d.format.Type {
	case "jsonl":
		d.jsonl()
	case "json", "label_studio", columnsForm:
		d.json()
	case "fasttext":
		d.fastText()
	case "csv", "tsv":
		d.table()
	case "conll", "conllu":
		d.sentences()
	}
}

// fileError returns the error that reading path gave, without the name of the system call.
func fileError(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: no such file%s", path, suggest.File(path, path, suggest.AnyFile))
	}
	if of := (*fs.PathError)(nil); errors.As(err, &of) {
		err = of.Err
	}
	return fmt.Errorf("%s: %w", path, err)
}

type mistakes struct {
	shown []error
	more  int
}

const mistakesShown = 20

// maxBlank is how many lines the first records of a file may be apart: more than the largest of them has.
const maxBlank = 2 * maxLines

// add adds a mistake, and returns its number; -1 if it is only counted.
func (m *mistakes) add(at Place, format string, args ...any) (number int) {
	if len(m.shown) == mistakesShown {
		m.more++
		return -1
	}
	m.shown = append(m.shown, nil)
	number = len(m.shown) - 1
	m.replace(number, at, format, args...)
	return number
}

// replace replaces a mistake by its number, of which the rest of the file says more.
func (m *mistakes) replace(number int, at Place, format string, args ...any) {
	if number >= 0 {
		m.shown[number] = fmt.Errorf("%s: "+format, append([]any{at}, args...)...)
	}
}

func (m *mistakes) err(name string) error {
	if m.more == 0 {
		return errors.Join(m.shown...)
	}
	return errors.Join(append(m.shown, fmt.Errorf("%s: and %s", name, counted(m.more, "more mistake")))...)
}

// maxRecord is the largest size of a line, and of a record, in bytes.
const maxRecord = 16 << 20

type reader struct {
	*mistakes
	file    string
	format  Format // settled
	in      *bufio.Reader
	place   Place          // of the line read last
	offset  int64          // of the byte after that line
	line    []byte         // or record, as its bytes are read
	read    int            // records so far
	kept    int            // of these, by where and where_not
	counts  rowCounts      // counted where the format has one of them
	most    int            // records kept, or mistakes, after which it stops; 0 or MaxInt: it reads all
	blank   int            // lines that were read since the last record
	visit   func(r Record) // of a Stream; nil: records has all
	records []Record
	begin   int64    // offset of the first record
	end     int64    // offset after the record that is added
	columns []string // of a table with a header
	classes *classes

	packed  *int64 // bytes that were read of a compressed file; nil: it is none
	held    int64  // bytes of memory that its records take, about
	stopped bool   // by stop

	separator string  // of the columns of a conll or conllu file; "": not known yet
	wordless  int64   // offset up to which lines of such a file may be comments alone
	doubts    []doubt // about what is read

	decoded  bool // from another encoding than UTF-8
	utf16    bool // from UTF-16, where invalid units are notUTF8 and U+FFFD is a character of the file
	marked   bool // begins with UTF-8's byte-order mark
	invalids int  // lines or records that are not valid in the encoding
	invalid  invalidText
	// lines of a file without an encoding of its own that are UTF-8 beyond ASCII, and lines that are not UTF-8
	utf8Lines, otherLines int
	script                script // of the latter

	sentence sentenceRows // whose rows are read, where a row is a word
	runs     fieldRuns    // of these rows

	needsQuotes bool // a cell of a table holds what quotes alone allow
	open        openQuotes
	likeRows    int // comments below the header of a table that have as many cells as its rows
	firstLike   Place
	headers     int // rows of a table that are its header again
	firstHeader Place
	joints      int // lines of words that begin with a byte-order mark
	firstJoint  Place
}

// doubt is a warning of something in a file that can be read, but is likely to be wrong.
type doubt struct {
	at   Place
	text string
}

func (d *reader) doubt(at Place, format string, args ...any) {
	d.doubts = append(d.doubts, doubt{at, fmt.Sprintf(format, args...)})
}

// ending is a reader that ends with an error when its context does.
type ending struct {
	ctx context.Context
	io.Reader
}

func (e ending) Read(b []byte) (int, error) {
	if err := e.ctx.Err(); err != nil {
		return 0, err
	}
	return e.Reader.Read(b)
}

// readerOf returns a reader of the bytes of r as they are, with a buffer of a size in bytes.
func readerOf(r io.Reader, buffer int, name string, f Format, m *mistakes) *reader {
	return &reader{mistakes: m, file: name, format: f, place: Place{File: name}, in: bufio.NewReaderSize(r, buffer)}
}

// newReader returns a reader of the bytes of r, decompressed if the name ends in .gz, as UTF-8. It adds mistakes to m.
func newReader(ctx context.Context, r io.Reader, name string, f Format, m *mistakes) *reader {
	d := readerOf(ending{ctx, r}, 1<<16, name, f, m)
	head, _ := d.in.Peek(files.HeadBytes)
	err := files.CheckContent(name, head)
	if after, found := bytes.CutPrefix(head, []byte(parquetMagic)); err == nil && found && isControl(after) {
		err = errors.New("the file is a parquet file, which its name does not say; format: parquet reads it")
	}
	if err != nil {
		d.add(Place{File: d.file, Line: 1}, "%w", err)
		d.stop()
		return d
	}
	if strings.HasSuffix(name, ".gz") {
		unpacked := decompress(name, d.in)
		d.in, d.packed = bufio.NewReaderSize(unpacked, 1<<16), &unpacked.in
		head, _ = d.in.Peek(files.HeadBytes)
	}
	if f.Type != "" && f.Type != bratForm { // whose texts may be anything
		if err := files.CheckTable(head); err != nil {
			d.add(Place{File: d.file, Line: 1}, "%w", err)
			d.stop()
			return d
		}
	}
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
			d.utf16, decoder = true, utf16Decoder{order: binary.LittleEndian}
			if head, _ := d.in.Peek(2); name == "utf-16be" || name == "utf-16" && string(head) == "\xfe\xff" {
				decoder = utf16Decoder{order: binary.BigEndian}
			}
		}
		d.in = bufio.NewReaderSize(transform.NewReader(d.in, decoder), 1<<16)
		if head, _ := d.in.Peek(len(byteOrderMark)); string(head) == byteOrderMark {
			d.in.Discard(len(byteOrderMark)) // decoders of a given byte order, as utf-16le, leave it
		}
	}
	if slices.Contains(streamable, f.Type) {
		sample, _ := d.in.Peek(sampleSize)
		end := "\r"
		if f.Type == "jsonl" {
			end = "\r{" // one alone may stand in a text
		}
		if bytes.IndexByte(sample, '\n') < 0 && bytes.Contains(bytes.TrimRight(sample, "\r"), []byte(end)) {
			d.add(Place{File: d.file, Line: 1}, "the file's lines end in CR alone; save it with LF or CRLF")
			d.stop()
		}
	}
	return d
}

// Decode returns the beginning of a text in an encoding of Format.Encoding as UTF-8, without its byte-order mark; nil
// where it has another encoding.
func Decode(ctx context.Context, text []byte, encoding string) []byte {
	if _, err := encodingOf(encoding); err != nil {
		return nil
	}
	d := newReader(ctx, bytes.NewReader(text), "", Format{Encoding: encoding}, &mistakes{})
	decoded, _ := io.ReadAll(d.in)
	return decoded
}

// isControl reports whether data begins with a byte that texts do not have: PAR1 is a word, too.
func isControl(data []byte) bool {
	return len(data) > 0 && data[0] < ' ' && !strings.ContainsRune("\t\r\n", rune(data[0]))
}

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
		d.begin = d.offset
	}
	return nil
}

// stop ends the file here for all that reads from it. No record and no mistake is added any more: what is missing then
// is no mistake of the file.
func (d *reader) stop() {
	d.stopped = true
	d.in.Reset(bytes.NewReader(nil))
}

// add is mistakes.add, up to where the reader stops: of a file of which the first records alone are wanted, also after
// as many mistakes.
func (d *reader) add(at Place, format string, args ...any) (number int) {
	if d.stopped {
		return -1
	}
	number = d.mistakes.add(at, format, args...)
	if d.most > 0 && len(d.shown)+d.more >= max(d.most, mistakesShown) {
		d.stop()
	}
	return number
}

func (d *reader) addRecord(r Record) {
	if d.stopped {
		return
	}
	if convert := converters[d.format.Type]; convert != nil {
		r.Fields = convert(r.Fields)
	}
	d.read++
	if !d.uses(r) {
		return
	}
	if d.format.Sentence != "" {
		d.addRow(r)
		return
	}
	d.end = d.offset
	d.addWhole(r)
}

// addWhole adds a record whose last byte is before end.
func (d *reader) addWhole(r Record) {
	r.offsets, r.classes, d.blank = d.format.Offsets, d.classes, 0
	if d.kept++; d.visit != nil {
		d.visit(r)
		return
	}
	if d.records = append(d.records, r); d.kept == d.most {
		d.stop()
	}
	if d.packed == nil {
		return
	}
	d.held += parquetObject + memoryOf(r.Fields)
	if limit := max(freeSize, maxRatio**d.packed); d.held > limit {
		d.add(r.Place, "the records up to here take more than %d MiB of memory, which is the limit for a compressed "+
			"file of this size: %d times the size, and at least %d MiB; if that is intended, decompress it first",
			limit>>20, maxRatio, freeSize>>20)
		d.stop()
	}
}

// memoryOf returns about how many bytes a value of a field takes.
func memoryOf(value any) int64 {
	size := int64(parquetValue)
	switch v := value.(type) {
	case string:
		size += int64(len(v))
	case json.Number:
		size += int64(len(v))
	case []string:
		for _, text := range v {
			size += parquetValue + int64(len(text))
		}
	case []any:
		for _, item := range v {
			size += memoryOf(item)
		}
	case map[string]any:
		size += parquetObject
		for name, item := range v {
			size += parquetField + int64(len(name)) + memoryOf(item)
		}
	}
	return size
}

func (d *reader) finish(name string) ([]Record, error) {
	d.endSentence()
	d.reportInvalid()
	if len(d.shown) == 0 {
		d.checkRows()
	}
	if err := d.err(name); err != nil {
		return nil, err
	}
	if d.read == 0 {
		return nil, fmt.Errorf("%s: no records; want at least one", name)
	}
	if d.runs.report(d); d.format.Warn != nil {
		for _, doubt := range d.doubts {
			d.format.Warn(doubt.at, doubt.text)
		}
	}
	return d.records, nil
}

// next returns the next line, in UTF-8 and without its end. A line that is too long or not valid text is a mistake;
// next returns what can be read of it, so that the lines after it are still parsed correctly.
func (d *reader) next() (line string, ok bool) {
	d.line = d.line[:0]
	long := false
	for {
		part, err := d.in.ReadSlice('\n')
		d.offset += int64(len(part))
		if len(d.line)+len(part) <= maxRecord {
			d.line = append(d.line, part...)
		} else {
			long = true
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		if err != nil && err != io.EOF {
			d.add(Place{File: d.file, Line: d.place.Line + 1}, "%w", err)
			d.stop()
			return "", false
		}
		if err == io.EOF && len(d.line) == 0 && !long {
			return "", false
		}
		break
	}
	d.place.Line++
	if d.blank++; d.blank > maxBlank && d.most > 0 && d.most < math.MaxInt {
		if d.kept == 0 {
			d.add(d.place, "no record ends in the %d lines before this one", maxBlank)
		}
		d.stop()
		return "", false
	}
	if long {
		d.add(d.place, "the line has more than %d MiB; want one record a line", maxRecord>>20)
		return "", true
	}
	text := bytes.TrimSuffix(d.line, []byte("\n"))
	return d.decode(bytes.TrimRight(text, "\r"), d.place), true // CR CR LF too, as Python writes on Windows
}

// gzipReader decompresses a gzip stream. It is an error if the stream decompresses to far more than its size, or to
// what the name of its file does not promise.
type gzipReader struct {
	name       string
	compressed *bufio.Reader
	in, out    int64 // bytes so far
	unpacked   *bufio.Reader
	err        error // of the header
}

// Text compresses to a third or a tenth of its size; gzip's limit is a thousandth.
const (
	maxRatio = 100
	freeSize = 64 << 20 // bytes that may be decompressed at any ratio
)

// Decompress returns a reader of the decompressed bytes of the gzip stream r, of a file whose name ends in .gz.
func Decompress(name string, r io.Reader) io.Reader { return decompress(name, r) }

func decompress(name string, r io.Reader) *gzipReader {
	u := &gzipReader{name: name}
	u.compressed = bufio.NewReader(counter{r, &u.in})
	return u
}

func (u *gzipReader) Read(b []byte) (int, error) {
	if u.unpacked == nil && u.err == nil {
		u.err = u.open()
	}
	if u.err != nil {
		return 0, u.err
	}
	n, err := u.unpacked.Read(b)
	u.out += int64(n)
	if u.out > freeSize && u.out > maxRatio*u.in {
		return n, fmt.Errorf("it decompresses to more than %d times its size; if that is intended, decompress it first",
			maxRatio)
	}
	if err == io.ErrUnexpectedEOF {
		err = errors.New("the gzip file is truncated; want a whole one")
	}
	return n, err
}

func (u *gzipReader) open() error {
	stream, err := gzip.NewReader(u.compressed)
	if err == gzip.ErrHeader || err == io.EOF || err == io.ErrUnexpectedEOF {
		return files.NotGzip(u.name)
	}
	if err != nil {
		return err
	}
	u.unpacked = bufio.NewReader(stream)
	head, _ := u.unpacked.Peek(files.HeadBytes) // an error is found again by the read
	return files.CheckUnpacked(u.name, head)
}

type counter struct {
	io.Reader
	n *int64
}

func (c counter) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	*c.n += int64(n)
	return n, err
}
