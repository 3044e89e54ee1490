package run

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/checkpoint"
	"github.com/jenga-nlp/jenga/internal/jsonfile"
	"github.com/jenga-nlp/jenga/internal/regular"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
)

// Checkpoint is the content of model.json, the description of a model: all of a checkpoint except tensors.
type Checkpoint struct {
	Format  int              `json:"format"` // of this file
	Jenga   string           `json:"jenga"`
	Encoder EncoderLocation  `json:"encoder"`
	Tasks   []CheckpointTask `json:"tasks"`

	path string // of this file
}

// EncoderLocation is the location of a checkpoint's encoder: a folder of the checkpoint, or, if frozen, of the base
// model.
type EncoderLocation struct {
	Folder string `json:"folder"` // relative to the checkpoint's, a frozen encoder's to the run's
	// of the files that a frozen encoder is read from, which are not copied
	SHA256 map[string]string `json:"sha256,omitempty"`

	model string // path of this model.json
}

// CheckpointTask is a task of a checkpoint, in the order of the experiment.
type CheckpointTask struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Pairs  bool   `json:"pairs,omitempty"`  // all its training examples are pairs
	Single bool   `json:"single,omitempty"` // none of its training examples is a pair
	// SplitAgreement is dataset.Dataset's; nil: it is good
	SplitAgreement *float64         `json:"split_agreement,omitempty"`
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

// copied reports whether the encoder and its tokenizer are in a folder of the checkpoint.
func (p EncoderLocation) copied() bool { return p.SHA256 == nil }

// OpenTokenizer opens the tokenizer beside the encoder.
func (p EncoderLocation) OpenTokenizer() (corpus.Tokenizer, error) {
	return corpus.OpenTokenizer(dataset.TokenizerFolder(p.Folder))
}

// ReadWeights reads the weights of a checkpoint except the encoder's.
func ReadWeights(folder string, m *multitask.Model) error {
	return checkpoint.Read(filepath.Join(folder, runfolder.TensorsFile), "the experiment", ownParams(m), nn.Params{})
}

// ownParams returns the parameters of a model except the encoder's.
func ownParams(m *multitask.Model) []*nn.Param {
	encoder := multitask.EncoderParams(m.Params).All()
	return slices.DeleteFunc(m.Params.All(), func(w *nn.Param) bool { return slices.Contains(encoder, w) })
}

// ReadCheckpoint reads the model.json of a checkpoint in a run's folder, and checks a frozen encoder's files against
// it.
func ReadCheckpoint(folder, run string) (Checkpoint, error) {
	path := filepath.Join(folder, runfolder.ModelFile)
	var about Checkpoint
	err := jsonfile.Read(path, maxCheckpointFile, &about)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Checkpoint{}, fmt.Errorf("%s: no such file: the checkpoint is incomplete; train the experiment again",
			path)
	case err != nil:
		return Checkpoint{}, err
	case about.Format == 0:
		return Checkpoint{}, fmt.Errorf("%s: no field \"format\"; want a file that jenga train has written", path)
	case about.Format != checkpointFormat:
		return Checkpoint{}, fmt.Errorf("%s: format %d; this jenga reads %d", path, about.Format, checkpointFormat)
	}
	if about.Encoder.copied() {
		about.Encoder.Folder = filepath.Join(folder, filepath.FromSlash(about.Encoder.Folder))
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
	if _, err := os.Stat(encoder); errors.Is(err, fs.ErrNotExist) {
		return Checkpoint{}, fmt.Errorf("%s: the frozen encoder it was trained with is not found in %s; restore it "+
			"there", path, encoder)
	}
	for _, name := range slices.Sorted(maps.Keys(about.Encoder.SHA256)) {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return Checkpoint{}, fmt.Errorf("%s: its frozen encoder's file %q is out of its folder", path, name)
		}
		file := filepath.Join(dataset.TokenizerFolder(encoder), filepath.FromSlash(name))
		sum, err := sumFile(file)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return Checkpoint{}, fmt.Errorf("%s: its frozen encoder's file %s does not exist", path, file)
		case err != nil:
			return Checkpoint{}, fmt.Errorf("%s: its frozen encoder: %w", path, err)
		case sum != about.Encoder.SHA256[name]:
			return Checkpoint{}, fmt.Errorf("%s: its frozen encoder's file %s is not the one it was trained with", path,
				file)
		}
	}
	return about, nil
}

// EncoderFiles lists the files that an encoder and its tokenizer were opened from.
func EncoderFiles(encoder encoders.Encoder, tokenizer corpus.Tokenizer) []string {
	return slices.Concat(tokenizer.Files(), encoder.Describe().Files)
}

// sumFiles returns the sha256 of files, by their paths relative to a folder.
func sumFiles(folder string, files []string) (map[string]string, error) {
	sums := map[string]string{}
	for _, file := range files {
		name, err := filepath.Rel(folder, file)
		if err != nil {
			return nil, err
		}
		if sums[filepath.ToSlash(name)], err = sumFile(file); err != nil {
			return nil, err
		}
	}
	return sums, nil
}

func sumFile(path string) (string, error) {
	file, err := regular.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Check returns an error if a frozen encoder was read from a file without a sum: a file added since training may be
// read in place of another.
func (p EncoderLocation) Check(files []string) error {
	for _, file := range files {
		name, err := filepath.Rel(dataset.TokenizerFolder(p.Folder), file)
		if err != nil {
			return err
		}
		// Sums were once of all files with these endings, so that of a graph's values in other files there may be none.
		summed := slices.Contains([]string{".json", ".txt", ".safetensors", ".onnx"}, filepath.Ext(name))
		if p.SHA256 != nil && p.SHA256[filepath.ToSlash(name)] == "" && summed {
			return fmt.Errorf("%s: its frozen encoder is read from %s, which it was not trained with", p.model, file)
		}
	}
	return nil
}
