// Package config reads and writes experiment files. It locates data files but does not read them.
package config

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/files"
	"github.com/jenga-nlp/jenga/internal/suggest"
	"github.com/jenga-nlp/jenga/plugin"
)

// Experiment is the content of an experiment file, with every default filled in and every path resolved.
type Experiment struct {
	Path        string // of the file
	ProjectName string
	Seed        uint64
	Model       Model
	Tokenizer   Tokenizer
	Tasks       []Task
	Kept        []Task // of the base run, which are saved with the model but not trained; none where a run is opened
	Training    Training
	Several     bool // processes train together; their caller sets it

	// Warnings name settings that have no effect, or an unexpected one, each with its place.
	Warnings []plugin.Warning
	// JengaNLP is true if the file uses only keys of Jenga-NLP. Wrong num_labels, frequent in such files, are then
	// warnings, not errors.
	JengaNLP bool

	// ModelMistaken is true if the sections model and tokenizer have mistakes.
	ModelMistaken bool

	root *plugin.Section // of the file, with the values of --set; nil where it was not read
}

// Read reads an experiment file. Each of sets, KEY=VALUE, overrules a value of the file: training.num_epochs=1,
// tasks.intent.heads.intent.type=linear. The error lists all mistakes in both; the experiment beside it, which may be
// nil, is only good for finding more mistakes, by its Readable tasks.
//
// Paths are relative to the file, those in sets to the working directory. Data files not found there are looked up
// below $JENGA_DATA, base models below $JENGA_MODELS and in the Hugging Face cache. Where ctx ends, its error is
// returned.
func Read(ctx context.Context, path string, sets []string) (*Experiment, error) {
	data, err := readStart(path)
	if err != nil {
		return nil, err
	}
	return Parse(ctx, path, data, sets)
}

// Parse is Read of a file at path whose content is data.
func Parse(ctx context.Context, path string, data []byte, sets []string) (*Experiment, error) {
	return decode(ctx, path, data, sets, true)
}

// ParseMade is Parse of a file that is not there yet, made of another experiment, whose values are at the places of
// that; those that it lacks are at made. Its paths are from the root.
func ParseMade(ctx context.Context, path string, data []byte, sets []string, of *Experiment, made plugin.Place) (
	*Experiment, error) {
	return decodePlaced(ctx, path, data, sets, true, func(root *plugin.Section) { root.PlaceAs(of.root, made) })
}

// ReadTrained reads the experiment file of a trained run. The data it was trained on may be gone.
func ReadTrained(path string) (*Experiment, error) {
	data, err := readStart(path)
	if err != nil {
		return nil, err
	}
	return decode(context.Background(), path, data, nil, false)
}

// decode returns the experiment in data, the content of a file at path. If files is true, the files that it names must
// exist.
func decode(ctx context.Context, path string, data []byte, sets []string, files bool) (*Experiment, error) {
	return decodePlaced(ctx, path, data, sets, files, func(*plugin.Section) {})
}

// decodePlaced is decode of a file whose values place gives their places.
func decodePlaced(ctx context.Context, path string, data []byte, sets []string, files bool,
	place func(root *plugin.Section)) (*Experiment, error) {
	d := decoding{ctx: ctx, e: &Experiment{Path: path, ModelMistaken: true}, files: files}
	d.mistakes.Meant = meant
	root := plugin.Parse(path, data, &d.mistakes)
	if root == nil {
		return nil, d.mistakes.Err()
	}
	place(root)
	for _, set := range sets {
		override(root, set, &d.mistakes)
	}
	d.e.root = root
	d.experiment(root)
	if err := ctx.Err(); err != nil { // among the mistakes it would be one of the file
		return nil, err
	}
	return d.e, d.mistakes.Err()
}

// Near returns the end of an error about an experiment file, or a run, that does not exist: the one that has almost its
// name; "" if there is none.
func Near(path string) string {
	return suggest.File(path, path, func(path string) bool {
		return IsFile(path) || runfolder.IsRun(path) || runfolder.IsCheckpoint(path)
	})
}

// IsFile reports whether a path may be that of an experiment file, by its name.
func IsFile(path string) bool {
	return slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(path))
}

// readStart reads a file up to a limit above the one that Parse accepts: the file may be endless.
func readStart(path string) ([]byte, error) {
	const limit = 16 << 20 // bytes
	open := os.Open        // a file of a user may be a pipe
	if filepath.Base(path) == runfolder.ExperimentFile {
		// one of a run, which may be someone else's, does not make a reader wait, and is no link: errors quote its text
		open = files.Open
		if runfolder.IsRun(filepath.Dir(path)) {
			if err := files.CheckKind(path, 0); err != nil {
				return nil, err
			}
		}
	}
	f, err := open(path)
	switch {
	case path == "":
		return nil, errors.New("the name of the experiment file is empty; want a file such as experiment.yaml")
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: no such file%s", path, Near(path))
	case err != nil:
		return nil, err
	}
	defer f.Close()
	if slices.Contains([]string{".csv", ".tsv", ".jsonl", ".conll", ".conllu", ".parquet"}, filepath.Ext(path)) {
		return nil, fmt.Errorf("%s is data by its name; want an experiment file, which jenga init %[1]s writes for it",
			path)
	}
	if runfolder.IsFolder(path) {
		return nil, fmt.Errorf("%s is a folder; want an experiment file, such as %s", path,
			filepath.Join(path, runfolder.ExperimentFile))
	}
	text, err := io.ReadAll(io.LimitReader(f, limit))
	if err == nil {
		err = files.CheckContent(path, text[:min(len(text), files.HeadBytes)])
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return text, nil
}

// experimentOptions are the keys of an experiment file. The sections that it names are described by `jenga parts
// section NAME`.
type experimentOptions struct {
	// name of the experiment, and of its folder in runs/
	ProjectName string          `yaml:"project_name" takes:"a name" default:"(the file's name)"`
	Seed        uint64          `yaml:"seed" range:"[0,)" doc:"random seed of all random numbers"`
	Model       *plugin.Section `yaml:"model" takes:"{KEY: …}" doc:"the section model; required"`
	Tokenizer   *plugin.Section `yaml:"tokenizer" takes:"{KEY: …}" doc:"the section tokenizer"`
	// mappings with the keys of the section task; required
	Tasks    *plugin.Section `yaml:"tasks" takes:"a list of tasks"`
	Training *plugin.Section `yaml:"training" takes:"{KEY: …}" doc:"the section training"`
}

var experimentDefaults = experimentOptions{Seed: 42}

type decoding struct {
	ctx      context.Context // of what reads the files that the experiment names
	e        *Experiment
	mistakes plugin.Mistakes
	files    bool // the files that the experiment names must exist
	absent   int  // mistakes about data files that do not exist

	base  *Experiment       // of the base run; nil: none
	from  *Experiment       // of the run that encoder.from names; nil: none
	names map[string]string // task of the base run → its name in this experiment
	kept  *plugin.Section   // entry of the kept task whose keys are read; nil: none
	was   *Task             // that task in the base run, whose keys it has where the entry lacks them
}

func (d *decoding) warn(at plugin.Place, format string, args ...any) {
	d.e.Warnings = append(d.e.Warnings, plugin.Warn(at, format, args...))
}

func (d *decoding) experiment(root *plugin.Section) {
	top := experimentDefaults
	stem := strings.TrimSuffix(filepath.Base(d.e.Path), filepath.Ext(d.e.Path))
	root.Decode("experiment", &top, &d.mistakes)
	if root.Kind != plugin.Mapping {
		return
	}
	d.e.Seed = top.Seed
	d.e.JengaNLP = hasKnownKeys("", root)
	if d.e.ProjectName = top.ProjectName; root.Has("project_name") {
		d.checkName("project_name", root.At("project_name"))
	} else if d.e.ProjectName = stem; !isName(stem) {
		d.mistakes.Add(root.Place, "experiment without a project_name; %s", nameRule)
	}

	before := d.mistakes.Len()
	d.model(orEmpty(top.Model, root))
	d.tokenizer(orEmpty(top.Tokenizer, root))
	d.e.ModelMistaken = d.mistakes.Len() > before
	training := orEmpty(top.Training, root)
	d.training(training)
	before = d.mistakes.Len() - d.absent
	d.tasks(d.withKept(orEmpty(top.Tasks, root), root))
	tasksMistaken := d.mistakes.Len()-d.absent > before
	d.metric(training)
	d.keepTasks()
	if !tasksMistaken {
		d.sampling()
	}
	d.losses()
	d.sums()
	d.teachers(training)
	if d.files {
		_, err := d.e.DeviceFor(d.e.Training.Device, true)
		d.mistakes.Append(err)
	}
}

// losses requires a head with a loss and a weight above 0, and enough examples in a batch for heads that compare them.
func (d *decoding) losses() {
	if !d.files { // a run trained with it still opens
		return
	}
	learning, weighted := 0, 0
	for _, task := range d.e.Tasks {
		for _, head := range task.Heads {
			if head.learns() {
				learning++
				if head.Weight > 0 {
					weighted++
				}
			}
		}
	}
	if err := d.e.CheckPairs(); err != nil {
		d.mistakes.Add(d.e.Place("training.batch_size"), "%v", err)
	}
	if learning > 0 && weighted == 0 {
		d.mistakes.Add(d.e.Tasks[0].Place,
			"the weights of all heads are 0, so that nothing is learned; leave one above 0")
	}
}

// orEmpty returns s, or an empty section at the place of within if s is nil or null.
func orEmpty(s, within *plugin.Section) *plugin.Section {
	if s == nil || s.Kind == plugin.Null {
		return &plugin.Section{Place: within.Place}
	}
	return s
}

// namePattern matches names, which become file names, keys of checkpoints and parts of --set's paths. Its count would
// take 0.3 ms to compile at each start: isName counts by itself.
const namePattern = `^[\p{L}\p{M}\p{N}_]([\p{L}\p{M}\p{N}_ -]{0,62}[\p{L}\p{M}\p{N}_-])?$`

var nameOfAnyLength = regexp.MustCompile(strings.Replace(namePattern, "{0,62}", "*", 1))

func isName(text string) bool {
	return utf8.RuneCountInString(text) <= 64 && nameOfAnyLength.MatchString(text)
}

const nameRule = "a name has 1 to 64 letters, digits, _, - or blanks within"

func (d *decoding) checkName(what string, s *plugin.Section) {
	if s.Kind < plugin.List && !isName(s.Text) {
		d.mistakes.Add(s.Place, "%s: want a name, have %s; %s", what, s, nameRule)
	} else if isDevice.MatchString(s.Text) {
		d.mistakes.Add(s.Place, "%s: %q %s", what, s.Text, deviceRule)
	}
}

// isDevice matches names that are devices on Windows in every folder.
var isDevice = regexp.MustCompile(`(?i)^(con|prn|aux|nul|(com|lpt)[0-9¹²³])$`)

const deviceRule = "is the name of a device on Windows, and names become folders; want another, such as one with a " +
	"further letter"

// CheckName returns an error if a text cannot be the name of a task.
func CheckName(text string) error {
	if !isName(text) {
		return fmt.Errorf("want a name, have %q; %s", text, nameRule)
	}
	if isDevice.MatchString(text) {
		return fmt.Errorf("%q %s", text, deviceRule)
	}
	return nil
}

// Write writes the experiment as a file in folder, which Read reads as the same experiment: every default filled in,
// paths relative to folder, or "": from the root.
func (e *Experiment) Write(w io.Writer, folder string) error {
	f := writing{e: e, folder: folder}
	s := f.experiment()
	if f.err != nil {
		return f.err
	}
	return s.Write(w)
}

// TaskText returns a task as Write writes it, with paths from the working directory.
func (e *Experiment) TaskText(number int) (string, error) {
	f := writing{e: e, folder: "."}
	s := f.task(e.Tasks[number])
	if f.err != nil {
		return "", f.err
	}
	var text strings.Builder
	err := s.Write(&text)
	return text.String(), err
}

type writing struct {
	e      *Experiment
	folder string
	err    error // of the first path that cannot be made relative to folder
}

func (f *writing) experiment() *plugin.Section {
	tasks := &plugin.Section{Kind: plugin.List}
	for _, task := range slices.Concat(f.e.Tasks, f.e.Kept) {
		tasks.Items = append(tasks.Items, f.task(task))
	}
	return plugin.SectionOf(experimentOptions{
		ProjectName: f.e.ProjectName, Seed: f.e.Seed,
		Model: f.model(), Tokenizer: f.tokenizer(), Tasks: tasks, Training: f.training(),
	})
}

// path returns a path relative to folder, or without one from the root, with slashes; nil for none.
func (f *writing) path(path string) *plugin.Section {
	if path == "" {
		return nil
	}
	from, err := filepath.Abs(f.folder)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err == nil && f.folder != "" {
		path, err = filepath.Rel(from, path)
	}
	if err != nil && f.err == nil {
		f.err = err
	}
	return plugin.SectionOf(filepath.ToSlash(path))
}
