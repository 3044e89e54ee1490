package run

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/internal/checkpoint"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
)

// savedModel is a model as a checkpoint has it.
type savedModel struct {
	about     []byte           // model.json
	tokenizer corpus.Tokenizer // nil: the encoder is not in the checkpoint, nor is its tokenizer
	encoder   encoders.Saver   // nil: not in the checkpoint
	params    []*nn.Param      // except the encoder's
	adapters  []savedAdapter   // of the encoder
}

// saved returns the model for a checkpoint of the run in folder, with the parameters themselves.
func (r *Run) saved(folder string) (savedModel, error) {
	about, err := r.describe(folder)
	if err != nil {
		return savedModel{}, err
	}
	m := savedModel{params: ownParams(r.Model), adapters: r.savedAdapters()}
	if about.Encoder.copied() {
		m.tokenizer, m.encoder = r.Data.Tokenizer, r.Model.Encoder.(encoders.Saver)
	}
	m.about, err = json.MarshalIndent(about, "", "  ")
	return m, err
}

// copied returns the same model with copies of the parameters, which may change then, in the memory of copies. ok is
// false where the encoder cannot be copied.
func (m savedModel) copied(copies *nn.Copies) (c savedModel, ok bool) {
	c = m
	c.params = checkpoint.Copy(m.params, copies)
	c.adapters = make([]savedAdapter, len(m.adapters))
	for i, a := range m.adapters {
		c.adapters[i] = savedAdapter{a.name, checkpoint.Copy(a.params, copies), a.scope}
	}
	if m.encoder == nil {
		return c, true
	}
	saver, ok := m.encoder.(encoders.CopySaver)
	if ok {
		c.encoder = saver.Copy(copies)
	}
	return c, ok
}

// write writes the model to a new folder, with the checksums of its files.
func (m savedModel) write(folder string) error {
	if m.encoder != nil {
		path := filepath.Join(folder, runfolder.EncoderDir)
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
		if err := errors.Join(m.encoder.Save(path), m.tokenizer.Save(path)); err != nil {
			return err
		}
	}
	for _, a := range m.adapters {
		if err := a.write(folder); err != nil {
			return err
		}
	}
	if err := checkpoint.Write(filepath.Join(folder, runfolder.TensorsFile), m.params, nn.Params{}); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, runfolder.ModelFile), append(m.about, '\n'), 0o644); err != nil {
		return err
	}
	return runfolder.WriteChecksums(folder)
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
