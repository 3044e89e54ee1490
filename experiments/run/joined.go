package run

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/model"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/checkpoint"
	"github.com/jenga-nlp/jenga/nn"
)

// Joined is a run that is made of others: their tasks and heads on one encoder, which is a frozen base model in the run
// folder.
type Joined struct {
	Experiment *config.Experiment
	Tasks      []CheckpointTask
	Params     []*nn.Param // of heads and fusion
	Adapters   []JoinedAdapter
	Encoder    encoders.Saver // nil: the runs have the same frozen encoder, at Location
	Tokenizer  corpus.Tokenizer
	Location   EncoderLocation
	About      []byte   // JSON about the encoder's origin
	Inputs     []string // runs and base model that it is made of, which the run's folder must not hold

	// Check returns an error if the run, which is written, is of no use; nil for none.
	Check func() error
}

// JoinedAdapter is an adapter of the encoder, with the name that it has in the run, and the parameters of its own.
type JoinedAdapter struct {
	Name   string
	Params nn.Params
}

// Write writes the run to folder, in place of an earlier one if force is true, which is left as it was on an error. The
// encoder is in runfolder.EncoderDir, beside the checkpoints; the experiment's base model is set to it.
func (j Joined) Write(folder string, force bool) error {
	return writeMade(folder, force, j.Inputs, func() error {
		err := j.writeFiles(folder)
		if err == nil && j.Check != nil {
			err = j.Check()
		}
		return err
	})
}

// writeFiles writes the files of the run to folder, the experiment, which makes it a run, last.
func (j Joined) writeFiles(folder string) (err error) {
	// encoder
	encoder := filepath.Join(folder, runfolder.EncoderDir)
	location, base := j.Location, j.Location.Folder
	if j.Encoder != nil {
		base = encoder
		if location, err = j.writeEncoder(encoder); err != nil {
			return err
		}
	}
	if location.Folder, err = runfolder.Relative(folder, base); err != nil {
		return err
	}

	// checkpoint
	last := filepath.Join(folder, runfolder.LastDir)
	err = runfolder.Replace(last, func(fresh string) error { return j.writeCheckpoint(fresh, location) })
	if err != nil {
		return err
	}
	if err := runfolder.Link(last, filepath.Join(folder, runfolder.BestDir)); err != nil {
		return err
	}

	// metrics and experiment
	if err := runfolder.WriteFile(filepath.Join(folder, runfolder.MetricsFile), madeMetrics); err != nil {
		return err
	}
	var text bytes.Buffer
	j.Experiment.Model.BaseModel.Name = base
	if err := j.Experiment.Write(&text, folder); err != nil {
		return err
	}
	return runfolder.WriteFile(filepath.Join(folder, runfolder.ExperimentFile), text.Bytes())
}

// writeEncoder writes the encoder and its tokenizer to a folder, and returns its location there, with the sums of its
// files.
func (j Joined) writeEncoder(folder string) (EncoderLocation, error) {
	err := runfolder.Replace(folder, func(fresh string) error {
		if err := j.Encoder.Save(fresh); err != nil {
			return err
		}
		if err := j.Tokenizer.Save(fresh); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(fresh, runfolder.MergeFile), j.About, 0o644)
	})
	if err != nil {
		return EncoderLocation{}, err
	}
	var files []string
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		return EncoderLocation{}, err
	}
	sums, err := sumFiles(folder, files)
	return EncoderLocation{SHA256: sums.sha256, CRC32C: sums.crc32c}, err
}

// writeCheckpoint writes the weights of heads, fusion and adapters, and their description.
func (j Joined) writeCheckpoint(folder string, encoder EncoderLocation) error {
	if err := checkpoint.Write(filepath.Join(folder, runfolder.TensorsFile), j.Params, nn.Params{}); err != nil {
		return err
	}
	for _, a := range j.Adapters {
		if err := (savedAdapter{a.Name, a.Params.All(), a.Params}).write(folder); err != nil {
			return err
		}
	}
	about := Checkpoint{Format: checkpointFormat, Jenga: Version, Encoder: encoder, Tasks: j.Tasks}
	text, err := json.MarshalIndent(about, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, runfolder.ModelFile), append(text, '\n'), 0o644); err != nil {
		return err
	}
	return runfolder.WriteChecksums(folder)
}

// Refit prepares the run in folder to be trained again on its own data, by the options in its experiment file and in
// sets, with the labels and the weights of its checkpoint. Train then replaces it.
func Refit(folder string, sets []string) (*Run, error) {
	// what the run has saved
	file, saved, err := runfolder.Find(folder)
	if err != nil {
		return nil, err
	}
	about, err := ReadCheckpoint(saved, filepath.Dir(file))
	if err != nil {
		return nil, err
	}

	// data and model
	e, err := config.Read(file, sets)
	if err != nil {
		return nil, err
	}
	data, err := about.data(e, nil)
	if err != nil {
		return nil, err
	}
	built, err := model.New(data)
	if err != nil {
		return nil, err
	}
	r, err := newRun(built)
	if err != nil {
		return nil, err
	}
	r.encoderSums = fileSums{about.Encoder.SHA256, about.Encoder.CRC32C}
	return r, ReadWeights(saved, r.Model)
}
