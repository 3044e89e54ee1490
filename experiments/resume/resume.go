// Package resume finds the checkpoint that a training goes on from, compares what it was saved with with what there is
// now, and restores its state.
package resume

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/jenga-nlp/jenga/experiments/checkpoint"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/events"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/files"
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/multitask/snapshots"
	"github.com/jenga-nlp/jenga/multitask/train"
	"github.com/jenga-nlp/jenga/plugin"
)

// Unfinished is a run whose training can be resumed, or is finished after all.
type Unfinished struct {
	Folder     string // of the run
	File       string // its experiment file; "": none
	Checkpoint string // that training is resumed from; "": none, it starts from the beginning
	State      report.State
	Point      *Point // the state in Checkpoint; nil without one
}

// Done reports whether the training of the run has come to its end.
func (u Unfinished) Done() bool { return u.State.Ended == "done" }

// Find finds what to resume in a run folder, or from one of its checkpoints: by default the last one. A folder without
// a run, or that does not exist, has none.
func Find(ctx context.Context, path string) (Unfinished, error) {
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
	u.State, err = report.ReadStateFile(metrics)
	if err != nil && !errors.As(err, &damaged) {
		return u, err
	}
	damage := err
	switch {
	case u.Done() && !runfolder.HasModel(u.Folder):
		return u, fmt.Errorf("%s: its training is finished, %s, and its checkpoints are gone: no %s/ or %s/; restore "+
			"them from a copy, or train again with %w", u.Folder, u.State.After(), runfolder.BestDir, runfolder.LastDir,
			plugin.Argument("force"))
	case u.Done():
		tidy(u.Folder)
		return u, cmp.Or(checkpoint.CheckQuantized(u.Folder), u.findEnd())
	}
	if u.Checkpoint == "" && !runfolder.HasModel(u.Folder) {
		return u, nil
	}

	// the checkpoint
	if u.Checkpoint == "" {
		u.Checkpoint = runfolder.Whole(filepath.Join(u.Folder, runfolder.LastDir))
	}
	name := runfolder.SnapshotFile
	if !runfolder.Exists(filepath.Join(u.Checkpoint, name)) && u.hasEnd() { // more epochs have begun
		name = runfolder.EndFile
	}
	if u.Point, err = readPoint(u.Folder, u.Checkpoint, name); err != nil {
		return u, WithRemedy(ctx, u.withReason(err), u.Folder, u.Checkpoint)
	}
	if damage != nil && !fits(metrics, u.Point.State.Metrics) {
		u.Point = nil // its memory, while others are read
		return u, WithRemedy(ctx, fmt.Errorf("%w; restore the file from a copy", damage), u.Folder, u.Checkpoint)
	}
	return u, u.Point.settleExperiment()
}

// tidy removes what a kill has left of a training that was done, as far as it can: a copy of a run may be read-only.
func tidy(folder string) {
	snapshots, err := runfolder.Snapshots(folder)
	if err != nil || len(snapshots) == 0 && !runfolder.HasLockFile(folder) {
		return
	}
	if lock, err := runfolder.Acquire(folder); err == nil {
		WriteEnd(folder)
		runfolder.RemoveSnapshots(folder)
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
	return runfolder.Abandon(folder)
}

// withReason returns err, with which the checkpoint of a run was read, or the reason that it has no state: the run
// saves none.
func (u Unfinished) withReason(err error) error {
	if u.File == "" || runfolder.Exists(filepath.Join(u.Checkpoint, runfolder.SnapshotFile)) {
		return err
	}
	text, failed := files.ReadFile(u.File, MaxExperiment)
	if failed != nil {
		return err
	}
	if keys, failed := keysOf(u.File, text); failed != nil || keys["training.save_strategy"] != config.SaveNever {
		return err
	}
	return fmt.Errorf("%s: it has no state to resume from: %s has training.save_strategy: no", u.Checkpoint, u.File)
}

// MaxExperiment bounds the size in bytes of an experiment file that is read only to be compared.
const MaxExperiment = 16 << 20

// WithRemedy returns an error of a checkpoint of the run in folder with what can be done.
func WithRemedy(ctx context.Context, err error, folder, checkpoint string) error {
	whole := wholeCheckpoint(ctx, folder, checkpoint)
	if ctx.Err() != nil { // others were not read
		return ctx.Err()
	}
	if whole != "" {
		return fmt.Errorf("%w\n%s is whole: resume from it by %w %[2]s", err, whole, runfolder.ResumeArgument)
	}
	best := ""
	if runfolder.HasBest(folder) {
		best = fmt.Sprintf("train on from its best model in a new run, with model.base_model: %s, or ", folder)
	}
	return fmt.Errorf("%w\nno other checkpoint of %s can be resumed from: %strain again with %w", err, folder, best,
		plugin.Argument("force"))
}

// wholeCheckpoint returns the newest checkpoint of a run folder, but for one, that can be read whole, and that
// metrics.jsonl fits; "" if there is none.
func wholeCheckpoint(ctx context.Context, folder, but string) string {
	all := filepath.Join(folder, runfolder.CheckpointsDir)
	steps, err := runfolder.Steps(all)
	if err != nil {
		return ""
	}
	paths := []string{runfolder.Whole(filepath.Join(folder, runfolder.LastDir))}
	for _, step := range slices.Backward(steps) {
		paths = append(paths, runfolder.Whole(runfolder.StepDir(all, step)))
	}
	for _, path := range paths {
		if path == but {
			continue
		}
		if _, err := checkpoint.Read(ctx, path, folder); err != nil {
			continue
		}
		_, state, err := readSnapshot(path, runfolder.SnapshotFile)
		if err == nil && fits(filepath.Join(folder, runfolder.MetricsFile), state.Metrics) {
			return path
		}
	}
	return ""
}

// fits reports whether a metrics file has what it had when a checkpoint was written.
func fits(metrics string, at events.Place) bool {
	log, err := events.OpenLog(metrics, at)
	if err == nil {
		err = log.Close()
	}
	return err == nil
}

// State is what a checkpoint's snapshot has attached: what a run needs to continue besides the state of its training.
type State struct {
	Jenga   string `json:"jenga"`           // version
	Build   string `json:"build,omitempty"` // of the binary; "": unknown
	Kernels string `json:"kernels"`         // in use
	// Device is the name of what the encoder computes on; "": the processor.
	Device     string `json:"device,omitempty"`
	Experiment string `json:"experiment"`
	// Replaces is the text of the experiment file until this checkpoint, the first after that was changed.
	Replaces string `json:"replaces,omitempty"`

	Step    int          `json:"step"`
	Of      int          `json:"of"`
	Skipped int          `json:"skipped,omitempty"`
	Epoch   float64      `json:"epoch"`
	Bests   Bests        `json:"bests"`
	Links   []string     `json:"links,omitempty"` // checkpoints that are copies of this one
	Metrics events.Place `json:"metrics"`
	Seconds float64      `json:"seconds"` // of training until then
}

func (s State) after() string { return report.State{Step: s.Step, Of: s.Of}.After() }

// Attach adds the state, and what it is saved by, to a snapshot.
func (s State) Attach(to *snapshots.Snapshot) error {
	s.Jenga, s.Build, s.Kernels = checkpoint.Version, checkpoint.Build(), kernel.Name()
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	to.Attached = text
	return nil
}

// WriteSnapshot writes a snapshot into the folder of a checkpoint.
func WriteSnapshot(folder string, s *snapshots.Snapshot) error {
	return s.Write(filepath.Join(folder, runfolder.SnapshotFile))
}

// readSnapshot reads a snapshot from the folder of a checkpoint.
func readSnapshot(folder, name string) (*snapshots.Snapshot, State, error) {
	path := filepath.Join(folder, name)
	if err := files.CheckKind(path, 0); err != nil { // an error of a link's file would quote that
		return nil, State{}, err
	}
	s, err := snapshots.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, State{}, fmt.Errorf("%s: no such file: the checkpoint has no state of its training", path)
	}
	if err != nil {
		return nil, State{}, err
	}
	var state State
	if err := json.Unmarshal(s.Attached, &state); err != nil {
		return nil, State{}, fmt.Errorf("%s: snapshot: the run's state: %w", path, err)
	}
	return s, state, nil
}

// Point is a checkpoint that a training goes on from.
type Point struct {
	Folder     string // of the run
	Checkpoint string
	State      State
	Ended      bool // it is the end of a training, from which more epochs begin

	name     string              // of the snapshot's file
	snapshot *snapshots.Snapshot // nil: it was restored
	file     fs.FileInfo         // of the snapshot, when it was read
	allowed  []string            // of Changes
	differ   []difference        // of the experiments' keys, those that are allowed too
}

// readPoint reads a point from the folder of a checkpoint, and from its file called name.
func readPoint(folder, checkpoint, name string) (*Point, error) {
	if !runfolder.Exists(checkpoint) {
		return nil, fmt.Errorf("%s: no such folder: it has the state that training goes on from", checkpoint)
	}
	p := &Point{Folder: folder, Checkpoint: checkpoint, name: name, Ended: name == runfolder.EndFile}
	info, err := os.Stat(filepath.Join(checkpoint, p.name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	p.file = info
	p.snapshot, p.State, err = readSnapshot(checkpoint, p.name)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// settleExperiment replaces the experiment file in a run folder where a kill has come between the checkpoint and that.
func (p *Point) settleExperiment() error {
	if p.State.Replaces == "" || p.Checkpoint != runfolder.Whole(filepath.Join(p.Folder, runfolder.LastDir)) {
		return nil
	}
	path := filepath.Join(p.Folder, runfolder.ExperimentFile)
	text, err := files.ReadFile(path, MaxExperiment)
	if err != nil || string(text) != p.State.Replaces {
		return nil // who reads it reports the error
	}
	lock, err := runfolder.Acquire(p.Folder)
	if err != nil {
		return err
	}
	defer lock.Release()
	return runfolder.WriteFile(path, []byte(p.State.Experiment))
}

// TakeShards gives an experiment that does not say how many shards there are those of the checkpoint.
func (p *Point) TakeShards(e *config.Experiment) error {
	before, err := keysOf("the experiment of the checkpoint", []byte(p.State.Experiment))
	if err != nil {
		return fmt.Errorf("%s: %w", p.Checkpoint, err)
	}
	if text := before[shardsKey]; e.Training.Shards == 0 && text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || bits.OnesCount(uint(n)) > 1 {
			return fmt.Errorf("%s: its experiment has %q shards; want a power of two", p.Checkpoint, text)
		}
		e.Training.Shards = n
	}
	return nil
}

// OpenMetrics opens the metrics file of the run, whose folder is locked. It returns an error if another training has
// written to the folder since the checkpoint was read.
func (p *Point) OpenMetrics(ctx context.Context) (*events.Log, error) {
	now, err := os.Stat(filepath.Join(p.Checkpoint, p.name))
	if err != nil || !os.SameFile(now, p.file) || !now.ModTime().Equal(p.file.ModTime()) {
		return nil, fmt.Errorf("%s: another training has written to it meanwhile; resume again", p.Checkpoint)
	}
	log, err := events.OpenLog(filepath.Join(p.Folder, runfolder.MetricsFile), p.State.Metrics)
	if err != nil {
		p.snapshot = nil // its memory, while others are read
		return nil, WithRemedy(ctx, fmt.Errorf("%s: %w", p.Checkpoint, err), p.Folder, p.Checkpoint)
	}
	return log, nil
}

// Restore sets a training to the state of the checkpoint. Its data and settings must be those of the checkpoint, but
// for what CheckExperiment was told to allow.
func (p *Point) Restore(t *train.Training) error {
	differ := settingDifferences(t, p.snapshot)
	if p.Ended {
		differ = slices.DeleteFunc(differ, func(d difference) bool { return d.what == stepsSetting })
	}
	if err := refused(p.Checkpoint, differ, p.allowed); err != nil {
		return err
	}
	if err := t.Restore(p.snapshot); err != nil {
		return p.misfit(err)
	}
	p.snapshot = nil // its memory
	return p.checkLonger(t)
}
