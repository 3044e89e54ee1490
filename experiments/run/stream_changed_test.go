package run

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/resume"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/multitask/train"
)

// TestStreamedDataThatWasReplacedOrEditedIsNoticed interrupts trainings whose file is replaced, or edited with its time
// kept, and resumes them by the same experiment file, whose index the cache has.
func TestStreamedDataThatWasReplacedOrEditedIsNoticed(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	sample.Tasks(t, "  - {name: mood, type: sentiment, data: {train: mails.jsonl, split: {dev: 0.2}, stream: true}}\n",
		map[string]string{"mails.jsonl": streamFiles()["mails.jsonl"]})
	text := streamFiles()["mails.jsonl"]
	edited := strings.Replace(text, " bill ", " bull ", 1) // of which there are many
	info, err := os.Stat("mails.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	sets := []string{"tokenizer.max_length=16"}
	r, err := ready(mustRead(t, "exp.yaml", sets...), config.Train, config.Dev)
	if err != nil {
		t.Fatal(err)
	}

	// another file of the same size and time in its place
	var warnings []string
	left := 2
	_, err = r.Train(countdown{context.Background(), &left}, "run", func(event train.Event) error {
		switch e := event.(type) {
		case train.Step:
			sample.Write(t, "new.jsonl", edited)
			return errors.Join(os.Chtimes("new.jsonl", info.ModTime(), info.ModTime()),
				os.Rename("new.jsonl", "mails.jsonl"))
		case train.Warning:
			warnings = append(warnings, e.Text)
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || !strings.Contains(strings.Join(warnings, "\n"), "replaced or deleted") {
		t.Fatalf("Train = %v, warnings %q", err, warnings)
	}

	resume := func(allowed ...string) error {
		found, err := resume.Find(t.Context(), "run")
		if err != nil {
			t.Fatal(err)
		}
		r, err := Resume(t.Context(), mustRead(t, "exp.yaml", sets...), found.Point, nil, allowed)
		if err != nil {
			return err
		}
		_, err = r.Train(context.Background(), "run", ignore)
		return err
	}
	const want = `data: training examples of task "mood"`
	if err := resume(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("with another file: %v, want %s", err, want)
	}
	sample.Write(t, "mails.jsonl", text)
	if err := resume(); err != nil {
		t.Errorf("with the file as it was: %v", err)
	}
	if metrics := sample.Files(t, "run")[runfolder.MetricsFile]; strings.Contains(metrics, "replaced or deleted") {
		t.Errorf("after it is resumed the metrics have the warning of the training before:\n%s", metrics)
	}
}

// TestAFileThatWasReplacedIsWarnedOfOnce streams one file as the data of two tasks, and replaces it.
func TestAFileThatWasReplacedIsWarnedOfOnce(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	sample.Tasks(t, "  - {name: mood, type: sentiment, data: {train: mails.jsonl, stream: true}}\n"+
		"  - {name: tone, type: classification, data: {train: mails.jsonl, stream: true}}\n"+
		"training: {num_epochs: 1, batch_size: 8, eval_strategy: no}\n",
		map[string]string{"mails.jsonl": streamFiles()["mails.jsonl"]})
	r, err := ready(mustRead(t, "exp.yaml", "tokenizer.max_length=16"), config.Train, config.Dev)
	if err != nil {
		t.Fatal(err)
	}
	var warnings []string
	_, err = r.Train(context.Background(), "run", func(event train.Event) error {
		switch e := event.(type) {
		case train.Step:
			sample.Write(t, "new.jsonl", streamFiles()["mails.jsonl"])
			return os.Rename("new.jsonl", "mails.jsonl")
		case train.Warning:
			warnings = append(warnings, e.Text)
			return errors.New("standard output is closed")
		}
		return nil
	})
	if err != nil || len(warnings) != 1 || strings.Contains(warnings[0], "resume") {
		t.Errorf("Train = %v, warnings %q, want one", err, warnings)
	}
}

// TestAResumedTrainingMayStreamOrNot interrupts trainings and goes on with them with the other value of stream.
func TestAResumedTrainingMayStreamOrNot(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	sample.Tasks(t, "  - {name: mood, type: sentiment, data: {train: mails.jsonl, split: {dev: 0.2}, stream: true}}\n",
		map[string]string{"mails.jsonl": streamFiles()["mails.jsonl"]})
	prepared := func(stream string) *Run {
		r, err := ready(mustRead(t, "exp.yaml", "tokenizer.max_length=16", "tasks.mood.data.stream="+stream),
			config.Train, config.Dev)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if _, err := prepared("false").Train(context.Background(), "whole", ignore); err != nil {
		t.Fatal(err)
	}
	for stream, other := range map[string]string{"true": "false", "false": "true"} {
		left, folder := 5, "streams-"+stream
		if _, err := prepared(stream).Train(countdown{context.Background(), &left}, folder, ignore); err == nil {
			t.Fatal("training was not interrupted")
		}
		found, err := resume.Find(t.Context(), folder)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Resume(t.Context(), mustRead(t, found.File, "tasks.mood.data.stream="+other), found.Point, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Train(context.Background(), folder, ignore); err != nil {
			t.Fatal(err)
		}
		want, got := result(t, "whole"), result(t, folder)
		delete(want, runfolder.ExperimentFile)
		delete(got, runfolder.ExperimentFile)
		checkSameResult(t, "with stream: "+other+" after "+stream, got, want)
	}
}
