package merge

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/checkpoint"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/model"
	"github.com/jenga-nlp/jenga/fusion"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
)

// refitRate is the learning rate of the merged run's experiment, whose heads learn on a frozen encoder.
const refitRate = 1e-3

// checkNames returns an error that lists the tasks of different runs that have one name, ignoring case: names become
// file names.
func checkNames(sources []*source) error {
	var wrong []error
	owner := map[string]int{}
	for r, s := range sources {
		for _, task := range s.experiment.Tasks {
			name := corpus.FoldName(s.names[task.Name])
			if first, taken := owner[name]; taken {
				wrong = append(wrong, fmt.Errorf("task %q is in %s and in %s; give it another name by "+
					"%w %d:%s=NAME",
					s.names[task.Name], sources[first].folder, s.folder, plugin.Argument("rename"), r+1, task.Name))
				continue
			}
			owner[name] = r
		}
	}
	return errors.Join(wrong...)
}

// checkParts returns an error if the encoders or the fusions of runs are of different kinds.
func checkParts(sources []*source) error {
	first := sources[0].experiment.Model
	for _, s := range sources[1:] {
		m, tokens := s.experiment.Model, s.opened.Data.Tokenizer.Size()
		if have := sources[0].opened.Data.Tokenizer.Size(); tokens != have {
			return fmt.Errorf("the tokenizer of %s has %d tokens and that of %s %d; want runs with the same",
				sources[0].folder, have, s.folder, tokens)
		}
		if m.Encoder.Type != first.Encoder.Type {
			return fmt.Errorf("%s has an encoder of type %s and %s one of type %s; want runs with the same",
				sources[0].folder, first.Encoder.Type, s.folder, m.Encoder.Type)
		}
		if m.Fusion.Type != first.Fusion.Type || !reflect.DeepEqual(m.Fusion.Options, first.Fusion.Options) {
			return fmt.Errorf("%s has another fusion than %s, %s and %s, or other options of it; want runs with "+
				"the same", s.folder, sources[0].folder, m.Fusion.Type, first.Fusion.Type)
		}
	}
	return nil
}

// joinedExperiment returns the experiment of the merged run: the tasks of all runs with a frozen encoder, and options
// of training with which heads learn on it. Batch sizes are those of the first run.
func joinedExperiment(sources []*source, folder string) (
	e *config.Experiment, warnings []plugin.Warning, err error,
) {
	first := *sources[0].experiment
	e = &first

	// tasks
	e.Tasks, e.Kept = nil, nil
	for _, s := range sources {
		for _, task := range s.experiment.Tasks {
			task.Name = s.names[task.Name]
			task.From, task.Keep = "", false // of a run that it is no longer trained from
			if task.Data.SameAs != "" {
				task.Data.SameAs = s.names[task.Data.SameAs]
			}
			e.Tasks = append(e.Tasks, task)
		}
	}

	// model
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return nil, nil, err
	}
	e.ProjectName, e.JengaNLP, e.Warnings = filepath.Base(absolute), false, nil
	e.Model.Freeze, e.Model.LoRA = config.Freeze{Always: encoders.FreezeAll}, encoders.LoRA{}
	if s := firstAdapted(sources); s != nil {
		own := s.experiment.Model
		e.Model.Freeze, e.Model.LoRA = own.Freeze, own.LoRA
	}
	e.Model.BaseRun = nil
	var lengths []int
	for _, s := range sources {
		lengths = append(lengths, s.experiment.Tokenizer.MaxLength)
	}
	if e.Tokenizer.MaxLength = slices.Max(lengths); slices.Min(lengths) < slices.Max(lengths) {
		warnings = append(warnings, plugin.Warn(plugin.Place{},
			"tokenizer.max_length of the runs is %s; the merged run has %d",
			strings.ReplaceAll(strings.Trim(fmt.Sprint(lengths), "[]"), " ", ", "), e.Tokenizer.MaxLength))
	}

	// training
	e.RemoveTeachers()
	t, own := &e.Training, e.Training
	if *t, err = config.DefaultTraining(); err != nil {
		return nil, nil, err
	}
	t.Rate, t.BatchSize, t.BatchTokens = refitRate, own.BatchSize, own.BatchTokens
	return e, warnings, nil
}

func joinedTasks(sources []*source) []checkpoint.Task {
	var all []checkpoint.Task
	for _, s := range sources {
		for _, task := range s.opened.About.Tasks {
			task.Name = s.names[task.Name]
			task.Adapter = s.names[task.Adapter] // "" for none
			all = append(all, task)
		}
	}
	return all
}

// joinedParams returns the parameters of heads and fusion of all runs, under the names of the merged run. A parameter
// of the fusion that all tasks share must have the same values in all runs.
func joinedParams(sources []*source) ([]*nn.Param, error) {
	var all []*nn.Param
	type origin struct {
		source *source
		param  *nn.Param
	}
	known := map[string]origin{}
	for _, s := range sources {
		m := s.opened.Model
		renamed, err := s.renamedParams()
		if err != nil {
			return nil, err
		}
		encoder := byName(multitask.EncoderParams(m.Params).All())
		for _, w := range m.Params.All() {
			if encoder[w.Name] != nil {
				continue
			}
			name := cmp.Or(renamed[w.Name], w.Name)
			if first, twice := known[name]; twice {
				if !slices.Equal(first.param.Data, w.Data) {
					return nil, fmt.Errorf("%s and %s have different values of %s, which all tasks of fusion %s "+
						"share, and are no change of a base model; want runs with fusion: %s, or one with "+
						"parameters for each task alone", first.source.folder, s.folder, name,
						s.experiment.Model.Fusion.Type, fusion.Registry().Default())
				}
				continue
			}
			known[name] = origin{s, w}
			all = append(all, &nn.Param{Name: name, Shape: w.Shape, Data: w.Data})
		}
	}
	return all, nil
}

// renamedParams returns the names that parameters of single tasks have in the merged run, by those in their own. Those
// of the fusion are found by their place, since a part of it may have the name of a task.
func (s *source) renamedParams() (map[string]string, error) {
	names := map[string]string{}

	// heads
	root := nn.NewParams(0)
	params := s.opened.Model.Params
	for _, task := range s.experiment.Tasks {
		for _, head := range task.Heads {
			was := multitask.HeadParams(params, task.Name, head.Name)
			now := multitask.HeadParams(root, s.names[task.Name], head.Name)
			for _, w := range was.All() {
				names[w.Name] = now.Path() + strings.TrimPrefix(w.Name, was.Path())
			}
		}
	}

	// fusion
	var was, now []string
	for _, task := range s.experiment.Tasks {
		was, now = append(was, task.Name), append(now, s.names[task.Name])
	}
	if slices.Equal(was, now) {
		return names, nil
	}
	then, renamed, err := model.RenamedFusionParams(s.experiment, s.opened.Model.Encoder, was, now)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.folder, err)
	}
	for i, name := range then {
		names[name] = renamed[i]
	}
	return names, nil
}
