// Package teach has the teachers of a training: which groups of texts they make one, what they answer for the texts of
// other tasks, and the files of that, from which the training reads it.
package teach

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/checkpoint"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/model"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/internal/collective"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/plugin"
)

// Teachers are those of a training.
type Teachers struct {
	Taught *multitask.Taught // what its steps read
	Ranks  *collective.Group // that train together; nil: one process

	built    *model.Assembled
	data     []multitask.Data // of the model's groups
	texts    unlabelled
	width    int // of the states of a teacher's encoder that are learned
	all      []*teacher
	warnings []plugin.Warning
	close    []func() error // files that answers are read from
}

// teacher is the teacher of a task, for a group of Taught.
type teacher struct {
	task     config.Task
	number   int // of the task, among the experiment's
	heads    []multitask.Head
	group    int         // number in Taught.Groups
	first    int         // number of its first head in that group
	labelled corpus.Span // numbers of the examples there whose texts are its own, if all have labels
	length   int         // of all examples there
	states   bool        // it answers by its encoder's states, for heads.NewStates
}

// New returns the teachers of an experiment whose model was built, and the data of its groups; nil if it has none. The
// error lists the mistakes of texts without labels, which it reads; the end of ctx ends that.
func New(ctx context.Context, built *model.Assembled, data []multitask.Data) (*Teachers, error) {
	e := built.Data.Experiment
	if !e.Taught() {
		return nil, nil
	}
	lesson := &heads.Lesson{Temperature: e.Training.Temperature}
	t := &Teachers{built: built, data: data, Taught: &multitask.Taught{
		Lesson: lesson, Start: e.Training.TeacherWeight, Anneal: e.Training.Anneal}}
	classes := t.classes()
	if err := t.readUnlabelled(ctx, classes); err != nil {
		return nil, err
	}
	if err := t.matchStates(ctx); err != nil {
		return nil, err
	}
	for _, parts := range classes {
		if len(parts) == 1 && !t.teaches(parts) {
			t.Taught.Groups = append(t.Taught.Groups, built.Model.Groups[parts[0]])
			t.Taught.Data = append(t.Taught.Data, data[parts[0]])
			continue
		}
		t.join(parts)
	}
	return t, nil
}

// isTaught reports whether the task with a number has a teacher.
func (t *Teachers) isTaught(number int) bool {
	e := t.built.Data.Experiment
	run, _ := e.TeacherOf(e.Tasks[number], "")
	return run.Name != ""
}

// teaches reports whether a task of some groups of the model, by their numbers, has a teacher.
func (t *Teachers) teaches(parts []int) bool {
	return slices.ContainsFunc(parts, func(g int) bool {
		return slices.ContainsFunc(t.built.Data.Groups[g].Tasks, t.isTaught)
	})
}

// form is what texts a group of the model reads: pairs, whose texts may be encoded separately, or single ones; neither
// if it is not one of them.
type form struct{ separate, pairs, single bool }

func (t *Teachers) formOf(group int) form {
	tasks := t.built.Model.Groups[group].Tasks
	of := form{pairs: tasks[0].Pairs, single: tasks[0].Single}
	for _, task := range tasks {
		of.separate = of.separate || task.Type.Output().Separate
	}
	return of
}

// classes returns the groups of the model whose texts are read together, by their numbers: those with texts of one
// form, single ones or pairs, of which a task has a teacher. Others are alone.
func (t *Teachers) classes() [][]int {
	var all [][]int
	at := map[form]int{}
	for g := range t.built.Model.Groups {
		of := t.formOf(g)
		alone := !of.pairs && !of.single
		for _, number := range t.built.Data.Groups[g].Tasks {
			alone = alone || t.built.Data.Experiment.Tasks[number].HidesTokens
		}
		if i, found := at[of]; found && !alone {
			all[i] = append(all[i], g)
			continue
		}
		if !alone {
			at[of] = len(all)
		}
		all = append(all, []int{g})
	}

	// those that nobody teaches stay apart
	var classes [][]int
	for _, parts := range all {
		if t.teaches(parts) {
			classes = append(classes, parts)
			continue
		}
		for _, g := range parts {
			classes = append(classes, []int{g})
		}
	}
	slices.SortFunc(classes, func(a, b []int) int { return cmp.Compare(a[0], b[0]) })
	return classes
}

// join adds the groups of the model with some numbers as one, with texts without labels of their form, to what is
// taught.
func (t *Teachers) join(parts []int) {
	m, d := t.built.Model, t.built.Data
	group, begin, first := len(t.Taught.Groups), 0, 0
	taught := map[multitask.HeadName]bool{}
	splitter := -1 // the task by whose way texts are split into words
	var own []*teacher
	for _, part := range parts {
		length := len(t.data[part].Lengths())
		for i, number := range d.Groups[part].Tasks {
			task := m.Groups[part].Tasks[i]
			if task.Type.Output().PerWord && splitter < 0 {
				splitter = number
			}
			if t.isTaught(number) {
				labelled := corpus.Span{Start: begin, End: begin + length}
				for _, head := range task.Heads {
					name := multitask.HeadName{Task: task.Name, Head: head.Name}
					if taught[name] = true; d.Labelled(name) < length {
						labelled = corpus.Span{}
					}
				}
				own = append(own, &teacher{task: d.Experiment.Tasks[number], number: number, heads: task.Heads,
					group: group, first: first, labelled: labelled})
			}
			first += len(task.Heads)
		}
		begin += length
	}
	texts := t.encoded(parts)
	if t.Taught.States != nil {
		head := multitask.Head{Name: multitask.StatesTask, Head: t.Taught.States, Labels: corpus.NewLabels(nil)}
		own = append(own, &teacher{task: config.Task{Name: multitask.StatesTask}, heads: []multitask.Head{head},
			group: group, first: first, states: true})
	}
	for _, one := range own {
		one.length = begin + len(texts)
	}
	t.all = append(t.all, own...)

	adapt := func(e *corpus.Example) {
		if splitter >= 0 && e.Words == nil {
			d.AddWords(splitter, e)
		}
	}
	has := func(name multitask.HeadName) bool { return taught[name] }
	t.Taught.Together(m, t.data, parts, texts, has, adapt)
}

// runOf returns the run of a teacher in a training in folder, and whether that training makes it.
func (t *Teachers) runOf(of *teacher, folder string) (run config.File, alone bool) {
	e := t.built.Data.Experiment
	if of.states {
		return e.Model.Teacher, false
	}
	return e.TeacherOf(of.task, folder)
}

// labels reports whether a teacher answers for the example with a number in its group: it may have no gold label, or
// learns of both.
func (t *Teachers) labels(of *teacher, number int) bool {
	return t.Taught.Start > 0 || number < of.labelled.Start || number >= of.labelled.End
}

// count returns the number of examples that a teacher answers for.
func (t *Teachers) count(of *teacher) int {
	if t.Taught.Start > 0 {
		return of.length
	}
	return of.length - (of.labelled.End - of.labelled.Start)
}

// Check returns the mistakes of teachers that are runs of their own: a task or a head that is not there, of another
// kind of outputs, or with other labels.
func (t *Teachers) Check(ctx context.Context) error {
	var mistakes plugin.Mistakes
	needed := false
	for _, of := range t.all {
		run, alone := t.runOf(of, "")
		needed = needed || t.count(of) > 0
		if alone || of.states {
			continue
		}
		err := t.checkRun(ctx, of, run.Name)
		if err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			mistakes.Add(run.Place, "task %q: teacher: %s: %w", of.task.Name, run.Name, err)
		}
		if t.count(of) == 0 {
			mistakes.Add(run.Place, "task %q: teacher: no other task reads texts of its form, all of its own have "+
				"labels, and training.teacher_weight is 0: nothing is taught; want a teacher_weight above 0, or "+
				"unlabelled: FILE with texts without labels", of.task.Name)
		}
	}
	if e := t.built.Data.Experiment; !needed && e.Training.Teachers == config.Alone {
		mistakes.Add(e.Place("training.teachers"), "training: teachers: alone: no task reads texts of the form of "+
			"another's, all texts have labels, and teacher_weight is 0: nothing is taught; want a teacher_weight "+
			"above 0, or unlabelled: FILE with texts without labels")
	}
	return mistakes.Err()
}

// Needs reports whether the teacher of a task, by its number, answers for any text.
func (t *Teachers) Needs(number int) bool {
	return slices.ContainsFunc(t.all, func(of *teacher) bool {
		return !of.states && of.number == number && t.count(of) > 0
	})
}

func (t *Teachers) checkRun(ctx context.Context, of *teacher, run string) error {
	file, saved, err := runfolder.Find(run)
	if err != nil {
		return err
	}
	about, err := checkpoint.Read(ctx, saved, filepath.Dir(file))
	if err != nil {
		return err
	}
	var names []string
	for _, task := range about.Tasks {
		if task.Name == of.task.Name {
			return t.checkHeads(of, task)
		}
		names = append(names, task.Name)
	}
	return fmt.Errorf("%s; rename the task here, or jenga tasks %s --rename gives another name there",
		plugin.Unknown("task", of.task.Name, names), run)
}

// checkHeads compares the heads of a task with those of its teacher's.
func (t *Teachers) checkHeads(of *teacher, task checkpoint.Task) error {
	if task.Type != of.task.Part.Type {
		return fmt.Errorf("its task is of type %s, here it is of type %s", task.Type, of.task.Part.Type)
	}
	for _, head := range of.heads {
		i := slices.IndexFunc(task.Heads, func(h checkpoint.Head) bool { return h.Name == head.Name })
		if i < 0 {
			var names []string
			for _, h := range task.Heads {
				names = append(names, h.Name)
			}
			return fmt.Errorf("%s", plugin.Unknown("head", head.Name, names))
		}
		if _, err := orderOf(head, task.Heads[i].Labels); err != nil {
			return err
		}
	}
	return nil
}

// orderOf returns for each label of a student's head its number among those of its teacher.
func orderOf(student multitask.Head, teacher []string) ([]int, error) {
	own := student.Labels.Names()
	order := make([]int, len(own))
	for i, name := range own {
		order[i] = slices.Index(teacher, name)
	}
	if slices.Contains(order, -1) || len(own) != len(teacher) {
		return nil, fmt.Errorf("head %q has the labels %s, and its teacher %s; want a teacher with the same ones, in "+
			"any order", student.Name, strings.Join(own, ", "), strings.Join(teacher, ", "))
	}
	return order, nil
}

// Open reads what the teachers of a training in folder answer, from the files there, or computes it. A run that is
// trained alone for this training must be there. progress, which may be nil, is called at the beginning of each
// teacher's answers.
func (t *Teachers) Open(ctx context.Context, folder string, progress func(name string) func(done, of int)) error {
	byGroup := map[int][]*taskAnswers{}
	var sums []string
	for _, of := range t.all {
		if t.count(of) == 0 {
			continue
		}
		run, alone := t.runOf(of, folder)
		if alone {
			err := t.checkRun(ctx, of, run.Name)
			if err != nil && ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				return &DamagedError{run.Name, fmt.Errorf("teacher of task %q: %s: %w", of.task.Name, run.Name, err)}
			}
		}
		answers, err := t.open(ctx, of, run.Name, folder, progress)
		if err != nil {
			return fmt.Errorf("teacher of task %q: %s: %w", of.task.Name, run.Name, err)
		}
		t.close = append(t.close, answers.file.Close)
		byGroup[of.group] = append(byGroup[of.group], answers)
		sums = append(sums, answers.sum)
	}
	for g, answers := range byGroup {
		t.Taught.Data[g].Answers = groupAnswers(answers)
	}
	if t.Taught.Sum = strings.Join(sums, " "); t.texts.sum != "" {
		t.Taught.Sum += " of texts without labels too, " + t.texts.sum
	}
	return nil
}

// DamagedError is the error of a task that was trained alone and whose folder is damaged, with what works: a training
// that replaces its run takes over the teachers too.
type DamagedError struct {
	Folder string
	Err    error
}

// Error implements error.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("%v\nremove the folder %s, and the teacher is trained again", e.Err, e.Folder)
}

// Unwrap returns the damage.
func (e *DamagedError) Unwrap() error { return e.Err }

// Close closes the files of answers; t may be nil.
func (t *Teachers) Close() {
	if t == nil {
		return
	}
	for _, close := range t.close {
		close()
	}
	t.close = nil
}

// Warnings are about what teachers cannot do, since Open.
func (t *Teachers) Warnings() []plugin.Warning { return t.warnings }
