package teach

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/internal/bytereader"
	"github.com/jenga-nlp/jenga/internal/files"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/plugin"
)

// A file of answers is a line of JSON, its header; a record for each example that the teacher answers for, in their
// order, the length of each as a varint before it; and the CRC-32C of all that, 4 bytes. A record has for each head
// what is said of it: a byte for its form, and then an answer or, as a target, a prediction.

// header says what answers depend on: others are computed anew.
type header struct {
	Format      int      `json:"format"`
	Teacher     string   `json:"teacher"` // CRC-32C of its checkpoint's list of checksums
	Temperature float64  `json:"temperature"`
	Type        string   `json:"type"`  // of values
	Heads       []string `json:"heads"` // and their labels
	Texts       string   `json:"texts"` // checksum of the examples of the group, and which of them are answered
	Count       int      `json:"count"` // of records
}

const answersFormat = 1

// Forms of what is said of a head.
const (
	floatForm     = 0 // an answer in float32
	byteForm      = 1 // an answer whose rows are bytes, and a float32 that they are multiplied by
	predictedForm = 2 // a target
	signedForm    = 3 // as byteForm, of numbers of both signs: 128 is 0
)

// taskAnswers are the answers of the teacher of a task.
type taskAnswers struct {
	*teacher
	teachers *Teachers
	file     *os.File
	offsets  []int64 // by number of the example in the group; 0: none
	sum      string  // of the file
}

// groupAnswers are those of the teachers of a group's tasks: multitask.Answers.
type groupAnswers []*taskAnswers

// Answer implements multitask.Answers.
func (g groupAnswers) Answer(h, number int, e *corpus.Example, t *heads.Taught) error {
	for _, a := range g {
		if h >= a.first && h < a.first+len(a.heads) {
			return a.read(h-a.first, number, e, t)
		}
	}
	return nil
}

// read sets what the teacher says of a head of its task in t.
func (a *taskAnswers) read(head, number int, e *corpus.Example, t *heads.Taught) error {
	at := a.offsets[number]
	if at == 0 {
		return nil
	}
	said, err := a.record(at)
	if err != nil {
		return fmt.Errorf("%s: %w", a.file.Name(), err)
	}
	r := bytereader.Reader{Rest: said}
	for range head {
		r.Take(r.Count())
	}
	one := bytereader.Reader{Rest: r.Take(r.Count())}
	student := a.heads[head]
	switch form := one.Count(); {
	case r.Err != nil:
		err = r.Err
	case form == predictedForm:
		kind := a.teachers.built.Data.Tasks[a.number].Output()
		if t.Predicted, err = kind.UnmarshalTarget(one.Rest); err == nil {
			kind.AssignIDs(t.Predicted, student.Labels)
			n := len(kind.Count(t.Predicted).Labels)
			if t.Predicted != nil && kind.PerWord && kind.HasLabels && n != len(e.Words) {
				err = fmt.Errorf("%d labels for %d words", n, len(e.Words))
				break
			}
			kind.Locate(t.Predicted, e)
		}
	case student.Head.Describe().Soft == nil:
		err = errors.New("an answer for a head that learns from predictions")
	default:
		var answer heads.Answer
		if answer, err = readAnswer(&one, form); err == nil {
			err = a.check(student, answer, e)
		}
		if err == nil {
			located := student.Head.Describe().Soft.Locate(answer, e)
			t.Answer = &located
		}
	}
	if err != nil {
		return fmt.Errorf("%s: the answer for %s: %w", a.file.Name(), e.Place, err)
	}
	return nil
}

// record reads the record at an offset.
func (a *taskAnswers) record(at int64) ([]byte, error) {
	length := make([]byte, binary.MaxVarintLen64)
	n, err := a.file.ReadAt(length, at)
	if n == 0 {
		return nil, err
	}
	size, used := binary.Uvarint(length[:n])
	if used <= 0 || size > maxRecord {
		return nil, errors.New("a record has no length")
	}
	record := make([]byte, size)
	if _, err := a.file.ReadAt(record, at+int64(used)); err != nil {
		return nil, err
	}
	return record, nil
}

// maxRecord bounds the bytes of a record: those of a long text with many tags.
const maxRecord = 1 << 28

// check returns an error if an answer has not the form that the head's has for the example.
func (a *taskAnswers) check(student multitask.Head, answer heads.Answer, e *corpus.Example) error {
	if a.states {
		if n := len(answer.Values); e.Tokens() == 0 || n%e.Tokens() != 0 || n/e.Tokens() != a.teachers.width {
			return fmt.Errorf("%d values for %d tokens", n, e.Tokens())
		}
		return nil
	}
	want, labels := 1, len(student.Labels.Names())
	switch kind := a.teachers.built.Data.Tasks[a.number].Output(); {
	case kind.FromContext:
		want = 2 * len(answer.Places)
		for _, place := range answer.Places {
			if place.Start < 0 || place.End < place.Start || place.End > len(e.Pair) {
				return fmt.Errorf("bytes %d to %d of a context of %d", place.Start, place.End, len(e.Pair))
			}
		}
	case answer.Places != nil:
		return fmt.Errorf("places in a context, of %s", kind)
	case kind.PerWord:
		want = labels * len(e.Words)
	case kind.HasLabels:
		want = labels
	}
	if len(answer.Values) != want {
		return fmt.Errorf("%d values, want %d", len(answer.Values), want)
	}
	return nil
}

// appendAnswer appends an answer. Rows of probabilities are bytes in int8, each times a factor by which their sum stays
// what it was.
func appendAnswer(b []byte, a heads.Answer, columns int, asBytes bool) []byte {
	form := byte(floatForm)
	if asBytes {
		form = byteForm
	}
	b = append(b, form)
	b = binary.AppendUvarint(b, uint64(len(a.Places)))
	for _, place := range a.Places {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(place.Start)), uint64(place.End))
	}
	b = binary.AppendUvarint(b, uint64(len(a.Values)))
	if !asBytes {
		for _, v := range a.Values {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		return b
	}
	b = binary.AppendUvarint(b, uint64(columns))
	for row := range slices.Chunk(a.Values, max(1, columns)) {
		largest, sum, rounded := slices.Max(row), float32(0), make([]byte, len(row))
		total := 0
		for i, v := range row {
			if sum += v; largest > 0 {
				rounded[i] = byte(math.Round(float64(v / largest * 255)))
			}
			total += int(rounded[i])
		}
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(sum/float32(max(1, total))))
		b = append(b, rounded...)
	}
	return b
}

func readAnswer(r *bytereader.Reader, form uint64) (a heads.Answer, err error) {
	if n := r.Count(); n > 0 && n <= uint64(len(r.Rest)) {
		a.Places = make([]corpus.Span, n)
		for i := range a.Places {
			a.Places[i] = corpus.Span{Start: int(r.Count()), End: int(r.Count())}
		}
	}
	n := r.Count()
	if n > uint64(len(r.Rest)) {
		return a, errors.New("it ends too early")
	}
	a.Values = make([]float32, n)
	switch form {
	case floatForm:
		for i := range a.Values {
			a.Values[i] = r.Float32()
		}
	case byteForm, signedForm:
		zero := float32(0)
		if form == signedForm {
			zero = 128
		}
		columns := int(min(r.Count(), n))
		for row := range slices.Chunk(a.Values, max(1, columns)) {
			factor := r.Float32()
			for i, v := range r.Take(uint64(len(row))) {
				row[i%len(row)] = factor * (float32(v) - zero)
			}
		}
	default:
		return a, fmt.Errorf("form %d", form)
	}
	for _, v := range a.Values {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return a, errors.New("it is not finite")
		}
	}
	return a, r.End()
}

// open opens the file of a teacher's answers, which it writes if there is none that fits; of several processes the
// first one does.
func (t *Teachers) open(ctx context.Context, of *teacher, run, folder string,
	progress func(name string) func(done, of int)) (*taskAnswers, error) {
	name := of.task.Name
	if of.states { // which each group has of its own
		name += " " + t.Taught.Groups[of.group].Name
	}
	path := filepath.Join(folder, runfolder.TeachersDir, name+".answers")
	if t.Ranks == nil {
		return t.written(ctx, of, run, path, progress)
	}
	var a *taskAnswers
	var f *os.File
	var err error
	if rank, _ := t.Ranks.Rank(); rank == 0 {
		if a, err = t.written(ctx, of, run, path, progress); err == nil {
			f = a.file
		}
	}
	f, err = share(t.Ranks, f, err)
	if a != nil || err != nil {
		return a, err
	}
	a = &taskAnswers{teacher: of, teachers: t, file: f, offsets: make([]int64, of.length)}
	return a, a.index(nil)
}

// written opens a file of answers, which it writes if there is none that fits.
func (t *Teachers) written(ctx context.Context, of *teacher, run, path string,
	progress func(name string) func(done, of int)) (*taskAnswers, error) {
	head, err := t.header(ctx, of, run)
	if err != nil {
		return nil, err
	}
	if a, err := t.read(of, path, head); err == nil {
		return a, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	report := func(int, int) {}
	if progress != nil {
		report = progress(fmt.Sprintf("answers of the teacher of %s", of.task.Name))
	}
	err = files.Replace(path, func(w io.Writer) error { return t.write(ctx, of, run, head, w, report) })
	if err != nil {
		return nil, err
	}
	return t.read(of, path, head)
}

// header returns what the answers of a teacher depend on.
func (t *Teachers) header(ctx context.Context, of *teacher, run string) (header, error) {
	_, saved, err := runfolder.Find(run)
	if err != nil {
		return header{}, err
	}
	e := t.built.Data.Experiment
	h := header{Format: answersFormat, Temperature: e.Training.Temperature, Type: e.Training.TeacherAnswers,
		Count: t.count(of)}
	if h.Teacher, err = runfolder.CRC32C(ctx, filepath.Join(saved, runfolder.ChecksumsFile)); err != nil {
		return header{}, err
	}
	for _, head := range of.heads {
		h.Heads = append(h.Heads, fmt.Sprintf("%s: %q", head.Name, head.Labels.Names()))
	}
	sum := crc32.New(files.CRC32C)
	for g := range t.built.Model.Groups {
		group := &t.built.Model.Groups[g]
		fmt.Fprintln(sum, group.Name, t.data[g].Checksum(group))
	}
	for _, e := range t.Taught.Data[of.group].Train { // a teacher may read what the student's tokens do not tell
		fmt.Fprintf(sum, "%q %q %v\n", e.Text, e.Pair, e.Words)
	}
	if t.texts.sum != "" {
		fmt.Fprintln(sum, "without labels", t.texts.sum)
	}
	h.Texts = fmt.Sprintf("%08x", sum.Sum32())
	return h, nil
}

// read opens a file of answers with a header, and finds its records. The file's checksum is checked.
func (t *Teachers) read(of *teacher, path string, want header) (*taskAnswers, error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	a := &taskAnswers{teacher: of, teachers: t, file: f, offsets: make([]int64, of.length)}
	if err := a.index(&want); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return a, nil
}

// index checks the file, whose header is want unless that is nil, and finds its records.
func (a *taskAnswers) index(want *header) error {
	end, err := a.checkSum()
	if err != nil {
		return err
	}
	r := &counted{r: bufio.NewReaderSize(io.NewSectionReader(a.file, 0, end), 1<<16)}
	line, err := r.line(1 << 24)
	if err != nil {
		return err
	}
	text, err := json.Marshal(want)
	if err != nil {
		return err
	}
	if want != nil && string(line) != string(text) {
		return errors.New("the answers are of another teacher, or other texts")
	}
	for number := range a.offsets {
		if !a.teachers.labels(a.teacher, number) {
			continue
		}
		a.offsets[number] = r.n
		size, err := binary.ReadUvarint(r)
		if err == nil && size > maxRecord {
			err = errors.New("a record has no length")
		}
		if err == nil {
			err = r.skip(int64(size))
		}
		if err != nil {
			return err
		}
	}
	if r.n != end {
		return errors.New("it has more records than examples")
	}
	return nil
}

// checkSum compares the checksum at the end of the file with that of what is before, and returns where that ends.
func (a *taskAnswers) checkSum() (end int64, err error) {
	info, err := a.file.Stat()
	if err != nil {
		return 0, err
	}
	sum, stored := crc32.New(files.CRC32C), make([]byte, 4)
	end = max(0, info.Size()-int64(len(stored)))
	if _, err := io.Copy(sum, io.NewSectionReader(a.file, 0, end)); err != nil {
		return 0, err
	}
	if _, err := a.file.ReadAt(stored, end); err != nil || binary.LittleEndian.Uint32(stored) != sum.Sum32() {
		return 0, errors.New("the file is damaged")
	}
	a.sum = fmt.Sprintf("%s:%08x", a.task.Name, sum.Sum32())
	return end, nil
}

// counted counts the bytes that are read.
type counted struct {
	r *bufio.Reader
	n int64
}

func (c *counted) ReadByte() (byte, error) {
	b, err := c.r.ReadByte()
	if err == nil {
		c.n++
	}
	return b, err
}

func (c *counted) skip(n int64) error {
	skipped, err := c.r.Discard(int(n))
	c.n += int64(skipped)
	return err
}

// line reads a line, without its end, of at most so many bytes.
func (c *counted) line(most int) ([]byte, error) {
	var line []byte
	for {
		b, err := c.ReadByte()
		switch {
		case err != nil:
			return nil, err
		case b == '\n':
			return line, nil
		case len(line) == most:
			return nil, errors.New("the first line is too long")
		}
		line = append(line, b)
	}
}

// write computes the answers of a teacher, and writes them as a file.
func (t *Teachers) write(ctx context.Context, of *teacher, run string, head header, w io.Writer,
	report func(done, of int)) error {
	text, err := json.Marshal(head)
	if err != nil {
		return err
	}
	sum := crc32.New(files.CRC32C)
	out := bufio.NewWriterSize(io.MultiWriter(w, sum), 1<<16)
	out.Write(append(text, '\n'))
	asked, err := t.ask(ctx, of, run)
	if err != nil {
		return err
	}
	defer asked.Close()
	done := 0
	err = asked.each(ctx, func(record []byte) error {
		out.Write(binary.AppendUvarint(nil, uint64(len(record))))
		if done++; done%answersAtOnce == 0 || done == head.Count {
			report(done, head.Count)
		}
		_, err := out.Write(record)
		return err
	})
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		return err
	}
	_, err = w.Write(binary.LittleEndian.AppendUint32(nil, sum.Sum32()))
	if asked.predicts != "" {
		t.warnings = append(t.warnings, plugin.Warn(of.task.Place, "task %q: head %q has no probabilities that could "+
			"be learned: it learns what its teacher predicts", of.task.Name, asked.predicts))
	}
	return err
}

var _ multitask.Answers = groupAnswers(nil)

// targetOf returns a prediction as a target of a task: what a data file has for it, read as the task reads it.
func targetOf(kind *outputs.Kind, p corpus.Prediction, in outputs.Input, field string,
	read func(r corpus.Record) (corpus.Example, error)) (corpus.Target, error) {
	value := kind.Data(p, in)
	if value == nil {
		return nil, fmt.Errorf("predictions of %s cannot be written as data", kind)
	}
	record := corpus.Record{Place: in.Example.Place, Fields: map[string]any{"text": in.Example.Text, field: value}}
	if in.Example.Paired {
		record.Fields["pair"] = in.Example.Pair
	}
	e, err := read(record)
	if err != nil || len(e.Targets) != 1 {
		return nil, err
	}
	return e.Targets[0], nil
}
