package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/resume"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/train"
)

// taughtTasks are tasks of two corpora, tags and labels, with options of training.
func taughtTasks(t *testing.T, more string) string {
	t.Helper()
	t.Chdir(t.TempDir())
	var tags, teams, scores strings.Builder
	for i := range 48 {
		city := []string{"Paris", "Rome", "Oslo", "Lima"}[i%4]
		fmt.Fprintf(&tags, `{"words": ["fly", "to", %q, "number%d"], "tags": ["O", "O", "B-city", "O"]}`+"\n", city, i)
		team := []string{"billing", "support"}[i%2]
		about := []string{"invoice", "login"}[i%2]
		fmt.Fprintf(&teams, `{"text": "%s has a question %d", "label": %q}`+"\n", about, i, team)
		fmt.Fprintf(&scores, `{"text": "score of %d", "score": %d}`+"\n", i, i%5)
	}
	sample.Write(t, "tags.jsonl", tags.String())
	sample.Write(t, "teams.jsonl", teams.String())
	sample.Write(t, "scores.jsonl", scores.String())
	sample.Write(t, "taught.yaml", `project_name: taught
seed: 3
model: {dropout: 0.1, encoder: {type: transformer, layers: 1, width: 16, heads: 2, feed_forward: 32}}
tokenizer: {max_length: 32, train: {vocab_size: 300}}
tasks:
  - {name: cities, type: ner, data: {path: tags.jsonl, split: {dev: 0.25}}}
  - {name: team, type: classification, data: {path: teams.jsonl, split: {dev: 0.25}}}
  - {name: score, type: regression, data: {path: scores.jsonl, label: score, split: {dev: 0.25}}}
training:
  learning_rate: 3.0e-3
  batch_size: 8
`+more)
	return "taught.yaml"
}

// stopAfter returns an observer that cancels a training after an event for which is returns true the n-th time.
func stopAfter(cancel func(), n int, is func(train.Event) bool) func(train.Event) error {
	return func(event train.Event) error {
		if is(event) {
			if n--; n == 0 {
				cancel()
			}
		}
		return nil
	}
}

func isStep(event train.Event) bool {
	_, is := event.(train.Step)
	return is
}

// goOnTeaching trains a run until it is done, with interruptions after so many steps each.
func goOnTeaching(t *testing.T, path, folder string, every int) {
	t.Helper()
	for range 100 {
		ctx, cancel := context.WithCancel(context.Background())
		found, err := resume.Find(t.Context(), folder)
		if err != nil {
			t.Fatal(err)
		}
		var r *Run
		if e := mustRead(t, path); found.Checkpoint != "" {
			r, err = Resume(ctx, e, found.Point, nil, nil)
		} else {
			r, err = Prepare(ctx, e, nil, config.Train, config.Dev)
		}
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.Train(ctx, folder, stopAfter(cancel, every, isStep))
		cancel()
		switch {
		case err == nil:
			return
		case !errors.Is(err, context.Canceled):
			t.Fatal(err)
		}
	}
	t.Fatal("the training does not end")
}

// modelBytes returns the files of a run's best checkpoint.
func modelBytes(t *testing.T, folder string) map[string]string {
	t.Helper()
	return sample.Files(t, filepath.Join(folder, runfolder.BestDir))
}

func TestTaughtTrainingResumesToTheSameBytes(t *testing.T) {
	const saved = "  num_epochs: 2\n  save_strategy: steps\n  save_steps: 2\n  teachers: alone\n"
	for _, more := range []string{
		"  anneal: true\n  temperature: 2\n",
		"  teacher_weight: 0\n  teacher_answers: int8\n",
	} {
		if testing.Short() && strings.Contains(more, "int8") {
			continue
		}
		path := taughtTasks(t, saved+more)
		trainSmall(t, path, "whole")
		goOnTeaching(t, path, "parts", 8)
		if got, want := modelBytes(t, "parts"), modelBytes(t, "whole"); !maps.Equal(got, want) {
			t.Errorf("%s: the resumed training has another model", more)
		}
		for _, task := range []string{"cities", "team", "score"} {
			at := filepath.Join(runfolder.TeachersDir, task)
			got, want := modelBytes(t, filepath.Join("parts", at)), modelBytes(t, filepath.Join("whole", at))
			if !maps.Equal(got, want) {
				t.Errorf("%s: the resumed teacher of %s has another model", more, task)
			}
		}
	}
}

// What teachers answer is in the loss: with them the model is another one, and each of their options changes it.
func TestOptionsOfTeachersChangeTheModel(t *testing.T) {
	path := taughtTasks(t, "  num_epochs: 1\n")
	models := map[string]string{}
	for i, sets := range [][]string{
		nil,
		{"training.teachers=alone"},
		{"training.teachers=alone", "training.teacher_weight=0"},
		{"training.teachers=alone", "training.anneal=true"},
		{"training.teachers=alone", "training.temperature=3"},
		{"training.teachers=alone", "training.teacher_answers=int8"},
	} {
		folder := fmt.Sprintf("run%d", i)
		trainSmall(t, path, folder, sets...)
		weights := modelBytes(t, folder)[runfolder.TensorsFile]
		if other, same := models[weights]; same {
			t.Errorf("%q trains the same model as %q", sets, other)
		}
		models[weights] = fmt.Sprint(sets)
	}
}

func TestTeacherOfAnotherRun(t *testing.T) {
	path := taughtTasks(t, "  num_epochs: 1\n")
	trainSmall(t, path, "together")
	sample.Write(t, "other.jsonl", strings.Repeat(`{"text": "a", "label": "billing"}`+"\n"+
		`{"text": "b", "label": "sales"}`+"\n", 4))
	for _, c := range []struct {
		sets []string
		want string
	}{
		{[]string{"tasks.team.teacher=together"}, ""},
		{[]string{"tasks.team.teacher=together/best"}, ""},
		{[]string{"tasks.team.teacher=gone"}, "gone"},
		{[]string{"tasks.team.teacher=together", "tasks.team.data.path=other.jsonl", "tasks.team.data.split.dev=0.5"},
			`has the labels billing, sales, and its teacher billing, support`},
		{[]string{"tasks.team.teacher=together", "tasks.team.name=teams"}, `did you mean "team"`},
		{[]string{"model.teacher=together"}, ""},
		{[]string{"model.teacher=together", "tasks.team.teacher=together/best"}, ""},
		{[]string{"model.teacher=gone"}, "model: teacher: gone"},
		{[]string{"model.teacher=together", "tasks.team.name=teams"}, `task "teams": teacher: together: no`},
		{[]string{"model.teacher=together", "training.teachers=alone"}, "leave out one of them"},
		{[]string{"model.teacher=together", "training.rehearse=0.1"}, "rehearse"},
		{[]string{"training.temperature=2"}, "no effect without teachers"},
		{[]string{"training.teachers=alone", "training.temperature=0"}, "temperature"},
	} {
		e, err := config.Read(t.Context(), path, c.sets)
		if err == nil {
			_, err = ready(e, config.Train, config.Dev)
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: %v, want an error with %q", c.sets, err, c.want)
		}
	}

	_, done := trainSmall(t, path, "taught", "tasks.team.teacher=together", "training.teacher_weight=1")
	if done.Step == 0 {
		t.Error("nothing was trained")
	}
	// a damaged teacher is found before the training
	weights := filepath.Join("together", runfolder.BestDir, runfolder.TensorsFile)
	data, err := os.ReadFile(weights)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-1] ^= 1
	if err := os.WriteFile(weights, data, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ready(mustRead(t, path, "tasks.team.teacher=together"), config.Train, config.Dev); err == nil {
		t.Error("a damaged teacher is accepted")
	}
}

func TestARunMayTeachAllTasks(t *testing.T) {
	path := taughtTasks(t, "")
	trainSmall(t, path, "together")
	for _, sets := range []string{"model.teacher=together", "tasks.team.teacher=together/best"} {
		if err := CheckFolder(mustRead(t, path, sets), "together", true); err == nil ||
			!strings.Contains(err.Error(), "together holds a run that a teacher is part of") {
			t.Errorf("%s, trained in the teacher's folder: %v", sets, err)
		}
	}

	// the teacher of all tasks is that of each, and the run's file names it as the experiment does
	trainSmall(t, path, "all", "model.teacher=together")
	trainSmall(t, path, "each", "tasks.cities.teacher=together", "tasks.team.teacher=together",
		"tasks.score.teacher=together")
	if got, want := modelBytes(t, "all"), modelBytes(t, "each"); got[runfolder.TensorsFile] !=
		want[runfolder.TensorsFile] {
		t.Error("model.teacher trains another model than the same teacher of each task")
	}
	written := mustRead(t, filepath.Join("all", runfolder.ExperimentFile))
	if written.Model.Teacher.Name != "together" || written.Tasks[0].Teacher.Name != "" {
		t.Errorf("the run's file has the teacher %q of all, %q of a task", written.Model.Teacher.Name,
			written.Tasks[0].Teacher.Name)
	}
}

func TestDamagedAnswersAreComputedAgain(t *testing.T) {
	path := taughtTasks(t, "  num_epochs: 1\n  teachers: alone\n")
	trainSmall(t, path, "run")
	want := modelBytes(t, "run")
	answers := filepath.Join("run", runfolder.TeachersDir, "cities.answers")
	whole, err := os.ReadFile(answers)
	if err != nil {
		t.Fatal(err)
	}
	for name, damaged := range map[string][]byte{
		"empty": nil, "truncated": whole[:len(whole)/2], "longer": append(slices.Clone(whole), 0),
		"changed": append(append(slices.Clone(whole[:len(whole)/2]), whole[len(whole)/2]^4), whole[len(whole)/2+1:]...),
	} {
		if err := os.WriteFile(answers, damaged, 0o644); err != nil {
			t.Fatal(err)
		}
		trainSmall(t, path, "run")
		if got := modelBytes(t, "run"); !maps.Equal(got, want) {
			t.Errorf("%s: another model", name)
		}
		if now, err := os.ReadFile(answers); err != nil || string(now) != string(whole) {
			t.Errorf("%s: other answers: %v", name, err)
		}
	}
}

// unlabelledTexts are files of texts without labels of taughtTasks.
func unlabelledTexts(t *testing.T) {
	t.Helper()
	var lines, table, words strings.Builder
	table.WriteString("body;id\n")
	for i := range 20 {
		fmt.Fprintf(&lines, "login to \"Oslo, number%d\n\n", i)
		fmt.Fprintf(&table, "invoice of Lima;%d\n", i)
		fmt.Fprintf(&words, "score\nof\n%d\n\n", i)
	}
	sample.Write(t, "lines.txt", lines.String())
	sample.Write(t, "table.csv", table.String())
	sample.Write(t, "words.conll", words.String())
	sample.Write(t, "pairs.jsonl", `{"text": "a", "pair": "b"}`+"\n")
	sample.Write(t, "empty.txt", "\n")
	sample.Write(t, "other.jsonl", `{"body": "a"}`+"\n"+`{"title": "b"}`+"\n")
}

const ofTable = "training.unlabelled={path: table.csv, delimiter: ';', text: body}"

// Texts without labels are in the loss as far as teachers label them: a training with them has other weights, of other
// texts others, also where there is one task, and more steps.
func TestTextsWithoutLabelsAreTaught(t *testing.T) {
	path := taughtTasks(t, "  teachers: alone\n")
	unlabelledTexts(t)
	models, steps := map[string]string{}, 0
	for i, sets := range [][]string{
		nil, {"training.unlabelled=lines.txt"}, {ofTable}, {"training.unlabelled=[lines.txt, words.conll]"},
	} {
		folder := fmt.Sprintf("run%d", i)
		_, done := trainSmall(t, path, folder, sets...)
		weights := modelBytes(t, folder)[runfolder.TensorsFile]
		if other, same := models[weights]; same {
			t.Errorf("%q trains the same model as %q", sets, other)
		}
		models[weights] = fmt.Sprint(sets)
		if i > 0 && done.Step <= steps {
			t.Errorf("%q: %d steps, without these texts %d", sets, done.Step, steps)
		} else if i == 0 {
			steps = done.Step
		}
		written := mustRead(t, filepath.Join(folder, runfolder.ExperimentFile)).Training.Unlabelled
		read := mustRead(t, path, sets...).Training.Unlabelled
		if !slices.Equal(written.Files.Paths(), read.Files.Paths()) || !maps.Equal(written.Columns, read.Columns) {
			t.Errorf("%q: the run's file has %+v", sets, written)
		}
	}
	if !runfolder.Exists("run0/teachers/team") {
		t.Error("no teacher in the run folder")
	}

	for sets, want := range map[string]string{
		"training.unlabelled=pairs.jsonl":                        "pairs.jsonl has pairs of texts, and no task",
		"training.unlabelled=empty.txt":                          "empty.txt: no records",
		"training.unlabelled=other.jsonl":                        "want text or words; available: body",
		"training.unlabelled={path: other.jsonl, text: body}":    `other.jsonl:2: no text`,
		"training.unlabelled={path: pairs.jsonl, text: nothing}": `no field "nothing", which text names`,
		"training.unlabelled=gone.txt":                           "training: unlabelled: gone.txt: no such file",
		"training.unlabelled={text: body}":                       "no path",
		"training.unlabelled={path: lines.txt, format: pdf}":     `no format "pdf"`,
		"training.unlabelled={path: lines.txt, label: a}":        "label",
		"training.unlabelled=gone-*.txt":                         "matches no file",
	} {
		e, err := config.Read(t.Context(), path, []string{sets})
		if err == nil {
			_, err = ready(e, config.Train, config.Dev)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want an error with %q", sets, err, want)
		}
	}
}

func TestTrainingOnTextsWithoutLabelsResumesToTheSameBytes(t *testing.T) {
	path := taughtTasks(t, "  teachers: alone\n  teacher_weight: 0\n  unlabelled: lines.txt\n"+
		"  save_strategy: steps\n  save_steps: 2\n")
	unlabelledTexts(t)
	trainSmall(t, path, "whole")
	goOnTeaching(t, path, "parts", 7)
	if got, want := modelBytes(t, "parts"), modelBytes(t, "whole"); !maps.Equal(got, want) {
		t.Error("the resumed training has another model")
	}

	// other texts are other data
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r := mustPrepare(t, path)
	if _, err := r.Train(ctx, "changed", stopAfter(cancel, 70, isStep)); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	text, err := os.ReadFile("lines.txt")
	if err != nil {
		t.Fatal(err)
	}
	sample.Write(t, "lines.txt", strings.Replace(string(text), "Oslo", "Rome", 1))
	found, err := resume.Find(t.Context(), "changed")
	if err != nil || found.Checkpoint == "" {
		t.Fatal(found, err)
	}
	if r, err = Resume(context.Background(), mustRead(t, path), found.Point, nil, nil); err == nil {
		_, err = r.Train(context.Background(), "changed", ignore)
	}
	if err == nil || !strings.Contains(err.Error(), "texts without labels") {
		t.Errorf("resumed with other texts: %v", err)
	}
}

// A student of one of a teacher's two layers learns its states: they are nearer to those of the teacher than without,
// what projects them is in no saved model, and a resumed training, also one of more epochs, goes on to the same bytes.
func TestStatesOfATeacherAreLearned(t *testing.T) {
	path := taughtTasks(t, "  num_epochs: 2\n  save_strategy: steps\n  save_steps: 2\n")
	trainSmall(t, path, "teacher", "model.encoder.layers=2")
	student := strings.Replace(readText(t, path), "encoder: {type: transformer, layers: 1, width: 16, heads: 2, "+
		"feed_forward: 32}", "teacher: teacher, encoder: {from: teacher, layers: [0]}", 1)
	student = strings.Replace(student, ", train: {vocab_size: 300}", "", 1)
	sample.Write(t, "student.yaml", student)
	losses := map[string]float64{}
	for name, sets := range map[string][]string{
		"plain": nil, "float32": {"training.match=states"},
		"int8": {"training.match=states", "training.teacher_answers=int8"},
	} {
		trainSmall(t, "student.yaml", name, sets...)
		tensors, _ := tensorsOf(t, name)
		for tensor := range tensors {
			if strings.Contains(tensor, "states") {
				t.Errorf("%s: the saved model has %s", name, tensor)
			}
		}
		losses[name+" first"], losses[name] = statesLosses(t, name)
	}
	for _, name := range []string{"float32", "int8"} {
		if first, last := losses[name+" first"], losses[name]; !(last < 0.8*first) {
			t.Errorf("%s: the loss of states goes from %v to %v", name, first, last)
		}
	}
	if losses["plain"] != 0 || losses["float32"] == losses["int8"] {
		t.Errorf("losses of states %v", losses)
	}
	if got, plain := modelBytes(t, "float32"), modelBytes(t, "plain"); maps.Equal(got, plain) {
		t.Error("learning states does not change the model")
	}

	sample.Write(t, "matched.yaml", student+"  match: states\n")
	goOnTeaching(t, "matched.yaml", "parts", 8)
	if got, want := modelBytes(t, "parts"), modelBytes(t, "float32"); !maps.Equal(got, want) {
		t.Error("the resumed training has another model")
	}
	found, err := resume.Find(t.Context(), "parts")
	if err != nil {
		t.Fatal(err)
	}
	longer := mustRead(t, "matched.yaml", "training.num_epochs=3")
	r, err := Resume(t.Context(), longer, found.Point, nil, nil)
	if err == nil {
		_, err = r.Train(t.Context(), "parts", ignore)
	}
	if err != nil {
		t.Errorf("more epochs: %v", err)
	}
}

func TestStatesThatCannotBeLearned(t *testing.T) {
	path := taughtTasks(t, "  num_epochs: 1\n")
	trainSmall(t, path, "teacher")
	sets := []string{"model.teacher=teacher", "training.match=states", "model.fusion.type=attention"}
	_, err := config.Read(t.Context(), path, sets)
	if err == nil || !strings.Contains(err.Error(), "model.fusion: attention") {
		t.Errorf("states of tasks' own are matched: %v", err)
	}
	frozen := []string{"model.teacher=teacher", "training.match=states", "model.encoder={from: teacher}",
		"tokenizer={max_length: 32}", "model.freeze=all"}
	_, err = config.Read(t.Context(), path, frozen)
	if err == nil || !strings.Contains(err.Error(), "no effect with model") {
		t.Errorf("a frozen encoder learns states: %v", err)
	}
	own := mustRead(t, path, "model.teacher=teacher", "training.match=states", "tokenizer.train.vocab_size=120")
	if _, err := ready(own, config.Train, config.Dev); err == nil ||
		!strings.Contains(err.Error(), "another tokenizer") {
		t.Errorf("states of other tokens are matched: %v", err)
	}
}

// statesLosses returns the losses of states in the first and the last line of a run's metrics that has one, 0 without.
func statesLosses(t *testing.T, folder string) (first, last float64) {
	t.Helper()
	for _, line := range strings.Split(readText(t, filepath.Join(folder, runfolder.MetricsFile)), "\n") {
		var step struct {
			Tasks map[string]struct {
				Heads map[string]struct{ Loss float64 }
			}
		}
		if json.Unmarshal([]byte(line), &step) == nil && step.Tasks[multitask.StatesTask].Heads != nil {
			if last = step.Tasks[multitask.StatesTask].Heads[multitask.StatesTask].Loss; first == 0 {
				first = last
			}
		}
	}
	return first, last
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Single texts and pairs are two groups, each with states of its own, which are kept beside each other.
func TestStatesOfSingleTextsAndPairsAreLearned(t *testing.T) {
	path := taughtTasks(t, "  num_epochs: 1\n")
	var pairs strings.Builder
	for i := range 48 {
		fmt.Fprintf(&pairs, `{"text": "score of %d", "pair": "score of %d", "label": %q}`+"\n", i%5, i%3,
			[]string{"same", "other"}[i%2])
	}
	sample.Write(t, "pairs.jsonl", pairs.String())
	text := strings.Replace(readText(t, path), "training:\n", "  - {name: same, type: classification, "+
		"data: {path: pairs.jsonl, pair: pair, split: {dev: 0.25}}}\ntraining:\n", 1)
	sample.Write(t, path, text)
	trainSmall(t, path, "teacher")
	sets := []string{"model.teacher=teacher", "training.match=states", "tokenizer={max_length: 32}",
		"model.encoder={from: teacher}"}
	r, _ := trainSmall(t, path, "run", sets...)
	if cost, err := r.teachers.Cost(t.Context()); err != nil || cost.Count != 4 {
		t.Errorf("%d tasks have teachers, %v; want 4", cost.Count, err)
	}
	times := func() map[string]time.Time {
		all := map[string]time.Time{}
		for name := range sample.Files(t, filepath.Join("run", runfolder.TeachersDir)) {
			info, err := os.Stat(filepath.Join("run", runfolder.TeachersDir, name))
			if err != nil {
				t.Fatal(err)
			}
			all[name] = info.ModTime()
		}
		return all
	}
	was := times()
	trainSmall(t, path, "run", sets...)
	if now := times(); len(now) != 6 || !maps.Equal(now, was) {
		t.Errorf("answers of four tasks and two groups' states: %v, at first %v", now, was)
	}
}

// With teacher_weight: 0 a teacher answers for the texts of its own task too where some have no label: those learn from
// its answers.
func TestTextsOfATaskThatHaveNoLabelAreTaught(t *testing.T) {
	path := taughtTasks(t, "  num_epochs: 1\n  teachers: alone\n  teacher_weight: 0\n")
	teams := readText(t, "teams.jsonl")
	answered := func(folder string) (n int) {
		trainSmall(t, path, folder)
		line, _, _ := strings.Cut(readText(t, filepath.Join(folder, runfolder.TeachersDir, "team.answers")), "\n")
		var header struct{ Count int }
		if err := json.Unmarshal([]byte(line), &header); err != nil {
			t.Fatal(err)
		}
		return header.Count
	}
	labelled := answered("labelled")
	sample.Write(t, "teams.jsonl", strings.Replace(teams, `"label": "billing"`, `"label": null`, 20))
	if some := answered("some"); labelled != 72 || some != 3*36 {
		t.Errorf("%d and %d texts are answered, want 72 of other tasks, and 36 of its own too", labelled, some)
	}
}
