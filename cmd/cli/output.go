package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/events"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/printable"
	"github.com/jenga-nlp/jenga/multitask/train"
	"github.com/jenga-nlp/jenga/plugin"
)

// outputFile is a file that has its name when it is whole. It is begun when the first line is written. What ends before
// the last one, by an error or a signal, leaves the file of an earlier command as it was, and what it has written under
// another name.
type outputFile struct {
	name, format string
	log          io.Writer

	file    *os.File // nil before
	partial string   // its name until it is whole; "": it is written in its place
	whole   string   // its name afterwards
}

// partialSuffix ends the name of a file of which the end is missing.
const partialSuffix = ".partial"

// Write implements io.Writer.
func (o *outputFile) Write(p []byte) (n int, err error) {
	if o.file == nil {
		if err := o.begin(); err != nil {
			return 0, err
		}
	}
	return o.file.Write(p)
}

// begin creates the file. A pipe or a device, and a file in a folder that cannot be written to, is written in its
// place.
func (o *outputFile) begin() (err error) {
	info, missing := os.Stat(o.name)
	if missing == nil && !info.Mode().IsRegular() {
		o.file, err = os.Create(o.name)
		return err
	}
	o.whole = o.name
	if to, err := filepath.EvalSymlinks(o.name); err == nil {
		o.whole = to
	}
	o.partial = o.whole + partialSuffix
	os.Remove(o.partial) // what a kill has left, or a link, whose file must not change
	o.file, err = os.OpenFile(o.partial, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	switch {
	case err != nil && (missing == nil || !errors.Is(err, fs.ErrPermission)):
		o.partial = ""
		o.file, err = os.Create(o.name)
	case err == nil && missing == nil:
		err = o.file.Chmod(info.Mode().Perm())
	}
	return err
}

// settleOutput sets the default of --format, which is the one that --out ends in, else the first of formats, and makes
// --out "" for stdout. It returns an error for a name that ends in a form that the file would not have.
func settleOutput(out, format *string, formats []string) error {
	if *out == stdio {
		*out = ""
	}
	kind, end := corpus.FileType(*out), strings.ToLower(filepath.Ext(*out))
	if kind == "json" {
		kind = "jsonl" // one object a line
	}
	switch {
	case slices.Contains([]string{".gz", ".zst", ".bz2", ".xz"}, end):
		return usageErrorf("--out %s: the output is not compressed; want a name without %s", *out, end)
	case slices.Contains([]string{".xlsx", ".xls", ".ods"}, end):
		return usageErrorf("--out %s: the output is no spreadsheet; want a name that ends in .csv", *out)
	case *format != "":
	case slices.Contains(formats, kind):
		*format = kind
	case kind != "":
		return usageErrorf("--out %s: %s is none of the formats of the output; want a name that ends in .jsonl, or "+
			"--format %s", *out, kind, strings.Join(formats, "|"))
	default:
		*format = formats[0]
	}
	return nil
}

// checkOutput returns an error if no file can be written under a name, before a model and data are read. It opens no
// pipe or device.
func checkOutput(name string) error {
	folder := filepath.Dir(name)
	switch info, err := os.Stat(name); {
	case err == nil && info.IsDir():
		return usageErrorf("--out %s: it is a folder; want the name of a file", name)
	case err == nil && !info.Mode().IsRegular():
		return nil
	case err == nil:
		if file, err := os.OpenFile(name, os.O_WRONLY, 0); err == nil {
			return file.Close()
		}
	case !runfolder.IsFolder(folder):
		return fmt.Errorf("--out %s: no such folder %s; make it, or name another", name, folder)
	}
	if err := runfolder.CheckWritable(folder); err != nil {
		return fmt.Errorf("--out %s: %w", name, err)
	}
	return nil
}

// end closes the file after a command that returns err; without an error and without a line the file is empty. It
// returns the first error.
func (o *outputFile) end(err error) error {
	whole := err == nil || errors.Is(err, errReported)
	if o.file == nil && whole {
		_, createErr := o.Write(nil)
		err = cmp.Or(err, createErr)
	}
	if o.file == nil {
		return err
	}
	size, sizeErr := o.file.Seek(0, io.SeekEnd)
	closeErr := o.file.Close()
	whole, err = whole && closeErr == nil, cmp.Or(err, closeErr)
	switch {
	case whole && o.partial != "":
		return cmp.Or(err, os.Rename(o.partial, o.whole))
	case whole:
	case o.partial == "":
		fmt.Fprintf(o.log, "%s is not whole\n", o.name)
	case o.format == "parquet" || sizeErr == nil && size == 0: // without its end a parquet file cannot be read
		err = cmp.Or(err, os.Remove(o.partial))
	default:
		fmt.Fprintf(o.log, "what was written until then is in %s\n", o.partial)
	}
	return err
}

// lasting is an output whose errors do not end the command that writes to it: after the first one nothing more is
// written.
type lasting struct {
	io.Writer
	err    error
	failed func(error) // is called with the first error
}

// Write implements io.Writer.
func (l *lasting) Write(p []byte) (int, error) {
	if l.err == nil {
		if _, l.err = l.Writer.Write(p); l.err != nil {
			l.failed(l.err)
		}
	}
	return len(p), nil
}

// raw returns the writer below one of texts that people read: for bars of a terminal, and for data.
func raw(w io.Writer) io.Writer {
	if p, ok := w.(printable.Writer); ok {
		return p.Raw
	}
	return w
}

// stream returns the writer below those of texts and a lasting one, which may be a terminal.
func stream(w any) any {
	if p, ok := w.(printable.Writer); ok {
		w = p.Raw
	}
	if l, ok := w.(*lasting); ok {
		return l.Writer
	}
	return w
}

// lastingOutputs makes the outputs of a training lasting, which may take days: a terminal that is gone, a pipe that is
// closed, or a full disk behind one of them does not end it. The other one says so, where that can be written. The
// function returns the error of stdout, where events in JSON were asked for that it lacks.
func (c *commands) lastingOutputs(asJSON bool) (lost func() error) {
	// a write to a closed pipe would end the process, also that of the last message
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	const goesOn = "%s cannot be written any more, and training goes on without it: %v"
	out, log := &lasting{Writer: raw(c.out)}, &lasting{Writer: raw(c.log)}
	out.failed = func(err error) { c.warn([]plugin.Warning{warning(goesOn, "stdout", err)}) }
	log.failed = func(err error) {
		text := fmt.Sprintf(goesOn, "stderr", err)
		if asJSON {
			writeLine(out, events.Line(train.Warning{Text: text}))
			return
		}
		fmt.Fprintln(c.out, text)
	}
	c.out, c.log = printable.Writer{Raw: out}, printable.Writer{Raw: log}
	return func() error {
		if !asJSON || out.err == nil {
			return nil
		}
		return fmt.Errorf("stdout lacks events: %w; metrics.jsonl in the run folder has them", out.err)
	}
}
