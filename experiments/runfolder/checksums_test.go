package runfolder

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/internal/sample"
)

// checkpoint writes a folder of two files with their checksums.
func checkpoint(t *testing.T) string {
	t.Helper()
	folder := sample.Folder(t, map[string]string{"a": "123456789", "sub/b": "text"})
	if err := WriteChecksums(t.Context(), folder); err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestChecksumsAreCRC32C(t *testing.T) {
	// e3069283 is the check value of CRC-32C in RFC 3720, B.4, and in the catalogue of parametrised CRCs (CRC-32/ISCSI)
	const want = "e3069283  a\n3808f4d7  sub/b\n"
	if got := sample.Files(t, checkpoint(t))[ChecksumsFile]; !strings.HasPrefix(got, "e3069283  a\n") ||
		!strings.HasSuffix(got, "  sub/b\n") || len(got) != len(want) {
		t.Errorf("%s holds\n%s", ChecksumsFile, got)
	}
}

func TestEveryFlippedBitIsFound(t *testing.T) {
	folder := checkpoint(t)
	if err := CheckChecksums(t.Context(), folder); err != nil {
		t.Fatal(err)
	}
	for name, text := range sample.Files(t, folder) {
		path := filepath.Join(folder, name)
		for bit := range 8 * len(text) {
			flipped := []byte(text)
			flipped[bit/8] ^= 1 << (bit % 8)
			sample.Write(t, path, string(flipped))
			err := CheckChecksums(t.Context(), folder)
			if err == nil {
				t.Errorf("bit %d of %s is flipped, and there is no error", bit, name)
			} else if !strings.HasPrefix(err.Error(), path+":") { // that of the sums too
				t.Errorf("bit %d of %s is flipped: %v", bit, name, err)
			}
		}
		sample.Write(t, path, text)
	}
}

func TestErrorsOfChecksumsNameTheFile(t *testing.T) {
	for _, test := range []struct{ name, sums, want string }{
		{"a damaged file", "00000000  a\n",
			"FOLDER/a: its CRC-32C is e3069283, not 00000000 as when it was written: the file is damaged; restore " +
				"it from a copy, or train again (if you changed it yourself, write e3069283 for 00000000 in " +
				"FOLDER/crc32c.txt)"},
		{"a file that is gone", "e3069283  a\nSUM  sub/b\ne3069283  c\n",
			"FOLDER/c: no such file: the checkpoint is incomplete"},
		{"another name", "e3069283  a\nSUM  sub/c\n", `FOLDER/crc32c.txt: it lists "sub/c", which does not ` +
			`exist, and not "sub/b", which does: the list of checksums itself is damaged; restore it from a `},
		{"a file that is gone, beside another", "e3069283  a\n00000000  sub/c\n",
			"FOLDER/sub/c: no such file: the checkpoint is incomplete"},
		{"another digit", "e3069283  a\n!SUM  sub/b\n", "FOLDER/crc32c.txt: it has the CRC-32C "},
		{"a folder", "e3069283  sub\n", "FOLDER/sub: a folder; want a regular file"},
		{"a file elsewhere", "e3069283  ../a\n", `FOLDER/crc32c.txt:1: file "../a" is out of the checkpoint`},
		{"no sum", "e3069283  a\nb\n",
			"FOLDER/crc32c.txt:2: want a CRC-32C of 8 hexadecimal digits, two blanks and the name of a file"},
		{"a file cut short", "e3069283  a", "FOLDER/crc32c.txt:1: the line has no end"},
		{"an empty file", "", "FOLDER/crc32c.txt: no checksums"},
		{"other files", "e3069283  a\n", ""},
	} {
		folder := checkpoint(t)
		sum, err := CRC32C(t.Context(), filepath.Join(folder, "sub", "b"))
		if err != nil {
			t.Fatal(err)
		}
		other := "0" + sum[1:]
		if other == sum {
			other = "1" + sum[1:]
		}
		sums := strings.NewReplacer("!SUM", other, "SUM", sum).Replace(test.sums)
		sample.Write(t, filepath.Join(folder, ChecksumsFile), sums)
		got, want := "", strings.ReplaceAll(test.want, "FOLDER", folder)
		if err := CheckChecksums(t.Context(), folder); err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, want) || (got == "") != (want == "") {
			t.Errorf("%s: error %q, want %q", test.name, got, want)
		}
	}
}

func TestACheckpointWithoutChecksumsIsIncomplete(t *testing.T) {
	folder := checkpoint(t)
	path := filepath.Join(folder, ChecksumsFile)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	want := path + ": no such file: the checkpoint is incomplete; restore the file from a copy, or train again"
	if err := CheckChecksums(t.Context(), folder); err == nil || err.Error() != want {
		t.Errorf("CheckChecksums = %v, want %s", err, want)
	}
}

// What the error of a file that was changed says makes the checkpoint whole.
func TestAChangedFileIsAcceptedByItsNewSum(t *testing.T) {
	folder := checkpoint(t)
	sample.Write(t, filepath.Join(folder, "a"), "987654321")
	err := CheckChecksums(t.Context(), folder)
	if err == nil {
		t.Fatal("a changed file is no error")
	}
	_, advice, _ := strings.Cut(err.Error(), "write ")
	var now, was, path string
	if _, err := fmt.Sscanf(advice, "%s for %s in %s", &now, &was, &path); err != nil {
		t.Fatalf("%v in %q", err, advice)
	}
	path = strings.TrimSuffix(path, ")")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sample.Write(t, path, strings.Replace(string(text), was, now, 1))
	if err := CheckChecksums(t.Context(), folder); err != nil {
		t.Errorf("after %q: %v", advice, err)
	}
}

func TestASumEndsWithItsContext(t *testing.T) {
	large := filepath.Join(t.TempDir(), "model.safetensors")
	sample.Write(t, large, "")
	if err := os.Truncate(large, 1<<40); err != nil {
		t.Fatal(err)
	}
	for name, sum := range map[string]func(ctx context.Context) error{
		"CRC32C": func(ctx context.Context) error {
			_, err := CRC32C(ctx, large)
			return err
		},
		"WriteChecksums": func(ctx context.Context) error { return WriteChecksums(ctx, filepath.Dir(large)) },
		"CheckChecksums": func(ctx context.Context) error {
			sample.Write(t, filepath.Join(filepath.Dir(large), ChecksumsFile), "00000000  model.safetensors\n")
			return CheckChecksums(ctx, filepath.Dir(large))
		},
		"another name": func(ctx context.Context) error {
			sample.Write(t, filepath.Join(filepath.Dir(large), ChecksumsFile), "00000000  gone\n")
			return CheckChecksums(ctx, filepath.Dir(large))
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		begun := time.Now()
		if err := sum(ctx); err != context.Canceled || time.Since(begun) > 5*time.Second {
			t.Errorf("%s: %v after %v, want the context's error at once", name, err, time.Since(begun))
		}
	}
}

func FuzzChecksums(f *testing.F) {
	f.Add("e3069283  a\n")
	f.Add("e3069283  sub/b\n00000000  ../c")
	f.Fuzz(func(t *testing.T, text string) {
		sums, err := parseChecksums("sums", text)
		if err != nil {
			return
		}
		var again strings.Builder
		for _, s := range sums {
			if !filepath.IsLocal(filepath.FromSlash(s.name)) {
				t.Errorf("the file %q is out of the folder", s.name)
			}
			again.WriteString(s.line())
		}
		if again.String() != text {
			t.Errorf("%q is read as %q", text, again.String())
		}
	})
}
