package resume

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/jenga-nlp/jenga/experiments/checkpoint"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/files"
	"github.com/jenga-nlp/jenga/internal/safetensors"
	"github.com/jenga-nlp/jenga/multitask/snapshots"
	"github.com/jenga-nlp/jenga/multitask/train"
	"github.com/jenga-nlp/jenga/plugin"
)

// A training that has come to its end can have more epochs. The state for that is short: weights are those of the model
// in last/, and the optimizer's state, twice their size with AdamW, begins anew.

// stepsSetting is the setting of a snapshot that follows from lengthKeys, of which a longer training has others.
const stepsSetting = "steps"

var lengthKeys = []string{"training.num_epochs", "training.max_steps"}

// larger is what gives a training that has come to its end more steps.
const larger = "training.num_epochs=N, or training.max_steps=N where that is set, with a larger N"

// WriteEnd writes the state at the end of the training of the run in a folder, from that of its last checkpoint, if
// there is one.
func WriteEnd(folder string) error {
	last := filepath.Join(folder, runfolder.LastDir)
	path := filepath.Join(last, runfolder.SnapshotFile)
	if !runfolder.Exists(path) {
		return nil
	}
	saved := func(s *snapshots.Snapshot, kind string) bool { return train.OfModel(kind) && savesWeights(s) }
	return snapshots.Shorten(path, filepath.Join(last, runfolder.EndFile), saved)
}

// savesWeights reports whether the weights of a snapshot are those of the model that training saves: with ema that has
// means of them, with LoRA sums, and what learns a teacher's states is not in it.
func savesWeights(s *snapshots.Snapshot) bool {
	var state State
	if err := json.Unmarshal(s.Attached, &state); err != nil {
		return false
	}
	keys, err := keysOf("the experiment of the checkpoint", []byte(state.Experiment))
	ema, none := strconv.ParseFloat(cmp.Or(keys["training.ema"], "0"), 64)
	return err == nil && none == nil && ema == 0 && keys["model.lora.r"] == "" &&
		keys["training.match"] != config.MatchStates
}

// findEnd sets the point from which a training that is done goes on with more epochs, if it has one.
func (u *Unfinished) findEnd() (err error) {
	if u.Checkpoint == "" {
		u.Checkpoint = runfolder.Whole(filepath.Join(u.Folder, runfolder.LastDir))
	}
	if u.hasEnd() {
		u.Point, err = readPoint(u.Folder, u.Checkpoint, runfolder.EndFile)
	}
	return err
}

func (u Unfinished) hasEnd() bool {
	return runfolder.Exists(filepath.Join(u.Checkpoint, runfolder.EndFile))
}

// Changed reports whether an experiment is another one than that which the training of a run that is done had. An error
// names what differs where it cannot be trained on with that.
func (u Unfinished) Changed(e *config.Experiment) (bool, error) {
	now, err := Text(e, u.Folder)
	if err != nil {
		return false, err
	}
	was, err := []byte(nil), error(nil)
	if u.Point != nil {
		was = []byte(u.Point.State.Experiment)
	} else if was, err = files.ReadFile(u.File, MaxExperiment); err != nil {
		return false, err
	}
	differ, err := experimentDifferences(was, now)
	if err != nil || len(differ) == 0 || u.Point != nil {
		return len(differ) > 0, err
	}
	return true, fmt.Errorf("%s: its training is finished, %s, and nothing goes on with another %s: it has no %s, "+
		"which a training with save_strategy: no, one of an earlier jenga, and a run that is made of others do not "+
		"leave; train its model on in a new run, of %s with model.base_model: %[1]s, model.encoder: null and "+
		"tokenizer: null", u.Folder, u.State.After(), differ[0].what,
		filepath.Join(runfolder.LastDir, runfolder.EndFile), u.File)
}

// Fill gives the parameters of the state at the end of a training the values of the model beside it, whose tokenizer
// has so many tokens.
func (p *Point) Fill(about checkpoint.Description, e *config.Experiment, tokens int) error {
	var missing []*[]float32
	var names []string
	for _, kind := range p.snapshot.Kinds {
		for i := range kind.Params {
			if param := &kind.Params[i]; param.Values == nil {
				missing, names = append(missing, &param.Values), append(names, param.Name)
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}

	// heads and fusion
	file, err := safetensors.Open(filepath.Join(p.Checkpoint, runfolder.TensorsFile))
	if err != nil {
		return err
	}
	defer file.Close()
	for i, name := range names {
		if _, ok := file.Info(name); ok {
			if *missing[i], err = file.Floats(name); err != nil {
				return err
			}
		}
	}
	if !about.Encoder.Copied() {
		return nil
	}

	// the encoder
	params, closer, err := checkpoint.EncoderParams(e, about.Encoder.Folder, tokens, nil)
	if err != nil {
		return err
	}
	for _, w := range params {
		if i := slices.Index(names, w.Name); i >= 0 {
			*missing[i] = slices.Clone(w.Data)
		}
	}
	return closer()
}

// checkLonger returns an error if a training that has ended would end at once again.
func (p *Point) checkLonger(t *train.Training) error {
	if p.Ended && t.Done() {
		return fmt.Errorf("%s: its training is finished, %s, and has no more steps with what was changed; want %w "+
			"%s", p.Folder, p.State.after(), plugin.Argument("set"), larger)
	}
	return nil
}

// CheckPatience returns an error if a training that early stopping has ended would be ended by it at once.
func (p *Point) CheckPatience(patience int) error {
	if worse := p.State.Bests.Worse; p.Ended && patience > 0 && worse >= patience {
		return fmt.Errorf("%s: its training was ended %s by training.early_stopping_patience: %d; want %w "+
			"training.early_stopping_patience=0 %w experiment besides", p.Folder, p.State.after(), patience,
			plugin.Argument("set"), allowChanges)
	}
	return nil
}
