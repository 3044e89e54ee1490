// Package subset makes runs with some of the tasks of a trained run, or with other names for them, without training.
package subset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/checkpoint"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/model"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/predict"
)

// Options say which tasks of a run a new one has.
type Options struct {
	Drop    []string          // all but these
	Extract []string          // these alone
	Rename  map[string]string // other names of tasks that it has, by those in the run
}

// Source is a trained run that is open to be made another of.
type Source struct {
	Warnings []plugin.Warning

	opened *predict.Opened
	names  map[string]string // of the tasks that the new run has
}

// Open opens a run, or one of its checkpoints. The caller closes the Source.
func Open(ctx context.Context, folder string, o Options) (*Source, error) {
	opened, err := predict.OpenUncalibrated(ctx, folder)
	if err != nil {
		return nil, err
	}
	s := &Source{opened: opened, Warnings: slices.Clone(opened.Warnings), names: map[string]string{}}
	if err := s.choose(o); err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	s.warnWords()
	return s, nil
}

// Close closes the run.
func (s *Source) Close() error { return s.opened.Close() }

// Experiment returns that of the run.
func (s *Source) Experiment() *config.Experiment { return s.opened.Data.Experiment }

// Names returns the names of the tasks that the new run has, in their order.
func (s *Source) Names() []string {
	var all []string
	for _, task := range s.Experiment().Tasks {
		if name, kept := s.names[task.Name]; kept {
			all = append(all, name)
		}
	}
	return all
}

// choose sets the names of tasks. It returns all mistakes of the options.
func (s *Source) choose(o Options) error {
	var all []string
	for _, task := range s.Experiment().Tasks {
		all = append(all, task.Name)
	}
	var wrong []error
	known := func(flag string, names []string) {
		for _, name := range names {
			if !slices.Contains(all, name) {
				wrong = append(wrong, fmt.Errorf("%w: %s", plugin.Argument(flag), plugin.Unknown("task", name, all)))
			}
		}
	}
	renamed := make([]string, 0, len(o.Rename))
	for name := range o.Rename {
		renamed = append(renamed, name)
	}
	slices.Sort(renamed)
	known("drop", o.Drop)
	known("extract", o.Extract)
	known("rename", renamed)
	if len(o.Drop) > 0 && len(o.Extract) > 0 {
		wrong = append(wrong, fmt.Errorf("%w and %w: want one of them", plugin.Argument("drop"),
			plugin.Argument("extract")))
	}

	for _, name := range all {
		if !slices.Contains(o.Drop, name) && (len(o.Extract) == 0 || slices.Contains(o.Extract, name)) {
			s.names[name] = cmp.Or(o.Rename[name], name)
		}
	}
	taken := map[string]string{} // by the name of the folder that some file systems have for several
	for _, name := range all {
		now, kept := s.names[name]
		first, twice := taken[corpus.FoldName(now)]
		switch err := config.CheckName(now); {
		case !kept && o.Rename[name] != "":
			wrong = append(wrong, fmt.Errorf("%w: task %q is not in the new run", plugin.Argument("rename"), name))
		case !kept:
		case twice:
			wrong = append(wrong, fmt.Errorf("%w: tasks %q and %q would both be called %q; names must differ in more "+
				"than case and the encoding of accents", plugin.Argument("rename"), first, name, now))
		case err != nil:
			wrong = append(wrong, fmt.Errorf("%w: task %q: %w", plugin.Argument("rename"), name, err))
		}
		if kept && !twice {
			taken[corpus.FoldName(now)] = name
		}
	}
	if len(s.names) == 0 && len(wrong) == 0 {
		wrong = append(wrong, fmt.Errorf("%w: no task is left; the run has %s", plugin.Argument("drop"),
			strings.Join(all, ", ")))
	}
	return errors.Join(wrong...)
}

// warnWords warns of tasks whose texts the run reads word by word, for another one that is dropped.
func (s *Source) warnWords() {
	for _, group := range s.opened.Model.Groups {
		left, dropped, byWords := "", "", false
		for _, task := range group.Tasks {
			_, kept := s.names[task.Name]
			perWord := task.Type.Output().PerWord
			switch {
			case kept:
				left, byWords = cmp.Or(left, task.Name), byWords || perWord
			case perWord:
				dropped = cmp.Or(dropped, task.Name)
			}
		}
		if left != "" && dropped != "" && !byWords {
			s.Warnings = append(s.Warnings, plugin.Warn(plugin.Place{}, "task %q is kept without %q, for which the "+
				"run reads texts word by word: a text that is read as it is may have other tokens; keep both for the "+
				"same predictions", left, dropped))
		}
	}
}

// Check returns an error if the new run cannot be written to folder.
func (s *Source) Check(folder string, force bool) error {
	return checkpoint.CheckMade(folder, force, []string{s.opened.Folder})
}

// Write writes the new run to folder, in place of an earlier one if force is true, which is left as it was on an error.
func (s *Source) Write(ctx context.Context, folder string, force bool) error {
	params, err := s.params()
	if err != nil {
		return err
	}
	about := s.opened.About
	adapters := s.adapterNames()
	made := checkpoint.Made{
		Experiment: s.experiment(folder), Best: true, Inputs: []string{s.opened.Folder},
		Model:  checkpoint.Model{About: about, Params: params},
		Splits: s.opened.Folder, Calibration: s.opened.Checkpoint,
		Rename: func(task string) (string, bool) { name, kept := s.names[task]; return name, kept },
	}
	made.Model.About.Tasks = nil
	for _, task := range about.Tasks {
		if name, kept := s.names[task.Name]; kept {
			task.Name, task.Adapter = name, adapters[task.Adapter]
			made.Model.About.Tasks = append(made.Model.About.Tasks, task)
		}
	}
	for _, adapter := range checkpoint.Adapters(s.opened.Model, s.opened.Model.Groups) {
		if name := adapters[adapter.Name]; name != "" {
			adapter.Name = name
			made.Model.Adapters = append(made.Model.Adapters, adapter)
		}
	}
	if about.Encoder.Copied() {
		made.Model.About.Encoder = checkpoint.Encoder{Folder: runfolder.EncoderDir}
		made.Model.Encoder = func(to string) error { return runfolder.LinkFiles(about.Encoder.Folder, to) }
	}
	if of := about.Quantized; of != nil {
		made.Model.About.Quantized = &checkpoint.Quantization{Keep: of.Keep,
			Run: filepath.Join(s.opened.Folder, filepath.FromSlash(of.Run))}
	}
	made.Check = func() error {
		opened, err := predict.OpenRun(ctx, folder) // which finds what does not fit
		if err != nil {
			return err
		}
		return opened.Close()
	}
	return made.Write(ctx, folder, force)
}

// experiment returns the experiment of the new run.
func (s *Source) experiment(folder string) *config.Experiment {
	e := *s.Experiment()
	e.Tasks, e.Kept = nil, nil
	first := map[string]string{} // a dropped task → of those that read its texts, the one with the files
	for _, task := range s.Experiment().Tasks {
		name, kept := s.names[task.Name]
		if !kept {
			continue
		}
		task.Name, task.From, task.Keep = name, "", false // of a run that it is no longer trained from
		if same := task.Data.SameAs; same != "" {
			owner, has := s.names[same]
			if !has {
				owner = first[same]
			}
			if task.Data.SameAs = owner; owner == "" {
				first[same] = name
			}
		}
		e.Tasks = append(e.Tasks, task)
	}
	if absolute, err := filepath.Abs(folder); err == nil {
		e.ProjectName = filepath.Base(absolute)
	}
	e.JengaNLP, e.Warnings, e.Model.BaseRun, e.Training.OutputDir = false, nil, nil, ""
	e.RemoveTeachers()
	e.Training.Selection = s.selection(e.Training.Selection)
	return &e
}

// selection returns what selects the best model, of the tasks that the new run has.
func (s *Source) selection(of report.Selection) report.Selection {
	all := report.Selection{Metric: report.Overall, Higher: true}
	if of.Weights != nil {
		weights := map[string]float64{}
		for task, weight := range of.Weights {
			if name, kept := s.names[task]; kept {
				weights[name] = weight
			}
		}
		if len(weights) == 0 {
			return all
		}
		of.Weights = weights
		return of
	}
	if of.Metric == report.Overall || of.Metric == report.Loss {
		return of
	}
	owner, prefix := "", func(task string) string { return strings.TrimSuffix(report.TaskLoss(task), "loss") }
	for _, task := range s.Experiment().Tasks {
		if strings.HasPrefix(of.Metric, prefix(task.Name)) && len(task.Name) > len(owner) {
			owner = task.Name
		}
	}
	if name, kept := s.names[owner]; kept {
		of.Metric = prefix(name) + strings.TrimPrefix(of.Metric, prefix(owner))
		return of
	}
	if owner == "" && len(s.names) == len(s.Experiment().Tasks) { // a metric of several tasks, none of which is dropped
		return of
	}
	return all
}

// adapterNames returns the names of adapters in the new run by those in the run: of the first task that is kept.
func (s *Source) adapterNames() map[string]string {
	names := map[string]string{}
	for _, task := range s.opened.About.Tasks {
		if name, kept := s.names[task.Name]; kept && task.Adapter != "" && names[task.Adapter] == "" {
			names[task.Adapter] = name
		}
	}
	return names
}

// params returns the parameters of heads and fusion that the new run has, under their names there.
func (s *Source) params() ([]*nn.Param, error) {
	m, e := s.opened.Model, s.Experiment()
	names := map[string]string{} // "": the parameter is not in the new run

	// heads
	root := nn.NewParams(0)
	var was, now []string
	for i, task := range e.Tasks {
		name, kept := s.names[task.Name]
		for _, head := range task.Heads {
			own := multitask.HeadParams(m.Params, task.Name, head.Name)
			at := multitask.HeadParams(root, name, head.Name)
			for _, w := range own.All() {
				if names[w.Name] = ""; kept {
					names[w.Name] = at.Path() + strings.TrimPrefix(w.Name, own.Path())
				}
			}
		}
		if !kept {
			name = fmt.Sprintf("\x00%d", i) // the name of no task
		}
		was, now = append(was, task.Name), append(now, name)
	}

	// fusion
	if !slices.Equal(was, now) {
		then, renamed, err := model.RenamedFusionParams(e, m.Encoder, was, now)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.opened.Folder, err)
		}
		for i, name := range then {
			if names[name] = renamed[i]; strings.Contains(renamed[i], "\x00") {
				names[name] = ""
			}
		}
	}

	var all []*nn.Param
	for _, w := range checkpoint.OwnParams(m) {
		name, known := names[w.Name]
		if !known {
			name = w.Name
		}
		if name != "" {
			all = append(all, &nn.Param{Name: name, Shape: w.Shape, Data: w.Data})
		}
	}
	return all, nil
}
