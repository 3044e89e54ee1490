package run

import (
	"cmp"
	"iter"
	"path/filepath"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/plugin"
)

// teacherRun is a run that teaches, with the records that it was trained on.
type teacherRun struct {
	name     string
	warnings []plugin.Warning
	trained  map[corpus.Place]bool // where its training files were divided
}

// newTeacherRun reads a run; what cannot be read is a mistake that the training finds.
func newTeacherRun(name string) *teacherRun {
	t := &teacherRun{name: name, trained: map[corpus.Place]bool{}}
	file, _, err := runfolder.Find(name)
	if err != nil {
		return t
	}
	_, t.warnings = report.CheckFinished(filepath.Dir(file))
	runfolder.ReadSplits(filepath.Dir(file), func(line runfolder.SplitLine) error {
		if line.Split == config.Train {
			for number, entry := range line.Records() {
				t.trained[corpus.Place{File: line.File, Line: number, Entry: entry}] = true
			}
		}
		return nil
	})
	return t
}

// ofTeachers returns warnings of teachers that are runs of their own: those that are not trained to their end, and
// those that were trained on texts which this run evaluates on.
func (r *Run) ofTeachers() (all []plugin.Warning) {
	e, runs := r.experiment(), map[string]*teacherRun{}
	for _, group := range r.Data.Groups {
		told := map[*teacherRun]bool{} // tasks of a group have the same texts
		for _, number := range group.Tasks {
			task := e.Tasks[number]
			of, alone := e.TeacherOf(task, "")
			if alone || of.Name == "" {
				continue
			}
			teacher := runs[of.Name]
			if teacher == nil {
				teacher = newTeacherRun(of.Name)
				runs[of.Name], all = teacher, append(all, teacher.warnings...)
			}
			for _, split := range []string{config.Dev, config.Test} {
				if n, seen := teacher.sees(group.Divided[split]); seen > 0 && !told[teacher] {
					at := cmp.Or(of.Place, task.Place)
					all = append(all, plugin.Warn(at, "task %q: the teacher %s was trained on %d of the %d "+
						"texts of %s, on which the student seems better than it is; the data, their division and its "+
						"seed must be those of the teacher", task.Name, of.Name, seen, n, split))
				}
			}
			told[teacher] = true
		}
	}
	return all
}

// sees returns how many records there are, and how many of them the teacher was trained on.
func (t *teacherRun) sees(places iter.Seq[corpus.Place]) (n, seen int) {
	if places == nil || len(t.trained) == 0 {
		return 0, 0
	}
	files := map[string]string{} // as the teacher names them
	for at := range places {
		file, found := files[at.File]
		if !found {
			file = at.File
			if real, err := runfolder.RealPath(file); err == nil {
				file = real
			}
			files[at.File] = file
		}
		n++
		if t.trained[corpus.Place{File: file, Line: at.Line, Entry: at.Entry}] {
			seen++
		}
	}
	return n, seen
}
