package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/experiments/model"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/checkpoint"
	"github.com/jenga-nlp/jenga/internal/files"
	"github.com/jenga-nlp/jenga/internal/jsonfile"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
)

// savedModel is a model as a checkpoint has it.
type savedModel struct {
	about     []byte           // model.json
	tokenizer corpus.Tokenizer // nil: the encoder is not in the checkpoint, nor is its tokenizer
	encoder   savedEncoder     // not in the checkpoint where it has no save
	params    []*nn.Param      // except the encoder's
	adapters  []savedAdapter   // of the encoder
}

// savedEncoder are the functions that save an encoder: see encoders.Description.
type savedEncoder struct {
	save   func(folder string) error
	copied func(copies *nn.Copies) (save func(folder string) error)
}

// saved returns the model for a checkpoint of the run in folder, with the parameters themselves.
func (r *Run) saved(folder string) (savedModel, error) {
	about, err := r.describe(folder)
	if err != nil {
		return savedModel{}, err
	}
	m := savedModel{params: ownParams(r.Model), adapters: r.savedAdapters()}
	if about.Encoder.copied() {
		encoder := r.Model.Encoder.Describe()
		m.tokenizer, m.encoder = r.Data.Tokenizer, savedEncoder{encoder.Save, encoder.Copy}
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
	if m.encoder.save == nil {
		return c, true
	}
	if m.encoder.copied == nil {
		return c, false
	}
	c.encoder = savedEncoder{save: m.encoder.copied(copies)}
	return c, true
}

// write writes the model to a new folder, with the checksums of its files.
func (m savedModel) write(folder string) error {
	if m.encoder.save != nil {
		path := filepath.Join(folder, runfolder.EncoderDir)
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
		if err := errors.Join(m.encoder.save(path), m.tokenizer.Save(path)); err != nil {
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
		if tuner := built.Heads[h].Head.Describe().Tuner; tuner != nil {
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
	if r.copiesEncoder() || r.encoderSums.sha256 != nil {
		return nil
	}
	r.encoderSums, err = sumFiles(dataset.TokenizerFolder(r.built.EncoderPath),
		EncoderFiles(r.Model.Encoder, r.Data.Tokenizer))
	return err
}

// Joined is a run that is made of others: their tasks and heads on one encoder, which is a frozen base model in the run
// folder.
type Joined struct {
	Experiment *config.Experiment
	Tasks      []CheckpointTask
	Params     []*nn.Param // of heads and fusion
	Adapters   []JoinedAdapter
	Encoder    func(folder string) error // saves it; nil: the runs have the same frozen encoder, at Location
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
		if err := j.Encoder(fresh); err != nil {
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
	Encoder    func(folder string) error // saves it
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
	saved := savedModel{tokenizer: q.Tokenizer, encoder: savedEncoder{save: q.Encoder}, params: ownParams(q.Model)}
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

// CheckMade returns an error if no run that is made of others can be written to folder: another training writes to it,
// it holds a run and force is false, it holds other files, or it is, holds or lies in one of the inputs.
func CheckMade(folder string, force bool, inputs []string) error {
	if err := checkInputs(folder, inputs); err != nil {
		return err
	}
	if err := runfolder.CheckUnlocked(folder); err != nil {
		return err
	}
	return checkFiles(folder, force, hasLockFile(folder))
}

// writeMade writes a run that is made of others, the inputs, to folder by write, in place of an earlier one if force is
// true, which is left as it was on an error. Of a new run nothing is left then, nor of a folder that there was not.
func writeMade(folder string, force bool, inputs []string, write func() error) (err error) {
	// before a lock file is created or removed
	if err := CheckMade(folder, force, inputs); err != nil {
		return err
	}
	killed := hasLockFile(folder)

	// folder, which is this run's alone
	if !runfolder.Exists(folder) {
		defer func() {
			if err != nil {
				os.Remove(folder) // if it is empty
			}
		}()
	}
	lock, err := runfolder.Acquire(folder)
	if err != nil {
		return err
	}
	defer lock.Release()
	if err := checkFiles(folder, force, killed); err != nil { // another may have written a run meanwhile
		return err
	}

	// an earlier run, after a kill too
	if err := abandon(folder); err != nil {
		return err
	}
	if err := setAside(folder, ""); err != nil {
		return errors.Join(err, abandon(folder))
	}

	// the run, and in its place the earlier one where it fails
	if err := write(); err != nil {
		cleared := errors.Join(clearFolder(folder), os.RemoveAll(filepath.Join(folder, runfolder.EncoderDir)))
		if cleared != nil {
			return errors.Join(err, cleared)
		}
		return errors.Join(err, abandon(folder))
	}
	return abandon(folder)
}

// madeMetrics is the metrics file of a run whose training is over before it begins.
var madeMetrics = []byte(`{"event":"done","best":null,"seconds":0,"folder":"."}` + "\n")
