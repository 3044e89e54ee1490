package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
)

// Folder is where the run of an experiment goes: out if it is given, else the file's own output_dir, else
// runs/PROJECT_NAME.
func Folder(e *config.Experiment, out string) string {
	switch {
	case out != "":
		return out
	case e.Training.OutputDir != "":
		return e.Training.OutputDir
	}
	return filepath.Join("runs", e.ProjectName)
}

// Claim makes sure that folder can take the run of an experiment: one that holds a run is refused without force, and
// one that holds other things, or of whose run the experiment's model is made, always.
func CheckFolder(e *config.Experiment, folder string, force bool) error {
	entries, err := os.ReadDir(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && len(entries) == 0:
		return nil
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("run folder: %s is a file; name a folder by --out", folder)
	case err != nil:
		return fmt.Errorf("run folder: %w", err)
	case !runfolder.IsRun(folder):
		return fmt.Errorf("%s holds files, but no run: name another folder by --out", folder)
	case !force:
		return fmt.Errorf("%s holds a run: name another folder by --out, or replace it by --force", folder)
	}
	return checkBase(folder, e.Model.BaseModel.Name)
}

// trained are what a run leaves in its folder besides its experiment file.
var trained = []string{
	runfolder.ExperimentFile + runfolder.NewSuffix,
	runfolder.TasksDir,
	runfolder.BestDir, runfolder.BestDir + runfolder.NewSuffix, runfolder.BestDir + runfolder.OldSuffix,
	runfolder.LastDir, runfolder.LastDir + runfolder.NewSuffix, runfolder.LastDir + runfolder.OldSuffix,
	runfolder.MetricsFile,
}

// checkBase refuses a base model that is part of the run in folder, and would go with it.
func checkBase(folder, base string) error {
	if base == "" {
		return nil
	}
	model, err := runfolder.RealPath(base)
	if err != nil {
		return err
	}
	for _, name := range trained {
		part, err := runfolder.RealPath(filepath.Join(folder, name))
		if err != nil {
			continue // it is not there
		}
		if within, err := filepath.Rel(part, model); err == nil && filepath.IsLocal(within) {
			return fmt.Errorf("%s holds a run that the base model is part of, %s: name another folder by --out, or "+
				"copy the model out of it", folder, base)
		}
	}
	return nil
}

// clearFolder takes away what a run left in folder, and nothing else. The experiment file, which says that there is a
// run, goes last.
func clearFolder(folder string) error {
	if err := clearStates(folder); err != nil {
		return err
	}
	for _, name := range append(slices.Clone(trained), runfolder.ExperimentFile) {
		if err := os.RemoveAll(filepath.Join(folder, name)); err != nil {
			return err
		}
	}
	return nil
}
