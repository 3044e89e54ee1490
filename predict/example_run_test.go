package predict_test

import (
	"context"
	"log"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/run"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/internal/shared"
	"github.com/jenga-nlp/jenga/multitask/train"
	"github.com/jenga-nlp/jenga/predict"
)

func TestMain(m *testing.M) { os.Exit(shared.RunTests(m)) }

// trainedRun returns the folder of a run, which the first call trains.
var trainedRun = sync.OnceValue(func() string {
	dir := filepath.Join(shared.PackageDir(), "example")
	if err := os.Mkdir(dir, 0o700); err != nil {
		log.Fatal(err)
	}
	path, err := sample.WriteSmall(dir, "")
	if err != nil {
		log.Fatal(err)
	}
	e, err := config.Read(context.Background(), path, nil)
	if err != nil {
		log.Fatal(err)
	}
	r, err := run.Prepare(context.Background(), e, nil, config.Train, config.Dev)
	if err != nil {
		log.Fatal(err)
	}
	folder := filepath.Join(dir, "run")
	if _, err := r.Train(context.Background(), folder, func(train.Event) error { return nil }); err != nil {
		log.Fatal(err)
	}
	return folder
})

// inBytes counts the offsets of spans as Go's strings do.
var inBytes = predict.Form{Unit: corpus.Bytes}

func examplesOf(texts []string) (examples []*corpus.Example) {
	for _, text := range texts {
		examples = append(examples, &corpus.Example{Text: text})
	}
	return examples
}
