package config

import (
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/plugin"
)

// Write writes the experiment as a file in folder, which Read reads as the same experiment: every default filled in,
// paths relative to folder.
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

// writing builds the sections of an experiment file.
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

// path returns a path relative to folder, with slashes; nil for none.
func (f *writing) path(path string) *plugin.Section {
	if path == "" {
		return nil
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
	return plugin.SectionOf(filepath.ToSlash(path))
}

func (f *writing) model() *plugin.Section {
	m := f.e.Model
	base := m.BaseModel.Name
	if m.BaseRun != nil {
		base = m.BaseRun.Folder
	}
	o := modelOptions{
		BaseModel: f.path(base), Dropout: m.Dropout, Freeze: f.freeze(), Fusion: m.Fusion.Section(),
	}
	if m.LoRA.Rank > 0 {
		o.LoRA = plugin.SectionOf(m.LoRA)
	}
	if !m.EncoderOfBase || m.BaseModel.Name == "" {
		o.Encoder = m.Encoder.Section() // else the base model determines it
		if m.BaseModel.Name != "" && sized(m.Encoder.Options) {
			o.Encoder.Entries = slices.DeleteFunc(o.Encoder.Entries, func(e plugin.Entry) bool {
				return e.Key != "type"
			})
		}
	}
	s := plugin.SectionOf(o)
	if !m.DropoutSet {
		s.Remove("dropout")
	}
	return s
}

func (f *writing) tokenizer() *plugin.Section {
	t := f.e.Tokenizer
	o := tokenizerOptions{MaxLength: t.MaxLength}
	if f.e.Model.BaseModel.Name == "" {
		o.Type, o.Vectors, o.Train = t.Type, f.path(t.Vectors.Name), plugin.SectionOf(t.Train)
	}
	return plugin.SectionOf(o)
}

func (f *writing) task(task Task) *plugin.Section {
	heads := &plugin.Section{Kind: plugin.List}
	for _, head := range task.Heads {
		heads.Items = append(heads.Items, f.head(head))
	}
	o := taskOptions{
		Name: task.Name, From: task.From, Keep: task.Keep, Data: f.data(task.Data),
		// written even if truncate: the default of some tasks is windows
		Long: "truncate", Stride: task.Windowing.Stride,
		Labels: task.Labels, LabelMaps: task.LabelMaps, Heads: heads,
	}
	switch {
	case task.Data.SameAs != "":
		o.Long = ""
	case task.Windowing.Windows:
		o.Long = "windows"
	}
	s := plugin.SectionOf(o)
	if o.Long != "windows" {
		s.Remove("stride")
	}
	s.Entries = slices.Insert(s.Entries, 1, task.Part.Section().Entries...) // after the name
	return s
}

func (f *writing) head(head Head) *plugin.Section {
	o := headOptions{Name: head.Name, Weight: head.Weight, NumLabels: head.NumLabels, Labels: head.Labels}
	if f.e.JengaNLP { // the written file has our keys, so that a wrong num_labels would be an error
		o.NumLabels = 0
	}
	s := plugin.SectionOf(o)
	s.Entries = append(s.Entries, head.Part.Section().Entries...)
	return s
}

func (f *writing) data(d Data) *plugin.Section {
	s := plugin.SectionOf(f.files(d))
	if !d.Format.NoHeader || d.SameAs != "" {
		s.Remove("header")
	}
	fields := d.Format.Fields
	for _, name := range fieldNames() {
		if column, named := fields[name]; named {
			s.Put(name, plugin.SectionOf(column))
		}
	}
	for _, key := range d.unset { // of a kept task
		in, null := s, plugin.SectionOf((*plugin.Section)(nil))
		if inner, ok := strings.CutPrefix(key, "split."); ok {
			in, key = s.At("split"), inner
		}
		if in != nil {
			in.Put(key, null)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		kind, head, ok := strings.Cut(name, ".")
		if !ok {
			continue
		}
		if _, both := fields[kind]; both {
			kind += "s" // the singular key has the column of the other heads
		}
		if s.At(kind) == nil {
			s.Put(kind, &plugin.Section{Kind: plugin.Mapping})
		}
		s.At(kind).Put(head, plugin.SectionOf(fields[name]))
	}
	return s
}

// file returns the path of a file of the data, with its options if it has some of its own; nil for none.
func (f *writing) file(d Data, file File) *plugin.Section {
	format, own := d.Formats[file.Name]
	if !own {
		return f.paths(file)
	}
	return plugin.SectionOf(ownFile{Path: f.paths(file), fileOptions: optionsOf(format)})
}

// optionsOf returns the options of a format.
func optionsOf(f corpus.Format) fileOptions {
	return fileOptions{
		Format: f.Type, Delimiter: f.Delimiter, Quote: f.Quote, Encoding: f.Encoding, Header: !f.NoHeader,
		Columns: f.Columns,
	}
}

// files returns the options of a task's data without the columns.
func (f *writing) files(d Data) dataOptions {
	if d.SameAs != "" {
		return dataOptions{SameAs: d.SameAs}
	}
	o := dataOptions{
		Path: f.file(d, d.Path), Train: f.file(d, d.Train), Dev: f.file(d, d.Dev), Test: f.file(d, d.Test),
		fileOptions: optionsOf(d.Format), SplitWords: d.SplitWords, Limit: d.Limit, Stream: d.Stream,
	}
	if d.Split != (Split{}) || d.Dev.Name == "" {
		o.Split = plugin.SectionOf(d.Split)
		if d.Split == (Split{}) {
			o.Split.Remove("seed")
		}
	}
	return o
}

func (f *writing) training() *plugin.Section {
	t := f.e.Training
	o := trainingOptions{
		Training: t, Optimizer: t.Optimizer.Section(), Scheduler: t.Scheduler.Section(),
		Sampling: t.Sampling.Section(), Weighting: t.Weighting.Section(),
		OutputDir: f.path(t.OutputDir), CacheFile: f.path(t.CacheFolder),
		Metric: plugin.SectionOf(t.MetricForBestModel),
	}
	if t.MetricWeights != nil {
		o.Metric = plugin.SectionOf(t.MetricWeights)
	}
	if t.CacheFolder == "" {
		o.CacheFile = plugin.SectionOf(!t.NoCacheFile)
	}
	s := plugin.SectionOf(o)
	if t.EvalStrategy != "steps" {
		s.Remove("eval_steps")
	}
	if !t.Reversed { // the metric implies it, also one of --set
		s.Remove("greater_is_better")
	}
	if !f.e.rehearsable() {
		s.Remove("rehearse")
	}
	if t.SaveStrategy != "steps" {
		s.Remove("save_steps")
	}
	if t.SaveStrategy != "minutes" {
		s.Remove("save_minutes")
	}
	if t.SaveStrategy == SaveNever {
		s.Remove("save_total_limit")
	}
	if multitask.ComputesRate(t.Optimizer.Options) {
		for _, key := range rateKeys {
			s.Remove(key)
		}
	}
	return s
}
