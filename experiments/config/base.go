package config

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/fusion"
	"github.com/jenga-nlp/jenga/internal/files"
	"github.com/jenga-nlp/jenga/plugin"
)

// BaseRun is a trained run whose model is trained on: its encoder, fusion, and heads of tasks.
type BaseRun struct {
	Folder string // of the run, or of one of its checkpoints
	File   string // its experiment file
	Model  string // folder of the checkpoint
}

// isRun reports whether path is a run folder or one of its checkpoints.
func isRun(path string) bool {
	return runfolder.IsRun(path) || runfolder.IsCheckpoint(path)
}

// baseRun reads the experiment file of the run at path, and returns the location of its encoder.
func (d *decoding) baseRun(path string, at plugin.Place) File {
	wrong := func(err error) File {
		d.mistakes.Add(at, "model: base_model: %w", err)
		return File{Place: at}
	}
	file, saved, err := runfolder.Find(path)
	if err != nil {
		return wrong(err)
	}
	encoder, err := encoderOfRun(saved, filepath.Dir(file))
	if err != nil {
		return wrong(err)
	}
	text, err := readStart(file)
	if err != nil {
		return wrong(err)
	}
	if d.base = plugin.Parse(file, text, &d.mistakes); d.base == nil {
		return File{Place: at}
	}
	if filepath.Clean(path) == filepath.Dir(file) && filepath.Base(saved) == runfolder.LastDir {
		d.warn(at, "model: base_model: %s has no best model; using %s", path, runfolder.LastDir)
	}
	d.e.Model.BaseRun = &BaseRun{Folder: path, File: file, Model: saved}
	return File{Name: encoder, Place: at}
}

// ofBaseRun returns a key of the experiment that only a base run gives a meaning, "" if there is none.
func (d *decoding) ofBaseRun() string {
	if d.e.root == nil {
		return ""
	}
	if keep := d.e.root.At("model").At("keep_tasks"); keep != nil && keep.Kind != plugin.Null {
		return "model.keep_tasks"
	}
	if tasks := d.e.root.At("tasks"); tasks != nil {
		for _, task := range tasks.Items {
			switch {
			case task.Has("from"):
				return "from of a task"
			case isKept(task):
				return "keep of a task"
			}
		}
	}
	return ""
}

// encoderOfRun returns the folder or file of the encoder of a checkpoint, which lies in the folder saved of a run.
func encoderOfRun(saved, run string) (string, error) {
	const most = 256 << 20 // bytes of a model.json, which lists all labels
	var about struct {
		Encoder struct {
			Folder string          `json:"folder"`
			SHA256 json.RawMessage `json:"sha256"` // of a frozen encoder's files, which are not in the checkpoint
		} `json:"encoder"`
	}
	path := filepath.Join(saved, runfolder.ModelFile)
	if err := files.ReadJSON(path, most, &about); err != nil {
		return "", err
	}
	folder := filepath.FromSlash(about.Encoder.Folder)
	switch {
	case about.Encoder.SHA256 == nil && !filepath.IsLocal(folder):
		return "", fmt.Errorf("%s: encoder folder %q is out of the checkpoint", path, folder)
	case about.Encoder.SHA256 == nil:
		return filepath.Join(saved, folder), nil
	case filepath.IsAbs(folder):
		return folder, nil
	}
	run, err := runfolder.RealPath(run)
	return filepath.Join(run, folder), err
}

// inheritParts sets the encoder and the fusion of m, the section s, to those of the base run. Another fusion is a
// mistake.
func (d *decoding) inheritParts(s *plugin.Section, m *modelOptions) {
	if d.base == nil {
		return
	}
	base := d.base.At("model")
	if m.Encoder == nil && base.Has("base_model") && base.Has("encoder") {
		m.Encoder = base.At("encoder")
	}
	if m.Fusion == nil || m.Fusion.Kind == plugin.Null {
		m.Fusion = base.At("fusion")
		return
	}
	var ignored plugin.Mistakes // Choose reports those of m.Fusion again
	missing := fusion.Registry().Default()
	own := fusion.Registry().Choose(m.Fusion, missing, nil, &ignored)
	was := fusion.Registry().Choose(base.At("fusion"), missing, nil, &ignored)
	if ignored.Empty() && (own.Type != was.Type || !reflect.DeepEqual(own.Options, was.Options)) {
		d.mistakes.Add(s.At("fusion").Place, "model: fusion: it is not that of the run %s, %s; leave it out, or take "+
			"the run's encoder alone, base_model: %s", d.e.Model.BaseRun.Folder, was.Type, d.e.Model.BaseModel.Name)
	}
}

// inheritLength sets max_length to that of the base run, where s does not name it.
func (d *decoding) inheritLength(s *plugin.Section, t *tokenizerOptions) {
	if d.base == nil {
		return
	}
	length := d.base.At("tokenizer").At("max_length")
	if length == nil {
		return
	}
	base := &plugin.Section{Place: length.Place, Kind: plugin.Mapping}
	base.Put("max_length", length)
	base.Decode("tokenizer", t, &d.mistakes)
	d.baseLength = t.MaxLength
}

// inheritLoRA returns the section lora: that of the base run, if it has changes for each task, which no other options
// can take over.
func (d *decoding) inheritLoRA(s *plugin.Section) *plugin.Section {
	if d.base == nil {
		return s
	}
	base := d.base.At("model").At("lora")
	if base == nil || base.Kind == plugin.Null {
		return s
	}
	var ignored plugin.Mistakes
	was, now := loraDefaults, loraDefaults
	base.Decode("model: lora", &was, &ignored)
	switch {
	case !was.PerTask:
		return s // it is merged into the run's weights
	case d.e.Model.Freeze == encoders.FreezeAll:
		d.mistakes.Add(d.e.Place("model.freeze"), "model: freeze: the tasks of the run %s have changes of their own "+
			"(lora: {per_task: true}), beside which the weights are frozen; leave freeze out", d.e.Model.BaseRun.Folder)
		return nil
	case s == nil || s.Kind == plugin.Null:
		return base
	}
	s.Decode("model: lora", &now, &ignored)
	if ignored.Empty() && !reflect.DeepEqual(was, now) {
		d.mistakes.Add(s.Place, "model: lora: the tasks of the run %s have other changes of their own, of rank %d; "+
			"leave lora out", d.e.Model.BaseRun.Folder, was.Rank)
	}
	return base
}
