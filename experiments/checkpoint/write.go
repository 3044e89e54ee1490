package checkpoint

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/files"
	"github.com/jenga-nlp/jenga/internal/safetensors"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
)

// Model is a model as a checkpoint has it.
type Model struct {
	About     Description               // Write sets Format and Jenga
	Encoder   func(folder string) error // nil: it is not in the checkpoint, nor is its tokenizer
	Tokenizer corpus.Tokenizer          // beside the encoder; nil: Encoder saves it too
	Params    []*nn.Param               // except the encoder's
	Adapters  []Adapter                 // of the encoder
}

// Adapter is an adapter of the encoder, a file of its own.
type Adapter struct {
	Name   string
	Params []*nn.Param
	Scope  nn.Params // that they were made in
}

// Adapters returns the adapters of the groups of a model, with the parameters themselves.
func Adapters(m *multitask.Model, groups []multitask.Group) []Adapter {
	var all []Adapter
	for _, name := range adapters(groups) {
		scope := multitask.AdapterParams(m.Params, name)
		all = append(all, Adapter{name, scope.All(), scope})
	}
	return all
}

// Describe describes a task of an experiment, which is task t of a group.
func Describe(task config.Task, g *multitask.Group, t int) Task {
	built := g.Tasks[t]
	about := Task{Name: task.Name, Type: task.Part.Type, Pairs: built.Pairs, Single: built.Single, Adapter: g.Adapter}
	for h, head := range task.Heads {
		of := Head{Name: head.Name, Type: head.Part.Type, Labels: built.Heads[h].Labels.Names()}
		if tuner := built.Heads[h].Head.Describe().Tuner; tuner != nil {
			of.Thresholds = slices.Clone(tuner.Thresholds()) // which the next evaluation changes
		}
		about.Heads = append(about.Heads, of)
	}
	return about
}

// Write writes the model to a new folder, with the checksums of its files.
func (m Model) Write(ctx context.Context, folder string) error {
	if m.Encoder != nil {
		path := filepath.Join(folder, runfolder.EncoderDir)
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
		if err := m.saveEncoder(path); err != nil {
			return err
		}
	}
	for _, a := range m.Adapters {
		path := adapterFile(folder, a.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := safetensors.WriteParams(path, a.Params, a.Scope); err != nil {
			return err
		}
	}
	if err := safetensors.WriteParams(filepath.Join(folder, runfolder.TensorsFile), m.Params, nn.Params{}); err != nil {
		return err
	}
	m.About.Format, m.About.Jenga = format, Version
	if err := files.WriteJSON(filepath.Join(folder, runfolder.ModelFile), m.About); err != nil {
		return err
	}
	return runfolder.WriteChecksums(ctx, folder)
}

func (m Model) saveEncoder(folder string) error {
	if m.Tokenizer == nil {
		return m.Encoder(folder)
	}
	return errors.Join(m.Encoder(folder), m.Tokenizer.Save(folder))
}
