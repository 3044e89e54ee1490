// Package quantize makes runs whose encoders have weights in int8 of trained runs.
package quantize

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/checkpoint"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/internal/suggest"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/predict"
)

// Embeddings is the name of the layer below the others, those of numbers from 0.
const Embeddings = "embeddings"

// Source is a trained run that is open to be quantized.
type Source struct {
	Warnings []plugin.Warning

	folder  string // as it is named
	opened  *predict.Opened
	encoder encoders.Description
	adapter string // that all tasks have; "": none
	keep    []int  // levels in float32
}

// Open opens a run, or one of its checkpoints, whose layers keep, numbers from 0 and Embeddings, are to be left in
// float32. The caller closes the Source.
func Open(ctx context.Context, folder string, keep []string) (*Source, error) {
	opened, err := predict.OpenSource(ctx, folder)
	if err != nil {
		return nil, err
	}
	s := &Source{folder: folder, opened: opened, Warnings: slices.Clone(opened.Warnings)}
	if calibration := filepath.Join(opened.Checkpoint, runfolder.CalibrationFile); runfolder.Exists(calibration) {
		s.Warnings = append(s.Warnings, plugin.Warn(plugin.Place{File: calibration},
			"the quantized run does not take it over; jenga calibrate fits one to that run"))
	}
	if err := s.prepare(keep); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// prepare checks that the run can be quantized, and which layers stay float32.
func (s *Source) prepare(keep []string) error {
	if s.encoder = s.opened.Model.Encoder.Describe(); s.encoder.Quantized == nil {
		return fmt.Errorf("%s: its encoder, %s, has no weights in int8; want a run with a transformer", s.folder,
			s.opened.Data.Experiment.Model.Encoder.Type)
	}
	for i, group := range s.opened.Model.Groups {
		if i > 0 && group.Adapter != s.adapter {
			return fmt.Errorf("%s: its tasks have changes of the encoder of their own (lora: {per_task: true}), which "+
				"one encoder in int8 cannot have; predict with it by %w int8, or train with lora for all "+
				"tasks together", s.folder, plugin.Argument("precision"))
		}
		s.adapter = group.Adapter
	}
	var err error
	if s.keep, err = levels(keep, len(s.encoder.Levels)); err != nil {
		return err
	}
	for _, task := range s.opened.Data.Experiment.Tasks {
		multiplies := func(h config.Head) bool { return heads.TraitsOf(h.Part.Options).Words }
		if slices.ContainsFunc(task.Heads, multiplies) && !slices.Contains(s.keep, 0) {
			s.keep = append([]int{0}, s.keep...)
			s.Warnings = append(s.Warnings, plugin.Warn(plugin.Place{File: s.folder},
				"the embeddings are left in float32: task %q multiplies by them", task.Name))
		}
	}
	return nil
}

// levels returns the levels of an encoder with so many that have the names of layers, in order.
func levels(names []string, of int) ([]int, error) {
	var all []int
	for _, name := range names {
		level := 0
		if name != Embeddings {
			n, err := strconv.Atoi(name)
			if err != nil || n < 0 || n+1 >= of {
				hint := ""
				if near, ok := suggest.Nearest(name, []string{Embeddings}); ok {
					hint = fmt.Sprintf("did you mean %q? ", near)
				}
				return nil, fmt.Errorf("%w: no layer %q; %swant %s, or a number from 0 to %d", plugin.Argument("keep"),
					name, hint, Embeddings, of-2)
			}
			level = n + 1
		}
		if !slices.Contains(all, level) {
			all = append(all, level)
		}
	}
	slices.Sort(all)
	return all, nil
}

// Kept returns the names of the layers that stay float32, in order.
func (s *Source) Kept() []string { return layerNames(s.keep) }

// Further returns the names of layers to keep where those of Kept are too few: these and the lowest two, or the next
// one; nil if all are kept.
func (s *Source) Further() []string {
	further := slices.Clone(s.keep)
	for level := 0; level < len(s.encoder.Levels) && (level < 2 || len(further) == len(s.keep)); level++ {
		if !slices.Contains(further, level) {
			further = append(further, level)
		}
	}
	if len(further) == len(s.keep) {
		return nil
	}
	slices.Sort(further)
	return layerNames(further)
}

// layerNames returns the names of the layers of levels.
func layerNames(levels []int) []string {
	names := []string{}
	for _, level := range levels {
		if level == 0 {
			names = append(names, Embeddings)
		} else {
			names = append(names, strconv.Itoa(level-1))
		}
	}
	return names
}

// Close closes the run.
func (s *Source) Close() error { return s.opened.Close() }

// Check returns an error if the quantized run cannot be written to folder.
func (s *Source) Check(folder string, force bool) error {
	return checkpoint.CheckMade(folder, force, s.inputs())
}

// inputs returns the files and folders that the run is made of, which its folder must not hold.
func (s *Source) inputs() []string { return []string{s.opened.Folder, s.opened.About.Encoder.Folder} }

// Write writes the quantized run to folder, in place of an earlier one if force is true, which is left as it was on an
// error, or where check, if not nil, returns one of the new run. It refers to no files of the run that it is made of.
func (s *Source) Write(ctx context.Context, folder string, force bool, check func() error) error {
	from := s.opened.Checkpoint
	if filepath.Base(from) == runfolder.BestDir {
		from = s.opened.Folder
	}
	about := checkpoint.Description{
		Encoder: checkpoint.Encoder{Folder: runfolder.EncoderDir}, Tasks: slices.Clone(s.opened.About.Tasks),
		Quantized: &checkpoint.Quantization{Run: from, Keep: s.Kept()},
	}
	for i := range about.Tasks {
		about.Tasks[i].Adapter = "" // it is in the weights
	}
	return checkpoint.Made{
		Experiment: s.opened.Data.Experiment,
		Model: checkpoint.Model{
			About: about, Encoder: s.encoder.Quantized(s.adapter, s.keep...), Tokenizer: s.opened.Data.Tokenizer,
			Params: checkpoint.OwnParams(s.opened.Model),
		},
		Best: true, Splits: s.opened.Folder, Inputs: s.inputs(), Check: check,
	}.Write(ctx, folder, force)
}

// Bytes returns the size of the run's model, and that of the quantized run in folder, as files.
func (s *Source) Bytes(folder string) (before, after int64, err error) {
	saved, encoder := s.opened.Checkpoint, s.opened.About.Encoder.Folder
	for path, size := range map[string]*int64{saved: &before, filepath.Join(folder, runfolder.BestDir): &after} {
		if *size, err = bytesOf(path); err != nil {
			return 0, 0, err
		}
	}
	if within, err := filepath.Rel(saved, encoder); err == nil && filepath.IsLocal(within) {
		return before, after, nil
	}

	// of a frozen encoder, which is elsewhere
	for _, file := range checkpoint.EncoderFiles(s.opened.Model.Encoder, s.opened.Data.Tokenizer) {
		info, err := os.Stat(file)
		if err != nil {
			return 0, 0, err
		}
		before += info.Size()
	}
	return before, after, nil
}

// bytesOf returns the size of the files in a folder and below, without the state of a training.
func bytesOf(folder string) (size int64, err error) {
	names, err := runfolder.Files(folder)
	for _, name := range names {
		if strings.HasPrefix(name, runfolder.SnapshotFile) || name == runfolder.EndFile {
			continue
		}
		info, err := os.Lstat(filepath.Join(folder, name))
		if err != nil {
			return 0, err
		}
		size += info.Size()
	}
	return size, err
}

// MaxLoss is the most that a task's metric may lose and not be named, as a fraction.
const MaxLoss = 0.005

// Lost returns what a metric loses, a fraction; 0 where it gains or is unknown. A main metric is one of which more is
// better.
func Lost(of report.Change) float64 {
	higher, _ := of.Difference()
	return max(0, -higher)
}

// LosesMuch reports whether a metric loses more than MaxLoss.
func LosesMuch(of report.Change) bool {
	const rounding = 1e-9
	return Lost(of) > MaxLoss+rounding
}

// Before evaluates the run on dev and returns the figures of all heads. Tasks without dev data are in Warnings, and
// their figures are unknown. progress, if not nil, is called with the number of examples evaluated, of all.
func (s *Source) Before(ctx context.Context, progress func(done, of int)) ([]report.Change, error) {
	heads, warnings, err := s.opened.EvaluateDev(ctx, progress)
	s.Warnings = append(s.Warnings, warnings...)
	return heads, err
}

// After opens the quantized run in folder, and sets its figures, if there are any of before.
func After(ctx context.Context, figures []report.Change, folder string, progress func(done, of int)) error {
	opened, err := predict.OpenRun(ctx, folder)
	if err != nil {
		return err
	}
	defer opened.Close()
	if len(figures) == 0 {
		return nil
	}
	heads, _, err := opened.EvaluateDev(ctx, progress) // with the warnings of Before
	for i, h := range heads {                          // those of the run, in their order
		figures[i].After = h.Before
	}
	return err
}
