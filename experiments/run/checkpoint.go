package run

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/checkpoint"
	"github.com/jenga-nlp/jenga/internal/jsonfile"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
)

// Checkpoint is the content of model.json, the description of a model: all of a checkpoint except tensors.
type Checkpoint struct {
	Format  int              `json:"format"` // of this file
	Jenga   string           `json:"jenga"`
	Encoder EncoderLocation  `json:"encoder"`
	Base    *BaseLocation    `json:"base,omitempty"` // of an encoder that is copied; nil: it was trained from scratch
	Tasks   []CheckpointTask `json:"tasks"`
	// Quantized is what a quantized run was made of; nil: its weights are float32.
	Quantized *Quantization `json:"quantized,omitempty"`

	path string // of this file
}

// CheckpointTask is a task of a checkpoint, in the order of the experiment.
type CheckpointTask struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Pairs  bool   `json:"pairs,omitempty"`  // all its training examples are pairs
	Single bool   `json:"single,omitempty"` // none of its training examples is a pair
	// SplitAgreement is dataset.Dataset's; nil: it is good
	SplitAgreement *float64         `json:"split_agreement,omitempty"`
	Adapter        string           `json:"adapter,omitempty"` // of the encoder, a file of the folder adapters
	Heads          []CheckpointHead `json:"heads"`
}

// CheckpointHead is a head of a task of a checkpoint.
type CheckpointHead struct {
	Name   string   `json:"name"`
	Type   string   `json:"type"`
	Labels []string `json:"labels"`
	// Thresholds are the least probabilities of predicted labels, for information: the tensors have them too.
	Thresholds []float32 `json:"thresholds,omitempty"`
}

const checkpointFormat = 1

// maxCheckpointFile bounds the size in bytes of a model.json, which lists all labels.
const maxCheckpointFile = 256 << 20

// ReadWeights reads the weights of a checkpoint except the encoder's, and the encoder's adapters.
func ReadWeights(folder string, m *multitask.Model) error {
	if err := readAdapters(folder, m); err != nil {
		return err
	}
	return checkpoint.Read(filepath.Join(folder, runfolder.TensorsFile), "the experiment", ownParams(m), nn.Params{})
}

// ownParams returns the parameters of a model except the encoder's.
func ownParams(m *multitask.Model) []*nn.Param {
	encoder := multitask.EncoderParams(m.Params).All()
	return slices.DeleteFunc(m.Params.All(), func(w *nn.Param) bool { return slices.Contains(encoder, w) })
}

// ReadCheckpoint reads the model.json of a checkpoint in a run's folder. It checks the CRC-32C of the checkpoint's
// files, and of a frozen encoder's.
func ReadCheckpoint(folder, run string) (Checkpoint, error) {
	path := filepath.Join(folder, runfolder.ModelFile)
	var about Checkpoint
	err := jsonfile.Read(path, maxCheckpointFile, &about)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Checkpoint{}, runfolder.Missing(path)
	case err != nil:
		return Checkpoint{}, err
	case about.Format == 0:
		return Checkpoint{}, fmt.Errorf("%s: no field \"format\"; want a file that jenga train has written", path)
	case about.Format != checkpointFormat:
		return Checkpoint{}, fmt.Errorf("%s: format %d; this jenga reads %d", path, about.Format, checkpointFormat)
	}
	if err := about.checkAdapters(path); err != nil {
		return Checkpoint{}, err
	}
	if err := runfolder.CheckChecksums(folder); err != nil {
		return Checkpoint{}, err
	}
	if about.Encoder.copied() {
		about.Encoder.Folder = filepath.Join(folder, filepath.FromSlash(about.Encoder.Folder))
		about.Base.resolve(run)
		return about, nil
	}

	encoder := filepath.FromSlash(about.Encoder.Folder)
	if !filepath.IsAbs(encoder) {
		run, err := runfolder.RealPath(run)
		if err != nil {
			return Checkpoint{}, err
		}
		encoder = filepath.Join(run, encoder)
	}
	about.Encoder.Folder = encoder
	about.Encoder.model = path
	return about, about.Encoder.checkFiles()
}
