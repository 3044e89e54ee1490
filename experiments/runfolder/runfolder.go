// Package runfolder defines the layout of a run folder, finds runs, and replaces files and folders so that a complete
// version exists at any moment.
package runfolder

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/jenga-nlp/jenga/internal/files"
	"github.com/jenga-nlp/jenga/internal/suggest"
	"github.com/jenga-nlp/jenga/plugin"
)

// Files and folders of a run.
const (
	ExperimentFile = "experiment.yaml"
	MetricsFile    = "metrics.jsonl"
	SplitsFile     = "splits.jsonl" // only of a run that divides a training file
	BestDir        = "best"
	LastDir        = "last"
	TasksDir       = "tasks"
	CheckpointsDir = "checkpoints" // earlier versions of LastDir, where the experiment keeps several
	// TeachersDir has the runs of tasks alone that teach the run, and what they answer. Another run in the folder, on
	// the same data, takes them over.
	TeachersDir = "teachers"
	// ReplacedDir has the files of a run that is replaced, until the new run has BestDir and ExperimentFile.
	ReplacedDir = "replaced-run"
)

// IsRun reports whether a folder holds a run: an experiment file, which alone does not make a run, and metrics or a
// model beside it; or a run that is being replaced.
func IsRun(folder string) bool {
	return Exists(filepath.Join(folder, ReplacedDir)) || Exists(filepath.Join(folder, ExperimentFile)) &&
		(Exists(filepath.Join(folder, MetricsFile)) || HasModel(folder))
}

// HasBest reports whether a run folder has a checkpoint that an evaluation, or the end of training, has selected. A
// training that was interrupted before that may have LastDir alone.
func HasBest(folder string) bool {
	return Exists(filepath.Join(Whole(filepath.Join(folder, BestDir)), ModelFile))
}

// HasModel reports whether a run folder has a checkpoint, best or last.
func HasModel(folder string) bool {
	for _, name := range []string{BestDir, BestDir + OldSuffix, LastDir, LastDir + OldSuffix} {
		if Exists(filepath.Join(folder, name, ModelFile)) {
			return true
		}
	}
	return false
}

// IsCheckpoint reports whether a folder is a checkpoint, of which a file may be missing.
func IsCheckpoint(folder string) bool {
	return Exists(filepath.Join(folder, ModelFile)) || Exists(filepath.Join(folder, ChecksumsFile))
}

// Files of a checkpoint.
const (
	ModelFile   = "model.json"
	TensorsFile = "model.safetensors"
	EncoderDir  = "encoder"    // of a run that is merged of others, in the run folder itself
	MergeFile   = "merge.json" // in that: of which runs, and how
	// CalibrationFile has what was fitted to the trained model. It names the ChecksumsFile that it belongs to, and has
	// a checksum of its own.
	CalibrationFile = "calibration.json"
	// SnapshotFile has the state of the training, from which it can be resumed. It has a checksum of its own.
	SnapshotFile = "training.snapshot"
	// EndFile has the state at the end of a training, without what the model beside it has and without the optimizer's:
	// more epochs begin with it. It has a checksum of its own.
	EndFile = "end.snapshot"
)

// Relative returns the path to a file or folder from a folder, with slashes; an absolute one where there is no other.
// Links are followed, so that it is the same by whatever name the folder is called.
func Relative(from, to string) (string, error) {
	from, err := RealPath(from)
	if err != nil {
		return "", err
	}
	to, err = RealPath(to)
	if err != nil {
		return "", err
	}
	if relative, err := filepath.Rel(from, to); err == nil {
		to = relative
	}
	return filepath.ToSlash(to), nil
}

// Resolve returns the path of what Relative names from a run's folder.
func Resolve(run, relative string) (string, error) {
	path := filepath.FromSlash(relative)
	if filepath.IsAbs(path) {
		return path, nil
	}
	run, err := RealPath(run)
	return filepath.Join(run, path), err
}

// Encoder returns the path of the encoder that the model.json of a checkpoint names: within the checkpoint's folder,
// saved, if it is copied there, else from the run's folder. The files of a frozen one, which is not copied, have sums:
// without any, a run that someone else made would read whatever lies there.
func Encoder(saved, run, named string, sums map[string]string) (string, error) {
	switch {
	case sums != nil && len(sums) == 0:
		return "", fmt.Errorf("%s: encoder: sha256 is empty; want the sum of each file of the frozen encoder in %q",
			filepath.Join(saved, ModelFile), named)
	case sums != nil:
		return Resolve(run, named)
	}
	folder := filepath.FromSlash(named)
	if !filepath.IsLocal(folder) {
		return "", fmt.Errorf("%s: encoder folder %q is out of the checkpoint", filepath.Join(saved, ModelFile), named)
	}
	return filepath.Join(saved, folder), nil
}

// RealPath returns the absolute path of what path names, links followed.
func RealPath(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// Suffixes of the folders beside a folder while it is replaced.
const (
	NewSuffix = files.NewSuffix
	OldSuffix = ".old"
)

// Whole returns the folder, or its old version if the process was killed between the two renames of Replace.
func Whole(folder string) string {
	if _, err := os.Stat(folder); err != nil {
		if _, err := os.Stat(folder + OldSuffix); err == nil {
			return folder + OldSuffix
		}
	}
	return folder
}

// Find returns the experiment file and the model of a run folder or of one of its checkpoints. The file is no link:
// errors would quote what it leads to.
func Find(folder string) (file, model string, err error) {
	if file, model, err = find(folder); err == nil {
		err = files.CheckKind(file, 0)
	}
	return file, model, err
}

func find(folder string) (file, model string, err error) {
	if model := Whole(folder); IsCheckpoint(model) {
		// RUN/best, RUN/last, RUN/tasks/NAME or RUN/checkpoints/NAME
		for _, up := range []string{"..", filepath.Join("..", "..")} {
			if file = filepath.Join(folder, up, ExperimentFile); Exists(file) {
				return file, model, nil
			}
		}
		return "", "", fmt.Errorf("%s: a model, but no %s above it; want it in the run folder that jenga train has "+
			"written", folder, ExperimentFile)
	}
	if !Exists(folder) {
		return "", "", fmt.Errorf("%s: no such folder%s", folder, suggest.File(folder, folder,
			func(path string) bool { return IsRun(path) || IsCheckpoint(path) }))
	}
	file = filepath.Join(folder, ExperimentFile)
	if replaced := filepath.Join(folder, ReplacedDir); Exists(replaced) && !(Exists(file) && HasModel(folder)) {
		return "", "", fmt.Errorf("%s: the run that replaces this one is not complete yet; the earlier run is in "+
			"%s: if a training was killed, %w %[1]s goes on with it; another command that was killed is repeated "+
			"with %[4]w", folder, replaced, ResumeArgument, forceArgument)
	}
	if Exists(file) {
		for _, name := range []string{BestDir, LastDir} {
			if model := Whole(filepath.Join(folder, name)); Exists(model) {
				return file, model, nil
			}
		}
		if inside := RunsIn(folder); inside != "" && !IsRun(folder) {
			return "", "", fmt.Errorf("%s: no run, but the folder of an experiment%s", folder, inside)
		}
		if !IsRun(folder) {
			return "", "", fmt.Errorf("no %s/ or %s/ in %s; train the experiment first", BestDir, LastDir, folder)
		}
		return "", "", fmt.Errorf("%s: a run without a checkpoint: no %s/ or %s/; %w %[1]s starts its "+
			"training again", folder, BestDir, LastDir, ResumeArgument)
	}
	return "", "", fmt.Errorf("%s: no run%s", folder, cmp.Or(RunsIn(folder), "; want a folder that jenga train has "+
		"written"))
}

// RunsIn returns the end of an error about a folder that is no run: the runs that are in it or in its folder runs, as
// training writes them by default; "" if there are none.
func RunsIn(folder string) string {
	const most = 3
	var runs []string
	for _, in := range []string{folder, filepath.Join(folder, "runs")} {
		entries, _ := os.ReadDir(in) // without it there are none
		for _, e := range entries {
			if path := filepath.Join(in, e.Name()); e.IsDir() && IsRun(path) {
				runs = append(runs, path)
			}
		}
	}
	if len(runs) == 0 {
		return ""
	}
	text := "; want one of the runs in it: " + strings.Join(runs[:min(most, len(runs))], ", ")
	if more := len(runs) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// What a caller passes to work on a run folder, as errors name it.
const (
	ResumeArgument = plugin.Argument("resume") // to training, with the folder
	outArgument    = plugin.Argument("out")
	forceArgument  = plugin.Argument("force")
)

// Files returns the paths of the files in a folder and below, relative to it, with slashes, in lexical order.
func Files(folder string) (names []string, err error) {
	err = fs.WalkDir(os.DirFS(folder), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if err != nil { // which names no path above the folder
		return nil, fmt.Errorf("%s: %w", folder, err)
	}
	return names, nil
}

// Exists reports whether there is a file or folder at path.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// IsFolder reports whether there is a folder at path.
func IsFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// Replace replaces a folder: write fills a new one beside it, which is then synced and renamed.
func Replace(folder string, write func(fresh string) error) error {
	return replace(folder, true, write)
}

// replace is Replace; withFiles is false if the files that write puts there are synced already.
func replace(folder string, withFiles bool, write func(fresh string) error) error {
	fresh, old := folder+NewSuffix, folder+OldSuffix
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	if err := os.MkdirAll(fresh, 0o755); err != nil {
		return err
	}
	parent := filepath.Dir(folder)
	before, err := os.Stat(parent)
	if err == nil {
		err = write(fresh)
	}
	if err == nil {
		err = syncAll(fresh, withFiles)
	}
	now, statErr := os.Stat(parent)
	moved := before != nil && (statErr != nil || !os.SameFile(before, now))
	if moved { // what was written after it made the parent again
		err = fmt.Errorf("%s: %w", parent, ErrMoved)
	}
	if err != nil {
		os.RemoveAll(fresh)
		if moved {
			os.Remove(parent) // if it is empty
		}
		return err
	}
	if Exists(folder) { // otherwise old is the complete version
		if err := os.RemoveAll(old); err != nil {
			return err
		}
		if err := os.Rename(folder, old); err != nil {
			return err
		}
	}
	if err := os.Rename(fresh, folder); err != nil {
		return err
	}
	if err := syncFolder(filepath.Dir(folder)); err != nil {
		return err
	}
	return os.RemoveAll(old)
}

// Remove removes a checkpoint, and what a kill has left beside it. A kill leaves no part of it under its name.
func Remove(folder string) error {
	aside := folder + NewSuffix
	if err := os.RemoveAll(aside); err != nil {
		return err
	}
	if err := os.Rename(folder, aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return errors.Join(os.RemoveAll(aside), os.RemoveAll(folder+OldSuffix))
}

// Link makes folder to a copy of from, by hard links where the file system has them. Files whose names are in without
// are left out.
func Link(from, to string, without ...string) error {
	return replace(to, false, func(fresh string) error { return LinkFiles(from, fresh, without...) })
}

// LinkFiles copies the files of a folder and below to another one, as Link does.
func LinkFiles(from, to string, without ...string) error {
	names, err := Files(from)
	if err != nil {
		return err
	}
	for _, name := range names {
		if slices.Contains(without, name) {
			continue
		}
		path, target := filepath.Join(from, name), filepath.Join(to, name)
		if err := cmp.Or(files.CheckKind(path, 0), os.MkdirAll(filepath.Dir(target), 0o755)); err != nil {
			return err
		}
		if err := os.Link(path, target); err == nil {
			continue
		}
		if err := cmp.Or(files.Copy(path, target), syncFile(target)); err != nil {
			return err
		}
	}
	return nil
}

// WriteFile writes a file under a temporary name, syncs and renames it, so that path is complete or does not change.
func WriteFile(path string, data []byte) error {
	write := func(w io.Writer) error { _, err := w.Write(data); return err }
	return cmp.Or(files.Replace(path, write), syncFolder(filepath.Dir(path)))
}

// syncAll writes a folder, and the folders below it, to the disk, with their files if withFiles is true: what is
// renamed then is whole, even if the power fails. All are synced at once, which a file system does together.
func syncAll(folder string, withFiles bool) error {
	var syncs []func() error
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			syncs = append(syncs, func() error { return syncFolder(path) })
		case withFiles:
			syncs = append(syncs, func() error { return syncFile(path) })
		}
		return nil
	})
	errs := make([]error, len(syncs))
	var all sync.WaitGroup
	for i, write := range syncs {
		all.Go(func() { errs[i] = write() })
	}
	all.Wait()
	return errors.Join(append(errs, err)...)
}

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0) // Windows syncs only files that are open for writing
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// syncFolder writes the names in a folder to the disk. Windows has no such call.
func syncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}
