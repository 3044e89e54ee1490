// Package run trains an experiment's model and leaves it in a run folder: checkpoints, metrics, and the experiment as
// it ran.
package run

import (
	"slices"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/experiments/model"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/plugin"
)

// Run is a model that is ready to be trained as its experiment says.
type Run struct {
	Data     *dataset.Dataset
	Model    *multitask.Model
	Warnings []string // of the data, the model and its training
	Keep     bool     // Train returns an error if its folder holds a run
	// Restored is called when Train has restored the state of the checkpoint that it continues from, before it goes on,
	// with the step that it goes on after; it may be nil.
	Restored func(after report.State)

	Growth *report.Growth // what it takes over from a run; nil: it continues none

	built       *model.Assembled
	evaluated   bool              // whether evaluations on dev have metrics
	plan        multitask.Plan    // without CacheFile
	encoderSums fileSums          // of the encoder's files, where they are not copied
	baseSums    map[string]string // CRC-32C of the base model's files, by their paths; nil: not computed yet
	resumed     *resumption       // nil: trained from the start
	machine     Machine
	base        *model.Base // that it continues; nil: none
	rankNames   []string    // of the processes of the training, for messages
}

// Prepare reads the data of an experiment's splits, builds its model and prepares it for training.
func Prepare(e *config.Experiment, splits ...string) (*Run, error) {
	return PrepareWatched(e, nil, splits...)
}

// PrepareWatched is Prepare that reports the passes over streamed training data to watch, which may be nil.
func PrepareWatched(e *config.Experiment, watch dataset.Watch, splits ...string) (*Run, error) {
	if e.Model.BaseRun != nil {
		return grow(e, watch, splits)
	}
	data, err := dataset.LoadWatched(e, watch, splits...)
	if err != nil {
		return nil, withEncoder(e, err)
	}
	built, err := model.New(data)
	if err != nil {
		return nil, err
	}
	return newRun(built)
}

// withEncoder returns the mistakes of an experiment's data, err, and those of its encoder.
func withEncoder(e *config.Experiment, err error) error {
	var mistakes plugin.Mistakes
	mistakes.Append(err)
	mistakes.Append(model.CheckEncoder(e))
	return mistakes.Err()
}

// Mistakes returns err, with which config.Read returned e, and the mistakes of data and encoder that can be found all
// the same. e may be nil.
func Mistakes(e *config.Experiment, err error, splits ...string) error {
	if e == nil {
		return err
	}
	var mistakes plugin.Mistakes
	mistakes.Append(err)
	mistakes.Append(dataset.Check(e, splits...))
	if !e.ModelMistaken {
		mistakes.Append(model.CheckEncoder(e))
	}
	return mistakes.Err()
}

// newRun prepares a model for training, and checks that dev has labels for the metric that selects the best model.
func newRun(built *model.Assembled) (*Run, error) {
	r := &Run{
		Data: built.Data, Model: built.Model, Warnings: slices.Clone(built.Warnings),
		built: built, machine: ThisMachine(),
	}
	var mistakes plugin.Mistakes
	if r.experiment().Training.EvalStrategy != "no" {
		r.checkDev(&mistakes)
	}
	r.warnUntuned()
	r.warnShards()
	var err error
	if r.plan, err = r.newPlan(); err != nil {
		mistakes.Append(err)
	}
	if !mistakes.Empty() {
		return nil, mistakes.Err()
	}
	return r, nil
}

func (r *Run) experiment() *config.Experiment { return r.Data.Experiment }
