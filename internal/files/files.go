// Package files opens and reads regular files up to a bound, as those of a model that was downloaded, parses the JSON
// in them, copies them and locks them against other processes. Files that are not regular may block their reader for
// ever or have no end; those that are read once, as pipes of data, end with a context.
package files

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"unicode/utf8"
)

// CRC32C is the polynomial of the checksums of files, Castagnoli's, for which processors have an instruction.
var CRC32C = crc32.MakeTable(crc32.Castagnoli)

// Copy copies the content of a regular file to a new one, in place of what has its name.
func Copy(from, to string) error {
	in, err := Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := Create(to, 0o666)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// Create creates a file in place of what has its name: a link, whose file does not change, a named pipe or a file, but
// no folder that holds something.
func Create(path string, mode fs.FileMode) (*os.File, error) {
	os.Remove(path)
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode) // with O_EXCL no link is followed
}

// OpenOwn opens the regular file at path to read and write it, and with create makes it where there is none. A link is
// not followed, by whomever it was put there, and when; nor is a file written that has another name elsewhere.
func OpenOwn(path string, create bool) (*os.File, error) {
	if err := CheckKind(path, 0); err != nil { // os.OpenFile opens a named pipe, too
		return nil, err
	}
	folder, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	flags := os.O_RDWR
	if create {
		flags |= os.O_CREATE
	}
	name := filepath.Base(path)
	f, err := folder.OpenFile(name, flags, 0o644) // which is in the folder, even if it was made a link meanwhile
	if err != nil {
		var of *fs.PathError
		if errors.As(err, &of) {
			of.Path = path
		}
		return nil, err
	}
	own, err := f.Stat()
	if err == nil {
		var there fs.FileInfo
		// a link, or a lock file that its holder has removed since, which is no mistake
		if there, err = folder.Lstat(name); err == nil && there.Mode().Type() != 0 || !own.Mode().IsRegular() {
			err = fmt.Errorf("%s: not a regular file", path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err == nil && names(f) > 1 {
		err = fmt.Errorf("%s: the file has another name too, a hard link, and would change there; put a copy of the "+
			"file in its place", path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// NewSuffix ends the name of a file or folder that is not complete yet. It will replace the one of the name without it.
const NewSuffix = ".new"

// Replace writes a file under another name in its folder, syncs it and renames it to path, so that path is a complete
// file at all times. Where several processes replace it at once, all but one may have an error, and path is complete
// only when the last of them has ended.
func Replace(path string, write func(io.Writer) error) error {
	f, err := Create(path+NewSuffix, 0o644) // in place of what a kill has left
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<18)
	err = write(w)
	err = cmp.Or(err, w.Flush())
	err = cmp.Or(err, f.Sync())
	err = cmp.Or(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// Open opens the file at path, which must be a regular file or a link to one, and have content of its own (see
// CheckContent).
func Open(path string) (*os.File, error) {
	f, err := OpenRegular(path)
	if err != nil {
		return nil, err
	}
	if err := CheckHead(path, f); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// OpenRegular is Open for a caller that checks the content itself.
func OpenRegular(path string) (*os.File, error) {
	// os.Open itself blocks on a named pipe until another process writes to it. Errors of Stat are os.Open's too.
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %s; want a regular file", path, kind(info.Mode()))
	}
	f, err := os.OpenFile(path, os.O_RDONLY|nonblocking, 0) // it may have become a pipe meanwhile
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, fmt.Errorf("%s: not a regular file any more", path), f.Close())
	}
	return f, nil
}

// IsPipe reports whether there is a named pipe at path, or a link to one.
func IsPipe(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&fs.ModeNamedPipe != 0
}

// OpenWaiting is os.Open, which waits at a named pipe for the process that writes to it: until ctx is done.
func OpenWaiting(ctx context.Context, path string) (*os.File, error) {
	var f *os.File
	var err error
	opened := make(chan struct{})
	go func() {
		defer close(opened)
		f, err = os.Open(path)
	}()
	select {
	case <-opened:
		return f, err
	case <-ctx.Done():
		go func() {
			if <-opened; err == nil {
				f.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

// Interruptible returns a reader of what r has, whose Read returns once ctx is done even if that of r waits.
func Interruptible(ctx context.Context, r io.Reader) io.Reader { return &interruptible{ctx: ctx, r: r} }

type interruptible struct {
	ctx    context.Context
	r      io.Reader
	buffer []byte // of r: what the caller gave may be used again when the read that still waits ends
}

func (i *interruptible) Read(p []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	if len(i.buffer) < len(p) {
		i.buffer = make([]byte, len(p))
	}
	type result struct {
		n   int
		err error
	}
	read, buffer := make(chan result, 1), i.buffer[:len(p)]
	go func() {
		n, err := i.r.Read(buffer)
		read <- result{n, err}
	}()
	select {
	case <-i.ctx.Done():
		i.buffer = nil
		return 0, i.ctx.Err()
	case r := <-read:
		return copy(p, buffer[:r.n]), r.err
	}
}

// CheckKind returns an error if there is something at path, and its type is not want: 0 is a regular file. A link is
// not followed: what is written to it would change a file elsewhere.
func CheckKind(path string, want fs.FileMode) error {
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() != want {
		return fmt.Errorf("%s: %s; want %s", path, kind(info.Mode()), kind(want))
	}
	return nil
}

// kind describes the type of a file.
func kind(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return "a regular file"
	case mode.IsDir():
		return "a folder"
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "a special file"
}

// ReadFile returns the content of the regular file at path. A file of more than limit bytes is an error, whatever size
// the system reports: that of a file in /proc is 0, and a file may grow while it is read.
func ReadFile(path string, limit int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	tooLong := fmt.Errorf("%s: more than %d bytes, which is the most that is read", path, limit)
	if info.Size() > limit {
		return nil, tooLong
	}

	// Room for the reported size, and for the read that finds the end.
	data := bytes.NewBuffer(make([]byte, 0, info.Size()+bytes.MinRead))
	if _, err := data.ReadFrom(io.LimitReader(f, limit+1)); err != nil {
		return nil, err
	}
	if int64(data.Len()) > limit {
		return nil, tooLong
	}
	return data.Bytes(), nil
}

// isUTF16 reports whether data begins with the byte-order mark of UTF-16.
func isUTF16(data []byte) bool {
	return bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff"))
}

func errUTF16(path string) error { return fmt.Errorf("%s: it is UTF-16; save it as UTF-8", path) }

// ReadText is ReadFile of a text in UTF-8. It returns the text without its byte-order mark.
func ReadText(path string, limit int64) ([]byte, error) {
	data, err := ReadFile(path, limit)
	if err != nil {
		return nil, err
	}
	if isUTF16(data) {
		return nil, errUTF16(path)
	}
	if !utf8.Valid(data) {
		at := InvalidUTF8(data)
		return nil, fmt.Errorf("%s:%d: not UTF-8", path, 1+bytes.Count(data[:at], []byte("\n")))
	}
	return bytes.TrimPrefix(data, []byte("\ufeff")), nil
}

// InvalidUTF8 returns the offset of the first byte of data that is not UTF-8, its length if there is none.
func InvalidUTF8(data []byte) int {
	at := 0
	for at < len(data) {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return at
}
