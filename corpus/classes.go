package corpus

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/internal/files"
)

// classes are the names of the integers in columns of ClassLabels, by the column's name or path: Hugging Face's
// datasets writes them as features in the metadata of parquet files, and in the file dataset_info.json beside data.
type classes struct {
	from   string // the file that has them
	beside bool   // this is a file beside the data
	names  map[string][]string
	wrong  map[string]string // by column, what is no name there
}

const (
	classesKey  = "huggingface" // in the metadata of parquet files, as datasets.arrow_writer has it
	classesFile = "dataset_info.json"
	maxClasses  = 16 << 20 // bytes of that file
	unlabelled  = -1       // ClassLabel's integer for no label
)

// ClassesFile returns the path of the file that may have the names of labels, which the data file at path has as
// integers.
func ClassesFile(path string) string { return filepath.Join(filepath.Dir(path), classesFile) }

// classesBeside returns the names in the file beside a data file, nil without one.
func classesBeside(path string) (*classes, error) {
	text, err := files.ReadFile(ClassesFile(path), maxClasses)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found, err := readClasses(text)
	if err != nil {
		return nil, fmt.Errorf("%s, which has the names of labels: %w; correct it, or remove it", ClassesFile(path),
			err)
	}
	if found != nil {
		found.from, found.beside = ClassesFile(path), true
	}
	return found, nil
}

// readClasses reads features of Hugging Face's datasets: {"features": …}, or this as "info".
func readClasses(text []byte) (*classes, error) {
	about, err := ParseObject(string(text))
	if err != nil {
		return nil, err
	}
	if info, nested := about["info"].(map[string]any); nested {
		about = info
	}
	found := &classes{names: map[string][]string{}, wrong: map[string]string{}}
	found.add("", about["features"])
	if len(found.names) == 0 {
		return nil, nil
	}
	return found, nil
}

// add adds the classes of a feature: a ClassLabel, a sequence or list of a feature, or an object of features.
func (c *classes) add(path string, feature any) {
	switch f := feature.(type) {
	case []any: // a list, as older versions write it
		if len(f) == 1 {
			c.add(path, f[0])
		}
	case map[string]any:
		class, typed := f["_type"].(string)
		names, named := f["names"].([]any)
		switch {
		case typed && class == "ClassLabel" && named:
			c.addNames(path, names)
		case typed:
			c.add(path, f["feature"])
		default:
			for name, of := range f {
				c.add(strings.TrimPrefix(path+"."+name, "."), of)
			}
		}
	}
}

func (c *classes) addNames(path string, names []any) {
	first := map[string]int{}
	for i, name := range names {
		text, isText := name.(string)
		j, twice := first[text]
		what := ""
		switch {
		case !isText:
			what = kind(name)
		case strings.TrimSpace(text) == "":
			what = "an empty text"
		case twice:
			what = fmt.Sprintf("%q, as that of label %d", start(text), j)
		default:
			first[text] = i
		}
		if c.names[path] = append(c.names[path], text); what != "" && c.wrong[path] == "" {
			c.wrong[path] = fmt.Sprintf("the name of label %d is %s", i, what)
		}
	}
}

// labelFields are the fields of records, and their prefixes of those of single heads, that have labels.
var labelFields = []string{"label", "labels", "tags"}

// nameClasses replaces the integers of labels in the fields of a record, by our names, by those of its file's classes.
func (f Format) nameClasses(ours map[string]any, r Record) error {
	if r.classes == nil {
		return nil
	}
	for our, value := range ours {
		if role, _, _ := strings.Cut(our, "."); !slices.Contains(labelFields, role) {
			continue
		}
		theirs := f.theirs(our)
		named, err := r.classes.name(theirs, value)
		if err != nil {
			return fmt.Errorf("%s: field %q: %w", r.Place, theirs, err)
		}
		ours[our] = named
	}
	return nil
}

// Named returns the record with all integers of labels replaced that its file has names for, where they have one.
func (r Record) Named() Record {
	if r.classes == nil {
		return r
	}
	fields := map[string]any{}
	for name, value := range r.Fields {
		if named, err := r.classes.name(name, value); err == nil {
			value = named
		}
		fields[name] = value
	}
	r.Fields = fields
	return r
}

// name replaces the integers in a value of a column by the column's names, if it has some.
func (c *classes) name(column string, value any) (named any, err error) {
	names := c.names[column]
	if names == nil {
		return value, nil
	}
	wrong := c.wrong[column]
	if wrong != "" {
		names = nil
	}
	if named, err = nameClass(value, names); err == nil {
		return named, nil
	}
	if wrong != "" {
		err = errors.New(wrong)
	}
	err = fmt.Errorf("%w, in %s; label_maps: {HEAD: {0: NAME, 1: NAME, …}} beside type names the labels", err,
		c.from)
	if c.beside {
		err = fmt.Errorf("%w; if that file is not of this data, remove it or move it to another folder", err)
	}
	return nil, err
}

// nameClass replaces the integers in a value, a single one or a list of them, also as texts. What is no integer stays.
func nameClass(value any, names []string) (any, error) {
	switch v := value.(type) {
	case string:
		if list, held := ParseCell(v); held {
			return nameClass(list, names)
		}
		if words := splitBlanks(v); len(words) > 1 && !slices.ContainsFunc(words, isNoInteger) {
			return nameClass(words, names)
		}
		return className(v, names)
	case json.Number:
		return className(v.String(), names)
	case []string:
		named := make([]any, len(v))
		for i := range v {
			named[i] = v[i]
		}
		return nameClass(named, names)
	case []any:
		named := make([]any, len(v))
		for i, item := range v {
			text, single := scalar(item)
			if named[i] = item; !single || item == nil {
				continue
			}
			name, err := className(text, names)
			if err != nil {
				return nil, err
			}
			named[i] = name
		}
		return named, nil
	}
	return value, nil
}

func className(text string, names []string) (any, error) {
	n, err := wholeNumber(text)
	switch {
	case err != nil:
		return text, nil
	case n == unlabelled:
		return nil, nil
	case n < 0 || n >= len(names):
		return nil, fmt.Errorf("label %d has no name; the classes are 0 to %d, %s", n, len(names)-1,
			listedCells(names))
	}
	return names[n], nil
}

func isNoInteger(text string) bool {
	_, err := strconv.Atoi(text)
	return err != nil
}
