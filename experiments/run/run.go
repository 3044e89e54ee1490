// Package run trains an experiment's model and leaves it in a run folder: checkpoints, metrics, and the experiment as
// it ran.
package run

import (
	"slices"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/experiments/model"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/plugin"
)

// Run is a model that is ready to be trained as its experiment says.
type Run struct {
	Data     *dataset.Dataset
	Model    *multitask.Model
	Warnings []string // of the data, the model and its training

	built       *model.Assembled
	evaluated   bool              // whether evaluations on dev have metrics
	encoderSums map[string]string // of the encoder's files, where they are not copied
	machine     Machine
}

// New prepares a model for training, and checks that dev has labels for the metric that selects the best model.
func New(built *model.Assembled) (*Run, error) {
	r := &Run{
		Data: built.Data, Model: built.Model, Warnings: slices.Clone(built.Warnings),
		built: built, machine: ThisMachine(),
	}
	var mistakes plugin.Mistakes
	if r.experiment().Training.EvalStrategy == "no" {
		r.warnUntuned()
	} else {
		r.checkDev(&mistakes)
	}
	if _, err := r.plan(""); err != nil { // checks sampler and weighting against the model
		mistakes.Append(err)
	}
	if !mistakes.Empty() {
		return nil, mistakes.Err()
	}
	return r, nil
}

func (r *Run) experiment() *config.Experiment { return r.Data.Experiment }
