package run

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/resume"
	"github.com/jenga-nlp/jenga/internal/sample"
)

// heldFiles lists the files below the working directory that the process has open or mapped.
func heldFiles(t *testing.T) []string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	var held []string
	descriptors, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	for _, d := range descriptors {
		if path, err := os.Readlink(filepath.Join("/proc/self/fd", d.Name())); err == nil &&
			strings.HasPrefix(path, dir+"/") {
			held = append(held, "open: "+strings.TrimPrefix(path, dir))
		}
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Skip(err)
	}
	for line := range strings.Lines(string(maps)) {
		if _, path, ok := strings.Cut(line, dir); ok {
			held = append(held, "mapped: "+strings.TrimSpace(path))
		}
	}
	return held
}

const streamedTask = "  - {name: m, type: classification, data: {train: texts.jsonl, dev: dev.jsonl, stream: true}}\n"

// ofBase writes an experiment of streamedTask, and more tasks, that continues a frozen encoder.
func ofBase(t *testing.T, model, more string) string {
	t.Helper()
	sample.Write(t, "of.yaml", "model: {base_model: base/best/encoder, freeze: all"+model+
		"}\ntokenizer: {max_length: 32}\ntasks:\n"+streamedTask+more)
	return "of.yaml"
}

// A run that cannot be trained leaves no file open or mapped: of its streamed data, and of a frozen encoder.
func TestARunThatIsRefusedHoldsNoFiles(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	unlabelled := strings.Repeat("{\"text\": \"so it is\"}\n", 8)
	var texts strings.Builder
	for i := range 60 {
		fmt.Fprintf(&texts, "{\"text\": \"note %d of mine\", \"label\": %q}\n", i, []string{"a", "b"}[i%2])
	}
	sample.Tasks(t, streamedTask, map[string]string{"texts.jsonl": texts.String(), "dev.jsonl": texts.String(),
		"bad.jsonl": unlabelled})
	trainSmall(t, "exp.yaml", "base", "training.max_steps=2")
	const patience = "training.early_stopping_patience=2"
	interruptIn(t, "run", ofBase(t, "", ""), 3, patience)
	trainSmall(t, ofBase(t, "", ""), "whole", "training.max_steps=2")

	ready := func(path string, sets ...string) (*Run, error) {
		return Prepare(t.Context(), mustRead(t, path, sets...), nil, config.Train, config.Dev)
	}
	r := mustPrepare(t, ofBase(t, "", ""))
	if held := strings.Join(heldFiles(t), "\n"); !strings.Contains(held, "open: /texts.jsonl") ||
		!strings.Contains(held, "mapped: /base/best/encoder/") {
		t.Errorf("a run that is ready holds %q, want its data and encoder", held)
	}
	r.closeAfter(os.ErrInvalid)

	for _, c := range []struct {
		name, dev, want string
		prepare         func() (*Run, error)
	}{
		{"data", "", "bad.jsonl", func() (*Run, error) {
			return ready(ofBase(t, "", "  - {name: odd, type: classification, data: {train: bad.jsonl}}\n"))
		}},
		{"fusion", "", "layers", func() (*Run, error) {
			return ready(ofBase(t, ", fusion: {type: mix, layers: 99}", ""))
		}},
		{"dev", unlabelled, "no dev example", func() (*Run, error) { return ready(ofBase(t, "", ""), patience) }},
		{"resume", unlabelled, "no dev example is labelled", func() (*Run, error) {
			found, err := resume.Find(t.Context(), "run")
			if err != nil {
				t.Fatal(err)
			}
			return Resume(t.Context(), mustRead(t, ofBase(t, "", ""), patience), found.Point, nil, nil)
		}},
		{"refit", unlabelled, "no dev example is labelled", func() (*Run, error) {
			return Refit(t.Context(), "whole", []string{patience})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			sample.Write(t, "dev.jsonl", cmp.Or(c.dev, texts.String()))
			before := heldFiles(t) // by runs that were trained
			r, err := c.prepare()
			if r != nil || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, error %v, want %q", r, err, c.want)
			}
			if held := heldFiles(t); len(held) > len(before) {
				t.Errorf("after %v: %q, before %q", err, held, before)
			}
		})
	}
}
