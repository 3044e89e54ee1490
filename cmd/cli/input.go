package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/inputs"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/files"
	"github.com/jenga-nlp/jenga/internal/suggest"
)

type textInput struct {
	file    string         // "": stdin
	columns inputs.Columns // additional names of a text's parts in JSON lines and records
	format  corpus.Format  // of a data file
	marked  string         // how comments begin in the run's data that is in the format of the output
	shard   shardFlag
	setData bool // the command has the flag --set-data, which its errors name
	batch   int  // texts of stdin that are processed together at most; 0: batchTexts
}

func inputOf(args []string, columns inputs.Columns) textInput {
	if len(args) == 0 || args[0] == stdio {
		return textInput{columns: columns}
	}
	return textInput{file: args[0], columns: columns}
}

// lineCount returns the number of lines or records to be read of an input, opened as lines; 0 if that is not known.
func (i textInput) lineCount(lines *texts) int {
	info, err := os.Stat(i.file)
	if lines.n > 0 || err != nil || !info.Mode().IsRegular() || strings.HasSuffix(i.file, ".gz") {
		return lines.n
	}
	n, _ := countLines(i.file) // an error is that of reading the lines
	return n
}

// countLines returns the number of lines of a file, decompressed if its name ends in .gz.
func countLines(name string) (n int, err error) {
	in, done, err := openLines(context.Background(), name)
	if err != nil {
		return 0, err
	}
	defer done()
	for lines := bufio.NewReaderSize(in, 1<<16); ; n++ {
		switch _, err := readLine(lines); {
		case errors.Is(err, io.EOF):
			return n, nil
		case err != nil && !errors.Is(err, errLong):
			return 0, err
		}
	}
}

// open opens the input for reading: the records of a file of data, or lines.
func (i textInput) open(ctx context.Context, stdin io.Reader) (*texts, error) {
	if i.file == "" {
		t := newTexts(ctx, stdin, i.columns)
		t.most = cmp.Or(i.batch, batchTexts)
		return t, nil
	}
	t := &texts{close: func() error { return nil }, most: batchTexts}
	if !i.isLines() {
		if !runfolder.Exists(i.file) {
			return nil, fmt.Errorf("%s: no such file%s", i.file, suggest.File(i.file, i.file, suggest.AnyFile))
		}
		records, err := inputs.Read(ctx, i.file, i.format, i.columns)
		from, to := i.shard.lines(len(records))
		t.records, t.n = records[from:to], to-from
		return t, err
	}
	from, to := 0, 0
	if i.shard.of > 0 {
		n, err := countLines(i.file)
		if from, to = i.shard.lines(n); err != nil || from == to {
			return t, err
		}
	}
	in, done, err := openLines(ctx, i.file)
	if err != nil {
		return nil, err
	}
	t = newTexts(ctx, in, i.columns)
	t.skipped, t.end, t.n, t.close = from, to, to-from, done
	return t, nil
}

// isLines reports whether a file is read line by line, and not as a file of data.
func (i textInput) isLines() bool {
	kind := i.kind()
	return (kind == "" || kind == "jsonl") && i.format.Sentence == "" && i.format.IsUTF8() &&
		!corpus.IsDataFolder(i.file)
}

// setFormat sets the format of a data file by the flag --set-data. A file of lines in another encoding than UTF-8 is
// read as a table of one column.
func (i *textInput) setFormat(flag dataFlag) error {
	i.setData = true
	var own []string
	for _, set := range flag {
		key, value, _ := strings.Cut(set, "=")
		own = append(own, key[strings.LastIndexByte(key, '.')+1:]+"="+value)
	}
	format, err := config.SetData(own, i.format)
	if err != nil {
		return err
	}
	format.Fields = nil
	if i.format = format; i.kind() == "" && len(flag) > 0 && !format.IsUTF8() {
		i.format = format.Lines()
	}
	return nil
}

// named returns an error of reading the input, with the flag that its advice is given by.
func (i textInput) named(err error) error {
	if i.setData {
		return namingSetData(err)
	}
	return err
}

// kind returns the type of the input's format, "" for one that is not known.
func (i textInput) kind() string { return cmp.Or(i.format.Type, corpus.FileType(i.file)) }

// openLines opens a file of lines, or a pipe, decompressed if its name ends in .gz. done closes it.
func openLines(ctx context.Context, name string) (in io.Reader, done func() error, err error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, fmt.Errorf("%s: no such file; want a file with a text in each line, or the text on stdin: "+
			"echo TEXT | jenga …%s", name, suggest.File(name, name, suggest.AnyFile))
	case err == nil && info.IsDir():
		return nil, nil, fmt.Errorf("%s is a folder; want a file with a text in each line", name)
	}
	file, err := files.OpenWaiting(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	if info.Mode().IsRegular() { // the beginning of a pipe cannot be read twice
		if err := files.CheckHead(name, file); err != nil {
			file.Close()
			return nil, nil, err
		}
	}
	if strings.HasSuffix(name, ".gz") {
		return corpus.Decompress(name, file), file.Close, nil
	}
	return file, file.Close, nil
}

// texts is an opened input.
type texts struct {
	records []inputs.Line // those of a data file that are not read yet
	reader  *bufio.Reader // of lines; nil: of records
	columns inputs.Columns
	number  int // of the last line
	skipped int // lines before the first that is read
	end     int // number of the last line to be read; 0: all
	n       int // lines or records to be read; 0: that is not known
	most    int // that next returns
	close   func() error
}

// newTexts returns the texts in the lines of r.
func newTexts(ctx context.Context, r io.Reader, columns inputs.Columns) *texts {
	return &texts{reader: bufio.NewReaderSize(files.Interruptible(ctx, r), 1<<16), columns: columns, most: batchTexts,
		close: func() error { return nil }}
}

// next returns as many lines as can be read without waiting, without those that are blank. The last ones, which may be
// none, come with io.EOF.
func (t *texts) next() (lines []inputs.Line, err error) {
	if t.reader == nil {
		n := min(t.most, len(t.records))
		if lines, t.records = t.records[:n], t.records[n:]; len(t.records) == 0 {
			err = io.EOF
		}
		return lines, err
	}
	for len(lines) < t.most && (len(lines) == 0 || t.reader.Buffered() > 0) {
		if t.end > 0 && t.number == t.end {
			return lines, io.EOF
		}
		text, err := readLine(t.reader)
		if errors.Is(err, io.EOF) {
			if t.number < t.end {
				err = fmt.Errorf("the file ends after line %d, and had line %d when its lines were counted", t.number,
					t.end)
			}
			return lines, err
		}
		t.number++
		line := inputs.Line{Number: t.number}
		switch {
		case err != nil && !errors.Is(err, errLong):
			return nil, err
		case t.number <= t.skipped:
			continue
		case err != nil:
			line.Err = fmt.Errorf("line %d: %w", t.number, err)
		case strings.TrimSpace(text) == "":
			continue
		default:
			if line, err = inputs.Parse(text, t.number, t.columns); err != nil {
				line.Number, line.Err = t.number, err
			}
		}
		lines = append(lines, line)
	}
	return lines, nil
}

var errLong = fmt.Errorf("longer than %d bytes", maxLine)

// readLine reads a line without its end. It returns io.EOF after the last line, and errLong after skipping a line that
// is too long.
func readLine(r *bufio.Reader) (string, error) {
	var line []byte
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxLine; !long {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case long && (err == nil || errors.Is(err, io.EOF)):
			return "", errLong
		case errors.Is(err, io.EOF) && len(line) > 0, err == nil:
			return strings.TrimRight(string(line), "\r\n"), nil
		}
		return "", err
	}
}

func readTexts(ctx context.Context, name string) ([]*corpus.Example, error) {
	in, done, err := openLines(ctx, name)
	if err != nil {
		return nil, err
	}
	defer done()
	lines := newTexts(ctx, in, inputs.Columns{})
	var all []*corpus.Example
	for ended := false; !ended; {
		read, err := lines.next()
		if ended = errors.Is(err, io.EOF); err != nil && !ended {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, line := range read {
			if line.Err != nil {
				return nil, fmt.Errorf("%s: %w", name, line.Err)
			}
			all = append(all, line.Example)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no texts", name)
	}
	return all, nil
}

const (
	batchTexts = 32       // texts in a batch at most: lines that wait on stdin share one, a single line does not wait
	maxLine    = 16 << 20 // bytes
)

// lineOutput writes what a command has for each line of input.
type lineOutput[T any] interface {
	write(w io.Writer, line inputs.Line, result T) error // line.Err: why there is no result
	end(w io.Writer) error                               // after the last line
}

// eachText reads texts, and writes to output what process returns for each. process may set the Err of a line; lines
// that cannot be read do not reach it, and have no Example in the output.
func eachText[T any](ctx context.Context, c *commands, from textInput, process func([]inputs.Line) ([]T, error),
	output lineOutput[T]) error {
	lines, err := from.open(ctx, c.in)
	if err != nil {
		return from.named(err)
	}
	defer lines.close()
	if from.file == "" && isTerminal(c.in) {
		fmt.Fprintln(c.log, "reading texts from the terminal, one a line; Ctrl-D ends them (Ctrl-Z on Windows)")
	}
	bar, all := c.lineBar(from, lines)
	defer bar.clear()
	out := bufio.NewWriter(raw(c.out))

	failed, ended, done := false, false, 0
	for !ended {
		read, err := lines.next()
		if ended = errors.Is(err, io.EOF); err != nil && !ended {
			return fmt.Errorf("%s: %w", cmp.Or(from.file, "stdin"), err)
		}
		good := slices.DeleteFunc(slices.Clone(read), func(line inputs.Line) bool { return line.Err != nil })
		var results []T
		if len(good) > 0 {
			if results, err = process(good); err != nil {
				return err
			}
		}
		for _, line := range read {
			var result T
			if line.Err == nil {
				line, result = good[0], results[0]
				good, results = good[1:], results[1:]
			} else {
				line.Example, line.Err = nil, from.named(line.Err)
			}
			failed = failed || line.Err != nil
			if err := output.write(out, line, result); err != nil {
				return err
			}
		}
		if err := out.Flush(); err != nil {
			return err
		}
		done += len(read)
		bar.reach(done, all)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if err := output.end(out); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if failed {
		return errReported
	}
	return nil
}

// manyTexts is how many lines a file has at least that is worth a bar.
const manyTexts = 1000

// lineBar returns a bar of the lines of a long file, which is shown if the output does not go to the terminal too, and
// their number.
func (c *commands) lineBar(from textInput, lines *texts) (*bar, int) {
	if !onTerminal(c.log) || isTerminal(c.out) {
		return nil, 0
	}
	n := from.lineCount(lines)
	return c.newBar("", n >= manyTexts), n
}

func examplesOf(lines []inputs.Line) []*corpus.Example {
	examples := make([]*corpus.Example, len(lines))
	for i, line := range lines {
		examples[i] = line.Example
	}
	return examples
}

// shardFlag is the part of an input that a command reads: number of of, from 1; the zero value is all of it.
type shardFlag struct{ number, of int }

func (s *shardFlag) flag(cmd *cobra.Command) {
	cmd.Flags().Var(&parsed{"", "K/N with K from 1 to N, such as 3/16", s.set}, "shard", "read part `K/N` of FILE's "+
		"lines, such as 3/16; the outputs of 1/N to N/N, one after the other, are the output of all")
}

func (s *shardFlag) set(text string) error {
	number, of, _ := strings.Cut(text, "/")
	var err error
	if s.number, err = strconv.Atoi(number); err == nil {
		s.of, err = strconv.Atoi(of)
	}
	if err != nil || s.number < 1 || s.number > s.of {
		return errors.New("not a part of the lines")
	}
	return nil
}

func (s shardFlag) String() string { return fmt.Sprintf("%d/%d", s.number, s.of) }

// check returns an error where the flag cannot be applied to an input, or to a format of the output.
func (s shardFlag) check(from textInput, format string) error {
	switch {
	case s.of == 0:
		return nil
	case from.file == "":
		return usageErrorf("--shard %s: want a FILE: the number of lines on stdin is not known before its end", s)
	case format != "jsonl":
		return usageErrorf("--shard %s: want --format jsonl: %s has one header for all lines", s, format)
	}
	info, err := os.Stat(from.file)
	if err == nil && from.isLines() && !info.IsDir() && !info.Mode().IsRegular() {
		return usageErrorf("--shard %s: %s is a pipe or a device, which is read once: its lines are not known before "+
			"its end; want a file of them", s, from.file)
	}
	return nil
}

func (s shardFlag) lines(n int) (from, to int) {
	if s.of == 0 {
		return 0, n
	}
	return (s.number - 1) * n / s.of, s.number * n / s.of
}
