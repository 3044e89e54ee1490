package train

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/internal/collective"
	"github.com/jenga-nlp/jenga/internal/collective/collectivetest"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

// teachersTrace is testdata/teachers.json, which scripts/fixtures/teachers.py writes by PyTorch: its doc comment says
// of what.
type teachersTrace struct {
	Groups  [][]string // tasks
	Weights map[string]float64
	Steps   [][]struct {
		Group   int
		IDs     []int32
		Gold    map[string][]float64
		Answers map[string][]float32
	}
	Start map[string][]float32
	Runs  map[string]struct {
		Temperature, Weight float64
		Anneal              bool
		Trace               []struct {
			Loss, Norm    float64
			Units, Losses map[string]float64
		}
		End map[string][]float32
	}
}

func (f teachersTrace) model(t *testing.T) *multitask.Model {
	t.Helper()
	m := biLSTM(t)
	of := map[string][3]string{ // the task's type, and its head's with options
		"topic": {"classification", "linear", ""}, "tags": {"tagging", "linear", ""},
		"entities": {"tagging", "crf", ""}, "score": {"regression", "regression", "scale: none"},
		"kinds": {"multi_label", "linear", "tune: none"},
	}
	for _, names := range f.Groups {
		group := multitask.Group{Name: names[0]}
		for _, name := range names {
			task := taskWith(t, m, name, of[name][0], 10, 0, of[name][1], of[name][2])
			task.Heads[0].Weight = f.Weights[name]
			group.Tasks = append(group.Tasks, task)
		}
		m.Groups = append(m.Groups, group)
	}
	setParams(t, m, f.Start)
	return m
}

// goldTarget is a target of a task of the fixture, nil without values.
func goldTarget(task string, values []float64) corpus.Target {
	var ids []int
	for _, v := range values {
		ids = append(ids, int(v))
	}
	switch {
	case values == nil:
		return nil
	case task == "topic":
		return labelTarget(ids[0])
	case task == "score":
		return &outputs.NumberTarget{Value: values[0]}
	case task != "kinds":
		return tagsTarget(ids)
	}
	target := &outputs.LabelsTarget{}
	for id, holds := range ids {
		if holds == 1 {
			target.IDs = append(target.IDs, id)
		}
	}
	return target
}

// answersInMemory are those of teachers by head of a group and number of the example.
type answersInMemory struct {
	heads []multitask.Head
	all   [][]*heads.Answer // [heads][examples], nil: none
}

// Answer implements multitask.Answers.
func (a answersInMemory) Answer(h, number int, e *corpus.Example, t *heads.Taught) error {
	if answer := a.all[h][number]; answer != nil {
		located := a.heads[h].Head.Describe().Soft.Locate(*answer, e)
		t.Answer = &located
	}
	return nil
}

// joinAll returns a Taught in which the groups of m are one, of whose heads some have teachers.
func joinAll(m *multitask.Model, data []multitask.Data, lesson heads.Lesson, hasTeacher func(multitask.HeadName) bool,
) *multitask.Taught {
	taught := &multitask.Taught{Lesson: &lesson, Start: lesson.Weight}
	var parts []int
	for g := range m.Groups {
		parts = append(parts, g)
	}
	taught.Together(m, data, parts, nil, hasTeacher, nil)
	return taught
}

func allHeads(multitask.HeadName) bool { return true }

// taught returns what a run of the fixture trains, and the numbers of each step's examples in it.
func (f teachersTrace) taught(m *multitask.Model, lesson heads.Lesson) (*multitask.Taught, [][]int) {
	data := make([]multitask.Data, len(f.Groups))
	numbers := make([][]int, len(f.Steps)) // in their own groups, then in the joined one
	for n, step := range f.Steps {
		for _, text := range step {
			e := exampleOf(text.IDs)
			for _, task := range f.Groups[text.Group] {
				e.Targets = append(e.Targets, goldTarget(task, text.Gold[task]))
			}
			numbers[n] = append(numbers[n], len(data[text.Group].Train))
			data[text.Group].Train = append(data[text.Group].Train, e)
		}
	}
	taught := joinAll(m, data, lesson, allHeads)

	joined := answersInMemory{heads: taught.Groups[0].Heads()}
	tasks := slices.Concat(f.Groups...)
	joined.all = make([][]*heads.Answer, len(tasks))
	for h := range tasks {
		joined.all[h] = make([]*heads.Answer, len(taught.Data[0].Train))
	}
	for n, step := range f.Steps {
		for i, text := range step {
			for g := range text.Group {
				numbers[n][i] += len(data[g].Train)
			}
			for h, task := range tasks {
				if values := text.Answers[task]; values != nil {
					joined.all[h][numbers[n][i]] = &heads.Answer{Values: values}
				}
			}
		}
	}
	taught.Data[0].Answers = joined
	return taught, numbers
}

func TestTeachersFollowPyTorch(t *testing.T) {
	var f teachersTrace
	readFixture(t, "teachers.json", &f)
	for name, run := range f.Runs {
		t.Run(name, func(t *testing.T) {
			m := f.model(t)
			taught, numbers := f.taught(m, heads.Lesson{Temperature: run.Temperature, Weight: run.Weight})
			taught.Anneal = run.Anneal
			plan := smallPlan()
			plan.Rate, plan.WarmupSteps, plan.ClipNorm, plan.Taught = 1e-2, 5, 0.5, taught
			training := stepping(t, m, plan, len(f.Steps))
			for n, want := range run.Trace {
				examples := multitask.Pick(taught.Data[0].Train, numbers[n])
				if err := taught.Data[0].Answered(examples, numbers[n]); err != nil {
					t.Fatal(err)
				}
				step, err := training.Update([]Batch{{0, examples}})
				if err != nil {
					t.Fatal(err)
				}
				near(t, n, "loss", step.Loss, want.Loss)
				near(t, n, "gradient", step.GradientNorm, want.Norm)
				for _, l := range step.Losses {
					if l.Units != want.Units[l.Task] {
						t.Fatalf("step %d: %v units of %s, want %v", n+1, l.Units, l.Task, want.Units[l.Task])
					}
					if l.Units > 0 {
						near(t, n, "loss of "+l.Task, l.Mean(), want.Losses[l.Task])
					}
				}
			}
			nearEnd(t, m, run.End)
		})
	}
}

// annealed returns a Taught of the groups of threeGroups as one, with random answers for two of three heads, none for
// some examples and some words.
func annealed(m *multitask.Model, data []multitask.Data) *multitask.Taught {
	taught := joinAll(m, data, heads.Lesson{Temperature: 2, Weight: 1},
		func(name multitask.HeadName) bool { return name.Task != "mood" })
	taught.Anneal = true
	r := rand.New(rand.NewPCG(7, 7))
	joined := answersInMemory{taught.Groups[0].Heads(), make([][]*heads.Answer, 3)}
	row := func() []float32 {
		return nn.Softmax([]float32{r.Float32() * 4, r.Float32() * 4, r.Float32() * 4})
	}
	for _, d := range data {
		for i := range d.Lengths() {
			var e *corpus.Example
			if d.Stream != nil {
				e, _ = d.Stream.At(i) // of a slice
			} else {
				e = d.Train[i]
			}
			topic, tags := &heads.Answer{Values: row()}, &heads.Answer{}
			for range e.Words {
				tags.Values = append(tags.Values, row()...)
			}
			clear(tags.Values[len(tags.Values)-3:])
			if i%4 == 0 {
				topic = nil
			}
			joined.all[0], joined.all[1] = append(joined.all[0], topic), append(joined.all[1], tags)
		}
	}
	taught.Data[0].Answers = joined
	return taught
}

// annealedPlan is smallPlan with teachers.
func annealedPlan(m *multitask.Model, data []multitask.Data) Plan {
	plan := smallPlan()
	plan.Taught, plan.CacheMemory = annealed(m, data), inMemory
	return plan
}

func TestRanksLearnFromTeachersToTheSameBytes(t *testing.T) {
	const shards = 4
	for _, freeze := range []string{"none", "all"} {
		train := func(ranks int) (all []map[string][]float32) {
			all = make([]map[string][]float32, ranks)
			var wait sync.WaitGroup
			for rank, transport := range collectivetest.Local(ranks) {
				m, data := threeGroups(t, freeze, 14)
				plan := annealedPlan(m, data)
				plan.Shards = shards
				if ranks > 1 {
					var err error
					if plan.Ranks, err = collective.New(transport); err != nil {
						t.Fatal(err)
					}
				}
				wait.Go(func() {
					if err := trainOn(t.Context(), m, data, plan, func(Event) error { return nil }); err != nil {
						t.Error(err)
					}
					all[rank] = values(m)
				})
			}
			wait.Wait()
			return all
		}
		want := train(1)[0]
		for rank, got := range train(shards) {
			if !reflect.DeepEqual(got, want) {
				t.Errorf("freeze %s: rank %d has other parameters than one process", freeze, rank)
			}
		}
	}
}

func TestStreamsLearnFromTeachersToTheSameBytes(t *testing.T) {
	for _, freeze := range []string{"none", "all"} {
		for _, shards := range []int{1, 4} {
			learn := func(groups ...int) ([]Step, map[string][]float32) {
				m, data := threeGroups(t, freeze, 14)
				data = streamedData(data, groups...)
				plan := annealedPlan(m, data)
				plan.Shards = shards
				steps, _ := train(t, m, data, plan)
				return steps, values(m)
			}
			want, end := learn()
			for _, groups := range [][]int{{1}, {0, 2}, {0, 1, 2}} {
				got, values := learn(groups...)
				for n := range got {
					if got[n].Loss != want[n].Loss {
						t.Fatalf("freeze %s, %d shards, streams %v: loss %v of step %d, of memory %v", freeze, shards,
							groups, got[n].Loss, n+1, want[n].Loss)
					}
				}
				if !reflect.DeepEqual(values, end) {
					t.Errorf("freeze %s, %d shards, streams %v: other parameters", freeze, shards, groups)
				}
			}
		}
	}
}

// Texts of a joined group that are in memory are encoded once, beside others that are streamed too.
func TestTextsWithTeachersAreEncodedOnce(t *testing.T) {
	for _, streams := range [][]int{nil, {1}} {
		m, data := threeGroups(t, "all", 14)
		for g := range data {
			data[g].Dev = nil
		}
		want := 14 + 11 + 14
		if streams != nil {
			want += 11 // in the second epoch again
		}
		counted := &counting{Encoder: m.Encoder}
		m.Encoder = counted
		data = streamedData(data, streams...)
		train(t, m, data, annealedPlan(m, data))
		if counted.texts != want {
			t.Errorf("streams %v: %d texts were encoded in two epochs, want %d", streams, counted.texts, want)
		}
	}
}

// A head is fitted to its own group's examples, which are in memory where those of another group are streamed.
func TestAHeadIsFittedBesideAStreamWithTeachers(t *testing.T) {
	m, data := patternModel(t, "none")
	data = streamedData(data, 0)
	plan := smallPlan()
	plan.Taught = joinAll(m, data, heads.Lesson{Temperature: 1}, func(multitask.HeadName) bool { return false })
	training, err := New(m, data, plan)
	if err != nil {
		t.Fatal(err)
	}
	training.Close()
}
