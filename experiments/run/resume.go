package run

import (
	"fmt"
	"path/filepath"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/experiments/model"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/multitask"
)

// Resume opens the run in folder to continue its training, on the data of its experiment, with the labels and the
// tokenizer of its checkpoint. The model has its initial weights; the caller restores the trained ones with
// Training.Restore.
func Resume(folder string) (*Run, error) {
	// what the run has saved
	file, saved, err := runfolder.Find(folder)
	if err != nil {
		return nil, err
	}
	about, err := ReadCheckpoint(saved, filepath.Dir(file))
	if err != nil {
		return nil, err
	}
	if err := about.Encoder.CheckSHA256(); err != nil {
		return nil, err
	}
	labels, err := about.Labels()
	if err != nil {
		return nil, err
	}
	tokenizer, err := about.Encoder.OpenTokenizer()
	if err != nil {
		return nil, err
	}

	// data and model
	e, err := config.Read(file, nil)
	if err != nil {
		return nil, err
	}
	about.SetAdapters(e)
	data, err := dataset.Resume(e, tokenizer, labels, config.Train, config.Dev)
	if err != nil {
		return nil, err
	}
	built, err := model.Resume(data)
	if err != nil {
		return nil, err
	}
	if err := about.Encoder.Check(EncoderFiles(built.Model.Encoder, tokenizer)); err != nil {
		return nil, err
	}

	r, err := newRun(built)
	if err != nil {
		return nil, err
	}
	if err := r.resumeGrowth(); err != nil {
		return nil, err
	}
	r.encoderSums = fileSums{about.Encoder.SHA256, about.Encoder.CRC32C}
	return r, nil
}

// Labels returns the labels of each head.
func (c Checkpoint) Labels() (map[multitask.HeadName]*corpus.Labels, error) {
	labels := map[multitask.HeadName]*corpus.Labels{}
	for _, task := range c.Tasks {
		for _, head := range task.Heads {
			set, err := corpus.ParseLabels(head.Labels)
			if err != nil {
				return nil, fmt.Errorf("%s: task %q: head %q: %w", c.path, task.Name, head.Name, err)
			}
			labels[multitask.HeadName{Task: task.Name, Head: head.Name}] = set
		}
	}
	return labels, nil
}
