package run

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/jenga-nlp/jenga/experiments/checkpoint"
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
	m := checkpoint.Model{About: about, Params: safetensors.CopyParams(checkpoint.OwnParams(r.Model), copies),
		Adapters: checkpoint.Adapters(r.Model, slices.Concat(r.Model.Groups, r.built.Kept))}
	for i, a := range m.Adapters {
		m.Adapters[i].Params = safetensors.CopyParams(a.Params, copies)
	}
	if about.Encoder.Copied() {
		m.Tokenizer, m.Encoder = r.Data.Tokenizer, r.Model.Encoder.Describe().Save(copies)
	}
	return m, nil
}

func (r *Run) describe(folder string) (checkpoint.Description, error) {
	about, err := r.locateEncoder(folder)
	if err != nil {
		return checkpoint.Description{}, err
	}
	for _, task := range r.experiment().Tasks {
		g, t, err := r.Model.Group(task.Name)
		if err != nil {
			return checkpoint.Description{}, err
		}
		described := checkpoint.Describe(task, g, t)
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
		described := checkpoint.Describe(task, g, t)
		if from := r.base.Task(task); from != nil {
			described.Pairs, described.Single, described.SplitAgreement = from.Pairs, from.Single, from.SplitAgreement
		}
		about.Tasks = append(about.Tasks, described)
	}
	return about, nil
}

// locateEncoder returns a description that has the encoder alone, with the base model of one that is trained from it.
func (r *Run) locateEncoder(folder string) (about checkpoint.Description, err error) {
	about.Encoder.Folder = runfolder.EncoderDir
	// a training that was interrupted saves its last checkpoint
	if err := r.sumEncoder(context.Background()); err != nil || r.built.EncoderPath == "" {
		return about, err
	}
	base := r.sums
	base.Layers = r.experiment().Model.Layers
	base.Folder, err = runfolder.Relative(folder, r.built.EncoderPath)
	if !r.copiesEncoder() {
		about.Encoder = base
		return about, err
	}
	if err != nil { // the base model was removed while the run trained
		base.Folder, err = filepath.Abs(r.built.EncoderPath)
		base.Folder = filepath.ToSlash(base.Folder)
	}
	about.Base = &base
	return about, err
}

// copiesEncoder reports whether checkpoints have the encoder, and do not refer to files of the base model, which has
// other layers where the encoder has some of them.
func (r *Run) copiesEncoder() bool {
	encoder := r.Model.Encoder.Describe()
	saves, named := encoder.Save != nil, len(encoder.Files) > 0       // the run can refer to its files
	learns := !r.Model.Frozen() && !r.experiment().Model.LoRA.PerTask // adapters have files of their own
	chosen := r.experiment().Model.Layers != nil
	return r.built.EncoderPath == "" || !named || saves && (learns || chosen)
}

// sumEncoder computes the sums of the files that the encoder is read from, once: checkpoints refer to them, or have an
// encoder that is trained from them.
func (r *Run) sumEncoder(ctx context.Context) (err error) {
	if r.built.EncoderPath == "" || r.sums.CRC32C != nil {
		return nil
	}
	files, frozen := r.Model.Encoder.Describe().Files, !r.copiesEncoder()
	if frozen {
		files = checkpoint.EncoderFiles(r.Model.Encoder, r.Data.Tokenizer)
	}
	r.sums, err = checkpoint.SumFiles(ctx, r.built.EncoderPath, files, frozen)
	return err
}
