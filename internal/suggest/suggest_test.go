package suggest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	names := []string{"dropout", "crf", "linear", "max_pool"}
	for word, want := range map[string]string{
		"droput": "dropout", "dorpout": "dropout", "Dropout": "dropout", "max_pol": "max_pool", "maxpool": "max_pool",
		"cfr": "crf", "cr": "crf", "xyz": "", "bilinear": "linear", "focus": "", "": "", strings.Repeat("x", 1<<20): "",
	} {
		if got, ok := Nearest(word, names); got != want || ok != (want != "") {
			t.Errorf("Nearest(%.20q) = %q, %v; want %q", word, got, ok, want)
		}
	}
}

func TestEdits(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"kitten", "sitting", 3}, {"ab", "ba", 1}, {"abcd", "acbd", 1},
		{"é", "e", 1}} {
		if got := edits(test.a, test.b); got != test.want {
			t.Errorf("edits(%q, %q) = %d, want %d", test.a, test.b, got, test.want)
		}
	}
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, path := range []string{"runs/mails/model", "data/train.csv", "train.csv", ".hidden/train.csv"} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct{ path, written, want string }{
		{"trian.csv", "trian.csv", "train.csv"},
		{"data/trian.csv", "data/trian.csv", "data/train.csv"},
		{"dta/train.csv", "dta/train.csv", "data/train.csv"},
		{"dta/trian.csv", "dta/trian.csv", "data/train.csv"},
		{"./dta/train.csv", "dta/train.csv", "data/train.csv"},
		{"run/mail/modl", "run/mail/modl", "runs/mails/model"},
		{"data/../trian.csv", "data/../trian.csv", "train.csv"},
		{dir + "/data/trian.csv", "trian.csv", "train.csv"},
		{dir + "/dta/train.csv", "dta/train.csv", "data/train.csv"},
		{dir + "/dta/train.csv", "train.csv", ""}, // a folder that the user did not write
		{dir + "/dta/train.csv", dir + "/dta/train.csv", dir + "/data/train.csv"},
		{"hiden/train.csv", "hiden/train.csv", ""},
		{"none/train.csv", "none/train.csv", ""},
		{"data/none", "data/none", ""},
		{"/nothing/of/this", "/nothing/of/this", ""},
	} {
		want := ""
		if test.want != "" {
			want = "; did you mean \"" + test.want + "\"?"
		}
		if got := File(test.path, test.written, AnyFile); got != want {
			t.Errorf("File(%q, %q) = %q, want %q", test.path, test.written, got, want)
		}
	}
}
