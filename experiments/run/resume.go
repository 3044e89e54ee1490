package run

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/experiments/model"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/regular"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/train"
	"github.com/jenga-nlp/jenga/plugin"
)

// Unfinished is a run whose training can be resumed, or is finished after all.
type Unfinished struct {
	Folder     string // of the run
	File       string // its experiment file; "": none
	Checkpoint string // that training is resumed from; "": none, it starts from the beginning
	State      report.State

	saved *resumption
}

// Done reports whether the training of the run has come to its end.
func (u Unfinished) Done() bool { return u.State.Ended == "done" }

// Reached returns how far training came until the checkpoint, which must not be "".
func (u Unfinished) Reached() report.State {
	return report.State{Step: u.saved.state.Step, Of: u.saved.state.Of}
}

// resumption is the checkpoint that a training is resumed from.
type resumption struct {
	folder     string // of the run
	checkpoint string
	snapshot   *train.Snapshot
	state      savedState
	file       fs.FileInfo  // of the snapshot, when it was read
	allowed    []string     // of Changes
	differ     []difference // of the experiments' keys, those that are allowed too
}

// FindUnfinished finds what to resume in a run folder, or from one of its checkpoints: by default the last one. A
// folder without a run, or that does not exist, has none.
func FindUnfinished(path string) (Unfinished, error) {
	path = filepath.Clean(path)
	u := Unfinished{Folder: path}
	if runfolder.IsCheckpoint(path) {
		if file, found, err := runfolder.Find(path); err == nil {
			u.Folder, u.Checkpoint = filepath.Dir(file), found
		}
	}
	if err := runfolder.CheckUnlocked(u.Folder); err != nil {
		return u, err
	}
	if err := settleTorn(u.Folder); err != nil {
		return u, err
	}
	if file := filepath.Join(u.Folder, runfolder.ExperimentFile); runfolder.Exists(file) {
		u.File = file
	}

	// how far it came
	var err error
	var damaged *report.LineError // what training writes again, or what the sum of a checkpoint finds
	metrics := filepath.Join(u.Folder, runfolder.MetricsFile)
	u.State, err = readMetrics(metrics)
	if err != nil && !errors.As(err, &damaged) {
		return u, err
	}
	damage := err
	if u.Done() {
		tidy(u.Folder)
		return u, checkQuantized(u.Folder)
	}
	if !runfolder.HasModel(u.Folder) {
		return u, nil
	}

	// the checkpoint
	if u.Checkpoint == "" {
		u.Checkpoint = runfolder.Whole(filepath.Join(u.Folder, runfolder.LastDir))
	}
	if u.saved, err = readResumption(u.Folder, u.Checkpoint); err != nil {
		return u, withRemedy(u.withReason(err), u.Folder, u.Checkpoint)
	}
	if damage != nil && !u.saved.fits(metrics) {
		u.saved = nil // its memory, while others are read
		return u, withRemedy(fmt.Errorf("%w; restore the file from a copy", damage), u.Folder, u.Checkpoint)
	}
	return u, u.saved.settleExperiment()
}

// tidy removes what a kill has left of a training that was done, as far as it can: a copy of a run may be read-only.
func tidy(folder string) {
	states, err := stateFiles(folder)
	if err != nil || len(states) == 0 && !runfolder.Exists(filepath.Join(folder, runfolder.LockFile)) {
		return
	}
	if lock, err := runfolder.Acquire(folder); err == nil {
		removeStates(folder)
		lock.Release() // which removes its file
	}
}

// settleTorn settles a folder in which a kill has interrupted the moving of an earlier run.
func settleTorn(folder string) error {
	aside, file := filepath.Join(folder, runfolder.ReplacedDir), runfolder.ExperimentFile
	if !runfolder.Exists(aside) ||
		runfolder.Exists(filepath.Join(aside, file)) && runfolder.Exists(filepath.Join(folder, file)) {
		return nil
	}
	lock, err := runfolder.Acquire(folder)
	if err != nil {
		return err
	}
	defer lock.Release()
	return abandon(folder)
}

// readResumption reads the state in a checkpoint of the run in folder.
func readResumption(folder, checkpoint string) (*resumption, error) {
	if !runfolder.Exists(checkpoint) {
		return nil, fmt.Errorf("%s: no such folder: it has the state that training goes on from", checkpoint)
	}
	info, err := os.Stat(filepath.Join(checkpoint, runfolder.SnapshotFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	snapshot, state, err := readSnapshot(checkpoint)
	if err != nil {
		return nil, err
	}
	return &resumption{folder: folder, checkpoint: checkpoint, snapshot: snapshot, state: state, file: info}, nil
}

// Resume prepares the run of an experiment to continue its training from the checkpoint, which must not be "". The
// experiment must be the run's own, the data, the version of jenga and its kernels the same, but for what is allowed,
// of Changes. What differs is an error here, or, of the data, in Train. It reports the passes over streamed training data
// to watch, which may be nil.
func (u Unfinished) Resume(e *config.Experiment, watch dataset.Watch, allowed []string) (*Run, error) {
	s := u.saved
	s.allowed = allowed
	about, err := ReadCheckpoint(s.checkpoint, u.Folder)
	if err != nil {
		return nil, withRemedy(err, u.Folder, s.checkpoint)
	}
	if err := s.keepShards(e); err != nil {
		return nil, err
	}
	text, err := experimentText(e, u.Folder)
	if err != nil {
		return nil, err
	}
	differ, err := experimentDifferences(filepath.Join(u.Folder, runfolder.ExperimentFile),
		[]byte(s.state.Experiment), text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.checkpoint, err)
	}
	s.differ = slices.Clone(differ)
	if err := refused(s.checkpoint, append(differ, s.state.programDifferences()...), allowed); err != nil {
		return nil, err
	}
	r, err := resume(e, about, watch)
	if err != nil {
		return nil, err
	}
	r.resumed = s
	return r, nil
}

// keepShards makes an experiment that does not say how many shards there are have those of the checkpoint.
func (s *resumption) keepShards(e *config.Experiment) error {
	before, err := keysOf("the experiment of the checkpoint", []byte(s.state.Experiment))
	if err != nil {
		return fmt.Errorf("%s: %w", s.checkpoint, err)
	}
	if text := before[shardsKey]; e.Training.Shards == 0 && text != "" {
		e.Training.Shards, err = strconv.Atoi(text)
	}
	return err
}

// resume builds the model of a run that is continued, with the labels and the tokenizer of its checkpoint, and its
// initial weights.
func resume(e *config.Experiment, about Checkpoint, watch dataset.Watch) (*Run, error) {
	// what the run has saved
	if err := about.Encoder.CheckSHA256(); err != nil {
		return nil, err
	}

	// data and model
	about.SetAdapters(e)
	data, err := about.data(e, watch)
	if err != nil {
		return nil, err
	}
	built, err := model.Resume(data)
	if err != nil {
		return nil, err
	}
	if err := about.Encoder.Check(EncoderFiles(built.Model.Encoder, data.Tokenizer)); err != nil {
		return nil, err
	}

	r, err := newRun(built)
	if err != nil {
		return nil, err
	}
	if err := r.resumeGrowth(); err != nil {
		return nil, err
	}
	r.encoderSums = fileSums{about.Encoder.SHA256, about.Encoder.CRC32C}
	return r, nil
}

// data reads the data of an experiment that is trained again, with the labels and the tokenizer of the checkpoint. watch
// may be nil.
func (c Checkpoint) data(e *config.Experiment, watch dataset.Watch) (*dataset.Dataset, error) {
	labels, err := c.Labels()
	if err != nil {
		return nil, err
	}
	tokenizer, err := c.Encoder.OpenTokenizer()
	if err != nil {
		return nil, err
	}
	return dataset.Resume(e, tokenizer, labels, watch, config.Train, config.Dev)
}

// Labels returns the labels of each head.
func (c Checkpoint) Labels() (map[multitask.HeadName]*corpus.Labels, error) {
	labels := map[multitask.HeadName]*corpus.Labels{}
	for _, task := range c.Tasks {
		for _, head := range task.Heads {
			set, err := corpus.ParseLabels(head.Labels)
			if err != nil {
				return nil, fmt.Errorf("%s: task %q: head %q: %w", c.path, task.Name, head.Name, err)
			}
			labels[multitask.HeadName{Task: task.Name, Head: head.Name}] = set
		}
	}
	return labels, nil
}

// savedState is what a checkpoint's snapshot has attached: what a run needs to continue besides the state of its
// training.
type savedState struct {
	Jenga      string `json:"jenga"`           // version
	Build      string `json:"build,omitempty"` // of the binary; "": unknown
	Kernels    string `json:"kernels"`         // in use
	Experiment string `json:"experiment"`
	// Replaces is the text of the experiment file until this checkpoint, the first after that was changed.
	Replaces string `json:"replaces,omitempty"`

	Step    int          `json:"step"`
	Of      int          `json:"of"`
	Skipped int          `json:"skipped,omitempty"`
	Epoch   float64      `json:"epoch"`
	Bests   bests        `json:"bests"`
	Links   []string     `json:"links,omitempty"` // checkpoints that are copies of this one
	Metrics metricsPlace `json:"metrics"`
	Seconds float64      `json:"seconds"` // of training until then
}

// writeSnapshot writes a snapshot into the folder of a checkpoint.
func writeSnapshot(folder string, s *train.Snapshot) error {
	path := filepath.Join(folder, runfolder.SnapshotFile)
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = s.WriteTo(file)
	return errors.Join(err, file.Close())
}

// readSnapshot reads the snapshot of a checkpoint's folder.
func readSnapshot(folder string) (*train.Snapshot, savedState, error) {
	path := filepath.Join(folder, runfolder.SnapshotFile)
	file, err := regular.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, savedState{}, fmt.Errorf("%s: no such file: the checkpoint has no state of its training", path)
	}
	if err != nil {
		return nil, savedState{}, err
	}
	defer file.Close()
	in := bufio.NewReaderSize(file, 1<<18)
	s, err := train.ReadSnapshot(in)
	if err != nil {
		return nil, savedState{}, fmt.Errorf("%s: %w", path, err)
	}
	if _, err := in.ReadByte(); err == nil {
		return nil, savedState{}, fmt.Errorf("%s: snapshot: damaged: there are bytes after its end", path)
	}
	var state savedState
	if err := json.Unmarshal(s.Attached(), &state); err != nil {
		return nil, savedState{}, fmt.Errorf("%s: snapshot: the run's state: %w", path, err)
	}
	return s, state, nil
}

// withRemedy returns an error of a checkpoint with what can be done.
func withRemedy(err error, folder, checkpoint string) error {
	if whole := wholeCheckpoint(folder, checkpoint); whole != "" {
		return fmt.Errorf("%w\n%s is whole: resume from it by jenga train --resume %[2]s", err, whole)
	}
	remedy := "train again with --force"
	if runfolder.HasBest(folder) {
		remedy = fmt.Sprintf("train on from its best model in a new run, with model.base_model: %s, or %s",
			folder, remedy)
	}
	return fmt.Errorf("%w\nno other checkpoint of %s can be resumed from: %s", err, folder, remedy)
}

// withReason returns err, with which the checkpoint of a run was read, or the reason that it has no state: the run saves
// none.
func (u Unfinished) withReason(err error) error {
	if u.File == "" || runfolder.Exists(filepath.Join(u.Checkpoint, runfolder.SnapshotFile)) {
		return err
	}
	text, failed := regular.ReadFile(u.File, maxExperiment)
	if failed != nil {
		return err
	}
	if keys, failed := keysOf(u.File, text); failed != nil || keys["training.save_strategy"] != config.SaveNever {
		return err
	}
	return fmt.Errorf("%s: it has no state to resume from: %s has training.save_strategy: no", u.Checkpoint, u.File)
}

// maxExperiment bounds the size in bytes of an experiment file that is read only for a message.
const maxExperiment = 16 << 20

// CheckFinished returns how far the training of the run in folder came, with a warning, if it did not come to its end,
// by its metrics file; else nil.
func CheckFinished(folder string) (*report.State, []string) {
	metrics, err := regular.Open(filepath.Join(folder, runfolder.MetricsFile))
	switch {
	case errors.Is(err, fs.ErrNotExist): // copied without it
		return nil, nil
	case err != nil:
		return nil, []string{plugin.Warning(plugin.Place{}, "%v", err)}
	}
	defer metrics.Close()
	state, err := report.ReadState(metrics)
	if err != nil {
		place := plugin.Place{File: metrics.Name()}
		var damaged *report.LineError
		if errors.As(err, &damaged) {
			place.Line = damaged.Line
		}
		return nil, []string{plugin.Warning(place, "%v", err)}
	}
	if state.Ended == "done" {
		return nil, nil
	}
	text, at := state.String(), strings.TrimPrefix(state.After(), "after ")
	switch err := runfolder.CheckUnlocked(folder); {
	case errors.Is(err, runfolder.ErrLocked):
		text = fmt.Sprintf("this run is still being trained (%s)", at)
	case err != nil && state.Ended == "":
		text = fmt.Sprintf("training of this run was interrupted, or still goes on (%s): %v", at, err)
	case runfolder.Exists(filepath.Join(folder, runfolder.LastDir, runfolder.SnapshotFile)):
		text += "; jenga train --resume " + folder + " finishes it"
	}
	return &state, []string{plugin.Warning(plugin.Place{File: folder}, "%s", text)}
}
