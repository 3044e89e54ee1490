package run

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/checkpoint"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/safetensors"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/plugin"
)

// baseRun trains the small experiment, of the tasks team and things, to the folder base in a new folder with the data
// of more tasks, and makes that the working directory.
func baseRun(t *testing.T, sets ...string) {
	t.Helper()
	path := sample.Small(t, "")
	t.Chdir(filepath.Dir(path))
	var teams, tones strings.Builder
	for i := range 40 {
		text, team := fmt.Sprintf("the invoice %d came late", i), []string{"support", "legal", "billing", "audit"}[i%4]
		fmt.Fprintf(&teams, `{"text": %q, "team": %q}`+"\n", text, team)
		fmt.Fprintf(&tones, `{"text": %q, "label": %q}`+"\n", text, []string{"angry", "calm"}[i/2%2])
	}
	sample.Write(t, "teams.jsonl", teams.String())
	sample.Write(t, "tones.jsonl", tones.String())
	trainSmall(t, "mails.yaml", "base", append(sets, "training.num_epochs=3")...)
}

// growing writes an experiment of a model section and more, whose task is tone.
func growing(t *testing.T, model, more string) string {
	t.Helper()
	if !strings.Contains(more, "tasks:") {
		more += "tasks:\n  - {name: tone, type: classification, data: {path: tones.jsonl}}\n"
	}
	sample.Write(t, "grown.yaml", "model: "+model+"\n"+more)
	return "grown.yaml"
}

func mustPrepare(t *testing.T, path string, sets ...string) *Run {
	t.Helper()
	r, err := ready(mustRead(t, path, sets...), config.Train, config.Dev)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// tensorsOf returns the tensors of the best checkpoint in a run folder, but for the encoder's, and their shapes.
func tensorsOf(t *testing.T, folder string) (map[string][]float32, map[string][]int) {
	t.Helper()
	file, err := safetensors.Open(filepath.Join(folder, runfolder.BestDir, runfolder.TensorsFile))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	values, shapes := map[string][]float32{}, map[string][]int{}
	for _, info := range file.Tensors() {
		v, err := file.Floats(info.Name)
		if err != nil {
			t.Fatal(err)
		}
		values[info.Name], shapes[info.Name] = slices.Clone(v), info.Shape
	}
	return values, shapes
}

func valuesOf(m *multitask.Model) map[string][]float32 {
	all := map[string][]float32{}
	for _, w := range m.Params.All() {
		all[w.Name] = w.Data
	}
	return all
}

func TestAGrownHeadKeepsTheRowsOfItsLabels(t *testing.T) {
	baseRun(t)
	const tasks = `tasks:
  - {name: team, type: classification, data: {path: teams.jsonl, label: team}}
`
	const calibration = "base/best/calibration.json"
	if err := os.WriteFile(calibration, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	r := mustPrepare(t, growing(t, "{base_model: base}", tasks))
	of := func(w plugin.Warning) bool { return strings.HasSuffix(w.Place.File, calibration) }
	if !slices.ContainsFunc(r.Warnings, of) {
		t.Errorf("warnings %v, want one that the calibration is not taken over", plugin.Lines(r.Warnings))
	}

	// old labels keep their numbers, though one of the new ones is sorted before them
	got := r.Data.Labels[multitask.HeadName{Task: "team", Head: "team"}].Names()
	if want := []string{"billing", "support", "audit", "legal"}; !slices.Equal(got, want) {
		t.Fatalf("labels %v, want %v", got, want)
	}
	old, shapes := tensorsOf(t, "base")
	const weight, bias = "heads.team.team.score.weight", "heads.team.team.score.bias"
	if want := []int{16, 2}; !slices.Equal(shapes[weight], want) {
		t.Fatalf("the run's weight has shape %v, want %v", shapes[weight], want)
	}
	grown := valuesOf(r.Model)
	fresh := mustPrepare(t, growing(t, "{base_model: base/best/encoder, fusion: {type: attention, scale: residual}}",
		"tokenizer: {max_length: 64}\n"+strings.ReplaceAll(tasks, "label: team}",
			"label: team}, labels: [billing, support, audit, legal]")))
	for row := range 16 {
		for c := range 4 {
			want := valuesOf(fresh.Model)[weight][row*4+c]
			if c < 2 {
				want = old[weight][row*2+c]
			}
			if grown[weight][row*4+c] != want {
				t.Fatalf("weight of row %d and label %d is %v, want %v", row, c, grown[weight][row*4+c], want)
			}
		}
	}
	if want := []float32{old[bias][0], old[bias][1], 0, 0}; !slices.Equal(grown[bias], want) {
		t.Errorf("bias %v, want %v", grown[bias], want)
	}
	for name, values := range old {
		shared := strings.HasPrefix(name, "fusion.") && !strings.Contains(name, "things")
		if shared && !slices.Equal(grown[name], values) {
			t.Errorf("%s is not that of the run", name)
		}
	}

	// what was taken over is reported
	const want = `continues the run base, with its encoder and its fusion (attention):
  task team: trained on; head team with 2 new labels: audit, legal
  task things: dropped`
	if got := strings.Join(r.Growth.Lines(), "\n"); got != want {
		t.Errorf("growth:\n%s\nwant\n%s", got, want)
	}
}

func TestALabelThatTheDataLacksIsKept(t *testing.T) {
	baseRun(t)
	sample.Write(t, "teams.jsonl", strings.Repeat(`{"text": "a", "team": "support"}`+"\n"+
		`{"text": "b", "team": "legal"}`+"\n", 10))
	trainSmall(t, growing(t, "{base_model: base}", "tasks:\n  - {name: team, type: classification, "+
		"data: {path: teams.jsonl, label: team}}\n"), "grown", "training.num_epochs=1")
	about, err := checkpoint.Read(t.Context(), "grown/best", "grown")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := about.Tasks[0].Heads[0].Labels, []string{"billing", "support", "legal"}; !slices.Equal(got, want) {
		t.Errorf("labels %v, want %v", got, want)
	}
}

func TestHeadsAndFusionOfARenamedTaskAreTakenOver(t *testing.T) {
	for _, fusion := range []string{"{type: attention, scale: residual}", "{type: attention, scale: gated}", "concat"} {
		t.Run(fusion, func(t *testing.T) {
			baseRun(t, "model.fusion="+fusion)
			r := mustPrepare(t, growing(t, "{base_model: base}", `tasks:
  - {name: group, from: team, type: classification, data: {path: teams.jsonl, label: team}}
  - {name: team, from: things, type: ner, data: {path: mails.jsonl}}
`))
			old, _ := tensorsOf(t, "base")
			now := valuesOf(r.Model)
			taken := map[string]string{
				"fusion.tasks.group":           "fusion.tasks.team",
				"fusion.tasks.team":            "fusion.tasks.things",
				"fusion.states.weight":         "fusion.states.weight",
				"heads.team.team.score.bias":   "heads.things.things.score.bias",
				"heads.team.team.score.weight": "heads.things.things.score.weight",
			}
			if strings.Contains(fusion, "gated") {
				taken["fusion.gates.group"], taken["fusion.gates.team"] = "fusion.gates.team", "fusion.gates.things"
			}
			for name, was := range taken {
				if old[was] == nil || !slices.Equal(now[name], old[was]) || old[was][0] == 0 {
					t.Errorf("%s is not the run's %s, which has learned", name, was)
				}
			}
		})
	}
}

// The heads, fusion and thresholds of kept tasks are the same bytes after the training of another one.
func TestKeptTasksStayAsTheyAre(t *testing.T) {
	baseRun(t)
	path := growing(t, "{base_model: base, freeze: all, keep_tasks: all}", "")
	_, done := trainSmall(t, path, "grown", "training.num_epochs=2", "training.learning_rate=0.1")
	if done.Old != nil || done.Frozen.Before != done.Frozen.After || done.Frozen.Values == 0 {
		t.Errorf("done %+v", done)
	}
	old, _ := tensorsOf(t, "base")
	now, _ := tensorsOf(t, "grown")
	for name, values := range old {
		if !slices.Equal(now[name], values) {
			t.Errorf("%s has changed", name)
		}
	}
	if now["fusion.tasks.tone"] == nil || now["heads.tone.tone.score.bias"][0] == 0 {
		t.Error("the new task has learned nothing")
	}

	// the run's own file trains the same bytes
	trainSmall(t, "grown/experiment.yaml", "again")
	if got, want := sample.Files(t, "again/best"), sample.Files(t, "grown/best"); !maps.Equal(got, want) {
		t.Error("the written experiment trains another model")
	}

	// a third task, from the grown run, whose encoder is that of the first
	sample.Write(t, "third.yaml", `model: {base_model: grown, freeze: all, keep_tasks: all}
tasks:
  - {name: topic, type: classification, data: {path: teams.jsonl, label: team}}
`)
	trainSmall(t, "third.yaml", "third", "training.num_epochs=1")
	third, _ := tensorsOf(t, "third")
	for name, values := range now {
		if !slices.Equal(third[name], values) {
			t.Errorf("%s has changed in the third run", name)
		}
	}
	about, err := checkpoint.Read(t.Context(), "third/best", "third")
	if err != nil || len(about.Tasks) != 4 {
		t.Errorf("%v: %d tasks, want 4", err, len(about.Tasks))
	}
}

func TestMistakesOfTakenHeads(t *testing.T) {
	baseRun(t)
	for _, c := range []struct{ task, want string }{
		{"name: team, type: regression, data: {path: teams.jsonl, value: team}",
			`grown.yaml:3:5: task "team": type is regression, in the run base it is classification; want type: ` +
				"classification, or another name for a new task"},
		{"name: team, type: classification, data: {path: teams.jsonl, label: team}, heads: [{type: mlp}]",
			`task "team": head "team": type is mlp, in the run base it is linear; want type: linear, or another name ` +
				"for a new head"},
		{"name: team, type: classification, data: {path: teams.jsonl, label: team}, heads: [{pool: attention}]",
			`task "team": head "team": the run's head has no parameter "pool.`},
	} {
		e := mustRead(t, growing(t, "{base_model: base}", "tasks:\n  - {"+c.task+"}\n"))
		if _, err := ready(e, config.Train, config.Dev); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v\nwant %s", c.task, err, c.want)
		}
	}

	// a damaged checkpoint
	path := filepath.Join("base", runfolder.BestDir, runfolder.TensorsFile)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-1] ^= 1
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	e := mustRead(t, growing(t, "{base_model: base}", ""))
	if _, err := ready(e, config.Train, config.Dev); err == nil ||
		!strings.HasPrefix(err.Error(), "grown.yaml:1:21: ") || !strings.Contains(err.Error(), path) {
		t.Errorf("a damaged run: %v", err)
	}
}

func TestARunIsNotReplacedByOneThatContinuesIt(t *testing.T) {
	baseRun(t)
	e := mustRead(t, growing(t, "{base_model: base}", ""))
	if err := CheckFolder(e, "base", true); err == nil || !strings.Contains(err.Error(), "the base model is part of") {
		t.Errorf("CheckFolder = %v", err)
	}
}

func TestAGrownRunResumes(t *testing.T) {
	baseRun(t)
	path := growing(t, "{base_model: base, freeze: all, keep_tasks: all}", "")
	want, _ := trainSmall(t, path, "grown", "training.num_epochs=1")
	folder, err := filepath.Abs("grown")
	if err != nil {
		t.Fatal(err)
	}
	got, err := resumedFrom(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range valuesOf(want.Model) {
		if !strings.Contains(name, "tone") && !slices.Equal(valuesOf(got.Model)[name], values) {
			t.Errorf("%s is not that of the base run", name)
		}
	}
	about, err := got.describe(folder)
	if err != nil || len(about.Tasks) != len(got.experiment().Tasks)+2 || got.Growth == nil {
		t.Error("the kept tasks are not those of the run")
	}
}
