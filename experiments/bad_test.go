package experiments

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/jenga-nlp/jenga/encoders/transformer"
)

var update = flag.Bool("update", false, "write the .want files of testdata/bad and of testdata/bad_data anew")

// Each file of testdata/bad has one mistake, at another place in the code than all others. The .want file beside it
// holds what a user reads.
func TestBadFiles(t *testing.T) {
	t.Setenv("JENGA_DATA", "")
	t.Setenv("JENGA_MODELS", "")
	t.Chdir("testdata/bad")
	files, err := filepath.Glob("*.yaml")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d files, %v; want at least 30", len(files), err)
	}
	for _, file := range files {
		_, err := Read(file, nil)
		if err == nil {
			t.Errorf("%s is read without an error", file)
			continue
		}
		checkMessage(t, err, strings.TrimSuffix(file, ".yaml")+".want")
	}
}

// Each folder of testdata/bad_data has an experiment that is well by itself, and data with mistakes. What a user reads is
// in its file want.
func TestBadData(t *testing.T) {
	folders, err := filepath.Glob("testdata/bad_data/*")
	if err != nil || len(folders) < 15 {
		t.Fatalf("%d folders, %v; want at least 15", len(folders), err)
	}
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			t.Chdir(folder)
			e, err := Read("experiment.yaml", nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err = Prepare(e, Train, Dev, Test); err == nil {
				t.Fatal("it is prepared without an error")
			}
			checkMessage(t, err, "want")
		})
	}
}

// checkMessage compares what a user reads with a file, or writes the file.
func checkMessage(t *testing.T, err error, file string) {
	t.Helper()
	got := err.Error() + "\n"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || got != string(want) {
		t.Errorf("%s:\n got %swant %s%v", file, got, want, err)
	}
}
