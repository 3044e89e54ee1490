package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// HeadBytes is how much of a file's beginning CheckContent needs.
const HeadBytes = 256

// pointer is a file that Git LFS has in place of another one, whose size it names.
var pointer = regexp.MustCompile(`\Aversion https://(?:git-lfs|hawser)\.github\.com/spec/v1\r?\n(?s:.*?size (\d+)\s)?`)

// packed lists forms of compression by the bytes that files begin with, the ending of their names, and the command that
// decompresses them.
var packed = []struct{ head, form, ending, command string }{
	{"\x1f\x8b\x08", "gzip", ".gz", "gunzip"},
	{"\xfd7zXZ\x00", "xz", ".xz", "unxz"},
	{"(\xb5/\xfd", "zstd", ".zst", "unzstd"},
	{"BZh", "bzip2", ".bz2", "bunzip2"},
}

// noPages are the endings of files whose forms cannot begin as a page of HTML does.
var noPages = []string{".bin", ".gz", ".json", ".jsonl", ".model", ".onnx", ".parquet", ".safetensors", ".yaml", ".yml"}

// tables are the endings and the names of files with lines of cells, of which the first may begin as a page does.
var tables = []string{".csv", ".tsv", ".conll", ".conllu", "vocab.txt", "merges.txt"}

// CheckContent returns an error for a file of a name that begins with head, where it is none of the kind that its name
// promises, whatever that is: a pointer of Git LFS, a compressed file whose name does not say so, or the page about it
// that a site shows. What the caller reads may be shorter than the file, but not shorter than 256 bytes.
func CheckContent(name string, head []byte) error {
	if m := pointer.FindSubmatch(head); m != nil {
		size := ""
		if len(m[1]) > 0 {
			size = fmt.Sprintf(" of %s bytes", m[1])
		}
		return fmt.Errorf("a pointer of Git LFS in place of the file%s; \"git lfs install && git lfs pull\" in its "+
			"folder fetches that, or download it again", size)
	}
	for _, p := range packed {
		if bytes.HasPrefix(head, []byte(p.head)) && isPacked(p.form, head) &&
			!strings.EqualFold(filepath.Ext(name), p.ending) {
			base := filepath.Base(name)
			return fmt.Errorf("compressed by %s, which its name does not say; in its folder, mv %s %s && %s %[3]s "+
				"decompresses it", p.form, shellQuoted(base), shellQuoted(base+p.ending), p.command)
		}
	}
	// The length of a safetensors file's header may begin so, too, with four more zeros; PyTorch's archives have two.
	if bytes.HasPrefix(head, []byte("PK\x03\x04")) && len(head) > 7 && string(head[4:8]) != "\x00\x00\x00\x00" {
		if strings.EqualFold(filepath.Ext(name), ".safetensors") {
			return fmt.Errorf("a ZIP archive, as PyTorch's pickles are; in Python, torch.load reads it as " +
				"pytorch_model.bin, and transformers' save_pretrained writes a model.safetensors")
		}
		return fmt.Errorf("a ZIP archive, as .xlsx and old .bin files are; unpack it, or save a sheet as CSV")
	}
	if bytes.HasPrefix(head, []byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")) {
		return fmt.Errorf("a file of old versions of Office, as .xls; save a sheet as CSV")
	}
	ending, base := strings.ToLower(filepath.Ext(name)), strings.ToLower(filepath.Base(name))
	switch {
	case slices.Contains(noPages, ending) && beginsPage(pageStart(head)):
		return errPage
	case slices.Contains(tables, ending) || slices.Contains(tables, base):
		return CheckTable(head)
	}
	return nil
}

var errPage = errors.New("a page of HTML, not the file; download it by the link to the file itself, which on a hub " +
	"has /resolve/ in place of /blob/, and log in where the page asks for it")

// CheckTable returns CheckContent's error of a page for a file that begins with head, in a form with lines of cells,
// whatever its name is. A cell may begin as a page does, but the line of a page ends as a tag, or is not all of it.
func CheckTable(head []byte) error {
	start := pageStart(head)
	line, rest, whole := strings.Cut(start, "\n")
	whole = whole || len(head) < HeadBytes
	tags := strings.HasSuffix(strings.TrimSpace(line), ">") && (rest == "" || strings.HasPrefix(rest, "<"))
	open := strings.HasPrefix(line, "<!") && strings.Contains(line, "<html") && !strings.Contains(line, "</html>")
	if beginsPage(start) && (whole && (tags || open) ||
		!whole && (strings.HasPrefix(line, "<!") || strings.Contains(line, "<head"))) {
		return errPage
	}
	return nil
}

func pageStart(head []byte) string {
	return strings.ToLower(string(bytes.TrimSpace(bytes.TrimPrefix(head, []byte("\ufeff")))))
}

func beginsPage(start string) bool {
	return strings.HasPrefix(start, "<!doctype html") || strings.HasPrefix(start, "<html")
}

// NotGzip returns the error of a file that is no gzip file, of a name that ends in .gz.
func NotGzip(name string) error {
	base := filepath.Base(name)
	return fmt.Errorf("the file is not a gzip file, but its name ends in .gz; if it is not compressed, in its folder, "+
		"mv %s %s, and name it so, else download it again", shellQuoted(base),
		shellQuoted(strings.TrimSuffix(base, ".gz")))
}

// shellQuoted returns a name as a shell reads it, whatever characters it has.
func shellQuoted(name string) string {
	if !strings.HasPrefix(name, "-") {
		return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
	}
	return shellQuoted("./" + name) // which is no option
}

// CheckUnpacked is CheckContent of what a gzip file of a name, which ends in .gz, has been decompressed to.
func CheckUnpacked(name string, head []byte) error {
	base := filepath.Base(name)
	inner := strings.TrimSuffix(base, ".gz")
	for _, p := range packed {
		switch {
		case !bytes.HasPrefix(head, []byte(p.head)) || !isPacked(p.form, head):
		case p.form == "gzip":
			return fmt.Errorf("compressed by gzip twice; in its folder, mv %s %s && gunzip %[2]s decompresses it once",
				shellQuoted(base), shellQuoted(base+p.ending))
		default:
			name := shellQuoted(inner + p.ending)
			return fmt.Errorf("compressed by %s, and then by gzip; in its folder, gunzip %s && mv %s %s && %s %[4]s "+
				"decompresses it", p.form, shellQuoted(base), shellQuoted(inner), name, p.command)
		}
	}
	if err := CheckContent(inner, head); err != nil {
		return fmt.Errorf("compressed by gzip is %w", err)
	}
	return nil
}

// isPacked tells the head of a compressed file from the length that a safetensors file begins with, in 8 bytes before a
// "{".
func isPacked(form string, head []byte) bool {
	switch {
	case len(head) < 10:
		return false
	case form == "gzip":
		return head[3] < 0x20 && (head[8] == 0 || head[8] == 2 || head[8] == 4) // flags; how hard it was compressed
	case form == "bzip2":
		return bytes.HasPrefix(head[4:], []byte("1AY&SY"))
	}
	return true
}

// CheckHead is CheckContent of an open file. Errors name it.
func CheckHead(name string, f io.ReaderAt) error {
	head := make([]byte, HeadBytes)
	n, _ := f.ReadAt(head, 0) // an error is found again by who reads the file
	if err := CheckContent(name, head[:n]); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
