// Package guess looks at data files and writes an experiment for them: their formats, which columns are texts and which
// are labels, and a task for each label. It reads the beginning of each file only, and knows nothing about a column but
// its name and values, so that each guess is written with its reason.
package guess

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
)

// Experiment is what was found in data files.
type Experiment struct {
	Name string
	Sets []*Set
	// Skipped are files in folders that are no data, each with the reason.
	Skipped []string
}

// Set is a data set: the files of its splits, and the tasks that its columns allow.
type Set struct {
	Name             string
	Train, Dev, Test string // paths
	Divide           bool   // the only file is in Train, and no split is in its name
	Format           corpus.Format
	By               string // field whose examples with the same value stay in one split; "": none
	Records          int    // that were read of the training file
	Whole            bool   // they are all of it
	Fields           []Field
	Tasks            []Task
	Notes            []string // why the format and the texts are these, and which columns are left out
	Words            int      // number of words that 19 of 20 texts do not exceed
}

// Field is a field of a record and the column of the file that holds it.
type Field struct{ Name, Column string }

// Task is a task that a column of labels allows.
type Task struct {
	Name, Type string
	Fields     []Field
	Head       string   // options of its head, as in YAML, "" for the default
	Heads      []string // names, where it has several
	Options    []string // lines beside its type
	Reason     string
}

// Files looks at data files and folders. It reads at most some thousand records of each file.
func Files(paths []string) (*Experiment, error) {
	found, skipped, err := find(paths)
	if err != nil {
		return nil, err
	}
	e := &Experiment{Skipped: skipped}
	var all []error
	for _, files := range found {
		set, err := look(files)
		if err != nil {
			all = append(all, err)
			continue
		}
		e.Sets = append(e.Sets, set)
	}
	if err := errors.Join(all...); err != nil {
		return nil, err
	}
	e.Name = e.Sets[0].Name
	e.nameTasks()
	return e, nil
}

// look reads the beginnings of the files of a data set.
func look(files files) (*Set, error) {
	train, err := readHead(files.train)
	if err != nil {
		return nil, err
	}
	s := &Set{Name: files.name, Train: files.train, Divide: files.divide, Whole: train.whole}
	data, err := train.data()
	if err != nil {
		return nil, err
	}
	s.Format, s.Records = data.format, len(data.records)
	s.note(data.notes...)
	s.assign(data)
	if len(s.Fields) == 0 {
		return nil, fmt.Errorf("%s: no column of texts among %s; an experiment needs one, named by data: {text: "+
			"COLUMN}", files.train, names(data))
	}
	s.Dev, s.Test = s.other(files.dev), s.other(files.test)
	return s, nil
}

// names lists the columns of data, for an error.
func names(d *data) string {
	var all []string
	for _, c := range columnsOf(d.records, d.columns) {
		all = append(all, c.name)
	}
	return strings.Join(all[:min(len(all), 20)], ", ")
}

// other returns the path of another split's file, "" if it does not have the format and columns of the training file.
func (s *Set) other(path string) string {
	if path == "" {
		return ""
	}
	head, err := readHead(path)
	if err == nil && s.Format.Type == "" && !head.slots && corpus.FileType(path) == "" {
		s.Format.Type = corpus.FileType(s.Train) // this file's extension tells nothing
	}
	var records []corpus.Record
	if err == nil {
		records, err = head.read(s.Format)
	}
	if err == nil {
		fields := corpus.Format{Fields: map[string]string{}}
		for _, t := range append([]Task{{Fields: s.Fields}}, s.Tasks...) {
			for _, f := range t.Fields {
				fields.Fields[f.Name] = f.Column
			}
			if _, renamed := fields.Rename(path, records); renamed != nil && err == nil {
				err = renamed
			}
		}
	}
	if err != nil {
		s.note(fmt.Sprintf("%s is left out: it is not read as %s is: %v", path, s.Train, err))
		return ""
	}
	return path
}

func (s *Set) note(notes ...string) { s.Notes = append(s.Notes, notes...) }

// nameTasks gives all tasks names that differ. A column named label is no name where the data set has one.
func (e *Experiment) nameTasks() {
	var taken []string
	for _, s := range e.Sets {
		for i := range s.Tasks {
			t := &s.Tasks[i]
			name := nameOf(t.Name)
			if isGeneric(name) && s.Name != "" && !isGeneric(s.Name) {
				name = s.Name
			}
			if slices.Contains(taken, folded(name)) {
				name = nameOf(s.Name + "_" + t.Name)
			}
			for n := 2; slices.Contains(taken, folded(name)); n++ {
				name = nameOf(fmt.Sprintf("%s_%s_%d", s.Name, t.Name, n))
			}
			t.Name = name
			taken = append(taken, folded(name))
		}
	}
}
