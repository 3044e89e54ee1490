// Package checkpoint defines what a saved model is, reads it and writes it: the description in model.json, the weights,
// the place of the encoder and its tokenizer, and the checksums of all of them. A training writes such checkpoints into
// its run folder; a run that is made of other runs has one, too.
package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/experiments/model"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/files"
	"github.com/jenga-nlp/jenga/internal/safetensors"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
)

// Description is the content of model.json: all of a checkpoint except tensors.
type Description struct {
	Format  int     `json:"format"` // of this file
	Jenga   string  `json:"jenga"`  // Version
	Encoder Encoder `json:"encoder"`
	// Base is what an encoder that is copied was trained from, and need not exist any more; nil: it began from scratch.
	Base  *Encoder `json:"base,omitempty"`
	Tasks []Task   `json:"tasks"`
	// Quantized is what a quantized run was made of; nil: its weights are float32.
	Quantized *Quantization `json:"quantized,omitempty"`

	path string // of this file
}

// Task is a task of a checkpoint, in the order of the experiment.
type Task struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Pairs  bool   `json:"pairs,omitempty"`  // all its training examples are pairs
	Single bool   `json:"single,omitempty"` // none of its training examples is a pair
	// SplitAgreement is dataset.Dataset's; nil: it is good
	SplitAgreement *float64 `json:"split_agreement,omitempty"`
	Adapter        string   `json:"adapter,omitempty"` // of the encoder, a file of the folder adapters
	Heads          []Head   `json:"heads"`
}

// Head is a head of a task of a checkpoint.
type Head struct {
	Name   string   `json:"name"`
	Type   string   `json:"type"`
	Labels []string `json:"labels"`
	// Thresholds are the least probabilities of predicted labels, for information: the tensors have them too.
	Thresholds []float32 `json:"thresholds,omitempty"`
}

// Quantization is what a run with weights in int8 was made of.
type Quantization struct {
	Run  string   `json:"run"`            // its folder, or that of its checkpoint, relative to this run's
	Keep []string `json:"keep,omitempty"` // layers whose weights are float32
}

const (
	format = 1
	// maxModelFile bounds the size in bytes of a model.json, which lists all labels.
	maxModelFile = 256 << 20
)

// Version is the version of jenga, as written in checkpoints.
const Version = "0.1.0"

// Build describes this binary: version, commit, Go's version and the platform. Binaries of the same description train
// to the same bytes where their kernels are the same, unless files were changed since the commit.
func Build() string {
	info, _ := debug.ReadBuildInfo()
	return Version + commitOf(info) + " " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
}

// SameBuild reports whether two descriptions may be of the same build: where one has no commit, as of go run, by the
// rest.
func SameBuild(a, b string) bool {
	less, more := strings.Fields(a), strings.Fields(b)
	if len(less) > len(more) {
		less, more = more, less
	}
	return a == b || len(less) == 3 && len(more) == 4 && slices.Equal(less, slices.Delete(more, 1, 2))
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

// Read reads the model.json of a checkpoint in a run's folder. It checks the CRC-32C of the checkpoint's files, and of
// a frozen encoder's.
func Read(ctx context.Context, folder, run string) (Description, error) {
	path := filepath.Join(folder, runfolder.ModelFile)
	about := Description{path: path}
	err := files.ReadJSON(path, maxModelFile, &about)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Description{}, runfolder.Missing(path)
	case err != nil:
		// damage is why the file cannot be read
		return Description{}, cmp.Or(runfolder.CheckChecksums(ctx, folder), err)
	case about.Format == 0:
		return Description{}, fmt.Errorf("%s: no field \"format\"; want a file that jenga train has written", path)
	case about.Format != format:
		return Description{}, fmt.Errorf("%s: format %d; this jenga reads %d", path, about.Format, format)
	}
	if err := about.checkAdapters(); err != nil {
		return Description{}, err
	}
	if err := runfolder.CheckChecksums(ctx, folder); err != nil {
		return Description{}, err
	}
	encoder := &about.Encoder
	if encoder.Folder, err = runfolder.Encoder(folder, run, encoder.Folder, encoder.SHA256); err != nil {
		return Description{}, err
	}
	if !encoder.Copied() {
		encoder.model = path
		return about, encoder.checkFiles(ctx)
	}
	if about.Base != nil {
		about.Base.Folder, err = runfolder.Resolve(run, about.Base.Folder)
	}
	return about, err
}

// checkAdapters returns an error for a task with an adapter that has no task's name: it becomes the name of a file.
func (d Description) checkAdapters() error {
	for _, task := range d.Tasks {
		known := slices.ContainsFunc(d.Tasks, func(t Task) bool { return t.Name == task.Adapter })
		local := filepath.Base(task.Adapter) == task.Adapter && filepath.IsLocal(task.Adapter)
		if task.Adapter != "" && !(known && local) {
			return fmt.Errorf("%s: task %q: adapter %q is not the name of a task", d.path, task.Name, task.Adapter)
		}
	}
	return nil
}

// SetAdapters gives the tasks of an experiment the adapters that the checkpoint has for them.
func (d Description) SetAdapters(e *config.Experiment) {
	for _, tasks := range [][]config.Task{e.Tasks, e.Kept} {
		for i := range tasks {
			for _, task := range d.Tasks {
				if task.Name == tasks[i].Name {
					tasks[i].Adapter = task.Adapter
				}
			}
		}
	}
}

// Labels returns the labels of each head.
func (d Description) Labels() (map[multitask.HeadName]*corpus.Labels, error) {
	labels := map[multitask.HeadName]*corpus.Labels{}
	for _, task := range d.Tasks {
		for _, head := range task.Heads {
			set, err := corpus.ParseLabels(head.Labels)
			if err != nil {
				return nil, fmt.Errorf("%s: task %q: head %q: %w", d.path, task.Name, head.Name, err)
			}
			labels[multitask.HeadName{Task: task.Name, Head: head.Name}] = set
		}
	}
	return labels, nil
}

// Check returns an error for a run that is quantized, in folder: it has no weights that learn.
func (q *Quantization) Check(folder string) error {
	if q == nil {
		return nil
	}
	return fmt.Errorf("%s: it is quantized to int8, and is neither trained nor merged nor quantized again; want the "+
		"run that it was made of, %s", folder, filepath.Join(folder, filepath.FromSlash(q.Run)))
}

// CheckQuantized is Check of the run in folder; it returns nil where there is no best model to read.
func CheckQuantized(folder string) error {
	var about Description
	path := filepath.Join(folder, runfolder.BestDir, runfolder.ModelFile)
	if err := files.ReadJSON(path, maxModelFile, &about); err != nil {
		return nil // whoever opens the run reports it
	}
	return about.Quantized.Check(folder)
}

// Open opens the model of the checkpoint, which lies in the folder saved, for predictions on a device: a value of
// encoders.Env.Device. e is the experiment of its run, as config.ReadTrained reads it; the dataset has no examples. The
// caller closes the encoder.
func (d Description) Open(e *config.Experiment, saved, device string) (*model.Assembled, error) {
	encoder, err := e.EncoderIn(d.Encoder.Folder)
	if err != nil {
		return nil, err
	}
	d.SetAdapters(e)
	data, err := d.openData(e, saved)
	if err != nil {
		return nil, err
	}
	built, err := model.Open(data, encoder, d.Encoder.Folder, device)
	if err != nil {
		return nil, err
	}
	for _, task := range d.Tasks {
		if g, t, err := built.Model.Group(task.Name); err == nil {
			g.Tasks[t].Pairs, g.Tasks[t].Single = task.Pairs, task.Single
		}
	}
	if err = d.Encoder.CheckRead(EncoderFiles(built.Model.Encoder, data.Tokenizer)); err == nil {
		err = ReadWeights(saved, built.Model)
	}
	if err != nil {
		encoders.Close(built.Model.Encoder)
		return nil, err
	}
	return built, nil
}

// OpenRun opens the best model of a run, or one of its checkpoints, for predictions on a device: see Open.
func OpenRun(ctx context.Context, folder, device string) (*model.Assembled, error) {
	file, saved, err := runfolder.Find(folder)
	if err != nil {
		return nil, err
	}
	about, err := Read(ctx, saved, filepath.Dir(file))
	if err != nil {
		return nil, err
	}
	e, err := config.ReadTrained(file)
	if err != nil {
		return nil, err
	}
	return about.Open(e, saved, device)
}

// OpenBeside is OpenRun on the device of another model's encoder; on the processor where that device does not compute
// the run's.
func OpenBeside(ctx context.Context, m *multitask.Model, folder string) (*model.Assembled, error) {
	if on := m.Encoder.Describe().Device; on != "" {
		if opened, err := OpenRun(ctx, folder, on); err == nil {
			return opened, nil
		}
	}
	return OpenRun(ctx, folder, encoders.CPU)
}

// openData opens the tokenizer and the labels of the checkpoint, which lies in the folder saved, for its experiment.
func (d Description) openData(e *config.Experiment, saved string) (*dataset.Dataset, error) {
	tokenizer, err := d.Encoder.OpenTokenizer()
	if err != nil {
		return nil, err
	}
	labels, err := d.Labels()
	if err != nil {
		return nil, err
	}
	data, err := dataset.Open(e, tokenizer, labels)
	if err != nil {
		return nil, err
	}

	at := filepath.Join(saved, runfolder.ModelFile)
	for t, task := range e.Tasks {
		for _, head := range task.Heads {
			switch set := labels[multitask.HeadName{Task: task.Name, Head: head.Name}]; {
			case set == nil:
				return nil, fmt.Errorf("%s: no head %q of task %q, which %s names", at, head.Name, task.Name, e.Path)
			case data.Tasks[t].Output().HasLabels && len(set.Names()) == 0:
				return nil, fmt.Errorf("%s: task %q: head %q: no labels", at, task.Name, head.Name)
			}
		}
	}
	return data, nil
}

// ReadWeights reads the weights of a checkpoint except the encoder's, and the encoder's adapters.
func ReadWeights(folder string, m *multitask.Model) error {
	for _, name := range adapters(m.Groups) {
		if err := readAdapter(folder, name, m, name); err != nil {
			return err
		}
	}
	path := filepath.Join(folder, runfolder.TensorsFile)
	return safetensors.ReadParams(path, "the experiment", OwnParams(m), nn.Params{})
}

func adapterFile(folder, adapter string) string {
	return filepath.Join(folder, "adapters", adapter+".safetensors")
}

// readAdapter sets the parameters of an adapter to those that the checkpoint in a folder has of the one named saved.
func readAdapter(folder, saved string, m *multitask.Model, adapter string) error {
	at := multitask.AdapterParams(m.Params, adapter)
	return safetensors.ReadParams(adapterFile(folder, saved), fmt.Sprintf("adapter %q", adapter), at.All(), at)
}

// OwnParams returns the parameters of a model except the encoder's, and what learns a teacher's states.
func OwnParams(m *multitask.Model) []*nn.Param {
	encoder := multitask.EncoderParams(m.Params).All()
	states := multitask.StatesParams(m.Params)
	return slices.DeleteFunc(m.Params.All(), func(w *nn.Param) bool {
		return slices.Contains(encoder, w) || multitask.IsIn(states, w)
	})
}

func adapters(groups []multitask.Group) []string {
	var names []string
	for _, g := range groups {
		if g.Adapter != "" && !slices.Contains(names, g.Adapter) {
			names = append(names, g.Adapter)
		}
	}
	return names
}
