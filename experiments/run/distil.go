package run

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/checkpoint"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/plugin"
)

// Student is the experiment of a smaller model that learns from a run.
type Student struct {
	Experiment *config.Experiment
	Of         int // layers of the run's encoder
}

// studentTemperature is the temperature of answers by which students learn by default: the probabilities of labels
// that a teacher has ruled out say what it knows beside the label (Hinton et al. 2015, section 3).
const studentTemperature = 2

// Distil returns the experiment of a student of the run in folder, with n layers of its encoder, evenly spread, n = 0:
// half of them: the tasks, data and training of the run, which is their teacher. It is for the run folder out, "": the
// default. sets overrule its values, as those of config.Read do.
func Distil(ctx context.Context, folder string, n int, out string, sets []string) (s Student, err error) {
	file, saved, err := runfolder.Find(folder)
	if err != nil {
		return s, err
	}
	if out != "" {
		if err := runfolder.CheckBase(out, "the teacher", saved); err != nil {
			return s, err
		}
	}
	if unfinished, _ := report.CheckFinished(filepath.Dir(file)); unfinished != nil {
		return s, fmt.Errorf("%s: %s: a student has a run as its teacher whose training is done; %w %[1]s goes on "+
			"with it", folder, unfinished, runfolder.ResumeArgument)
	}
	about, err := checkpoint.Read(ctx, saved, filepath.Dir(file))
	if err == nil {
		err = about.Quantized.Check(filepath.Dir(file))
	}
	if err != nil {
		return s, err
	}
	e, err := config.ReadTrained(file)
	if err != nil {
		return s, err
	}
	layers, encoder, err := studentLayers(ctx, folder, n)
	if err != nil {
		return s, err
	}
	s.Of = encoder.layers

	// the experiment
	warnings := inheritedRate(e, folder)
	e.RemoveTeachers()
	for i := range e.Tasks {
		e.Tasks[i].From, e.Tasks[i].Keep = "", false // of a run that it is not trained from
	}
	e.Model = config.Model{
		BaseModel: config.File{Name: encoder.folder}, From: folder, Layers: layers, EncoderOfBase: true,
		Dropout: e.Model.Dropout, DropoutSet: e.Model.DropoutSet, Fusion: e.Model.Fusion,
		Freeze: config.Freeze{Always: encoders.FreezeNone}, Teacher: config.File{Name: folder},
	}
	name := []rune(e.ProjectName)
	e.ProjectName = string(name[:min(len(name), 54)]) + "-distilled"
	t := &e.Training
	t.OutputDir, t.Rehearse, t.TeacherWeight, t.Anneal, t.Temperature = "", 0, 0.5, false, studentTemperature
	out = Folder(e, out)
	var text bytes.Buffer
	if err := e.Write(&text, ""); err != nil {
		return s, err
	}
	made := plugin.Place{File: "the student of " + folder}
	s.Experiment, err = config.ParseMade(ctx, filepath.Join(out, runfolder.ExperimentFile), text.Bytes(), sets, e, made)
	if err != nil {
		return s, err
	}
	s.Experiment.Warnings = slices.Concat(s.Experiment.Warnings, warnings)
	return s, nil
}

// teacherEncoder is the encoder of a run that teaches.
type teacherEncoder struct {
	folder string
	layers int
}

// studentLayers returns which layers of a run's encoder make one of n layers, n = 0: of half of them.
func studentLayers(ctx context.Context, folder string, n int) (layers []int, of teacherEncoder, err error) {
	opened, err := checkpoint.OpenRun(ctx, folder, encoders.CPU)
	if err != nil {
		return nil, of, err
	}
	about := opened.Model.Encoder.Describe()
	of = teacherEncoder{opened.EncoderPath, len(about.Levels) - 1}
	switch {
	case !about.ChoosesLayers || of.layers < 1:
		err = fmt.Errorf("%s: its encoder has no layers that can be picked, as those of type transformer; want a run "+
			"of such an encoder, or a smaller one from scratch, whose experiment has model: {encoder: {…}, "+
			"teacher: %[1]s}", folder)
	case n > of.layers:
		err = fmt.Errorf("%s: its encoder has %s; want a student of 1 to %d, have %d", folder,
			plugin.Count(of.layers, "layer"), of.layers, n)
	default:
		layers = config.EvenLayers(cmp.Or(n, max(1, of.layers/2)), of.layers)
	}
	return layers, of, errors.Join(err, encoders.Close(opened.Model.Encoder))
}

// inheritedRate returns a warning of a run's learning rate where its encoder did not learn by it: the student's does.
func inheritedRate(e *config.Experiment, folder string) []plugin.Warning {
	if e.Model.Freeze.Always != encoders.FreezeAll && e.Model.LoRA.Rank == 0 {
		return nil
	}
	return []plugin.Warning{plugin.Warn(plugin.Place{}, "all weights of the student learn by the learning rate of %s, "+
		"%g, by which its encoder's did not; --set training.learning_rate=RATE sets another", folder, e.Training.Rate)}
}
