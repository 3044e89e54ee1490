package config

import (
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/plugin"
)

// Write writes the experiment as a file that Read reads alike from folder: every default filled in, paths relative to
// folder.
func (e *Experiment) Write(w io.Writer, folder string) error {
	f := writing{e: e, folder: folder}
	s := f.experiment()
	if f.err != nil {
		return f.err
	}
	return s.Write(w)
}

// writing makes sections of an experiment.
type writing struct {
	e      *Experiment
	folder string
	err    error // the first path that has no way from folder
}

func (f *writing) experiment() *plugin.Section {
	s := mapping()
	put(s, "project_name", f.e.ProjectName)
	put(s, "seed", f.e.Seed)
	s.Put("model", f.model())
	s.Put("tokenizer", f.tokenizer())
	tasks := &plugin.Section{Kind: plugin.List}
	for _, task := range f.e.Tasks {
		tasks.Items = append(tasks.Items, f.task(task))
	}
	s.Put("tasks", tasks)
	s.Put("training", f.training())
	return s
}

func mapping() *plugin.Section { return &plugin.Section{Kind: plugin.Mapping} }

func put(s *plugin.Section, key string, value any) { s.Put(key, plugin.SectionOf(value)) }

// path writes a path from folder, with slashes.
func (f *writing) path(s *plugin.Section, key, path string) {
	if path == "" {
		return
	}
	from, err := filepath.Abs(f.folder)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err == nil {
		path, err = filepath.Rel(from, path)
	}
	if err != nil && f.err == nil {
		f.err = err
	}
	put(s, key, filepath.ToSlash(path))
}

func (f *writing) model() *plugin.Section {
	m, s := f.e.Model, mapping()
	f.path(s, "base_model", m.BaseModel.Name)
	if m.DropoutSet {
		put(s, "dropout", m.Dropout)
	}
	put(s, "freeze", m.Freeze)
	if m.LoRA.Rank > 0 {
		put(s, "lora", m.LoRA)
	}
	if m.Encoder.Place != (plugin.Place{}) || m.BaseModel.Name == "" {
		s.Put("encoder", m.Encoder.Section()) // else its sizes are the base model's
	}
	s.Put("fusion", m.Fusion.Section())
	return s
}

func (f *writing) tokenizer() *plugin.Section {
	s := mapping()
	put(s, "max_length", f.e.Tokenizer.MaxLength)
	if f.e.Model.BaseModel.Name == "" {
		put(s, "type", f.e.Tokenizer.Type)
		f.path(s, "vectors", f.e.Tokenizer.Vectors.Name)
		put(s, "train", f.e.Tokenizer.Train)
	}
	return s
}

func (f *writing) task(task Task) *plugin.Section {
	s := mapping()
	put(s, "name", task.Name)
	s.Entries = append(s.Entries, task.Part.Section().Entries...)
	s.Put("data", f.data(task.Data))
	switch {
	case task.Data.SameAs != "":
	case task.Cut.Windows:
		put(s, "long", "windows")
		put(s, "stride", task.Cut.Stride)
	default:
		put(s, "long", "truncate") // some tasks want windows unless told otherwise
	}
	if task.Labels != nil {
		put(s, "labels", task.Labels)
	}
	if task.LabelMaps != nil {
		put(s, "label_maps", task.LabelMaps)
	}
	heads := &plugin.Section{Kind: plugin.List}
	for _, head := range task.Heads {
		h := mapping()
		put(h, "name", head.Name)
		put(h, "weight", head.Weight)
		if head.NumLabels > 0 && !f.e.JengaNLP { // what is written speaks our keys too, and theirs may be wrong
			put(h, "num_labels", head.NumLabels)
		}
		if head.Labels != nil {
			put(h, "labels", head.Labels)
		}
		h.Entries = append(h.Entries, head.Part.Section().Entries...)
		heads.Items = append(heads.Items, h)
	}
	s.Put("heads", heads)
	return s
}

func (f *writing) data(d Data) *plugin.Section {
	s := mapping()
	if d.SameAs != "" {
		put(s, "same_as", d.SameAs)
	} else {
		f.path(s, "path", d.Path.Name)
		f.path(s, "train", d.Train.Name)
		f.path(s, "dev", d.Dev.Name)
		f.path(s, "test", d.Test.Name)
		f.format(s, d)
	}
	fields := d.Format.Fields
	for _, name := range fieldNames() {
		if column, named := fields[name]; named {
			put(s, name, column)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		kind, head, ok := strings.Cut(name, ".")
		if !ok {
			continue
		}
		if _, both := fields[kind]; both {
			kind += "s" // label: is the column of the other heads
		}
		if s.At(kind) == nil {
			s.Put(kind, mapping())
		}
		put(s.At(kind), head, fields[name])
	}
	return s
}

func (f *writing) format(s *plugin.Section, d Data) {
	for _, option := range []struct{ key, value string }{
		{"format", d.Format.Type}, {"delimiter", d.Format.Delimiter}, {"quote", d.Format.Quote}, {"encoding", d.Format.Encoding},
	} {
		if option.value != "" {
			put(s, option.key, option.value)
		}
	}
	if d.Format.NoHeader {
		put(s, "header", false)
	}
	if d.Format.Columns != nil {
		put(s, "columns", d.Format.Columns)
	}
	if d.Split != (Split{}) || d.Dev.Name == "" {
		split := mapping()
		put(split, "dev", d.Split.Dev)
		put(split, "test", d.Split.Test)
		if d.Split != (Split{}) {
			put(split, "seed", d.Split.Seed)
		}
		if d.Split.By != "" {
			put(split, "by", d.Split.By)
		}
		s.Put("split", split)
	}
	if d.Limit > 0 {
		put(s, "limit", d.Limit)
	}
}

func (f *writing) training() *plugin.Section {
	t := f.e.Training
	s := plugin.SectionOf(t)
	if t.EvalStrategy != "steps" {
		s.Entries = slices.DeleteFunc(s.Entries, func(e plugin.Entry) bool { return e.Key == "eval_steps" })
	}
	s.Put("sampling", t.Sampling.Section())
	s.Put("weighting", t.Weighting.Section())
	f.path(s, "output_dir", t.OutputDir)
	if t.CacheFolder != "" {
		f.path(s, "cache_file", t.CacheFolder)
	} else {
		put(s, "cache_file", !t.NoCacheFile)
	}
	return s
}
