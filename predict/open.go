package predict

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/checkpoint"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/experiments/memory"
	"github.com/jenga-nlp/jenga/experiments/model"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
)

// Opened is a trained run, opened for predictions and evaluations.
type Opened struct {
	Data     *dataset.Dataset
	Model    *multitask.Model
	Warnings []plugin.Warning
	Folder   string // of the run
	// Checkpoint is the folder of the checkpoint, and About what that says of itself.
	Checkpoint string
	About      checkpoint.Description
	// Unfinished is how far the training came, if it did not come to its end, or still goes on; else nil.
	Unfinished *report.State

	encoder        checkpoint.Encoder
	machine        memory.Machine
	splitAgreement map[string]float64 // of tasks that split plain texts otherwise than their training data

	sum string // CRC-32C of the checkpoint's list of checksums
}

// OpenRun opens a trained run for predictions and evaluations: a run folder, of which it reads the best model, or one
// of its checkpoints (RUN/last, RUN/tasks/NAME). It predicts by the checkpoint's calibration, if there is one. The
// encoder is frozen. The sums of its files are computed until ctx ends. The caller closes the run.
func OpenRun(ctx context.Context, folder string) (*Opened, error) {
	return OpenRunOn(ctx, folder, encoders.CPU)
}

// OpenRunOn is OpenRun with an encoder that computes on a device: a value of encoders.Env.Device.
func OpenRunOn(ctx context.Context, folder, device string) (*Opened, error) {
	o, err := openUncalibrated(ctx, folder, device)
	if err != nil {
		return nil, err
	}
	if err := o.calibrate(folder); err != nil {
		o.Close()
		return nil, fmt.Errorf("%w; jenga calibrate %s makes it again, and with %w removes it", err, folder,
			plugin.Argument("remove"))
	}
	return o, nil
}

// OpenSource is OpenUncalibrated for a run that another one is made of, which must not be quantized.
func OpenSource(ctx context.Context, folder string) (*Opened, error) {
	o, err := OpenUncalibrated(ctx, folder)
	if err != nil {
		return nil, err
	}
	if err := o.About.Quantized.Check(o.Folder); err != nil {
		o.Close()
		return nil, err
	}
	return o, nil
}

// OpenUncalibrated is OpenRun without the checkpoint's calibration.
func OpenUncalibrated(ctx context.Context, folder string) (*Opened, error) {
	return openUncalibrated(ctx, folder, encoders.CPU)
}

// orLast returns an error of the model that a folder names with the last checkpoint of its run, if the model is damaged
// and that is whole.
func orLast(ctx context.Context, err error, folder, run string) error {
	last := filepath.Join(run, runfolder.LastDir)
	var damaged *runfolder.Damage
	if !errors.As(err, &damaged) || !runfolder.Exists(runfolder.Whole(last)) {
		return err
	}
	if _, failed := checkpoint.Read(ctx, runfolder.Whole(last), run); failed != nil {
		return err
	}
	return fmt.Errorf("%w\n%s, the model that was saved last, is whole: name it in place of %s", err, last, folder)
}

func openUncalibrated(ctx context.Context, folder, device string) (*Opened, error) {
	file, saved, err := runfolder.Find(folder)
	if err != nil {
		return nil, err
	}
	about, err := checkpoint.Read(ctx, saved, filepath.Dir(file))
	if err != nil {
		return nil, orLast(ctx, err, folder, filepath.Dir(file))
	}
	e, err := config.ReadTrained(file)
	if err != nil {
		return nil, err
	}
	state, warnings := report.CheckFinished(filepath.Dir(file))
	if filepath.Dir(saved) == filepath.Clean(folder) && filepath.Base(saved) == runfolder.LastDir {
		warnings = append(warnings, plugin.Warn(plugin.Place{File: folder},
			"there is no best model; using %s", runfolder.LastDir))
	}

	// of the weights that are read next
	sum, err := runfolder.CRC32C(ctx, filepath.Join(saved, runfolder.ChecksumsFile))
	if err != nil {
		return nil, err
	}
	built, err := about.Open(e, saved, device)
	if err != nil {
		return nil, err
	}
	data := built.Data
	data.Listed = func(visit func(tasks []string, split string, at corpus.Place)) error {
		return runfolder.ReadSplits(filepath.Dir(file), func(line runfolder.SplitLine) error {
			for n, entry := range line.Records() {
				visit(line.Tasks, line.Split, corpus.Place{File: line.File, Line: n, Entry: entry})
			}
			return nil
		})
	}
	o := &Opened{Data: data, Model: built.Model, Warnings: warnings, Unfinished: state,
		encoder: about.Encoder, machine: memory.This(), sum: sum,
		Folder: filepath.Dir(file), Checkpoint: saved, About: about}
	o.Model.Precision = built.Model.Encoder.Describe().Precision
	if err := o.Model.Precision.Check(); err != nil {
		o.Warnings = append(o.Warnings, plugin.Warn(plugin.Place{File: folder},
			"it is quantized to %v, which is slow here: %v", o.Model.Precision, err))
	}
	o.splitAgreement = map[string]float64{}
	for _, task := range about.Tasks {
		if task.SplitAgreement != nil {
			o.splitAgreement[task.Name] = *task.SplitAgreement
		}
	}
	return o, nil
}

// PassesWarnings returns a warning if predictions of the named tasks, or of all without names, take several passes of
// the encoder for a text.
func (o *Opened) PassesWarnings(names ...string) []plugin.Warning {
	groups := slices.DeleteFunc(slices.Clone(o.Model.Groups), func(g multitask.Group) bool {
		return len(names) > 0 && !slices.ContainsFunc(g.Tasks, func(t multitask.Task) bool {
			return slices.Contains(names, t.Name)
		})
	})
	return model.PassesWarnings(plugin.Place{}, groups, names...)
}

// SetPrecision makes the encoder multiply in a precision. It returns an error if the encoder has another one alone,
// float32 or, where it is quantized, int8, or the precision is slow on this processor.
func (o *Opened) SetPrecision(precision nn.Precision) (err error) {
	o.Model.Precision, err = PrecisionOf(o.Model.Encoder, precision)
	var one *PrecisionError
	if of := o.About.Quantized; of != nil && errors.As(err, &one) {
		one.Run = filepath.Join(o.Folder, filepath.FromSlash(of.Run))
	}
	return err
}

// PrecisionError is the error of a precision that an encoder of quantized weights does not have.
type PrecisionError struct {
	Own nn.Precision // that it has
	Run string       // that the weights were made of; "": it is not known
}

func (e *PrecisionError) Error() string {
	text := fmt.Sprintf("the weights are quantized to %v, and have no other precision; leave it out, or open the run "+
		"that they were made of", e.Own)
	if e.Run != "" {
		text += ", " + e.Run
	}
	return text
}

// PrecisionOf returns the precision in which an encoder multiplies that is to multiply in wanted, as SetPrecision does.
func PrecisionOf(encoder encoders.Encoder, wanted nn.Precision) (nn.Precision, error) {
	about := encoder.Describe()
	switch own := about.Precision; {
	case own != nn.Float32 && wanted == own:
		return own, nil
	case own != nn.Float32:
		return own, &PrecisionError{Own: own}
	case wanted == nn.Int8 && about.Device != "":
		return own, fmt.Errorf("%v is of the processor only; want device: cpu", wanted)
	case wanted != nn.Float32 && !about.MixedPrecision:
		return own, errors.New("the encoder computes in float32 alone; a transformer with safetensors weights is " +
			"required")
	}
	if about.Device != "" { // where the processor's instructions are of no account
		return wanted, nil
	}
	if err := wanted.Check(); err != nil {
		return nn.Float32, err
	}
	return wanted, nil
}

// DeviceIn returns the device of an encoder that multiplies in a precision, nil for its own: int8 makes
// encoders.AutoDevice the processor.
func DeviceIn(device string, precision *nn.Precision) string {
	if device == encoders.AutoDevice && precision != nil && *precision == nn.Int8 {
		return encoders.CPU
	}
	return device
}

// CheckEncoder returns an error if a file of a frozen encoder has another SHA-256 than in training. OpenRun compares
// the CRC-32C alone, which is faster.
func (o *Opened) CheckEncoder(ctx context.Context) error { return o.encoder.CheckSHA256(ctx) }

// Close releases the files that the encoder holds. Neither the run nor a model of it must be used afterwards.
func (o *Opened) Close() error { return encoders.Close(o.Model.Encoder) }

// calibrate makes the model predict by its checkpoint's calibration, if it has one. folder is the name that the run was
// opened by.
func (o *Opened) calibrate(folder string) error {
	all, stale, err := checkpoint.ReadCalibration(o.Checkpoint, o.sum)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case stale:
		o.Warnings = append(o.Warnings, plugin.Warn(
			plugin.Place{File: filepath.Join(o.Checkpoint, runfolder.CalibrationFile)},
			"it was fitted to other weights, and is not used; jenga calibrate %s fits it again", folder))
		return nil
	}
	for _, head := range all {
		of, err := o.Head(head.Task, head.Head)
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Join(o.Checkpoint, runfolder.CalibrationFile), err)
		}
		calibrator := of.Head.Describe().Calibrator
		if calibrator == nil || !slices.Equal(of.Labels.Names(), head.Labels) {
			return fmt.Errorf("%s: task %q: head %q: it has other labels, or no probabilities that can be calibrated",
				filepath.Join(o.Checkpoint, runfolder.CalibrationFile), head.Task, head.Head)
		}
		calibrator.Calibrate(head.Fitted())
	}
	return nil
}

// Head returns a head of the model by the names of its task and its own.
func (o *Opened) Head(task, head string) (multitask.Head, error) {
	g, t, err := o.Model.Group(task)
	if err != nil {
		return multitask.Head{}, err
	}
	var names []string
	for _, have := range g.Tasks[t].Heads {
		if have.Name == head {
			return have, nil
		}
		names = append(names, have.Name)
	}
	return multitask.Head{}, fmt.Errorf("task %q: %s", task, plugin.Unknown("head", head, names))
}

// WriteCalibration writes the calibration of heads into the run's checkpoint, in place of an earlier one, and returns
// the file. Runs that are open stay as they are.
func (o *Opened) WriteCalibration(ctx context.Context, of []checkpoint.HeadCalibration) (path string, err error) {
	lock, err := o.lock(ctx)
	if err != nil {
		return "", err
	}
	defer lock.Release()
	return checkpoint.WriteCalibration(o.Checkpoint, o.sum, o.Model.Precision, of)
}

// RemoveCalibration removes the calibration of the run's checkpoint, the file at path; there is false without one.
func (o *Opened) RemoveCalibration(ctx context.Context) (path string, there bool, err error) {
	lock, err := o.lock(ctx)
	if err != nil {
		return "", false, err
	}
	defer lock.Release()
	path = filepath.Join(o.Checkpoint, runfolder.CalibrationFile)
	err = os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return path, false, nil
	}
	return path, true, err
}

// lock locks the run's folder. It returns an error if a training writes to it, or has replaced the checkpoint.
func (o *Opened) lock(ctx context.Context) (*runfolder.Lock, error) {
	lock, err := runfolder.Acquire(o.Folder)
	switch {
	case errors.Is(err, runfolder.ErrLocked):
		return nil, fmt.Errorf("%s: a training writes to it; wait until it has ended", o.Folder)
	case err != nil:
		return nil, err
	}
	sum, err := runfolder.CRC32C(ctx, filepath.Join(o.Checkpoint, runfolder.ChecksumsFile))
	if err == nil && sum != o.sum {
		err = fmt.Errorf("%s: a training has written to it meanwhile; calibrate again", o.Checkpoint)
	}
	if err != nil {
		lock.Release()
		return nil, err
	}
	return lock, nil
}
