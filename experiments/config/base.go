package config

import (
	"cmp"
	"path/filepath"
	"reflect"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/files"
	"github.com/jenga-nlp/jenga/plugin"
)

// BaseRun is a trained run whose model is trained on: its encoder, fusion, and heads of tasks.
type BaseRun struct {
	Folder string // of the run, or of one of its checkpoints
	File   string // its experiment file
	Model  string // folder of the checkpoint
}

// baseRun finds the run at path as that which the model continues, and returns the location of its encoder.
func (d *decoding) baseRun(path string, at plugin.Place) (encoder File) {
	encoder, d.base, d.e.Model.BaseRun = d.findRun(path, baseModelKey, at)
	return encoder
}

// fromRun finds the run at path, whose encoder alone the new one is made of, and returns the encoder's location.
func (d *decoding) fromRun(path string, at plugin.Place) (encoder File) {
	encoder, d.from, d.e.Model.FromRun = d.findRun(path, fromKey, at)
	if d.from != nil && d.from.Model.LoRA.PerTask { // others are merged into the run's weights
		d.warn(at, "model: %s: the tasks of the run %s have changes of the encoder of their own (lora: {per_task: "+
			"true}), which the new one begins without", fromKey, path)
	}
	return encoder
}

// findRun reads the experiment file of the run at path, and returns it and the location of the run's encoder; after a
// mistake it returns nil.
func (d *decoding) findRun(path, key string, at plugin.Place) (File, *Experiment, *BaseRun) {
	none := File{Place: at}
	wrong := func(err error) (File, *Experiment, *BaseRun) {
		d.mistakes.Add(at, "model: %s: %w", key, err)
		return none, nil, nil
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
	e, err := decode(d.ctx, file, text, nil, false)
	if err != nil {
		d.mistakes.Append(err)
		return none, nil, nil
	}
	if filepath.Clean(path) == filepath.Dir(file) && filepath.Base(saved) == runfolder.LastDir {
		d.warn(at, "model: %s: %s has no best model; using %s", key, path, runfolder.LastDir)
	}
	return File{Name: encoder, Place: at}, e, &BaseRun{Folder: path, File: file, Model: saved}
}

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
			Folder string            `json:"folder"`
			SHA256 map[string]string `json:"sha256"` // of a frozen encoder's files, which are not in the checkpoint
		} `json:"encoder"`
	}
	if err := files.ReadJSON(filepath.Join(saved, runfolder.ModelFile), most, &about); err != nil {
		return "", err
	}
	return runfolder.Encoder(saved, run, about.Encoder.Folder, about.Encoder.SHA256)
}

// inheritParts takes the encoder and the fusion of the base run where the section model, s, names none. Another fusion
// is a mistake. Of a run that encoder.from names it takes the encoder.
func (d *decoding) inheritParts(s *plugin.Section) {
	run := cmp.Or(d.base, d.from)
	if run == nil {
		return
	}
	was, own := run.Model, &d.e.Model
	if s.At("encoder") == nil && was.BaseModel.given() && !was.EncoderOfBase {
		own.Encoder, own.EncoderOfBase = was.Encoder, false
	}
	switch {
	case d.base == nil:
	case !s.Has("fusion"):
		own.Fusion = was.Fusion
	case own.Fusion.Mistaken():
	case own.Fusion.Type != was.Fusion.Type || !reflect.DeepEqual(own.Fusion.Options, was.Fusion.Options):
		d.mistakes.Add(s.At("fusion").Place, "model: fusion: it is not that of the run %s, %s; leave it out, or take "+
			"the run's encoder alone, base_model: %s", own.BaseRun.Folder, was.Fusion.Type, own.BaseModel.Name)
	}
}

// inheritLoRA takes the LoRA of the base run, if it has changes for each task, which no other options can take over,
// and reports whether it has. s is the section lora.
func (d *decoding) inheritLoRA(s *plugin.Section) bool {
	if d.base == nil || !d.base.Model.LoRA.PerTask { // others are merged into the run's weights
		return false
	}
	was, own := d.base.Model.LoRA, &d.e.Model
	if own.Freeze.Always == encoders.FreezeAll {
		d.mistakes.Add(d.e.Place("model.freeze"), "model: freeze: the tasks of the run %s have changes of their own "+
			"(lora: {per_task: true}), beside which the weights are frozen; leave freeze out", own.BaseRun.Folder)
		return true
	}
	now := own.LoRA
	own.LoRA = was
	if s != nil && s.Kind != plugin.Null && !reflect.DeepEqual(was, now) {
		d.mistakes.Add(s.Place, "model: lora: the tasks of the run %s have other changes of their own, of rank %d; "+
			"leave lora out", own.BaseRun.Folder, was.Rank)
	}
	return true
}
