package runfolder

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/internal/files"
)

// ChecksumsFile has the CRC-32C of each other file of a checkpoint: it finds bits that a disk or a copy has changed.
const ChecksumsFile = "crc32c.txt"

// maxChecksums bounds the size in bytes of a ChecksumsFile.
const maxChecksums = 1 << 20

// maxText is the greatest size in bytes of a file of a checkpoint without weights: a list of labels, a tokenizer.
const maxText = 1 << 30

type checksum struct {
	crc32c string
	name   string // of a file relative to the checkpoint, with slashes
}

func (s checksum) line() string { return s.crc32c + "  " + s.name + "\n" }

// CRC32C returns the CRC-32C of a regular file as 8 hexadecimal digits. The file's content is written to more, too. It
// reads until ctx ends.
func CRC32C(ctx context.Context, path string, more ...io.Writer) (string, error) {
	file, err := files.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := crc32.New(files.CRC32C)
	in := untilEnd{ctx, file}
	if _, err := io.CopyBuffer(io.MultiWriter(append(more, sum)...), in, make([]byte, 1<<18)); err != nil {
		return "", err
	}
	return fmt.Sprintf("%08x", sum.Sum32()), nil
}

// untilEnd reads until its context ends, whose error it returns then. It has no WriterTo, which would choose a smaller
// buffer than that of the copy.
type untilEnd struct {
	ctx context.Context
	in  io.Reader
}

func (r untilEnd) Read(p []byte) (int, error) {
	select {
	case <-r.ctx.Done():
		return 0, r.ctx.Err()
	default:
		return r.in.Read(p)
	}
}

// WriteChecksums writes the ChecksumsFile of the files in a folder and below.
func WriteChecksums(ctx context.Context, folder string) error {
	names, err := Files(folder)
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, name := range names {
		if name == ChecksumsFile {
			continue
		}
		sum, err := CRC32C(ctx, filepath.Join(folder, name))
		if err != nil {
			return err
		}
		text.WriteString(checksum{sum, name}.line())
	}
	return os.WriteFile(filepath.Join(folder, ChecksumsFile), []byte(text.String()), 0o644)
}

// Damage is the error of a checkpoint of which a file is missing or has changed.
type Damage struct {
	Path   string // of the file
	What   string // has happened to it
	Remedy string
}

// Error implements error.
func (d *Damage) Error() string { return d.Reason() + "; " + d.Remedy }

// Reason is Error without the remedy.
func (d *Damage) Reason() string { return d.Path + ": " + d.What }

// Remedies of a Damage.
const (
	restoreFile = "restore the file from a copy, or train again"
	restoreList = "restore it from a copy, or train again"
)

// Missing returns the damage of a checkpoint that lacks the file at path.
func Missing(path string) error {
	return &Damage{path, "no such file: the checkpoint is incomplete", restoreFile}
}

// CheckChecksums returns a *Damage if a file of a checkpoint is missing or has another CRC-32C than when it was
// written. Whatever writes a checkpoint, training or a merge, writes its ChecksumsFile: without one it is incomplete.
func CheckChecksums(ctx context.Context, folder string) error {
	path := filepath.Join(folder, ChecksumsFile)
	text, err := files.ReadFile(path, maxChecksums)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Missing(path)
	case err != nil:
		return err
	}
	sums, err := parseChecksums(path, string(text))
	if err != nil {
		return err
	}

	if err := checkListed(ctx, folder, sums); err != nil {
		return err
	}
	for _, want := range sums {
		file := filepath.Join(folder, filepath.FromSlash(want.name))
		if info, err := os.Stat(file); err == nil && info.Size() > maxText && filepath.Ext(file) != ".safetensors" {
			return &Damage{file, fmt.Sprintf("%d bytes; the most that jenga writes are %d", info.Size(), maxText),
				restoreFile}
		}
		switch got, err := CRC32C(ctx, file); {
		case errors.Is(err, fs.ErrNotExist):
			return Missing(file)
		case err != nil:
			return err
		case differInOne(got, want.crc32c): // by chance it is so for 1 of 36 million other contents
			return listDamaged(path, "it has the CRC-32C %s for %s, and %s would be right", want.crc32c, want.name,
				got)
		case got != want.crc32c:
			return &Damage{file, fmt.Sprintf("its CRC-32C is %s, not %s as when it was written: the file is damaged",
				got, want.crc32c), fmt.Sprintf("%s (if you changed it yourself, write %s for %s in %s)",
				restoreList, got, want.crc32c, path)}
		}
	}
	return nil
}

// CheckEncoder is CheckChecksums of the checkpoint whose encoder is in folder, nil if it is that of none.
func CheckEncoder(ctx context.Context, folder string) error {
	checkpoint := filepath.Dir(filepath.Clean(folder))
	if filepath.Base(folder) != EncoderDir || !IsCheckpoint(checkpoint) {
		return nil
	}
	return CheckChecksums(ctx, checkpoint)
}

// listDamaged returns the damage of a ChecksumsFile at a place itself.
func listDamaged(place, format string, args ...any) error {
	return &Damage{place, fmt.Sprintf(format, args...) + ": the list of checksums itself is damaged", restoreList}
}

// differInOne reports whether two sums differ in one digit.
func differInOne(a, b string) bool {
	n := 0
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			n++
		}
	}
	return n == 1 && len(a) == len(b)
}

// checkListed returns an error if a file of a checkpoint is listed by another name, or its tensors, which are near the
// end, are not listed. Other files that are not listed are not the checkpoint's.
func checkListed(ctx context.Context, folder string, sums []checksum) error {
	unlisted, err := Files(folder)
	if err != nil {
		return err
	}
	unlisted = slices.DeleteFunc(unlisted, func(name string) bool {
		listed := slices.ContainsFunc(sums, func(s checksum) bool { return s.name == name })
		return listed || name == ChecksumsFile || name == SnapshotFile || name == EndFile
	})

	// a file that is listed and does not exist is one of them, if that has its content
	path := filepath.Join(folder, ChecksumsFile)
	for _, s := range sums {
		if Exists(filepath.Join(folder, filepath.FromSlash(s.name))) {
			continue
		}
		for _, name := range unlisted {
			got, err := CRC32C(ctx, filepath.Join(folder, filepath.FromSlash(name)))
			if err != nil && ctx.Err() != nil {
				return ctx.Err()
			}
			if err == nil && got == s.crc32c {
				return listDamaged(path, "it lists %q, which does not exist, and not %q, which does", s.name, name)
			}
		}
	}
	if slices.Contains(unlisted, TensorsFile) {
		return listDamaged(path, "it does not list %s", TensorsFile)
	}
	return nil
}

func parseChecksums(path, text string) ([]checksum, error) {
	var sums []checksum
	number := 0
	place := func() string { return fmt.Sprintf("%s:%d", path, number) }
	for line := range strings.Lines(text) {
		number++
		line, ended := strings.CutSuffix(line, "\n")
		crc, name, ok := strings.Cut(line, "  ")
		_, err := strconv.ParseUint(crc, 16, 32)
		switch {
		case !ended:
			return nil, listDamaged(place(), "the line has no end")
		case !ok || len(crc) != 8 || err != nil:
			return nil, listDamaged(place(), "want a CRC-32C of 8 hexadecimal digits, two blanks and the name of a "+
				"file")
		case !filepath.IsLocal(filepath.FromSlash(name)):
			return nil, listDamaged(place(), "file %q is out of the checkpoint", name)
		}
		sums = append(sums, checksum{crc, name})
	}
	if len(sums) == 0 {
		return nil, listDamaged(path, "no checksums")
	}
	return sums, nil
}
