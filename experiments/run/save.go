package run

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/internal/checkpoint"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
)

// save writes the model to a folder of the run: beside it first, then renamed, so that a complete checkpoint exists at
// any moment.
func (r *Run) save(folder string) error {
	return runfolder.Replace(folder, func(fresh string) error {
		about, err := r.describe(filepath.Dir(folder))
		if err != nil {
			return err
		}
		if err := r.writeWeights(fresh, about.Encoder.copied()); err != nil {
			return err
		}
		if err := r.writeDescription(fresh, about); err != nil {
			return err
		}
		return runfolder.WriteChecksums(fresh)
	})
}

// describe returns the description of the model for a checkpoint of the run in folder.
func (r *Run) describe(folder string) (Checkpoint, error) {
	encoder, err := r.locateEncoder(folder)
	if err != nil {
		return Checkpoint{}, err
	}
	about := Checkpoint{Format: checkpointFormat, Jenga: Version, Encoder: encoder}
	if about.Base, err = r.locateBase(folder); err != nil {
		return Checkpoint{}, err
	}
	for _, task := range r.experiment().Tasks {
		g, t, err := r.Model.Group(task.Name)
		if err != nil {
			return Checkpoint{}, err
		}
		described := describeTask(task, g.Tasks[t])
		described.Adapter = g.Adapter
		if f1, low := r.Data.SplitAgreement[task.Name]; low {
			described.SplitAgreement = &f1
		}
		about.Tasks = append(about.Tasks, described)
	}
	about.Tasks = append(about.Tasks, r.describeKept()...)
	return about, nil
}

// describeTask describes a task that is built with its heads.
func describeTask(task config.Task, built multitask.Task) CheckpointTask {
	about := CheckpointTask{Name: task.Name, Type: task.Part.Type, Pairs: built.Pairs, Single: built.Single}
	for h, head := range task.Heads {
		of := CheckpointHead{Name: head.Name, Type: head.Part.Type, Labels: built.Heads[h].Labels.Names()}
		if tuner := heads.TunerOf(built.Heads[h].Head); tuner != nil {
			of.Thresholds = tuner.Thresholds()
		}
		about.Heads = append(about.Heads, of)
	}
	return about
}

// locateEncoder returns the location of the encoder for a checkpoint of the run in folder.
func (r *Run) locateEncoder(folder string) (EncoderLocation, error) {
	if r.copiesEncoder() {
		return EncoderLocation{Folder: runfolder.EncoderDir}, nil
	}
	if err := r.sumEncoder(); err != nil {
		return EncoderLocation{}, err
	}
	path, err := runfolder.Relative(folder, r.built.EncoderPath)
	return EncoderLocation{Folder: path, SHA256: r.encoderSums.sha256, CRC32C: r.encoderSums.crc32c}, err
}

// copiesEncoder reports whether checkpoints have the encoder, and do not refer to files of the base model.
func (r *Run) copiesEncoder() bool {
	_, saves := r.Model.Encoder.(encoders.Saver)
	named := len(r.Model.Encoder.Describe().Files) > 0                // the run can refer to its files
	learns := !r.Model.Frozen() && !r.experiment().Model.LoRA.PerTask // adapters have files of their own
	return r.built.EncoderPath == "" || !named || saves && learns
}

// sumEncoder computes the sums of the encoder's files, once: if checkpoints refer to them, or those of the base model.
func (r *Run) sumEncoder() (err error) {
	if err := r.sumBase(); err != nil {
		return err
	}
	if r.copiesEncoder() || r.encoderSums.sha256 != nil {
		return nil
	}
	r.encoderSums, err = sumFiles(dataset.TokenizerFolder(r.built.EncoderPath),
		EncoderFiles(r.Model.Encoder, r.Data.Tokenizer))
	return err
}

// writeDescription writes a description to a checkpoint's folder: model.json, and the tokenizer if it is copied.
func (r *Run) writeDescription(folder string, about Checkpoint) error {
	if about.Encoder.copied() {
		path := filepath.Join(folder, runfolder.EncoderDir)
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
		if err := r.Data.Tokenizer.Save(path); err != nil {
			return err
		}
	}
	text, err := json.MarshalIndent(about, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, runfolder.ModelFile), append(text, '\n'), 0o644)
}

// writeWeights writes the weights of fusion and heads to a checkpoint's folder, and the encoder if it is copied.
func (r *Run) writeWeights(folder string, copied bool) error {
	if copied {
		path := filepath.Join(folder, runfolder.EncoderDir)
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
		if err := r.Model.Encoder.(encoders.Saver).Save(path); err != nil {
			return err
		}
	}
	if err := r.writeAdapters(folder); err != nil {
		return err
	}
	return checkpoint.Write(filepath.Join(folder, runfolder.TensorsFile), ownParams(r.Model), nn.Params{})
}
