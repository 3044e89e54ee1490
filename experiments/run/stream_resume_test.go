package run

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/resume"
	"github.com/jenga-nlp/jenga/internal/sample"
)

func TestAResumedRunReportsItsPassesAndCanEndThem(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	sample.Tasks(t, "  - {name: mood, type: sentiment, data: {train: mails.jsonl, split: {dev: 0.2}, stream: true}}\n",
		map[string]string{"mails.jsonl": streamFiles()["mails.jsonl"]})
	sets := []string{"tokenizer.max_length=16"}
	r, err := ready(mustRead(t, "exp.yaml", sets...), config.Train, config.Dev)
	if err != nil {
		t.Fatal(err)
	}
	left := 2
	if _, err := r.Train(countdown{context.Background(), &left}, "run", ignore); !errors.Is(err, context.Canceled) {
		t.Fatalf("Train = %v", err)
	}
	found, err := resume.Find(t.Context(), "run")
	if err != nil || found.Checkpoint == "" {
		t.Fatalf("%+v, %v", found, err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	stop := func(string) func(done, of int) { return func(int, int) { cancel() } }
	if _, err := Resume(ctx, mustRead(t, found.File), found.Point, stop, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Resume = %v, want the error of the context", err)
	}

	var passes []string
	_, err = Resume(t.Context(), mustRead(t, found.File), found.Point, func(name string) func(done, of int) {
		passes = append(passes, name)
		return func(int, int) {}
	}, nil)
	if err != nil || len(passes) == 0 {
		t.Errorf("passes %q, %v", slices.Compact(passes), err)
	}
}
