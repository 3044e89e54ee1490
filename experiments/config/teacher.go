package config

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/plugin"
)

// Alone is the value of training.teachers by which tasks are trained alone first, and then teach.
const Alone = "alone"

// teacherKeys are the keys of training that have an effect with teachers alone.
var teacherKeys = []string{"teacher_weight", "anneal", "temperature", "teacher_answers", "unlabelled", "match"}

// MatchStates is the value of training.match by which the states of a teacher's encoder are learned.
const MatchStates = "states"

// TeacherOf returns the run that teaches a task in a training that is written to folder, with the place that names it,
// and whether that training makes it; no Name for a task without a teacher.
func (e *Experiment) TeacherOf(task Task, folder string) (run File, alone bool) {
	switch {
	case task.Teacher.Name != "":
		return task.Teacher, false
	case task.Unteachable() != "" || task.Keep:
	case e.Model.Teacher.Name != "":
		return e.Model.Teacher, false
	case e.Training.Teachers == Alone:
		return File{Name: filepath.Join(folder, runfolder.TeachersDir, task.Name)}, true
	}
	return File{}, false
}

// Taught reports whether a task has a teacher.
func (e *Experiment) Taught() bool {
	has := func(t Task) bool { return t.Teacher.Name != "" }
	return e.Training.Teachers == Alone || e.Model.Teacher.Name != "" || slices.ContainsFunc(e.Tasks, has)
}

// RemoveTeachers makes it an experiment of the same tasks without teachers, and without what has no effect then.
func (e *Experiment) RemoveTeachers() {
	e.Model.Teacher, e.Training.Teachers, e.Training.Unlabelled = File{}, "none", Unlabelled{}
	e.Training.Match = "none"
	e.Tasks = slices.Clone(e.Tasks)
	for i := range e.Tasks {
		e.Tasks[i].Teacher = File{}
	}
}

// teacherAt returns the run that a key teacher of owner names; s, its value, may be nil.
func (d *decoding) teacherAt(s *plugin.Section, owner string) File {
	if s == nil || s.Kind == plugin.Null {
		return File{}
	}
	run := File{Name: d.relative(s, owner+": teacher"), Place: s.Place}
	if d.files && run.Name != "" {
		if _, _, err := runfolder.Find(run.Name); err != nil {
			d.mistakes.Add(s.Place, "%s: teacher: %w", owner, err)
		}
	}
	return run
}

// taskTeacher reads the run that teaches a task. s is the task's section.
func (d *decoding) taskTeacher(owner string, task *Task, s *plugin.Section) {
	task.Teacher = d.teacherAt(s.At("teacher"), owner)
	if d.files && task.Teacher.Name != "" && task.Keep {
		d.mistakes.Add(task.Teacher.Place, "%s: teacher: the task is kept and not trained; leave out keep or teacher",
			owner)
	}
}

// teachers reports keys of the section training, s, that have no effect without teachers, and what cannot be taught.
func (d *decoding) teachers(s *plugin.Section) {
	t := &d.e.Training
	if t.Anneal && !s.Has("teacher_weight") {
		t.TeacherWeight = 1
	}
	if !d.files {
		return
	}
	if !d.e.Taught() {
		for _, key := range teacherKeys {
			if s.Has(key) {
				d.mistakes.Add(s.At(key).Place, "training: %s: no effect without teachers; want teachers: alone, or "+
					"teacher: RUN of a task or of model", key)
			}
		}
		return
	}
	at := d.e.Place("training.teachers")
	switch {
	case t.Anneal && t.TeacherWeight == 0:
		d.mistakes.Add(s.At("anneal").Place, "training: anneal: no effect with teacher_weight: 0, from which nothing "+
			"falls; leave out one of them")
	case t.Teachers == Alone && d.e.Model.Teacher.Name != "":
		d.mistakes.Add(at, "training: teachers: alone: model.teacher is the teacher of all tasks without one; leave "+
			"out one of them")
	case t.Match == MatchStates && d.e.Model.Teacher.Name == "":
		d.mistakes.Add(s.At("match").Place, "training: match: states: the states are those of one teacher of all "+
			"tasks; want model.teacher: RUN")
	case t.Match == MatchStates && d.e.Model.Fusion.Type != "none":
		d.mistakes.Add(s.At("match").Place, "training: match: states: with model.fusion: %s each task has states of "+
			"its own; leave one of them out", d.e.Model.Fusion.Type)
	case t.Match == MatchStates && d.e.Model.Freeze.Always == encoders.FreezeAll && d.e.Model.LoRA.Rank == 0:
		d.mistakes.Add(s.At("match").Place, "training: match: states: no effect with model.freeze: all, of which the "+
			"encoder learns nothing; leave one of them out")
	case d.e.Model.LoRA.PerTask:
		d.mistakes.Add(at, "training: teachers: with lora: {per_task: true} each task has an encoder of its own, and "+
			"needs no teacher on the texts of others; leave one of them out")
	case t.Rehearse > 0:
		d.mistakes.Add(at, "training: teachers: not beside rehearse; want rehearse: 0, and the base run as the "+
			"teacher of the tasks that it has")
	}
	for _, task := range d.e.Tasks {
		if why := task.Unteachable(); why != "" && task.Teacher.Name != "" {
			d.mistakes.Add(task.Teacher.Place, "task %q: teacher: %s; leave it out", task.Name, why)
		}
	}
}

// Unteachable says why a task cannot learn of a teacher, "" if it can.
func (t Task) Unteachable() string {
	for _, head := range t.Heads {
		if !head.learns() {
			return "head " + head.Name + " is fitted, and has no loss"
		}
	}
	if t.HidesTokens {
		return "its targets are hidden tokens, which each text has"
	}
	return ""
}

// Unlabelled are texts without labels that teachers label, in training alone.
type Unlabelled struct {
	Files  File
	format corpus.Format
	// Columns of the text, of a second one and of words, by these names, text, pair and words, where they are named
	Columns map[string]string
}

// unlabelledKeys are the keys of a mapping of training.unlabelled.
type unlabelledKeys struct {
	ownFile `yaml:",inline"`

	Text  string `yaml:"text,omitempty" takes:"a column name" doc:"column of the text"`
	Pair  string `yaml:"pair,omitempty" takes:"a column name" doc:"column of a second text"`
	Words string `yaml:"words,omitempty" takes:"a column name" doc:"column of the text as a list of words"`
}

// Given reports whether files are named.
func (u Unlabelled) Given() bool { return u.Files.Name != "" }

// FormatOf returns the format of the file at a path: where nothing says another one, it has a text in each line.
func (u Unlabelled) FormatOf(path string) corpus.Format {
	if f := u.format; f.Type != "" || f.Delimiter != "" || corpus.FileType(path) != "" || runfolder.IsFolder(path) {
		return f
	}
	return u.format.Lines()
}

// unlabelled reads the value of training.unlabelled.
func (d *decoding) unlabelled(s *plugin.Section) (u Unlabelled) {
	const owner = "training: unlabelled"
	var keys unlabelledKeys
	if keys.Path = s; s.Kind == plugin.Mapping {
		keys.Path = nil
		if s.Decode(owner, &keys, &d.mistakes); !s.Has("path") {
			d.mistakes.Add(s.Place, "%s: no path; want a path, or {path: FILE, text: COLUMN} and the like", owner)
		}
	}
	u = Unlabelled{Files: d.dataFiles(keys.Path, owner, "path"), format: keys.Format, Columns: map[string]string{}}
	for name, column := range map[string]string{"text": keys.Text, "pair": keys.Pair, "words": keys.Words} {
		if column != "" {
			u.Columns[name] = column
		}
	}
	for _, path := range u.Files.Paths() {
		if path == "" || !runfolder.Exists(path) || runfolder.IsFolder(path) {
			continue
		}
		if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
			d.mistakes.Add(u.Files.Place, "%s: %s: want a file, which a training that goes on can read again; save "+
				"what the pipe has as one", owner, path)
			continue
		}
		if err := u.FormatOf(path).Check(path); err != nil {
			d.mistakes.Add(u.Files.Place, "%s: %s: %w", owner, path, err)
			break
		}
	}
	return u
}

// unlabelled returns what the files of texts without labels are written as; nil for none.
func (f *writing) unlabelled(u Unlabelled) *plugin.Section {
	if !u.Given() {
		return nil
	}
	s := plugin.SectionOf(unlabelledKeys{ownFile: ownFile{Path: f.paths(u.Files), Format: u.format},
		Text: u.Columns["text"], Pair: u.Columns["pair"], Words: u.Columns["words"]})
	if shortMissing(s); !u.format.NoHeader {
		s.Remove("header")
	}
	if len(s.Entries) == 1 {
		return s.At("path")
	}
	return s
}
