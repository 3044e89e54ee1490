package run

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/experiments/model"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/checkpoint"
	"github.com/jenga-nlp/jenga/internal/jsonfile"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
)

// Checkpoint is the content of model.json, the description of a model: all of a checkpoint except tensors.
type Checkpoint struct {
	Format  int              `json:"format"` // of this file
	Jenga   string           `json:"jenga"`
	Encoder EncoderLocation  `json:"encoder"`
	Base    *BaseLocation    `json:"base,omitempty"` // of an encoder that is copied; nil: it was trained from scratch
	Tasks   []CheckpointTask `json:"tasks"`
	// Quantized is what a quantized run was made of; nil: its weights are float32.
	Quantized *Quantization `json:"quantized,omitempty"`

	path string // of this file
}

// CheckpointTask is a task of a checkpoint, in the order of the experiment.
type CheckpointTask struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Pairs  bool   `json:"pairs,omitempty"`  // all its training examples are pairs
	Single bool   `json:"single,omitempty"` // none of its training examples is a pair
	// SplitAgreement is dataset.Dataset's; nil: it is good
	SplitAgreement *float64         `json:"split_agreement,omitempty"`
	Adapter        string           `json:"adapter,omitempty"` // of the encoder, a file of the folder adapters
	Heads          []CheckpointHead `json:"heads"`
}

// CheckpointHead is a head of a task of a checkpoint.
type CheckpointHead struct {
	Name   string   `json:"name"`
	Type   string   `json:"type"`
	Labels []string `json:"labels"`
	// Thresholds are the least probabilities of predicted labels, for information: the tensors have them too.
	Thresholds []float32 `json:"thresholds,omitempty"`
}

const checkpointFormat = 1

// maxCheckpointFile bounds the size in bytes of a model.json, which lists all labels.
const maxCheckpointFile = 256 << 20

// ReadWeights reads the weights of a checkpoint except the encoder's, and the encoder's adapters.
func ReadWeights(folder string, m *multitask.Model) error {
	if err := readAdapters(folder, m); err != nil {
		return err
	}
	return checkpoint.Read(filepath.Join(folder, runfolder.TensorsFile), "the experiment", ownParams(m), nn.Params{})
}

// ownParams returns the parameters of a model except the encoder's.
func ownParams(m *multitask.Model) []*nn.Param {
	encoder := multitask.EncoderParams(m.Params).All()
	return slices.DeleteFunc(m.Params.All(), func(w *nn.Param) bool { return slices.Contains(encoder, w) })
}

// ReadCheckpoint reads the model.json of a checkpoint in a run's folder. It checks the CRC-32C of the checkpoint's
// files, and of a frozen encoder's.
func ReadCheckpoint(folder, run string) (Checkpoint, error) {
	path := filepath.Join(folder, runfolder.ModelFile)
	var about Checkpoint
	err := jsonfile.Read(path, maxCheckpointFile, &about)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Checkpoint{}, runfolder.Missing(path)
	case err != nil:
		return Checkpoint{}, err
	case about.Format == 0:
		return Checkpoint{}, fmt.Errorf("%s: no field \"format\"; want a file that jenga train has written", path)
	case about.Format != checkpointFormat:
		return Checkpoint{}, fmt.Errorf("%s: format %d; this jenga reads %d", path, about.Format, checkpointFormat)
	}
	if err := about.checkAdapters(path); err != nil {
		return Checkpoint{}, err
	}
	if err := runfolder.CheckChecksums(folder); err != nil {
		return Checkpoint{}, err
	}
	if about.Encoder.copied() {
		about.Encoder.Folder = filepath.Join(folder, filepath.FromSlash(about.Encoder.Folder))
		about.Base.resolve(run)
		return about, nil
	}

	encoder := filepath.FromSlash(about.Encoder.Folder)
	if !filepath.IsAbs(encoder) {
		run, err := runfolder.RealPath(run)
		if err != nil {
			return Checkpoint{}, err
		}
		encoder = filepath.Join(run, encoder)
	}
	about.Encoder.Folder = encoder
	about.Encoder.model = path
	return about, about.Encoder.checkFiles()
}

// savedAdapter is an adapter of the encoder as a checkpoint has it.
type savedAdapter struct {
	name   string
	params []*nn.Param
	scope  nn.Params // that they were made in
}

// savedAdapters returns the adapters of the run's model, with the parameters themselves.
func (r *Run) savedAdapters() []savedAdapter {
	var all []savedAdapter
	for _, name := range adaptersOf(slices.Concat(r.Model.Groups, r.built.Kept)) {
		scope := multitask.AdapterParams(r.Model.Params, name)
		all = append(all, savedAdapter{name, scope.All(), scope})
	}
	return all
}

// write writes the adapter to a file of its own in a checkpoint's folder.
func (a savedAdapter) write(folder string) error {
	path := model.AdapterFile(folder, a.name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return checkpoint.Write(path, a.params, a.scope)
}

// readAdapters reads the adapters of the model's groups from a checkpoint's folder.
func readAdapters(folder string, m *multitask.Model) error {
	for _, name := range adaptersOf(m.Groups) {
		if err := model.ReadAdapter(model.AdapterFile(folder, name), m, name); err != nil {
			return err
		}
	}
	return nil
}

// adaptersOf returns the names of the adapters of groups.
func adaptersOf(groups []multitask.Group) []string {
	var names []string
	for _, g := range groups {
		if g.Adapter != "" && !slices.Contains(names, g.Adapter) {
			names = append(names, g.Adapter)
		}
	}
	return names
}

// checkAdapters returns an error for a task of the checkpoint, described in the file path, with an adapter that has no
// task's name: it becomes the name of a file.
func (c Checkpoint) checkAdapters(path string) error {
	for _, task := range c.Tasks {
		known := slices.ContainsFunc(c.Tasks, func(t CheckpointTask) bool { return t.Name == task.Adapter })
		local := filepath.Base(task.Adapter) == task.Adapter && filepath.IsLocal(task.Adapter)
		if task.Adapter != "" && !(known && local) {
			return fmt.Errorf("%s: task %q: adapter %q is not the name of a task", path, task.Name, task.Adapter)
		}
	}
	return nil
}

// SetAdapters gives the tasks of an experiment the adapters that the checkpoint has for them.
func (c Checkpoint) SetAdapters(e *config.Experiment) {
	for _, tasks := range [][]config.Task{e.Tasks, e.Kept} {
		for i := range tasks {
			for _, task := range c.Tasks {
				if task.Name == tasks[i].Name {
					tasks[i].Adapter = task.Adapter
				}
			}
		}
	}
}

// BaseLocation is the base model that an encoder was trained from, which need not exist any more. Runs whose encoders
// have the same base can be merged.
type BaseLocation struct {
	Folder string            `json:"folder"` // relative to the run's
	CRC32C map[string]string `json:"crc32c"` // of the encoder's files, by their paths relative to its folder
}

// sumBase computes the sums of the base model's files, once, if checkpoints have an encoder that is trained from it.
func (r *Run) sumBase() error {
	if !r.copiesEncoder() || r.built.EncoderPath == "" || r.baseSums != nil {
		return nil
	}
	folder, sums := dataset.TokenizerFolder(r.built.EncoderPath), map[string]string{}
	for _, file := range r.Model.Encoder.Describe().Files {
		name, err := filepath.Rel(folder, file)
		if err != nil {
			return err
		}
		if sums[filepath.ToSlash(name)], err = runfolder.CRC32C(file); err != nil {
			return err
		}
	}
	r.baseSums = sums
	return nil
}

// locateBase returns the base model for a checkpoint of the run in folder, nil for an encoder from scratch or one that
// is not copied.
func (r *Run) locateBase(folder string) (*BaseLocation, error) {
	if err := r.sumBase(); err != nil || r.baseSums == nil {
		return nil, err
	}
	path, err := runfolder.Relative(folder, r.built.EncoderPath)
	if err != nil { // the base model was removed while the run trained
		path, err = filepath.Abs(r.built.EncoderPath)
	}
	return &BaseLocation{filepath.ToSlash(path), r.baseSums}, err
}

// resolve makes the folder, which is relative to that of a run, one that can be opened.
func (b *BaseLocation) resolve(run string) {
	if b == nil || filepath.IsAbs(filepath.FromSlash(b.Folder)) {
		return
	}
	if whole, err := runfolder.RealPath(run); err == nil {
		run = whole
	}
	b.Folder = filepath.Join(run, filepath.FromSlash(b.Folder))
}

// EncoderLocation is the location of a checkpoint's encoder: a folder of the checkpoint, or, if frozen, of the base
// model.
type EncoderLocation struct {
	Folder string `json:"folder"` // relative to the checkpoint's, a frozen encoder's to the run's
	// Sums of the files that a frozen encoder is read from, which are not copied, by their paths relative to its
	// folder. CRC-32C is fast, and finds damage; it is nil in checkpoints of earlier versions.
	SHA256 map[string]string `json:"sha256,omitempty"`
	CRC32C map[string]string `json:"crc32c,omitempty"`

	model string // path of this model.json
}

// fileSums are sums of files by their paths relative to a folder.
type fileSums struct{ sha256, crc32c map[string]string }

// copied reports whether the encoder and its tokenizer are in a folder of the checkpoint.
func (p EncoderLocation) copied() bool { return p.SHA256 == nil }

// OpenTokenizer opens the tokenizer beside the encoder.
func (p EncoderLocation) OpenTokenizer() (corpus.Tokenizer, error) {
	return corpus.OpenTokenizer(dataset.TokenizerFolder(p.Folder))
}

// checkFiles returns an error if a file of a frozen encoder is missing or has another CRC-32C than in training; another
// SHA-256 where the checkpoint has no CRC-32C.
func (p EncoderLocation) checkFiles() error {
	if _, err := os.Stat(p.Folder); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: the frozen encoder it was trained with is not found in %s; restore it there", p.model,
			p.Folder)
	}
	if p.CRC32C == nil {
		return p.CheckSHA256()
	}
	return p.compare(p.CRC32C, func(file string) (string, error) { return runfolder.CRC32C(file) })
}

// CheckSHA256 returns an error if a file of a frozen encoder has another SHA-256 than in training.
func (p EncoderLocation) CheckSHA256() error {
	return p.compare(p.SHA256, func(file string) (string, error) {
		sha, _, err := sumsOf(file)
		return sha, err
	})
}

// compare returns an error if sum gives another result for a file of a frozen encoder than in training.
func (p EncoderLocation) compare(sums map[string]string, sum func(file string) (string, error)) error {
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return fmt.Errorf("%s: its frozen encoder's file %q is out of its folder", p.model, name)
		}
		file := filepath.Join(dataset.TokenizerFolder(p.Folder), filepath.FromSlash(name))
		got, err := sum(file)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%s: its frozen encoder's file %s does not exist", p.model, file)
		case err != nil:
			return fmt.Errorf("%s: its frozen encoder: %w", p.model, err)
		case got != sums[name]:
			return fmt.Errorf("%s: its frozen encoder's file %s is not the one it was trained with", p.model, file)
		}
	}
	return nil
}

// EncoderFiles lists the files that an encoder and its tokenizer were opened from.
func EncoderFiles(encoder encoders.Encoder, tokenizer corpus.Tokenizer) []string {
	return slices.Concat(tokenizer.Files(), encoder.Describe().Files)
}

// sumFiles returns the sums of files, by their paths relative to a folder.
func sumFiles(folder string, files []string) (fileSums, error) {
	sums := fileSums{map[string]string{}, map[string]string{}}
	for _, file := range files {
		name, err := filepath.Rel(folder, file)
		if err != nil {
			return fileSums{}, err
		}
		name = filepath.ToSlash(name)
		if sums.sha256[name], sums.crc32c[name], err = sumsOf(file); err != nil {
			return fileSums{}, err
		}
	}
	return sums, nil
}

// sumsOf returns the SHA-256 and the CRC-32C of a file.
func sumsOf(path string) (sha, crc string, err error) {
	h := sha256.New()
	crc, err = runfolder.CRC32C(path, h)
	return hex.EncodeToString(h.Sum(nil)), crc, err
}

// Check returns an error if a frozen encoder was read from a file without a sum: a file added since training may be
// read in place of another.
func (p EncoderLocation) Check(files []string) error {
	folder, err := runfolder.RealPath(dataset.TokenizerFolder(p.Folder))
	if err != nil {
		return err
	}
	for _, file := range files {
		at, err := runfolder.RealPath(filepath.Dir(file)) // the file may be a link out of the folder
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, filepath.Join(at, filepath.Base(file)))
		if err != nil {
			return err
		}
		// Sums were once of all files with these endings, so that of a graph's values in other files there may be none.
		summed := slices.Contains([]string{".json", ".txt", ".safetensors", ".onnx"}, filepath.Ext(name))
		if p.SHA256 != nil && p.SHA256[filepath.ToSlash(name)] == "" && summed {
			return fmt.Errorf("%s: its frozen encoder is read from %s, which it was not trained with", p.model, file)
		}
	}
	return nil
}

// Version is the version of jenga, as written in checkpoints.
const Version = "0.1.0"

// Build describes this binary: version, commit, Go's version and the platform. Binaries of the same description train
// to the same bytes where their kernels are the same, unless files were changed since the commit.
func Build() string {
	info, _ := debug.ReadBuildInfo()
	return Version + commitOf(info) + " " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
}

// commitOf returns the commit that a binary was built from, with + if files had been changed, or the version of the
// module that it was installed as; "" if neither is known.
func commitOf(info *debug.BuildInfo) string {
	if info == nil {
		return ""
	}
	commit, changed := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = " " + s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "+"
		}
	}
	if version := info.Main.Version; commit == "" && version != "" && version != "(devel)" {
		return " " + version
	}
	return commit + changed
}
