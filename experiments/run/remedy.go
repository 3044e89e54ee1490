package run

import (
	"fmt"
	"path/filepath"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/regular"
)

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
