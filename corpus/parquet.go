package corpus

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/jenga-nlp/jenga/internal/files"
)

// Limits of a parquet file.
const (
	maxParquet      = 1 << 32 // bytes, of what is no file
	parquetRowsOnce = 64      // rows that are read at once
)

// parquet reads the rows of a parquet file. Its columns are the fields of records: texts, numbers, true and false,
// lists, and objects of these.
func (d *reader) parquet(ctx context.Context, from io.Reader) error {
	rows := &parquetRows{}
	if err := undamaged(func() error { return rows.open(from, d.file) }); err != nil {
		return err
	}
	defer undamaged(rows.close)
	d.classes = rows.classes
	for !d.stopped {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := undamaged(rows.read)
		for _, fields := range rows.fields {
			if d.place.Line++; fields == nil {
				d.add(d.place, "the record has more than %d MiB; want smaller ones", maxRecord>>20)
				continue
			}
			d.addRecord(Record{Place: d.place, Fields: fields})
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// parquetClasses returns the names of labels in the file's metadata, else those in the file beside it.
func parquetClasses(file *parquet.File, path string) (*classes, error) {
	text, given := file.Lookup(classesKey)
	if !given {
		return classesBeside(path)
	}
	found, err := readClasses([]byte(text))
	if err != nil {
		return nil, nil // of another program: nobody can correct it here
	}
	if found != nil {
		found.from = "the metadata of " + path
	}
	return found, nil
}

// undamaged returns the error of calls of the library: its panic, on a file that is not as it says, is one too.
func undamaged(calls func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the parquet file is damaged: %v", r)
		}
	}()
	return calls()
}

// parquetNames returns the names of the columns of the file at path, in their order.
func parquetNames(from io.Reader, path string) (names []string, err error) {
	err = undamaged(func() error {
		file, err := openParquet(from, path)
		if err != nil {
			return err
		}
		for _, c := range file.Root().Columns() {
			names = append(names, c.Name())
		}
		return nil
	})
	return names, err
}

// openParquet reads the description of the file at path, and checks that its rows can be read.
func openParquet(from io.Reader, path string) (*parquet.File, error) {
	if strings.HasSuffix(path, ".gz") {
		return nil, errors.New("a parquet file is compressed itself; want one without .gz")
	}
	in, size, err := randomAccess(from)
	if err != nil {
		return nil, err
	}
	head := make([]byte, files.HeadBytes)
	n, _ := in.ReadAt(head, 0) // an error is found again below
	if err := cmp.Or(files.CheckContent(path, head[:n]), checkFooter(in, size)); err != nil {
		if err == errNotParquet && n > 0 && !bytes.HasPrefix(head, []byte(parquetMagic)) {
			err = fmt.Errorf("%w; it begins with %q: format: csv, or another TYPE, reads a file of text", err,
				start(string(head[:n])))
		}
		return nil, err
	}
	file, err := parquet.OpenFile(in, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true),
		parquet.FileReadMode(parquet.ReadModeSync))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotParquet, err)
	}
	if err := checkCodecs(file); err != nil {
		return nil, err
	}
	if err := checkTypes(file); err != nil {
		return nil, err
	}
	if len(file.Root().Columns()) > maxColumns {
		return nil, fmt.Errorf("the file has more than %d columns", maxColumns)
	}
	return file, checkNames(file.Root(), "")
}

// checkNames returns an error if two columns, of the file or of a group in it, have one name: a record has one field of
// a name.
func checkNames(group *parquet.Column, path string) error {
	seen := map[string]bool{}
	for _, c := range group.Columns() {
		if seen[c.Name()] {
			return fmt.Errorf("two columns are named %q; save the file with a name of its own for each", path+c.Name())
		}
		seen[c.Name()] = true
		if err := checkNames(c, path+c.Name()+"."); err != nil {
			return err
		}
	}
	return nil
}

// parquetMagic is what a parquet file begins and ends with.
const parquetMagic = "PAR1"

var errNotParquet = errors.New("the file is not a whole parquet file")

// checkFooter returns an error if the description at a file's end is larger than the file: the library allocates it.
func checkFooter(in io.ReaderAt, size int64) error {
	end := make([]byte, 4+len(parquetMagic)) // the description's size in bytes
	if _, err := in.ReadAt(end, size-int64(len(end))); size < int64(len(end)) || err != nil && err != io.EOF {
		return errNotParquet
	}
	length := int64(binary.LittleEndian.Uint32(end))
	if string(end[4:]) != parquetMagic || length > size-int64(len(end)+len(parquetMagic)) {
		return errNotParquet
	}
	return nil
}

func randomAccess(from io.Reader) (io.ReaderAt, int64, error) {
	if file, ok := from.(interface {
		io.ReaderAt
		io.Seeker
	}); ok {
		if size, err := file.Seek(0, io.SeekEnd); err == nil {
			return file, size, nil
		}
	}
	data, err := io.ReadAll(io.LimitReader(from, maxParquet+1))
	if err == nil && len(data) > maxParquet {
		err = fmt.Errorf("more than %d GiB, and not a file that can be read from any place", maxParquet>>30)
	}
	return bytes.NewReader(data), int64(len(data)), err
}

// parquetRows reads the rows of a file, some at once.
type parquetRows struct {
	classes *classes
	columns []*parquet.Column
	room    *parquetRoom
	groups  []parquet.RowGroup // that are not begun yet
	group   parquet.Rows       // that are left of the one that is read; nil: none is
	buffer  []parquet.Row
	fields  []map[string]any // of the rows read last; nil: those of a row that is too large
	n       int              // rows that were read
}

func (p *parquetRows) open(from io.Reader, path string) error {
	file, err := openParquet(from, path)
	if err != nil {
		return err
	}
	if p.classes, err = parquetClasses(file, path); err != nil {
		return err
	}
	p.columns = file.Root().Columns()
	p.room = newParquetRoom(file.Size(), p.columns)
	p.groups, p.buffer = file.RowGroups(), make([]parquet.Row, parquetRowsOnce)
	return checkPages(file, file, p.room)
}

func (p *parquetRows) close() error {
	if p.group == nil {
		return nil
	}
	group := p.group
	p.group = nil
	return group.Close()
}

// read reads the next rows; after the last ones it returns io.EOF. With an error, fields are those before it.
func (p *parquetRows) read() error {
	p.fields = p.fields[:0]
	if p.group == nil {
		if len(p.groups) == 0 {
			return io.EOF
		}
		group := p.groups[0]
		if p.groups = p.groups[1:]; group.NumRows() == 0 { // it has no page to seek to
			return nil
		}
		p.group = group.Rows()
	}
	n, err := p.group.ReadRows(p.buffer)
	for _, row := range p.buffer[:n] {
		p.n++
		if err := p.add(row); err != nil {
			return err
		}
	}
	switch {
	case errors.Is(err, io.EOF):
		p.close()
		return nil
	case err != nil:
		return fmt.Errorf("after row %d: %w", p.n, err)
	case n == 0:
		return fmt.Errorf("after row %d: %w", p.n, io.ErrNoProgress)
	}
	return nil
}

// add adds the fields of a row.
func (p *parquetRows) add(row parquet.Row) error {
	size, err := p.room.take(row, len(p.columns))
	if err != nil {
		return err
	}
	if size > maxRecord {
		p.fields = append(p.fields, nil)
		return nil
	}
	values := make(leafValues, len(p.room.objects))
	for from, to := 0, 0; from < len(row); from = to {
		leaf := row[from].Column()
		for to < len(row) && row[to].Column() == leaf {
			to++
		}
		values[leaf] = row[from:to]
	}
	fields, err := values.object(p.columns, 0)
	if err != nil {
		return fmt.Errorf("row %d: %w", p.n, err)
	}
	p.fields = append(p.fields, fields)
	return nil
}

// leafValues are the values of a row that are not read yet, by leaf column.
type leafValues [][]parquet.Value

// next returns the next value of the first leaf below c, or of c, a missing one where there is none.
func (l leafValues) next(c *parquet.Column) parquet.Value {
	if i := firstLeaf(c).Index(); i >= 0 && len(l[i]) > 0 {
		return l[i][0]
	}
	return parquet.Value{}
}

// skip reads the next value of each leaf below c, or of c.
func (l leafValues) skip(c *parquet.Column) {
	if c.Leaf() && len(l[c.Index()]) > 0 {
		l[c.Index()] = l[c.Index()][1:]
	}
	for _, child := range c.Columns() {
		l.skip(child)
	}
}

func (l leafValues) object(columns []*parquet.Column, depth int) (map[string]any, error) {
	object := make(map[string]any, len(columns))
	for _, c := range columns {
		value, err := l.value(c, depth)
		if err != nil {
			return nil, err
		}
		object[c.Name()] = value
	}
	return object, nil
}

// value reads the next value of a column that depth lists are around, by Dremel's levels (Melnik et al. 2010, section
// 4.3).
func (l leafValues) value(c *parquet.Column, depth int) (any, error) {
	next := l.next(c)
	switch {
	case c.Repeated():
		return l.list(c, depth)
	case c.Optional() && next.DefinitionLevel() < c.MaxDefinitionLevel():
		l.skip(c)
		return nil, nil
	case c.Leaf():
		l.skip(c)
		return leafValue(c, next)
	case isList(c):
		return l.list(c.Columns()[0], depth)
	}
	return l.object(c.Columns(), depth)
}

// list reads the elements of a repeated column: values, those of the only column within, or objects.
func (l leafValues) list(c *parquet.Column, depth int) (list []any, err error) {
	if l.next(c).DefinitionLevel() < c.MaxDefinitionLevel() {
		l.skip(c)
		return []any{}, nil
	}
	for len(list) == 0 || l.next(c).RepetitionLevel() > depth {
		var element any
		switch next, children := l.next(c), c.Columns(); {
		case c.Leaf():
			l.skip(c)
			element, err = leafValue(c, next)
		case len(children) == 1:
			element, err = l.value(children[0], depth+1)
		default:
			element, err = l.object(children, depth+1)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, element)
	}
	return list, nil
}

// isList reports whether a group is a list: it holds one repeated column, as
// https://github.com/apache/parquet-format/blob/master/LogicalTypes.md#lists says.
func isList(c *parquet.Column) bool {
	children := c.Columns()
	if len(children) != 1 || !children[0].Repeated() {
		return false
	}
	switch children[0].Name() {
	case "list", "bag", "array": // of files without logical types
		return true
	}
	t := c.Type().LogicalType()
	return t != nil && t.String() == "LIST"
}

func firstLeaf(c *parquet.Column) *parquet.Column {
	for !c.Leaf() && len(c.Columns()) > 0 {
		c = c.Columns()[0]
	}
	return c
}

// checkCodecs returns an error if a column is compressed in a way that is not read. parquet-go doubles its buffer
// without end on damaged LZ4_RAW, and has no limit for BROTLI.
func checkCodecs(file *parquet.File) error {
	for _, group := range file.Metadata().RowGroups {
		for _, chunk := range group.Columns {
			switch codec := chunk.MetaData.Codec; codec {
			case format.Uncompressed, format.Snappy, format.Gzip, format.Zstd:
			default:
				name := codec.String()
				if codec < format.Uncompressed || codec > format.Lz4Raw {
					name = fmt.Sprintf("codec %d", codec)
				}
				return fmt.Errorf("column %q is compressed by %s; want one of SNAPPY, GZIP, ZSTD, UNCOMPRESSED",
					strings.Join(chunk.MetaData.PathInSchema, "."), name)
			}
		}
	}
	return nil
}

// Sizes in memory of what a row becomes, in bytes, about those of a 64-bit machine.
const (
	parquetObject = 400 // a map of fields, and its record
	parquetField  = 50  // a name and its value in a map
	parquetValue  = 32  // a value that is not a text, or the header of one
)

// parquetRoom counts the memory that the rows of a file take, so that a small file with many empty rows is an error
// before they are made.
type parquetRoom struct {
	size, left int64             // bytes
	objects    [][]parquetColumn // the columns of objects whose first leaf column has an index
}

type parquetColumn struct {
	level int   // definition level from which on there is an object
	size  int64 // bytes of an object without its values
}

func newParquetRoom(size int64, columns []*parquet.Column) *parquetRoom {
	r := &parquetRoom{size: max(freeSize, maxRatio*size)}
	r.left = r.size
	for _, c := range columns {
		r.addObjects(c)
	}
	return r
}

// addObjects adds the objects that leafValues makes of c and of what is below it.
func (r *parquetRoom) addObjects(c *parquet.Column) {
	children := c.Columns()
	first := firstLeaf(c).Index()
	for len(r.objects) <= first {
		r.objects = append(r.objects, nil)
	}
	if !c.Leaf() && !isList(c) && !(c.Repeated() && len(children) == 1) {
		size := parquetObject + parquetField*int64(len(children))
		r.objects[first] = append(r.objects[first], parquetColumn{c.MaxDefinitionLevel(), size})
	}
	for _, child := range children {
		r.addObjects(child)
	}
}

// take subtracts the memory of a row of so many columns, and returns the size of its values in the file.
func (r *parquetRoom) take(row parquet.Row, columns int) (size int, err error) {
	r.left -= parquetObject + parquetField*int64(columns)
	for _, v := range row {
		size += 8 + len(bytesIn(v))
		r.left -= parquetValue + int64(len(bytesIn(v)))
		for _, object := range r.objects[v.Column()] {
			if v.DefinitionLevel() >= object.level {
				r.left -= object.size
			}
		}
	}
	if r.left < 0 {
		return size, r.err()
	}
	return size, nil
}

func (r *parquetRoom) err() error {
	return fmt.Errorf("the rows take more than %d MiB of memory, which is the limit for a file of this size: %d times "+
		"the size, and at least %d MiB; save it as several files, or as jsonl", r.size>>20, maxRatio, freeSize>>20)
}
