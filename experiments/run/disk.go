package run

import (
	"fmt"
	"path/filepath"

	"github.com/jenga-nlp/jenga/experiments/checkpoint"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/memory"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/files"
	"github.com/jenga-nlp/jenga/multitask/train"
	"github.com/jenga-nlp/jenga/nn"
)

// Disk is what the files of a run take, in bytes, as far as that is known before it. Checkpoints of one step share
// their files, and which evaluations are the best is not known: the sums are upper bounds.
type Disk struct {
	Training int64 // while the run is trained, and a checkpoint is replaced
	Done     int64 // after the training
	Model    int64 // of a checkpoint, that a model is saved as
	State    int64 // of a checkpoint, that a training goes on from
	Free     int64 // in the run folder's file system
	Known    bool  // whether Free is
}

// freeDisk is files.Free. Tests replace it.
var freeDisk = files.Free

// disk estimates the files of a training with so many steps and evaluations, and of so much time.
func (r *Run) disk(e Expectation) Disk {
	t, params := r.experiment().Training, r.Model.Params.All()
	learned := paramBytes(params, (*nn.Param).Learns)

	// sizes of a checkpoint
	d := Disk{Model: paramBytes(checkpoint.OwnParams(r.Model), allParams)}
	if r.copiesEncoder() {
		const perToken = 64 // bytes of a tokenizer's files, as those of XLM-R have
		d.Model = e.Memory.Weights + perToken*int64(r.Data.Tokenizer.Size())
	}
	for _, a := range checkpoint.Adapters(r.Model, r.Model.Groups) {
		d.Model += paramBytes(a.Params, allParams)
	}
	if t.SaveStrategy != config.SaveNever {
		d.State = r.stateBytes(r.plan.Memory(r.Model, 0))
	}

	// how many there are that differ
	saves := max(1, e.Evaluations+r.savesBetween(e))
	bests := min(1, e.Evaluations)
	if t.TaskBests {
		bests *= 1 + len(r.experiment().Tasks)
	}
	kept := t.SaveTotalLimit
	switch {
	case t.SaveStrategy == config.SaveNever:
		kept = 1 // last/
	case kept == 0:
		kept = saves
	}
	states := min(saves, kept+1) // one beside those that are kept while it is written
	d.Training = int64(min(saves, states+bests))*d.Model + int64(states)*d.State + e.Memory.StatesFile
	d.Done = int64(min(saves, kept+bests)) * d.Model
	if t.SaveStrategy != config.SaveNever && (t.Average > 0 || r.experiment().Model.LoRA.Rank > 0) {
		d.Done += learned // of end.snapshot: the values that last/ has not
	}

	// teachers that are trained: their best and last checkpoints, and what all answer
	teachers := int64(e.Teachers.Alone)*2*d.Model + e.Teachers.Disk
	d.Training += teachers
	d.Done += teachers

	// what is free where the folder is, or will be
	folder, err := filepath.Abs(Folder(r.experiment(), ""))
	for err == nil && !runfolder.Exists(folder) && filepath.Dir(folder) != folder {
		folder = filepath.Dir(folder)
	}
	d.Free, d.Known = freeDisk(folder)
	return d
}

// savesBetween returns how often save_strategy saves a checkpoint beside evaluations, at most.
func (r *Run) savesBetween(e Expectation) int {
	switch t := r.experiment().Training; t.SaveStrategy {
	case "epoch":
		switch {
		case t.EvalStrategy == "epoch" && !r.plan.NeverEvaluate:
			return 0
		case t.MaxSteps > 0:
			return e.Steps
		}
		return min(e.Steps, t.Epochs)
	case "steps":
		return e.Steps / t.SaveSteps
	case "minutes":
		return int(min(e.Time.Minutes()/t.SaveMinutes, float64(e.Steps)))
	}
	return 0
}

// lacks returns a warning where the files of a run may take more than is free.
func (d Disk) lacks(t config.Training) []train.Warning {
	if !d.Known || d.Training <= d.Free {
		return nil
	}
	remedy := "set training.output_dir to a folder of another disk"
	if t.TaskBests {
		remedy += ", or training.save_task_bests: false, without tasks/"
	}
	if t.SaveTotalLimit != 1 {
		remedy += ", or training.save_total_limit: 1"
	}
	return []train.Warning{{Text: fmt.Sprintf("disk: the run folder may take %s, and %s are free there; %s",
		memory.Size(d.Training), memory.Size(d.Free), remedy)}}
}

// String describes the sizes in a line.
func (d Disk) String() string {
	text := fmt.Sprintf("at most about %s in training, %s then (a checkpoint: %s", memory.Size(d.Training),
		memory.Size(d.Done), memory.Size(d.Model))
	if d.State > 0 {
		text += ", its state: " + memory.Size(d.State)
	}
	text += ")"
	if d.Known {
		text += ", " + memory.Size(d.Free) + " free"
	}
	return text
}

func allParams(*nn.Param) bool { return true }

func paramBytes(params []*nn.Param, counts func(w *nn.Param) bool) (bytes int64) {
	for _, w := range params {
		if counts(w) {
			bytes += 4 * int64(len(w.Data))
		}
	}
	return bytes
}

// stateBytes returns the bytes of what a snapshot has: values and the optimizer's state.
func (r *Run) stateBytes(n train.Memory) int64 {
	bytes := paramBytes(r.Model.Params.All(), (*nn.Param).Learns) + n.State + n.Average
	// values and two moments of an encoder on a device
	bytes += 3 * paramBytes(r.Model.ResidentParams(), (*nn.Param).Learns)
	if l := r.plan.Weighting.Learned; l != nil {
		bytes += 3 * paramBytes(l.Params, allParams) // the parameter, and the moments of its AdamW
	}
	return bytes
}
