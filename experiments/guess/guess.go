// Package guess looks at data files and writes an experiment for them: their formats, which columns are texts and which
// are labels, and a task for each label. It reads the beginning of each file only, and knows nothing about a column but
// its name and values, so that each guess is written with its reason.
package guess

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/internal/files"
	"github.com/jenga-nlp/jenga/internal/suggest"
)

// Experiment is what was found in data files.
type Experiment struct {
	Name   string
	Sets   []*Set
	folder string   // of the file that is written, to which its paths are relative
	models []string // base models, of which the first is written; none: an encoder is trained from scratch
}

// Set is a data set: the files of its splits, and the tasks that its columns allow.
type Set struct {
	Name             string
	Train, Dev, Test string // paths
	Divide           bool   // the only file is in Train, and no split is in its name
	Format           corpus.Format
	Fields           []Field
	Tasks            []Task
	Notes            []string // why the format and the texts are these, and which columns are left out
	Doubts           []string // of these, those of what may have been meant otherwise

	shards map[string]shards // by the path of the first: files of one split

	word    string          // column of the words, of a file that has a word a row
	records []corpus.Record // the first ones of the training file
	more    bool            // the file may have others
	doubt   string          // what corpus warns of in the file; "": nothing
	header  []string        // names of columns by position, of a table; nil where records have names
	columns []*column
	texts   []*column // text and pair, or words
	split   *column   // that names the split of each record; nil: none
	devs    bool      // some of these are of dev
}

func (s *Set) note(format string, args ...any) {
	s.Notes = append(s.Notes, fmt.Sprintf(format, args...))
}

// noteDoubt is note, of what is left out and may have been meant.
func (s *Set) noteDoubt(format string, args ...any) {
	s.note(format, args...)
	s.Doubts = append(s.Doubts, s.Notes[len(s.Notes)-1])
}

// Field is a field of a record and the column of the file that holds it; one without a name is not read.
type Field struct {
	Name   string
	column *column
}

// Task is a task that a column of labels allows.
type Task struct {
	Name, Type string
	Field      string   // of its column
	column     *column  // nil: none
	Separator  string   // between several labels; "" for the default
	Overlap    bool     // some of its spans overlap
	Head       []Option // of its head, beside its name; nil for the default
	Reason     string
	Doubt      string // why another task may be meant; "": nothing
}

// Files looks at data files and folders. It reads at most some thousand records of each training file, and leaves the
// other splits to jenga check.
func Files(ctx context.Context, paths []string) (*Experiment, error) {
	return FilesAs(ctx, paths, "", "")
}

// FilesAs is Files with the encoding and the delimiter of all files; each is guessed where it is "".
func FilesAs(ctx context.Context, paths []string, encoding, delimiter string) (*Experiment, error) {
	sets, err := find(paths)
	if err != nil {
		return nil, err
	}
	var all []error
	for _, s := range sets {
		s.Format.Encoding, s.Format.Delimiter = encoding, delimiter
		all = append(all, s.look(ctx))
	}
	if err := errors.Join(all...); err != nil {
		return nil, err
	}
	e := &Experiment{Name: sets[0].Name, Sets: sets}
	e.nameTasks()
	return e, nil
}

func (s *Set) look(ctx context.Context) error {
	if err := s.detect(ctx); err != nil {
		return err
	}
	if err := s.usedRows(ctx); err != nil {
		return err
	}
	if err := s.joinRows(ctx); err != nil {
		return err
	}
	for _, path := range []string{s.Dev, s.Test} {
		if path != "" && s.Format.Type == "" && corpus.FileType(path) == "" && !corpus.IsDataFolder(path) {
			s.Format.Type = corpus.FileType(s.Train) // this file's extension tells nothing
		}
	}
	return s.assign(ctx)
}

// nameTasks gives all tasks names that differ. A column that is named as the field, such as label, says nothing about
// what the task predicts, where the name of the data set does.
func (e *Experiment) nameTasks() {
	taken := map[string]bool{}
	for _, s := range e.Sets {
		for i := range s.Tasks {
			t := &s.Tasks[i]
			name, long := nameOf(t.Name), nameOf(s.Name+"_"+t.Name)
			if generic.MatchString(name) {
				name = s.Name
			}
			if taken[corpus.FoldName(name)] {
				name = long
			}
			for n := 2; taken[corpus.FoldName(name)]; n++ {
				name = fmt.Sprintf("%s_%d", long, n)
			}
			t.Name = name
			taken[corpus.FoldName(name)] = true
		}
	}
}

// generic matches names that say nothing about what a task predicts.
var generic = regexp.MustCompile(
	`(?i)^((ner_|up)?tags?|upos|labels?|value|entities|answers?|score|targets?|class|gold|y|)(_?\d+)?$`)

var splitWords = map[string]string{
	"train": "train", "training": "train",
	"dev": "dev", "devel": "dev", "development": "dev", "val": "dev", "valid": "dev", "validation": "dev",
	"validate": "dev", "trial": "dev", // the last of SemEval's tasks
	"test": "test", "testing": "test",
}

// A candidate is a file of data; stem is its name without extension and split.
type candidate struct {
	path, folder, stem, split string
	shards                    shards // whose first is at path
}

// shards are files that a program has written in place of one, each with a number in its name. Of one file alone the
// pattern is "".
type shards struct {
	pattern string // which matches them alone
	n       int
}

// shardNumber matches the number of a shard in its name, as part-00000-UUID-c000 of Spark and train-00000-of-00002-HASH
// of Hugging Face's datasets have one.
var shardNumber = regexp.MustCompile(`(?i)(^|[^\pL])(part|shard|chunk)[-_.]?(\d+)(-[0-9a-f]{8}(-[0-9a-f]{4}){3}-` +
	`[0-9a-f]{12})?(-c\d+)?|[-_.]?(\d{3,})-of-\d{3,}(-[0-9a-f]{16})?`)

// joinShards makes one candidate of all shards of a file. Programs number them from 0, or write 0 before small numbers;
// part1 and part2 are as often parts of a work, with columns of their own.
func joinShards(all []candidate) (joined []candidate) {
	paths, zeros := map[string][]string{}, map[string]bool{} // by pattern; those with a number that begins with 0
	patternOf := func(c candidate) string {
		base := filepath.Base(c.path)
		at := shardNumber.FindStringSubmatchIndex(base)
		if at == nil || strings.ContainsAny(c.path, `*?[\`) || corpus.IsDataFolder(c.path) {
			return ""
		}
		if at[7] < 0 { // of the second form
			at[6], at[7] = at[14], at[15]
		}
		rest := base[at[7]:]
		if at[16] >= 0 {
			rest = base[at[7]:at[16]+1] + "*" + base[at[17]:] // each has another hash
		}
		pattern := filepath.Join(filepath.Dir(c.path), base[:at[6]]+"*"+rest)
		zeros[pattern] = zeros[pattern] || base[at[6]] == '0'
		return pattern
	}
	for _, c := range all {
		patternOf(c)
	}
	for _, c := range all {
		pattern := patternOf(c)
		if paths[pattern] = append(paths[pattern], c.path); len(paths[pattern]) > 1 && zeros[pattern] {
			continue
		}
		joined = append(joined, c)
	}
	for i, c := range joined {
		pattern := patternOf(c)
		if !zeros[pattern] || len(paths[pattern]) == 1 {
			continue
		}
		of, _ := filepath.Glob(pattern)
		if slices.Sort(paths[pattern]); !slices.Equal(of, paths[pattern]) { // it would read others too
			return all
		}
		bare := shardNumber.ReplaceAllString(filepath.Base(c.path), "")
		joined[i] = candidateOf(filepath.Join(filepath.Dir(c.path), bare))
		joined[i].path, joined[i].shards = of[0], shards{pattern, len(of)}
	}
	return joined
}

// letters of a name: wnut17train has wnut and train.
var letters = regexp.MustCompile(`\pL+`)

// candidateOf reads the split in a path's name, else in that of its folder.
func candidateOf(path string) candidate {
	base := strings.TrimSuffix(filepath.Base(path), ".gz")
	if corpus.FileType(base) != "" || filepath.Ext(base) == ".txt" {
		base = strings.TrimSuffix(base, filepath.Ext(base))
	}
	c := candidate{path: path, folder: filepath.Dir(path)}
	c.stem, c.split = cutSplit(base)
	if c.split == "" {
		if rest, split := cutSplit(filepath.Base(c.folder)); split != "" && rest == "" {
			c.split, c.folder = split, filepath.Dir(c.folder)
		}
	}
	return c
}

func cutSplit(name string) (rest, split string) {
	for _, at := range letters.FindAllStringIndex(name, -1) {
		if split = splitWords[strings.ToLower(name[at[0]:at[1]])]; split != "" {
			return joinParts(name[:at[0]] + "." + name[at[1]:]), split
		}
	}
	return joinParts(name), ""
}

// Check returns an error for each of the paths that names no data, without reading the files.
func Check(paths []string) error {
	_, err := find(paths)
	return err
}

func find(paths []string) ([]*Set, error) {
	var all []candidate
	var errs []error
	for _, path := range paths {
		inside, err := findAt(path)
		all, errs = append(all, inside...), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return group(joinShards(all))
}

// findAt lists the data at a path: the file, or those in a folder.
func findAt(path string) ([]candidate, error) {
	info, err := os.Stat(path)
	switch {
	case os.IsNotExist(err):
		return nil, fmt.Errorf("%s: no such file%s", path, suggest.File(path, path, suggest.AnyFile))
	case err != nil:
		return nil, err
	case !info.IsDir() && slices.Contains([]string{".yaml", ".yml"}, strings.ToLower(filepath.Ext(path))):
		return nil, fmt.Errorf("%s is YAML, which is no data; an experiment file is checked by: jenga check %[1]s",
			path)
	case info.IsDir() && !corpus.IsDataFolder(path):
		return findIn(filepath.Clean(path))
	case !info.IsDir():
		if err := checkRegular(path); err != nil {
			return nil, err
		}
	}
	return []candidate{candidateOf(filepath.Clean(path))}, nil
}

// checkRegular returns an error for a named pipe or a device: a file is read several times.
func checkRegular(path string) error {
	file, err := files.OpenRegular(path)
	if err != nil && files.IsPipe(path) {
		return fmt.Errorf("%w, since it is read several times: write its records to one first", err)
	}
	if err != nil {
		return err
	}
	return file.Close()
}

// otherExtensions are those of files that are no data, although their names may tell a split: train.py.
var otherExtensions = []string{".cfg", ".ipynb", ".log", ".md", ".py", ".sh", ".toml", ".yaml", ".yml", ".zip"}

// findIn lists the data in a folder: files whose name tells their split, else files of a known extension.
func findIn(folder string) ([]candidate, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var named, others []candidate
	for _, entry := range entries {
		path := filepath.Join(folder, entry.Name())
		_, split := cutSplit(entry.Name())
		isData := !entry.IsDir() && !slices.Contains(otherExtensions, filepath.Ext(path))
		switch {
		case strings.HasPrefix(entry.Name(), "."):
		case corpus.IsDataFolder(path), isData && split != "":
			named = append(named, candidateOf(path))
		case isData && corpus.FileType(path) != "":
			others = append(others, candidateOf(path))
		}
	}
	if len(named) == 0 {
		named = others
	}
	if len(named) == 0 {
		return nil, fmt.Errorf("%s: no data in this folder; want files such as train.csv, data.jsonl or a folder "+
			"with seq.in, seq.out and label", folder)
	}
	for _, c := range named {
		if !corpus.IsDataFolder(c.path) {
			err = errors.Join(err, checkRegular(c.path))
		}
	}
	return named, err
}

// group joins files to data sets: those of a folder with the same name but for the split, or all of a folder with a
// split in their names, if no two of them have the same split.
func group(all []candidate) (sets []*Set, err error) {
	seen, several := map[[2]string]bool{}, map[string]bool{} // folders and splits; folders that have a split twice
	for _, c := range all {
		at := [2]string{c.folder, c.split}
		several[c.folder] = several[c.folder] || c.split != "" && seen[at]
		seen[at] = true
	}
	byKey := map[[2]string]*Set{}
	for _, c := range all {
		key := [2]string{c.folder}
		switch {
		case c.split == "":
			key[1] = "\x00" + c.path
		case several[c.folder]:
			key[1] = c.stem
		}
		s := byKey[key]
		if s == nil {
			s = &Set{shards: map[string]shards{}}
			byKey[key], sets = s, append(sets, s)
		}
		file := map[string]*string{"": &s.Train, "train": &s.Train, "dev": &s.Dev, "test": &s.Test}[c.split]
		if *file != "" {
			return nil, fmt.Errorf("%s and %s: two files of the split %s; name those of one data set", *file, c.path,
				c.split)
		}
		*file, s.shards[c.path] = c.path, c.shards
		if s.Divide = c.split == ""; s.Name == "" || c.split == "train" {
			s.Name = nameOf(cmp.Or(c.stem, filepath.Base(absolute(c.folder))))
		}
	}
	for _, s := range sets {
		switch only := cmp.Or(s.Dev, s.Test); {
		case s.Train != "":
		case s.Dev != "" && s.Test != "":
			return nil, fmt.Errorf("%s: no file of these is named as the training data; name it too, such as train%s",
				only, filepath.Ext(only))
		default: // it is the data, whatever it is called
			s.Train, s.Dev, s.Test, s.Divide = only, "", "", true
		}
	}
	return sets, nil
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

func nameOf(text string) string {
	name := []rune(joinParts(text))
	if len(name) == 0 {
		return "data"
	}
	return string(name[:min(len(name), 60)])
}

func joinParts(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsNumber(r)
	}), "_")
}
