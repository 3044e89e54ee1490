package merge

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/internal/trained"
	"github.com/jenga-nlp/jenga/predict"
)

// Runs with adapters have the base model unchanged, so that each task of the merged run predicts as in its own.
func TestRunsWithAdaptersAreMerged(t *testing.T) {
	b := trained.NewBase(t)
	const own = "model.lora={per_task: true, r: 2}"
	a, c := b.Run(t, "a", both, own, "training.learning_rate=0.05"), b.Run(t, "c", both, own, "seed=7",
		"training.learning_rate=0.05")
	frozen := b.Run(t, "d", strings.ReplaceAll(things, "name: things", "name: plain"), "model.freeze=all")
	folder := filepath.Join(b.Dir, "merged")
	figures := mergeInto(t, folder, Options{Method: Mean}, []string{frozen, a, c},
		Rename{2, "team", "team_c"}, Rename{2, "word", "word_c"})
	for _, f := range figures {
		if *f.Before != *f.Merged {
			t.Errorf("%s is %v, and %v merged", f.Task, *f.Before, *f.Merged)
		}
	}
	var adapters []string
	for name := range sample.Files(t, filepath.Join(folder, "best")) {
		if strings.HasPrefix(name, "adapters") {
			adapters = append(adapters, name)
		}
	}
	slices.Sort(adapters)
	want := []string{filepath.Join("adapters", "team.safetensors"), filepath.Join("adapters", "team_c.safetensors")}
	if !slices.Equal(adapters, want) || runfolder.Exists(filepath.Join(folder, runfolder.EncoderDir)) {
		t.Errorf("files %q, want %q, and no encoder", adapters, want)
	}

	// predictions of the tasks
	merged := predictionsOf(t, folder)
	for run, names := range map[string]map[string]string{
		a: {"team": "team", "word": "word"}, c: {"team": "team_c", "word": "word_c"}, frozen: {"plain": "plain"},
	} {
		for task, name := range names {
			if was := predictionsOf(t, run)[task]; was == "" || was != merged[name] {
				t.Errorf("%s of %s predicts\n%s\nmerged\n%s", task, run, was, merged[name])
			}
		}
	}
	if merged["team"] == merged["team_c"] {
		t.Error("tasks of different runs predict the same")
	}

	// what does not fit
	m, err := Open(t.Context(), []string{frozen, a}, Options{Method: Mean}, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	err = m.CheckRefit(t.Context(), "x", nil)
	if err == nil || !strings.HasPrefix(err.Error(), "argument refit: the tasks have changes") {
		t.Errorf("CheckRefit = %v", err)
	}
	other := b.Run(t, "e", things, "model.lora={per_task: true, r: 4}")
	if _, err := Open(t.Context(), []string{a, other}, Options{Method: Mean}, nil, ""); err == nil ||
		!strings.Contains(err.Error(), "have changes of the encoder for each task with different options of lora") {
		t.Errorf("Open = %v", err)
	}
}

// predictionsOf returns what the tasks of a run predict for some texts, as JSON with probabilities.
func predictionsOf(t *testing.T, run string) map[string]string {
	t.Helper()
	opened, err := predict.OpenRun(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	m, err := predict.New(opened, predict.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	predictions, err := m.Predict(t.Context(), "the card was charged twice", "the menu hangs")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, prediction := range predictions {
		for task, heads := range prediction.Tasks {
			text, err := json.Marshal(heads)
			if err != nil {
				t.Fatal(err)
			}
			all[task] += string(text) + "\n"
		}
	}
	return all
}
