package config

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/internal/sample"
)

// processor replaces the check of the processor: err is nil if it multiplies bfloat16.
func processor(t *testing.T, err error) {
	t.Helper()
	before := checkBFloat16
	checkBFloat16 = func() error { return err }
	t.Cleanup(func() { checkBFloat16 = before })
}

func TestBF16WhereTheProcessorCannotIsAnErrorWithItsPlace(t *testing.T) {
	processor(t, errors.New("this processor cannot"))
	path := sample.Small(t, "")
	_, err := Read(path, []string{"training.precision=bf16"})
	want := "--set training.precision=bf16: training: precision: bf16: this processor cannot; leave precision out, " +
		"or float32"
	if err == nil || err.Error() != want {
		t.Errorf("error is %v, want %s", err, want)
	}

	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), "batch_size: 8", "precision: bf16", 1)),
		0o644); err != nil {
		t.Fatal(err)
	}
	_, err = Read(path, nil)
	want = path + ":13:46: training: precision: bf16: this processor cannot; leave precision out, or float32"
	if err == nil || err.Error() != want {
		t.Errorf("error is %v, want %s", err, want)
	}
	if _, err := ReadTrained(path); err != nil { // a run trained in bf16 predicts on every processor
		t.Error(err)
	}
	if _, err := Read(path, []string{"training.precision=float32"}); err != nil {
		t.Error(err)
	}
}
