package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/plugin"
)

// Paths returns the paths of the file, or those of a list or a pattern in the order in which they are read.
func (f File) Paths() []string {
	if f.several != nil {
		return f.several.paths
	}
	return []string{f.Name}
}

// FilesNamed returns the files that paths and patterns name, in their order: relative to the working directory.
func FilesNamed(names []string) (File, error) {
	list := &fileList{}
	for _, name := range names {
		paths := []string{name}
		if isPattern(name) && !runfolder.Exists(name) {
			var err error
			if paths, err = filepath.Glob(name); err != nil {
				return File{}, noPattern(name, err)
			}
			if len(paths) == 0 {
				return File{}, fmt.Errorf("%q matches no file; %s", name, contents(filepath.Dir(name)))
			}
			slices.Sort(paths)
		}
		for _, path := range paths {
			if slices.Contains(list.paths, path) {
				return File{}, fmt.Errorf("duplicate file %s", path)
			}
			list.paths = append(list.paths, path)
		}
	}
	return File{Name: strings.Join(names, ", "), several: list}, nil
}

// noPattern returns the error of a pattern that filepath.Glob cannot read.
func noPattern(pattern string, err error) error {
	return fmt.Errorf("%q is no pattern: %w; * and ? match any text and any character, [a-z] one of several",
		pattern, err)
}

// file returns the file of a split; its Name is "" if none is given.
func (d Data) file(split string) File {
	switch split {
	case Train:
		return d.Train
	case Dev:
		return d.Dev
	case Test:
		return d.Test
	}
	panic(fmt.Sprintf("config: no split %q", split))
}

// dataFiles finds the data files that a section of a task names: a path, a pattern, or a list of these.
func (d *decoding) dataFiles(s *plugin.Section, task, what string) File {
	if s == nil || s.Kind != plugin.List {
		return d.dataFile(s, task, what)
	}
	all, list := File{Place: s.Place}, &fileList{}
	var names []string
	if len(s.Items) == 0 {
		d.mistakes.Add(s.Place, "%s: %s: the list is empty; want a path at least", task, what)
		return all
	}
	before := d.mistakes.Len()
	for i, item := range s.Items {
		if item.Kind >= plugin.List || item.Kind == plugin.Null {
			d.mistakes.Add(item.Place, "%s: %s: item %d of the list: want a path or a pattern, have %s%s", task, what,
				i+1, item, listAdvice(item))
			continue
		}
		file := d.dataFile(item, task, what)
		if file.Name == "" {
			continue
		}
		for _, path := range file.Paths() {
			if slices.Contains(list.paths, path) {
				d.mistakes.Add(item.Place, "%s: %s: duplicate file %s", task, what, path)
			}
			list.paths = append(list.paths, path)
		}
		list.entries = append(list.entries, file)
		names = append(names, file.Name)
	}
	if d.mistakes.Len() > before {
		return all
	}
	all.Name, all.several = strings.Join(names, ", "), list
	return all
}

// listAdvice returns the end of the error of an item of a list of files, which may not have options of its own.
func listAdvice(item *plugin.Section) string {
	if item.Kind != plugin.Mapping {
		return ""
	}
	return "; options such as header are those of all files of a list, as {path: [FILE, FILE], header: false}"
}

// isPattern reports whether a path has one of the signs that filepath.Match reads.
func isPattern(path string) bool { return strings.ContainsAny(path, "*?[") }

// matching returns the files that a pattern matches, sorted: relative to the experiment file, else below $JENGA_DATA.
// Its Name is "" after a mistake.
func (d *decoding) matching(s *plugin.Section, pattern, task, what string) File {
	folders := []string{""}
	if pattern != filepath.Clean(s.Text) {
		folders[0] = filepath.Dir(s.Place.File)
	}
	if dir := os.Getenv("JENGA_DATA"); dir != "" && !filepath.IsAbs(s.Text) {
		folders = append(folders, dir)
	}
	for _, folder := range folders {
		paths, err := filepath.Glob(filepath.Join(quoted(folder), s.Text))
		if err != nil {
			d.mistakes.Add(s.Place, "%s: %w", task, noPattern(s.Text, err))
			return File{Place: s.Place}
		}
		if len(paths) > 0 {
			slices.Sort(paths)
			list := &fileList{paths: paths, folder: folder, pattern: s.Text}
			return File{Name: filepath.Join(folder, s.Text), Place: s.Place, several: list}
		}
	}
	if !d.files {
		return File{Name: pattern, Place: s.Place}
	}
	before := d.mistakes.Len()
	d.mistakes.Add(s.Place, "%s: %q matches no file%s; %s%s", task, s.Text, alsoSearched("JENGA_DATA", s.Text),
		contents(filepath.Dir(pattern)), d.moved(s, what))
	d.absent += d.mistakes.Len() - before
	return File{Place: s.Place}
}

// quoted returns the pattern that a path alone matches. On Windows a pattern cannot quote, and only [ is in names.
func quoted(path string) string {
	if filepath.Separator == '\\' {
		return path
	}
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// contents describes a folder for an error.
func contents(folder string) string {
	const most = 10
	entries, err := os.ReadDir(folder)
	switch {
	case err != nil && isPattern(folder):
		return "its folder is a pattern too"
	case err != nil:
		return "there is no folder " + folder
	case len(entries) == 0:
		return folder + " is empty"
	}
	var names []string
	for _, e := range entries[:min(most, len(entries))] {
		names = append(names, e.Name())
	}
	text := folder + " has " + strings.Join(names, ", ")
	if more := len(entries) - most; more > 0 {
		text += " and " + plugin.Count(more, "more file")
	}
	return text
}

// paths returns the section of a file: its path or pattern, or a list of these.
func (f *writing) paths(file File) *plugin.Section {
	switch list := file.several; {
	case list == nil || list.entries == nil && filepath.IsAbs(list.pattern):
		return f.path(file.Name)
	case list.entries == nil:
		folder := f.path(filepath.Join(list.folder, ".")).Text
		return plugin.SectionOf(filepath.ToSlash(filepath.Join(quoted(folder), list.pattern)))
	}
	list := &plugin.Section{Kind: plugin.List}
	for _, entry := range file.several.entries {
		list.Items = append(list.Items, f.paths(entry))
	}
	return list
}

// checkStream rejects stream: true where the files or the heads of a task cannot be read from any place.
func (d *decoding) checkStream(owner string, data Data, s *plugin.Section) {
	if !data.Stream || !d.files {
		return
	}
	train := data.Train
	if data.Path.Name != "" {
		train = data.Path
	}
	if train.Name == "" {
		return
	}
	at := s.At("stream").Place
	for _, path := range train.Paths() {
		if runfolder.IsFolder(path) {
			d.mistakes.Add(at, "%s: data: stream: %s is a folder, which is read as a whole; want a file", owner, path)
			return
		}
		if err := data.FormatOf(train.Name).CheckStream(path); err != nil {
			d.mistakes.Add(at, "%s: data: stream: %s: %w", owner, path, err)
			return
		}
	}
}
