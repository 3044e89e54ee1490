package run

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/files"
	"github.com/jenga-nlp/jenga/internal/jsonfile"
	"github.com/jenga-nlp/jenga/multitask"
)

// Quantization is what a run with weights in int8 was made of.
type Quantization struct {
	Run  string   `json:"run"`            // its folder, or that of its checkpoint, relative to this run's
	Keep []string `json:"keep,omitempty"` // layers whose weights are float32
}

// Check returns an error for a run that is quantized, in folder: it has no weights that learn.
func (q *Quantization) Check(folder string) error {
	if q == nil {
		return nil
	}
	return fmt.Errorf("%s: it is quantized to int8, and is neither trained nor merged nor quantized again; want the "+
		"run that it was made of, %s", folder, filepath.Join(folder, filepath.FromSlash(q.Run)))
}

// checkQuantized is Check of the run in folder; it returns nil where there is no best model to read.
func checkQuantized(folder string) error {
	var about Checkpoint
	path := filepath.Join(folder, runfolder.BestDir, runfolder.ModelFile)
	if err := jsonfile.Read(path, maxCheckpointFile, &about); err != nil {
		return nil // whoever opens the run reports it
	}
	return about.Quantized.Check(folder)
}

// Quantized is a run with weights in int8, made of another one. It refers to no files of that.
type Quantized struct {
	Experiment *config.Experiment
	Of         Checkpoint // that it is made of
	From       string     // folder of the run, or of its checkpoint
	Keep       []string   // see Quantization
	Root       string     // folder of the run
	Model      *multitask.Model
	Encoder    encoders.Saver
	Tokenizer  corpus.Tokenizer
}

// Inputs returns the files and folders that the run is made of, which its folder must not hold.
func (q Quantized) Inputs() []string { return []string{q.Root, q.Of.Encoder.Folder} }

// Write writes the run to folder, in place of an earlier one if force is true, which is left as it was on an error or
// where check, if not nil, returns one of the new run.
func (q Quantized) Write(folder string, force bool, check func() error) error {
	return writeMade(folder, force, q.Inputs(), func() error {
		if err := q.writeFiles(folder); err != nil || check == nil {
			return err
		}
		return check()
	})
}

// writeFiles writes the files of the run to folder, the experiment, which makes it a run, last.
func (q Quantized) writeFiles(folder string) error {
	from, err := runfolder.Relative(folder, q.From)
	if err != nil {
		return err
	}
	about := Checkpoint{Format: checkpointFormat, Jenga: Version, Tasks: append([]CheckpointTask(nil), q.Of.Tasks...),
		Encoder: EncoderLocation{Folder: runfolder.EncoderDir}, Quantized: &Quantization{from, q.Keep}}
	for i := range about.Tasks {
		about.Tasks[i].Adapter = "" // it is in the weights
	}
	saved := savedModel{tokenizer: q.Tokenizer, encoder: q.Encoder, params: ownParams(q.Model)}
	if saved.about, err = json.MarshalIndent(about, "", "  "); err != nil {
		return err
	}
	if err := runfolder.Replace(filepath.Join(folder, runfolder.BestDir), saved.write); err != nil {
		return err
	}

	splits := filepath.Join(q.Root, runfolder.SplitsFile)
	if runfolder.Exists(splits) {
		if err := files.Copy(splits, filepath.Join(folder, runfolder.SplitsFile)); err != nil {
			return err
		}
	}
	if err := runfolder.WriteFile(filepath.Join(folder, runfolder.MetricsFile), madeMetrics); err != nil {
		return err
	}
	var text bytes.Buffer
	if err := q.Experiment.Write(&text, folder); err != nil {
		return err
	}
	return runfolder.WriteFile(filepath.Join(folder, runfolder.ExperimentFile), text.Bytes())
}
