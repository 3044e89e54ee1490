package merge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/experiments/checkpoint"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/predict"
)

type source struct {
	folder     string // as it is named: the run's, or one of its checkpoints
	opened     *predict.Opened
	experiment *config.Experiment // that of opened
	names      map[string]string  // of its tasks in the merged run
}

func openSource(ctx context.Context, folder string) (*source, error) {
	opened, err := predict.OpenSource(ctx, folder)
	if err != nil {
		return nil, err
	}
	s := &source{folder, opened, opened.Data.Experiment, map[string]string{}}
	for _, task := range s.experiment.Tasks {
		s.names[task.Name] = task.Name
	}
	return s, nil
}

// atRuns returns the mistakes of the merged run's experiment, of a file that is not written yet, with the places of
// their tasks in the files of the runs. Those of other sections have none.
func (m *Merge) atRuns(err error, joined *config.Experiment, file string) error {
	all, several := err.(interface{ Unwrap() []error })
	if !several || joined == nil {
		return err
	}

	end := joined.Place("training").Line
	var placed plugin.Mistakes
	for _, err := range all.Unwrap() {
		var mistake *plugin.Mistake
		if !errors.As(err, &mistake) || mistake.Place.File != file {
			placed.Append(err)
			continue
		}
		at, i := plugin.Place{}, 0
		for _, s := range m.sources { // whose tasks the merged run has in their order
			for _, task := range s.experiment.Tasks {
				if i < len(joined.Tasks) && joined.Tasks[i].Place.Line <= mistake.Place.Line &&
					mistake.Place.Line < end {
					at = task.Place
				}
				i++
			}
		}
		placed.Append(&plugin.Mistake{Place: at, Err: mistake.Err})
	}
	return placed.Err()
}

// base returns the base model of the run's encoder.
func (s *source) base() (checkpoint.Encoder, error) {
	base := &s.opened.About.Encoder // unchanged
	if base.Copied() {
		base = s.opened.About.Base
	}
	if base == nil {
		return checkpoint.Encoder{}, fmt.Errorf("%s: its encoder was trained from scratch, so that it has no base "+
			"model in common with another run", s.folder)
	}
	return checkpoint.Encoder{Folder: base.Folder, CRC32C: base.CRC32C, Layers: base.Layers}, nil
}

// commonBase returns the base model that all runs have. named is its folder, "" where the runs name it.
func commonBase(ctx context.Context, sources []*source, named string) (base checkpoint.Encoder, err error) {
	for i, s := range sources {
		own, err := s.base()
		if err != nil {
			return base, err
		}
		if i == 0 {
			base = own
		}
		if differs := different(base.CRC32C, own.CRC32C); differs != "" {
			return base, fmt.Errorf("%s and %s have different base models, %s and %s: %s; want runs of the same one",
				sources[0].folder, s.folder, base.Folder, own.Folder, differs)
		}
		if !slices.Equal(base.Layers, own.Layers) {
			return base, fmt.Errorf("%s and %s are made of different layers of their base model, %s and %s; want runs "+
				"of the same", sources[0].folder, s.folder, layerList(base.Layers), layerList(own.Layers))
		}
		if !runfolder.Exists(base.Folder) {
			base.Folder = own.Folder
		}
	}
	if named != "" {
		base.Folder = named
	}
	return base, checkBase(ctx, sources[0].folder, base)
}

func layerList(layers []int) string {
	if layers == nil {
		return "all"
	}
	return fmt.Sprint(layers)
}

// different describes the first difference of two maps of sums by file; "" if there is none. One may have files that
// the other lacks: a frozen encoder's have those of its tokenizer.
func different(a, b map[string]string) string {
	common := false
	for _, name := range slices.Sorted(maps.Keys(a)) {
		switch other, has := b[name]; {
		case has && other != a[name]:
			return fmt.Sprintf("the CRC-32C of %s is %s and %s", name, a[name], other)
		case has:
			common = true
		}
	}
	if !common {
		return fmt.Sprintf("they have the files %s and %s", strings.Join(slices.Sorted(maps.Keys(a)), ", "),
			strings.Join(slices.Sorted(maps.Keys(b)), ", "))
	}
	return ""
}

// checkBase returns an error if the files of a base model are not those that a run was trained from.
func checkBase(ctx context.Context, run string, base checkpoint.Encoder) error {
	if runfolder.IsRun(base.Folder) || runfolder.IsCheckpoint(base.Folder) {
		return fmt.Errorf("%w: %s is a run or a checkpoint of one; want the folder of the base model, or of an "+
			"encoder, as RUN/best/encoder", plugin.Argument("base"), base.Folder)
	}
	if !runfolder.Exists(base.Folder) {
		return fmt.Errorf("base model of the runs not found: %s; restore it there, or name it by %w", base.Folder,
			plugin.Argument("base"))
	}
	err := base.CheckCRC32C(ctx)
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("%s: its base model's %w; restore it, or name another folder by %w", run, err,
			plugin.Argument("base"))
	}
	return nil
}

// openBase returns the parameters of the base model's encoder, by the name that they have in a run.
func openBase(s *source, base checkpoint.Encoder) (params map[string]*nn.Param, closer func() error, err error) {
	all, closer, err := checkpoint.EncoderParams(s.experiment, base.Folder, s.opened.Data.Tokenizer.Size(), base.Layers)
	return byName(all), closer, err
}

func byName(params []*nn.Param) map[string]*nn.Param {
	named := map[string]*nn.Param{}
	for _, w := range params {
		named[w.Name] = w
	}
	return named
}

// rename gives a task of the run another name in the merged run.
func (s *source) rename(task, name string) error {
	if _, has := s.names[task]; !has {
		return fmt.Errorf("%w: %s: %s", plugin.Argument("rename"), s.folder,
			plugin.Unknown("task", task, slices.Collect(maps.Keys(s.names))))
	}
	if err := config.CheckName(name); err != nil {
		return fmt.Errorf("%w: task %q of %s: %w", plugin.Argument("rename"), task, s.folder, err)
	}
	if before := s.names[task]; before != task {
		return fmt.Errorf("%w: two names for task %q of %s, %q and %q; want one", plugin.Argument("rename"), task,
			s.folder, before, name)
	}
	s.names[task] = name
	return nil
}

// Runs with lora: {per_task: true} have their base model unchanged, and changes of the encoder for single tasks beside
// it, its adapters. Where all runs have the base unchanged, the merged run has it too, and each task keeps its adapter.

// adapted returns the first task of the run that has an adapter, "" if none has.
func (s *source) adapted() string {
	for _, task := range s.opened.About.Tasks {
		if task.Adapter != "" {
			return task.Name
		}
	}
	return ""
}

// firstAdapted returns the first of some runs that has adapters, nil if none has.
func firstAdapted(sources []*source) *source {
	i := slices.IndexFunc(sources, func(s *source) bool { return s.adapted() != "" })
	if i < 0 {
		return nil
	}
	return sources[i]
}

// checkAdapters returns an error if a run has adapters and another one an encoder that has learned, or other options of
// adapters: a run has one frozen base, and the same options for all tasks.
func checkAdapters(sources []*source) error {
	first := firstAdapted(sources)
	if first == nil {
		return nil
	}
	for _, s := range sources {
		if base := s.opened.About.Base; base != nil && base.Layers != nil {
			return fmt.Errorf("%s: task %q has changes of the encoder of its own (lora: {per_task: true}), beside the "+
				"base model as it was; the encoder of %s is made of layers of its base model, %v; want runs with all",
				first.folder, first.adapted(), s.folder, base.Layers)
		}
		if s.opened.About.Encoder.Copied() {
			return fmt.Errorf("%s: task %q has changes of the encoder of its own (lora: {per_task: true}), beside the "+
				"base model as it was; the encoder of %s has learned; want runs that leave it as it was, by freeze: "+
				"all or lora: {per_task: true}", first.folder, first.adapted(), s.folder)
		}
		own, others := s.experiment.Model, first.experiment.Model
		if s.adapted() != "" && (!reflect.DeepEqual(own.LoRA, others.LoRA) || own.Freeze != others.Freeze) {
			return fmt.Errorf("%s and %s have changes of the encoder for each task with different options of lora "+
				"or freeze; want runs with the same", first.folder, s.folder)
		}
	}
	return nil
}

func joinedAdapters(sources []*source) []checkpoint.Adapter {
	var all []checkpoint.Adapter
	for _, s := range sources {
		for _, adapter := range checkpoint.Adapters(s.opened.Model, s.opened.Model.Groups) {
			adapter.Name = s.names[adapter.Name]
			all = append(all, adapter)
		}
	}
	return all
}
