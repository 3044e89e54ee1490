package run

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/events"
	"github.com/jenga-nlp/jenga/experiments/resume"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/multitask/train"
)

func TestTrainedTeachersAreTakenOver(t *testing.T) {
	path := taughtTasks(t, "  num_epochs: 1\n  teachers: alone\n")
	trainSmall(t, path, "run")
	was, err := os.Stat(filepath.Join("run", runfolder.TeachersDir, "team.answers"))
	if err != nil {
		t.Fatal(err)
	}
	steps := func(sets ...string) (all []string) {
		r := mustPrepare(t, path, sets...)
		of := ""
		_, err := r.Train(context.Background(), "run", func(event train.Event) error {
			switch v := event.(type) {
			case events.Teacher:
				of = v.Task
			case train.Step:
				if v.Number == 1 {
					all = append(all, of)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	if got := steps("training.teacher_weight=0.25"); len(got) != 1 {
		t.Errorf("trainings with a first step: %q, want that of the run alone", got)
	}
	if now, err := os.Stat(filepath.Join("run", runfolder.TeachersDir, "team.answers")); err != nil ||
		!now.ModTime().Equal(was.ModTime()) {
		t.Errorf("the answers were computed again: %v", err)
	}
	if got := steps("training.learning_rate=1e-3"); len(got) != 4 {
		t.Errorf("trainings with a first step: %q, want those of three teachers and of the run", got)
	}
}

// A teacher that began with other weights is trained again: its base model may have been replaced in its place.
func TestTeachersOfAnotherBaseModelAreNotTakenOver(t *testing.T) {
	path := taughtTasks(t, "  num_epochs: 1\n")
	text := strings.Replace(readText(t, path), "encoder: {type: transformer, layers: 1, width: 16, heads: 2, "+
		"feed_forward: 32}", "base_model: base", 1)
	sample.Write(t, "continued.yaml", strings.Replace(text, ", train: {vocab_size: 300}", "", 1)+"  teachers: alone\n")
	trained := func() (tasks []string) {
		_, err := mustPrepare(t, "continued.yaml").Train(t.Context(), "run", func(event train.Event) error {
			if of, is := event.(events.Teacher); is && !of.Before {
				tasks = append(tasks, of.Task)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return tasks
	}
	trainSmall(t, path, "base")
	first, again := trained(), trained()
	trainSmall(t, path, "base", "training.learning_rate=1e-3")
	if other := trained(); len(first) != 3 || again != nil || len(other) != 3 {
		t.Errorf("trained %q, then %q, with another base model %q; want all, none and all", first, again, other)
	}
}

// A teacher is not written through a link, which may lead to files of others.
func TestTeachersAreNotWrittenThroughLinks(t *testing.T) {
	for _, link := range []string{runfolder.TeachersDir, filepath.Join(runfolder.TeachersDir, "team")} {
		path := taughtTasks(t, "  num_epochs: 1\n  teachers: alone\n")
		other := t.TempDir()
		at := filepath.Join("run", link)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(other, at); err != nil {
			t.Skip(err)
		}
		r := mustPrepare(t, path)
		if _, err := r.Train(context.Background(), "run", ignore); err == nil || !strings.Contains(err.Error(), link) {
			t.Errorf("%s is a link: %v", link, err)
		}
		if left, err := os.ReadDir(other); err != nil || len(left) > 0 {
			t.Errorf("%s: files are written through it: %v, %v", link, left, err)
		}
	}
}

// A teacher that an earlier training in the folder has trained otherwise is not taken over, also where the training
// that replaces it is killed or fails before it has a checkpoint: what it was to replace is gone.
func TestATeacherOfAnotherExperimentIsNotTakenOver(t *testing.T) {
	path := taughtTasks(t, "  num_epochs: 1\n  teachers: alone\n")
	const other = "training.learning_rate=1e-3"
	trainSmall(t, path, "want", other)
	for name, is := range map[string]func(train.Event) bool{
		"before it began": func(event train.Event) bool {
			of, is := event.(events.Teacher)
			return is && of.Task == "team"
		},
		"in its first step": func(event train.Event) bool {
			step, is := event.(train.Step)
			return is && step.Number == 1
		},
	} {
		trainSmall(t, path, "run")
		failed := errors.New("failed")
		r := mustPrepare(t, path, other)
		_, err := r.Train(t.Context(), "run", func(event train.Event) error {
			if is(event) {
				return failed
			}
			return nil
		})
		if !errors.Is(err, failed) {
			t.Fatalf("%s: %v", name, err)
		}
		trainSmall(t, path, "run", other)
		for _, task := range []string{"cities", "team", "score"} {
			at := filepath.Join(runfolder.TeachersDir, task)
			if !maps.Equal(modelBytes(t, filepath.Join("run", at)), modelBytes(t, filepath.Join("want", at))) {
				t.Errorf("%s: the teacher of %s is that of the experiment before", name, task)
			}
		}
	}
}

// openEncoders counts encoders of type counted that were made and not closed, mostOpen the most at a time.
var openEncoders, mostOpen int

type counted struct{ encoders.Encoder }

func (e counted) Describe() encoders.Description {
	d := e.Encoder.Describe()
	d.Close = func() error {
		openEncoders--
		return nil
	}
	return d
}

func init() {
	o := encoders.BiLSTMOptions{Embedding: 8, Layers: 1, Hidden: 4}
	encoders.Register("counted", o, func(o encoders.BiLSTMOptions, env encoders.Env) (encoders.Encoder, error) {
		e, err := encoders.NewBiLSTM(o, env)
		openEncoders++
		mostOpen = max(mostOpen, openEncoders)
		return counted{e}, err
	})
}

// Teachers hold no memory of a device, and no files, beside the run that they teach.
func TestTheEncodersOfTeachersAreClosed(t *testing.T) {
	path := taughtTasks(t, "  num_epochs: 1\n  teachers: alone\n")
	text := strings.Replace(readText(t, path), "type: transformer, layers: 1, width: 16, heads: 2, feed_forward: 32",
		"type: counted", 1)
	text = strings.Replace(text, "training:\n", "  - {name: towns, type: ner, data: {path: towns.jsonl, "+
		"split: {dev: 0.25}}}\ntraining:\n", 1)
	sample.Write(t, path, text)
	sample.Write(t, "towns.jsonl", readText(t, "tags.jsonl"))
	openEncoders, mostOpen = 0, 0
	trainSmall(t, path, "run")
	if openEncoders != 1 {
		t.Errorf("%d encoders are open after a training, want its own", openEncoders)
	}
	// at its end the best model is compared with the teachers of cities and towns
	if mostOpen != 3 {
		t.Errorf("%d encoders were open at a time, want three", mostOpen)
	}
}

// A damaged teacher names what works: it is trained again where its folder is removed. --force keeps it.
func TestDamagedTeachersNameARemedy(t *testing.T) {
	path := taughtTasks(t, "  num_epochs: 1\n  teachers: alone\n  save_strategy: steps\n  save_steps: 2\n")
	steps := 0
	interrupted := func(event train.Event) error {
		if isStep(event) {
			if steps++; steps == 4 {
				return errors.New("interrupted")
			}
		}
		return nil
	}
	if _, err := mustPrepare(t, path).Train(t.Context(), "begun", interrupted); err == nil {
		t.Fatal("the training was not interrupted")
	}
	trainSmall(t, path, "done")
	if err := os.CopyFS("copied", os.DirFS("begun")); err != nil {
		t.Fatal(err)
	}
	for folder, file := range map[string]string{
		"copied": filepath.Join(runfolder.LastDir, runfolder.ModelFile),
		"begun":  filepath.Join(runfolder.LastDir, runfolder.SnapshotFile),
		"done":   filepath.Join(runfolder.BestDir, runfolder.TensorsFile),
	} {
		teacher := filepath.Join(folder, runfolder.TeachersDir, "cities")
		data := []byte(readText(t, filepath.Join(teacher, file)))
		data[len(data)-1] ^= 1
		if err := os.WriteFile(filepath.Join(teacher, file), data, 0o644); err != nil {
			t.Fatal(err)
		}
		done, err := mustPrepare(t, path).Train(t.Context(), folder, ignore)
		remedy := "remove the folder " + teacher + ", and the teacher is trained again"
		if err == nil || !strings.HasSuffix(err.Error(), remedy) ||
			done.Folder != "" { // the same training would end with the same error
			t.Errorf("%s: %+v, %v", folder, done, err)
		}
		if err := os.RemoveAll(teacher); err != nil {
			t.Fatal(err)
		}
		trainSmall(t, path, folder)
	}
}

// A training that is resumed goes on with the teachers that it began with, also where its options are others now: those
// of more epochs would be trained for more epochs.
func TestMoreEpochsKeepTheTeachers(t *testing.T) {
	path := taughtTasks(t, "  num_epochs: 1\n  teachers: alone\n  save_strategy: steps\n  save_steps: 2\n")
	trainSmall(t, path, "run")
	found, err := resume.Find(t.Context(), "run")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Resume(t.Context(), mustRead(t, path, "training.num_epochs=2"), found.Point, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Train(t.Context(), "run", func(event train.Event) error {
		if of, is := event.(events.Teacher); is && !of.Before {
			t.Errorf("the teacher of %s is trained again", of.Task)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// The metric of one task selects the best model of all; it is not that of a task with a shorter name.
func TestTeachersAreSelectedByMetricsOfTheirOwn(t *testing.T) {
	path := taughtTasks(t, "  num_epochs: 1\n  teachers: alone\n")
	sample.Write(t, path, strings.Replace(readText(t, path), "name: score", "name: team_score", 1))
	trainSmall(t, path, "run", "training.metric_for_best_model=eval_team_score_team_score_pearson")
	for task, want := range map[string]string{
		"team": "eval_overall", "team_score": "eval_team_score_team_score_pearson",
	} {
		e := mustRead(t, filepath.Join("run", runfolder.TeachersDir, task, runfolder.ExperimentFile))
		if got := e.Training.Selection.Metric; got != want {
			t.Errorf("the teacher of %s is selected by %s, want %s", task, got, want)
		}
	}
}

// A run that a user has trained in the place of a teacher is not replaced.
func TestARunInThePlaceOfATeacherIsKept(t *testing.T) {
	path := taughtTasks(t, "  num_epochs: 1\n")
	at := filepath.Join("run", runfolder.TeachersDir, "team")
	trainSmall(t, path, at)
	was := modelBytes(t, at)
	_, err := mustPrepare(t, path, "training.teachers=alone").Train(t.Context(), "run", ignore)
	if err == nil || !strings.Contains(err.Error(), at+" holds a run that is no training's teacher") {
		t.Error(err)
	}
	if !maps.Equal(modelBytes(t, at), was) {
		t.Error("the run has another model")
	}
}

// A task alone has fewer steps: those of the warmup are as large a part of them, so that it reaches the learning rate.
func TestTheWarmupOfATeacherIsAsLongAsItsPart(t *testing.T) {
	path := taughtTasks(t, "  num_epochs: 1\n  warmup_steps: 9\n  teachers: alone\n")
	trainSmall(t, path, "run")
	for _, task := range []string{"cities", "team", "score"} {
		e := mustRead(t, filepath.Join("run", runfolder.TeachersDir, task, runfolder.ExperimentFile))
		if e.Training.WarmupSteps != 3 {
			t.Errorf("the teacher of %s has %d steps of warmup, want 3 of 9", task, e.Training.WarmupSteps)
		}
	}
}

// A task alone is taught by its own model where some of its texts have no label; else nothing is.
func TestOneTaskIsTaughtWhereTextsHaveNoLabel(t *testing.T) {
	path := taughtTasks(t, "  num_epochs: 1\n  teachers: alone\n  teacher_weight: 0\n")
	lines := strings.SplitAfter(readText(t, path), "\n")
	sample.Write(t, path, strings.Join(slices.DeleteFunc(lines, func(line string) bool {
		return strings.Contains(line, "name: cities") || strings.Contains(line, "name: score")
	}), ""))
	prepare := func() error {
		e, err := config.Read(t.Context(), path, nil)
		if err == nil {
			_, err = ready(e, config.Train, config.Dev)
		}
		return err
	}
	if err := prepare(); err == nil || !strings.Contains(err.Error(), "nothing is taught") {
		t.Errorf("all texts have labels: %v", err)
	}
	teams := strings.Replace(readText(t, "teams.jsonl"), `"label": "billing"`, `"label": null`, 20)
	sample.Write(t, "teams.jsonl", teams)
	if err := prepare(); err != nil {
		t.Errorf("some texts have no label: %v", err)
	}
}
