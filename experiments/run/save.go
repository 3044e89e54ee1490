package run

import (
	"path/filepath"
	"slices"

	"github.com/jenga-nlp/jenga/experiments/checkpoint"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/safetensors"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
)

// saved returns the model as a checkpoint in folder has it, with copies of what learns, in the memory of copies.
func (r *Run) saved(folder string, copies *nn.Copies) (checkpoint.Model, error) {
	about, err := r.describe(folder)
	if err != nil {
		return checkpoint.Model{}, err
	}
	m := checkpoint.Model{About: about, Params: safetensors.CopyLearning(checkpoint.OwnParams(r.Model), copies),
		Adapters: checkpoint.Adapters(r.Model, slices.Concat(r.Model.Groups, r.built.Kept))}
	for i, a := range m.Adapters {
		m.Adapters[i].Params = safetensors.CopyLearning(a.Params, copies)
	}
	if about.Encoder.Copied() {
		m.Tokenizer, m.Encoder = r.Data.Tokenizer, r.Model.Encoder.Describe().Save(copies)
	}
	return m, nil
}

func (r *Run) describe(folder string) (checkpoint.Description, error) {
	encoder, err := r.locateEncoder(folder)
	if err != nil {
		return checkpoint.Description{}, err
	}
	about := checkpoint.Description{Encoder: encoder}
	if about.Base, err = r.locateBase(folder); err != nil {
		return checkpoint.Description{}, err
	}
	for _, task := range r.experiment().Tasks {
		g, t, err := r.Model.Group(task.Name)
		if err != nil {
			return checkpoint.Description{}, err
		}
		described := describeTask(task, g, t)
		if f1, low := r.Data.SplitAgreement[task.Name]; low {
			described.SplitAgreement = &f1
		}
		about.Tasks = append(about.Tasks, described)
	}

	// those that are kept and not trained, as the base run describes them
	kept := &multitask.Model{Groups: r.built.Kept}
	for _, task := range r.experiment().Kept {
		g, t, err := kept.Group(task.Name)
		if err != nil {
			continue
		}
		described := describeTask(task, g, t)
		if from := r.base.Task(task); from != nil {
			described.Pairs, described.Single, described.SplitAgreement = from.Pairs, from.Single, from.SplitAgreement
		}
		about.Tasks = append(about.Tasks, described)
	}
	return about, nil
}

// describeTask describes task number t of a group.
func describeTask(task config.Task, g *multitask.Group, t int) checkpoint.Task {
	described := checkpoint.Describe(task, g.Tasks[t])
	described.Adapter = g.Adapter
	return described
}

func (r *Run) locateEncoder(folder string) (checkpoint.Encoder, error) {
	if r.copiesEncoder() {
		return checkpoint.Encoder{Folder: runfolder.EncoderDir}, nil
	}
	if err := r.sumEncoder(); err != nil {
		return checkpoint.Encoder{}, err
	}
	path, err := runfolder.Relative(folder, r.built.EncoderPath)
	return checkpoint.Encoder{Folder: path, Sums: r.encoderSums}, err
}

// copiesEncoder reports whether checkpoints have the encoder, and do not refer to files of the base model.
func (r *Run) copiesEncoder() bool {
	encoder := r.Model.Encoder.Describe()
	saves, named := encoder.Save != nil, len(encoder.Files) > 0       // the run can refer to its files
	learns := !r.Model.Frozen() && !r.experiment().Model.LoRA.PerTask // adapters have files of their own
	return r.built.EncoderPath == "" || !named || saves && learns
}

// sumEncoder computes the sums of the encoder's files, once: if checkpoints refer to them, or those of the base model.
func (r *Run) sumEncoder() (err error) {
	if err := r.sumBase(); err != nil {
		return err
	}
	if r.copiesEncoder() || r.encoderSums.SHA256 != nil {
		return nil
	}
	r.encoderSums, err = checkpoint.SumFiles(dataset.TokenizerFolder(r.built.EncoderPath),
		checkpoint.EncoderFiles(r.Model.Encoder, r.Data.Tokenizer))
	return err
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
func (r *Run) locateBase(folder string) (*checkpoint.Base, error) {
	if err := r.sumBase(); err != nil || r.baseSums == nil {
		return nil, err
	}
	path, err := runfolder.Relative(folder, r.built.EncoderPath)
	if err != nil { // the base model was removed while the run trained
		path, err = filepath.Abs(r.built.EncoderPath)
	}
	return &checkpoint.Base{Folder: filepath.ToSlash(path), CRC32C: r.baseSums}, err
}
