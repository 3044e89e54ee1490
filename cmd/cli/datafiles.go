package cli

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/experiments/predict"
)

// manyFiles is what the flag --data says of several files.
const manyFiles = "FILE may be a pattern, in quotation marks, as 'TASK=parts/*.jsonl'; may be repeated, for a task " +
	"too, whose files are read one after the other"

// dataFlags reads TASK=FILE pairs; a task may have several.
func dataFlags(pairs []string) (map[string][]string, error) {
	files := map[string][]string{}
	for _, pair := range pairs {
		task, file, ok := strings.Cut(pair, "=")
		if !ok || task == "" || file == "" {
			return nil, usageErrorf("--data %q: want TASK=FILE", pair)
		}
		if slices.Contains(files[task], file) {
			return nil, usageErrorf("--data %q: it is named twice; want it once", pair)
		}
		files[task] = append(files[task], file)
	}
	return files, nil
}

// readData reads the examples of a split, or of the files of --data in its place, for all tasks, or for one task's
// group if task is not "". It returns their name: see dataName.
func readData(opened *predict.Opened, split, task string, files map[string][]string) (name string, err error) {
	for name := range files {
		if _, _, err := opened.Model.Group(name); err != nil {
			return "", fmt.Errorf("--data: %w", err)
		}
	}
	opened.Data.Missing = func(task config.Task, _ config.File) string {
		if files[task.Name] != nil {
			return "--data is TASK=FILE, once for each file"
		}
		return fmt.Sprintf("pass the data with --data %s=FILE", task.Name)
	}
	if err := opened.Read(split, task, files); err != nil {
		return "", err
	}
	return dataName(opened, split, files), nil
}

// dataName names what is evaluated: the split, or the file that is read in its place. Where that differs between tasks,
// it names the tasks of each file.
func dataName(opened *predict.Opened, split string, files map[string][]string) string {
	var names []string             // of files, in order
	tasks := map[string][]string{} // by file
	others := false                // whether tasks are evaluated on the split
	for _, group := range opened.Data.Groups {
		if group.Examples[split] == nil {
			continue
		}
		var file string
		var members []string
		for _, number := range group.Tasks {
			task := opened.Data.Experiment.Tasks[number].Name
			members = append(members, task)
			file = cmp.Or(strings.Join(files[task], ", "), file)
		}
		if file == "" {
			others = true
			continue
		}
		if tasks[file] == nil {
			names = append(names, file)
		}
		tasks[file] = append(tasks[file], members...)
	}

	switch {
	case len(names) == 0:
		return split
	case len(names) == 1 && !others:
		return names[0]
	}
	var parts []string
	for _, file := range names {
		parts = append(parts, strings.Join(tasks[file], ", ")+": "+file)
	}
	if others {
		parts = append(parts, "others: "+split)
	}
	return strings.Join(parts, "; ")
}

// knownData warns of files of --data that nothing can be fitted to: those that the run was trained on, and if test is
// true those that its test split is read from.
func knownData(opened *predict.Opened, files map[string][]string, test bool) (warnings []string) {
	for _, task := range opened.Data.Experiment.Tasks {
		named, err := config.FilesNamed(files[task.Name])
		if err != nil {
			continue // readData returns it
		}
		training := dataset.TrainingFile(task.Data)
		for _, path := range named.Paths() {
			is := func(other string) bool { return sameFile(path, other) }
			switch {
			case slices.ContainsFunc(training.Paths(), is):
				warnings = append(warnings, fmt.Sprintf("warning: --data %s=%s: the run was trained on this file; "+
					"probabilities of its texts say nothing about other texts", task.Name, path))
			case test && slices.ContainsFunc(task.Data.Test.Paths(), is):
				warnings = append(warnings, fmt.Sprintf("warning: --data %s=%s: test is read from this file too; the "+
					"report is of texts that were fitted to", task.Name, path))
			}
		}
	}
	return warnings
}

// sameFile reports whether two paths lead to the same file.
func sameFile(a, b string) bool {
	first, firstErr := os.Stat(a)
	second, secondErr := os.Stat(b)
	return firstErr == nil && secondErr == nil && os.SameFile(first, second)
}
