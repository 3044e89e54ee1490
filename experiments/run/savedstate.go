package run

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/regular"
	"github.com/jenga-nlp/jenga/multitask"
)

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
func writeSnapshot(folder string, s *multitask.Snapshot) error {
	path := filepath.Join(folder, runfolder.SnapshotFile)
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = s.WriteTo(file)
	return errors.Join(err, file.Close())
}

// readSnapshot reads the snapshot of a checkpoint's folder.
func readSnapshot(folder string) (*multitask.Snapshot, savedState, error) {
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
	s, err := multitask.ReadSnapshot(in)
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
