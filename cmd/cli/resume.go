package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/experiments/run"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
)

// check returns an error of flags that contradict each other.
func (f trainFlags) check() error {
	if f.allows && (len(f.allowed) == 0 || slices.Contains(f.allowed, "")) {
		return usageErrorf("--allow-changes %q: an empty name; want some of %s, joined by commas",
			strings.Join(f.allowed, ","), strings.Join(run.Changes, ", "))
	}
	for _, what := range f.allowed {
		if !slices.Contains(run.Changes, what) {
			return usageErrorf("--allow-changes %s: want %s", what, strings.Join(run.Changes, ", "))
		}
	}
	switch {
	case f.resume && f.force:
		return usageErrorf("--resume goes on with a run, --force replaces it; want one of them")
	case len(f.allowed) > 0 && !f.resume:
		return usageErrorf("--allow-changes has no effect without --resume")
	}
	return nil
}

// resume goes on with a training: of the experiment file or the run folder called name; without a name of the run in
// --out, in the working directory, or of the default experiment file.
func (c *commands) resume(ctx context.Context, f trainFlags, name string) (report.Done, error) {
	folder, file, err := c.resumed(f, name)
	if err != nil {
		return report.Done{}, err
	}
	var found run.Unfinished
	err = c.ranks.inTurn(func() error {
		found, err = run.FindUnfinished(folder)
		return err
	})
	if err == nil {
		err = c.ranks.same(found)
	}
	switch {
	case err != nil:
		return report.Done{}, err
	case found.Done():
		return report.Done{}, c.writeFinished(f, found)
	case file == "" && found.File == "":
		return report.Done{}, noRun(folder)
	case file == "":
		file = found.File
	}
	var ready *run.Run
	err = c.ranks.agree(func() (err error) {
		ready, err = c.readyToResume(ctx, f, found, file)
		return err
	}())
	if err != nil {
		return report.Done{}, err
	}
	return c.run(ctx, f, ready, found.Folder)
}

// readyToResume prepares a training that was found for going on, with the experiment of a file.
func (c *commands) readyToResume(ctx context.Context, f trainFlags, found run.Unfinished, file string,
) (*run.Run, error) {
	e, err := config.Read(file, f.set)
	if err != nil {
		return nil, err
	}
	if found.Checkpoint == "" {
		if err := run.CheckFolder(e, found.Folder, true); err != nil {
			return nil, err
		}
		fmt.Fprintf(c.log, "%s: no checkpoint to resume from: training starts from the beginning\n", found.Folder)
		return c.ready(ctx, e, config.Train, config.Dev)
	}
	ready, err := found.Resume(e, c.watchPasses(ctx), f.allowed)
	if err != nil {
		return nil, err
	}
	ready.Restored = func(after report.State) {
		fmt.Fprintf(c.log, "training goes on %s, from %s\n", after.After(), found.Checkpoint)
	}
	return ready, c.ranks.use(ready)
}

// noRun returns the error of a folder that has no run to resume.
func noRun(folder string) error {
	if !runfolder.Exists(folder) {
		return fmt.Errorf("%s: no such folder; want that of a run, or an experiment file", folder)
	}
	return fmt.Errorf("%s: no run to resume: the folder has no %s; want one that jenga train has written, or an "+
		"experiment file", folder, runfolder.ExperimentFile)
}

// resumed returns the run folder, or the checkpoint, to resume, and the experiment file that was named, "" if none was.
// What the first process finds counts for all, since they may see files at other times.
func (c *commands) resumed(f trainFlags, name string) (folder, file string, err error) {
	folder, err = c.ranks.ofFirst(func() (string, error) { return f.run(name) })
	if err != nil || folder != "" {
		return folder, "", err
	}
	if name == "" {
		name = defaultFile
	}
	if err := c.ranks.inTurn(func() error { return c.unpack(name) }); err != nil {
		return "", "", err
	}
	e, err := config.Read(name, f.set)
	if err := c.ranks.agree(err); err != nil {
		return "", "", err
	}
	return run.Folder(e, f.out), name, nil
}

// run returns the run folder, or the checkpoint, that name or the flags name, "" where name is an experiment file.
func (f trainFlags) run(name string) (string, error) {
	switch {
	case name == "" && f.out != "":
		return f.out, nil
	case name == "" && runfolder.IsRun("."):
		return ".", nil
	case name == "" || !runfolder.IsFolder(name):
		return "", nil
	case f.out != "" && filepath.Clean(f.out) != filepath.Clean(name):
		return "", usageErrorf("--resume of the run %s cannot write to --out %s", name, f.out)
	}
	return name, nil
}

// writeFinished says that the training of a run has come to its end, and how to train on otherwise.
func (c *commands) writeFinished(f trainFlags, found run.Unfinished) error {
	fmt.Fprintf(c.log, "%s: its training is finished, %s\n", found.Folder, found.State.After())
	if len(f.set) > 0 || len(f.allowed) > 0 {
		fmt.Fprintf(c.log, "an experiment with model.base_model: %s trains it on with other options\n", found.Folder)
	}
	if !f.json {
		return nil
	}
	_, err := fmt.Fprintln(c.out, found.State.Done)
	return err
}
