package files

import (
	"bytes"
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
var noPages = []string{".json", ".jsonl", ".onnx", ".parquet", ".safetensors", ".yaml", ".yml"}

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
			return fmt.Errorf("compressed by %s, which its name does not say; in its folder, mv %q %q && %s %[3]q "+
				"decompresses it", p.form, base, base+p.ending, p.command)
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
	start := strings.ToLower(string(bytes.TrimSpace(bytes.TrimPrefix(head, []byte("\ufeff")))))
	if (strings.HasPrefix(start, "<!doctype html") || strings.HasPrefix(start, "<html")) &&
		slices.Contains(noPages, strings.ToLower(filepath.Ext(name))) {
		return fmt.Errorf("a page of HTML, not the file; download it by the link to the file itself, which on a hub " +
			"has /resolve/ in place of /blob/")
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
