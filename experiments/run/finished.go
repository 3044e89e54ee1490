package run

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/regular"
	"github.com/jenga-nlp/jenga/plugin"
)

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
