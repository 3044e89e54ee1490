package run

import (
	"path/filepath"

	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
)

// BaseLocation is the base model that an encoder was trained from, which need not exist any more. Runs whose encoders
// have the same base can be merged.
type BaseLocation struct {
	Folder string            `json:"folder"` // relative to the run's
	CRC32C map[string]string `json:"crc32c"` // of the encoder's files, by their paths relative to its folder
}

// sumBase computes the sums of the base model's files, once, if checkpoints have an encoder that is trained from it.
func (r *Run) sumBase() error {
	if !r.copiesEncoder() || r.built.EncoderPath == "" || r.baseSums != nil {
		return nil
	}
	folder, sums := dataset.TokenizerFolder(r.built.EncoderPath), map[string]string{}
	for _, file := range r.Model.Encoder.Describe().Files {
		name, err := filepath.Rel(folder, file)
		if err != nil {
			return err
		}
		if sums[filepath.ToSlash(name)], err = runfolder.CRC32C(file); err != nil {
			return err
		}
	}
	r.baseSums = sums
	return nil
}

// locateBase returns the base model for a checkpoint of the run in folder, nil for an encoder from scratch or one that
// is not copied.
func (r *Run) locateBase(folder string) (*BaseLocation, error) {
	if err := r.sumBase(); err != nil || r.baseSums == nil {
		return nil, err
	}
	path, err := runfolder.Relative(folder, r.built.EncoderPath)
	if err != nil { // the base model was removed while the run trained
		path, err = filepath.Abs(r.built.EncoderPath)
	}
	return &BaseLocation{filepath.ToSlash(path), r.baseSums}, err
}

// resolve makes the folder, which is relative to that of a run, one that can be opened.
func (b *BaseLocation) resolve(run string) {
	if b == nil || filepath.IsAbs(filepath.FromSlash(b.Folder)) {
		return
	}
	if whole, err := runfolder.RealPath(run); err == nil {
		run = whole
	}
	b.Folder = filepath.Join(run, filepath.FromSlash(b.Folder))
}
