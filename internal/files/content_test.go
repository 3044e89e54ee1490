package files

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const lfs = "version https://git-lfs.github.com/spec/v1\n" +
	"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 90868376\n"

func gzipped(t *testing.T, text string) string {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	z.Write([]byte(text))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func zipped(t *testing.T) string {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	z.Create("xl/workbook.xml")
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// headed is a safetensors file whose header has so many bytes.
func headed(length uint64) string {
	return string(binary.LittleEndian.AppendUint64(nil, length)) + `{"a": {"dtype": "F32"}}` + strings.Repeat(" ", 300)
}

func TestFilesInPlaceOfOthersAreNamed(t *testing.T) {
	for _, c := range []struct{ name, head, want string }{
		{"model.safetensors", lfs, "a pointer of Git LFS in place of the file of 90868376 bytes; "},
		{"vocab.txt", strings.ReplaceAll(lfs, "\n", "\r\n"), "a pointer of Git LFS"},
		{"a.csv.gz", strings.Replace(lfs, "git-lfs", "hawser", 1), "a pointer of Git LFS"},
		{"a.jsonl", lfs[:45], "a pointer of Git LFS in place of the file; "},
		{"a.jsonl", gzipped(t, "{}"), `compressed by gzip, which its name does not say; in its folder, mv 'a.jsonl' `},
		{"config.json", "\xfd7zXZ\x00\x00\x04\xe6\xd6\xb4F", "compressed by xz"},
		{"a.tsv", "(\xb5/\xfd\x04X\x01\x00\x00\x00\x00", "compressed by zstd"},
		{"a.gz", "BZh91AY&SY\x00\x00", "compressed by bzip2"},
		{"a.csv", zipped(t), "a ZIP archive, as .xlsx"},
		{"model.safetensors", "PK\x03\x04\x00\x00\x08\x08\x00\x00", "a ZIP archive, as PyTorch's pickles are"},
		{"model.safetensors", "PK\x03\x04\x00\x00\x00\x00{}", ""},
		{"config.json", "\n<!DOCTYPE html>\n<html>", "a page of HTML"},
		{"a.JSONL", "\ufeff<html lang=en>", "a page of HTML"},

		{"train.csv", "<!DOCTYPE html>\n<html><head>", "a page of HTML"},
		{"train.tsv", "\n\n <html lang=en><body>404</body></html>\n", "a page of HTML"},
		{"train.conll", "<!doctype html>" + strings.Repeat("<p>", 100), "a page of HTML"},
		{"m/Vocab.txt", "<html>\r\n<head><title>404</title>\r\n", "a page of HTML"},
		{"pytorch_model.bin", "<!DOCTYPE html><html>", "a page of HTML"},
		{"a.csv", "<!DOCTYPE html><html><head></head><body>Sign in, please\n</body></html>", "a page of HTML"},
		{"a.csv", "<!doctype html><html><body>Sign in,\nplease</body></html>\n", "a page of HTML"},
		{"d.csv.gz", "<!DOCTYPE html><html>", "a page of HTML"},
		{"a.csv", "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a file of old versions of Office"},

		{"d.csv", "<html><b>buy</b></html>,spam\n", ""},
		{"d.csv", "<!DOCTYPE html><html><b>buy</b></html>,spam\n<!DOCTYPE html><html><b>so</b></html>,ham\n", ""},
		{"d.conll", "<html>\tO\n<body>\tO\n", ""},
		{"d.tsv", "<html>" + strings.Repeat("buy ", 100), ""},
		{"a.jsonl.gz", gzipped(t, "{}"), ""},
		{"A.GZ", gzipped(t, "{}"), ""},
		{"texts.txt", "<!DOCTYPE html> is how a page begins", ""},
		{"a.csv", "version https://git-lfs.github.com/spec/v1,label\n", ""},
		{"model.safetensors", headed(0x088b1f), ""},
		{"model.safetensors", headed(0x04034b50), ""},
		{"model.safetensors", headed(0x395a42 + 0x39<<24), ""},
		{"a.txt", "BZh9 is a name", ""},
		{"a.txt", "", ""},
		{"a.json", "\x1f\x8b\x08", ""},
	} {
		err := CheckContent(c.name, []byte(c.head[:min(len(c.head), HeadBytes)]))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %.20q: error %v, want %q", c.name, c.head, err, c.want)
		}
	}
}

func TestWhatAGzipFileHoldsIsNamed(t *testing.T) {
	for _, c := range []struct{ name, head, want string }{
		{"d.csv.gz", gzipped(t, "text\n"), `compressed by gzip twice; in its folder, mv 'd.csv.gz' 'd.csv.gz.gz' && ` +
			`gunzip 'd.csv.gz.gz' decompresses it once`},
		{"d.csv.gz", "\xfd7zXZ\x00\x00\x04\xe6\xd6\xb4F", `compressed by xz, and then by gzip; in its folder, ` +
			`gunzip 'd.csv.gz' && mv 'd.csv' 'd.csv.xz' && unxz 'd.csv.xz' decompresses it`},
		{"d.csv.gz", zipped(t), "compressed by gzip is a ZIP archive"},
		{"d.csv.gz", "<!DOCTYPE html>\n", "compressed by gzip is a page of HTML"},
		{"d.csv.gz", "text,label\n", ""},
	} {
		err := CheckUnpacked(c.name, []byte(c.head))
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s %.20q: error %v, want %q", c.name, c.head, err, c.want)
		}
	}
}

func TestACompressedFileIsReadAfterWhatItsErrorAdvises(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"config.json", "two words.json"} {
		if err := os.WriteFile(name, []byte(gzipped(t, `{"a": 1}`)), 0o666); err != nil {
			t.Fatal(err)
		}
		var into map[string]int
		err := ReadJSON(name, 1000, &into)
		if err == nil {
			t.Fatal("no error")
		}
		_, command, _ := strings.Cut(err.Error(), "in its folder, ")
		command = strings.TrimSuffix(command, " decompresses it")
		if out, failed := exec.Command("sh", "-c", command).CombinedOutput(); failed != nil {
			t.Skipf("%s: %v, %s", command, failed, out) // no gunzip here
		}
		if err := ReadJSON(name, 1000, &into); err != nil || into["a"] != 1 {
			t.Errorf("%s: %v, %v", command, into, err)
		}
	}
}

func TestJSONMayBeginWithAByteOrderMark(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.json")
	for text, want := range map[string]string{
		"\ufeff{\"a\": 1}":         "",
		"\ufeff{\"a\": 1,\n \"b\"": ":2: not JSON",
		"\xff\xfe{\x00}\x00":       ": it is UTF-16; save it as UTF-8",
	} {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		var into map[string]int
		err := ReadJSON(path, 1000, &into)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}
