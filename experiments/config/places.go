package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/plugin"
)

// relative returns the path that a section names: relative to the experiment file, or, where --set gave it, to the
// working directory.
func (d *decoding) relative(s *plugin.Section, what string) string {
	if s.Kind >= plugin.List || s.Text == "" || strings.ContainsRune(s.Text, 0) {
		d.mistakes.Add(s.Place, "%s: want a path, have %s", what, s)
		return ""
	}
	if filepath.IsAbs(s.Text) || s.Place.Line == 0 {
		return filepath.Clean(s.Text)
	}
	return filepath.Join(filepath.Dir(d.e.Path), s.Text)
}

// dataFile finds the data file that a section of a task names, if need be below $JENGA_DATA.
func (d *decoding) dataFile(s *plugin.Section, task, what string) File {
	if s == nil || s.Kind == plugin.Null {
		return File{}
	}
	path := d.relative(s, task+": "+what)
	if path == "" {
		return File{Place: s.Place}
	}
	if runfolder.Exists(path) {
		return File{path, s.Place}
	}
	if below := os.Getenv("JENGA_DATA"); below != "" && !filepath.IsAbs(s.Text) {
		if there := filepath.Join(below, s.Text); runfolder.Exists(there) {
			return File{there, s.Place}
		}
	}
	if d.files {
		d.mistakes.Add(s.Place, "%s: %s: no such file%s", task, s.Text, beside("JENGA_DATA", s.Text))
	}
	return File{path, s.Place}
}

// beside says where else a file of a relative name was looked for.
func beside(variable, name string) string {
	switch dir := os.Getenv(variable); {
	case filepath.IsAbs(name):
		return ""
	case dir == "":
		return ", nor below $" + variable + ", which is not set"
	default:
		return ", nor below $" + variable + ", " + dir
	}
}

// baseModel finds a folder or file of weights: as data is, else below $JENGA_MODELS or in the hub's local cache.
func (d *decoding) baseModel(s *plugin.Section) File {
	path := d.relative(s, "model: base_model")
	if path == "" {
		return File{Place: s.Place}
	}
	if runfolder.Exists(path) {
		if err := checkModel(path); err != nil && d.files {
			d.mistakes.Add(s.Place, "model: base_model: %w", err)
		}
		return File{path, s.Place}
	}
	if there := kept(s.Text); there != "" {
		return File{there, s.Place}
	}
	if d.files {
		d.mistakes.Add(s.Place, "model: base_model: no folder or .onnx file %q%s, nor in the hub's cache", s.Text,
			beside("JENGA_MODELS", s.Text))
	}
	return File{path, s.Place}
}

// checkModel returns why what is there can be no model: a file of another kind, or a run, which has one.
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

// encoderType returns the type of the encoder that lies in a model's folder: that of its config.json where an encoder
// is called so, else the default.
func encoderType(folder string) string {
	var config struct {
		Type string `json:"model_type"`
	}
	text, err := os.ReadFile(filepath.Join(folder, "config.json"))
	if err == nil && json.Unmarshal(text, &config) == nil && slices.Contains(encoders.Registry().Names(), config.Type) {
		return config.Type
	}
	return encoders.Registry().Default()
}

// FindModel returns the folder or file of the weights that a command names: a path, or a name below $JENGA_MODELS or in
// the hub's local cache. It is "" where there are none.
func FindModel(name string) (path string, err error) {
	if runfolder.Exists(name) {
		return name, checkModel(name)
	}
	return kept(name), nil
}

// EncoderIn returns the encoder of a run whose weights lie in a folder: the one that its experiment file names, else
// the one that the weights say. The base model, which said so when it was trained, may be gone.
func (e *Experiment) EncoderIn(folder string) (plugin.Choice[encoders.Env, encoders.Encoder], error) {
	if e.Model.Encoder.Place != (plugin.Place{}) {
		return e.Model.Encoder, nil
	}
	return encoders.Registry().FromString(encoderType(folder), "")
}

// kept returns the path of a model that is kept below $JENGA_MODELS or in the hub's local cache, "" if it is in
// neither.
func kept(name string) string {
	if filepath.IsAbs(name) {
		return ""
	}
	if below := os.Getenv("JENGA_MODELS"); below != "" {
		if there := filepath.Join(below, name); runfolder.Exists(there) {
			return there
		}
	}
	return cached(name)
}

// cached returns the folder of a hub model in the cache that Hugging Face's tools keep, "" if it is not there. A model
// ORG/NAME is models--ORG--NAME/snapshots/REVISION, and refs/main holds the revision.
func cached(name string) string {
	if !fs.ValidPath(name) || name == "." {
		return ""
	}
	hub := os.Getenv("HF_HUB_CACHE")
	if home := os.Getenv("HF_HOME"); hub == "" && home != "" {
		hub = filepath.Join(home, "hub")
	}
	if hub == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		hub = filepath.Join(cmp.Or(os.Getenv("XDG_CACHE_HOME"), filepath.Join(home, ".cache")), "huggingface", "hub")
	}
	model := filepath.Join(hub, "models--"+strings.ReplaceAll(name, "/", "--"))
	revision, err := os.ReadFile(filepath.Join(model, "refs", "main"))
	if err != nil {
		return ""
	}
	snapshot := filepath.Join(model, "snapshots", strings.TrimSpace(string(revision)))
	if !runfolder.Exists(snapshot) {
		return ""
	}
	return snapshot
}
