package config

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/hubcache"
	"github.com/jenga-nlp/jenga/internal/jsonfile"
	"github.com/jenga-nlp/jenga/plugin"
)

// relative returns the path in a section: relative to the file that it is in, or to the working directory if it is from
// --set.
func (d *decoding) relative(s *plugin.Section, what string) string {
	if s.Kind >= plugin.List || s.Text == "" || strings.ContainsRune(s.Text, 0) {
		d.mistakes.Add(s.Place, "%s: want a path, have %s", what, s)
		return ""
	}
	if filepath.IsAbs(s.Text) || s.Place.Line == 0 {
		return filepath.Clean(s.Text)
	}
	return filepath.Join(filepath.Dir(s.Place.File), s.Text) // of a kept task, the file of the base run
}

// dataFile finds the data file that a section of a task names, or those of a pattern: relative to the experiment file,
// else below $JENGA_DATA.
func (d *decoding) dataFile(s *plugin.Section, task, what string) File {
	if s == nil || s.Kind == plugin.Null {
		return File{}
	}
	path := d.relative(s, task+": "+what)
	if path == "" {
		return File{Place: s.Place}
	}
	if runfolder.Exists(path) {
		return File{Name: path, Place: s.Place}
	}
	if dir := os.Getenv("JENGA_DATA"); dir != "" && !filepath.IsAbs(s.Text) {
		if found := filepath.Join(dir, s.Text); runfolder.Exists(found) {
			return File{Name: found, Place: s.Place}
		}
	}
	if isPattern(s.Text) && what != "vectors" {
		return d.matching(s, path, task, what)
	}
	if d.files {
		before := d.mistakes.Len()
		d.mistakes.Add(s.Place, "%s: %s: no such file%s%s", task, s.Text, alsoSearched("JENGA_DATA", s.Text),
			d.moved(s, what))
		d.absent += d.mistakes.Len() - before
		return File{Place: s.Place}
	}
	return File{Name: path, Place: s.Place}
}

// alsoSearched returns the end of an error: the directory of an environment variable where a relative name was looked
// up too.
func alsoSearched(variable, name string) string {
	switch dir := os.Getenv(variable); {
	case filepath.IsAbs(name):
		return ""
	case dir == "":
		return ", nor below $" + variable + ", which is not set"
	default:
		return ", nor below $" + variable + ", " + dir
	}
}

// baseModel finds a folder or file of weights: relative to the experiment file, else below $JENGA_MODELS or in the
// Hugging Face cache.
func (d *decoding) baseModel(s *plugin.Section) File {
	path := d.relative(s, "model: base_model")
	if path == "" {
		return File{Place: s.Place}
	}
	if runfolder.Exists(path) {
		if d.files && isRun(path) {
			return d.baseRun(path, s.Place)
		}
		if err := cmp.Or(checkModel(path), runfolder.CheckEncoder(path)); d.files && err != nil {
			d.mistakes.Add(s.Place, "model: base_model: %w", err)
		}
		return File{Name: path, Place: s.Place}
	}
	if found := findLocal(s.Text); found != "" {
		return File{Name: found, Place: s.Place}
	}
	switch key := d.ofBaseRun(); {
	case d.files && key != "":
		d.mistakes.Add(s.Place, "model: base_model: no run %q: %s is of a run, whose weights and options are "+
			"read again from its folder, also by --resume; put the folder back, or name its new place as "+
			"model.base_model", s.Text, key)
	case d.files:
		d.mistakes.Add(s.Place, "model: base_model: no folder or .onnx file %q%s, nor in the Hugging Face cache%s",
			s.Text, alsoSearched("JENGA_MODELS", s.Text), PullHint(s.Text))
	}
	return File{Name: path, Place: s.Place}
}

// checkModel returns an error if path is not a model: a run folder, or a file without the extension .onnx.
func checkModel(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case runfolder.IsRun(path):
		return fmt.Errorf("%s is a run; its encoder is %s", path,
			filepath.Join(path, runfolder.BestDir, runfolder.EncoderDir))
	case !info.IsDir() && !strings.EqualFold(filepath.Ext(path), ".onnx"):
		return fmt.Errorf("%s is a file; want a folder, or an .onnx file", path)
	}
	return nil
}

// encoderType returns the type of the encoder in a model's folder: model_type of its config.json if an encoder of this
// name is registered, else the default.
func encoderType(folder string) string {
	var config struct {
		Type string `json:"model_type"`
	}
	err := jsonfile.Read(filepath.Join(folder, "config.json"), jsonfile.MaxConfig, &config)
	if err == nil && slices.Contains(encoders.Registry().Names(), config.Type) {
		return config.Type
	}
	return encoders.Registry().Default()
}

// FindModel returns the folder or file of a model's weights. name is a path, or a name below $JENGA_MODELS or in the
// Hugging Face cache, there with @REVISION for another one than main. The path is "" if there is no such model.
func FindModel(name string) (path string, err error) {
	if runfolder.Exists(name) {
		return name, checkModel(name)
	}
	return findLocal(name), nil
}

// EncoderIn returns the encoder of a run whose weights are in a folder: the one that the experiment file names, else
// the one of the weights' config.json. The base model itself may no longer exist.
func (e *Experiment) EncoderIn(folder string) (plugin.Choice[encoders.Env, encoders.Encoder], error) {
	if !e.Model.EncoderOfBase {
		return e.Model.Encoder, nil
	}
	return EncoderFor(folder)
}

// EncoderFor returns the encoder for the weights in a folder: the one of their config.json.
func EncoderFor(folder string) (plugin.Choice[encoders.Env, encoders.Encoder], error) {
	return encoders.Registry().FromString(encoderType(folder), "")
}

// findLocal returns the path of a model below $JENGA_MODELS or in the Hugging Face cache, "" if it is in neither.
func findLocal(name string) string {
	if filepath.IsAbs(name) {
		return ""
	}
	if dir := os.Getenv("JENGA_MODELS"); dir != "" {
		if found := filepath.Join(dir, name); runfolder.Exists(found) {
			return found
		}
	}
	return hubcache.Find(name)
}

// PullHint returns the end of an error about a model that is in no place: the command that downloads it, if name may be
// that of a hub model.
func PullHint(name string) string {
	if m, err := hubcache.Parse(name); err == nil {
		return fmt.Sprintf("; if it is a model of the hub, %q downloads it", "jenga pull "+m.String())
	}
	return ""
}
