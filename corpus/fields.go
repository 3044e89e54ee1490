package corpus

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/internal/suggest"
)

// Rename adds the names of Fields to the records of the file at path, which were read without them; Open with Fields
// returns the same records. It is an error if no record has a field that Fields names.
func (f Format) Rename(path string, records []Record) ([]Record, error) {
	if len(f.Fields) == 0 && !slices.ContainsFunc(records, func(r Record) bool { return r.classes != nil }) {
		return records, nil
	}
	found, renamed := f.FindFields(), make([]Record, len(records))
	for i, r := range records {
		found.Add(r)
		renamed[i] = f.RenameRecord(r)
	}
	if err := found.Err(path); err != nil {
		return nil, err
	}
	return renamed, nil
}

// RenameRecord adds the names of Fields to a record, without the values that Missing lists, and replaces integers in
// fields of labels by the names that the file has for them.
func (f Format) RenameRecord(r Record) Record {
	if len(f.Fields)+len(f.Missing) == 0 && r.classes == nil {
		return r
	}
	// A missing field is null under our name, even if the file has another field of that name.
	ours := maps.Clone(r.Fields)
	for our, theirs := range f.Fields {
		if ours[our] = nil; theirs != "" {
			ours[our], _ = Field(r.Fields, theirs)
		}
	}
	for name, role := range map[string]string{"question": "text", "context": "pair"} {
		// else the file's own field text or pair would take precedence
		if f.Fields[name] != "" && f.Fields[role] == "" {
			ours[role] = ours[name]
		}
	}
	if f.Fields["question"] != "" && f.Fields["context"] == "" && ours["pair"] == nil {
		ours["pair"] = ours["context"] // the file's own field may be called context
	}
	if f.Fields["context"] != "" && f.Fields["question"] == "" && f.Fields["text"] == "" &&
		ours["question"] != nil {
		ours["text"] = ours["question"]
	}
	f.dropMarks(ours)
	renamed := r
	renamed.Fields, renamed.inFile = ours, r.Fields
	if !f.Numbers {
		renamed.wrong = f.nameClasses(ours, r)
	}
	return renamed
}

// theirs returns the file's name of a field of ours.
func (f Format) theirs(our string) string {
	if name, renamed := f.Fields[our]; renamed {
		return name
	}
	return our
}

// FoundFields is which of the fields that a Format's Fields name the records of a file have.
type FoundFields struct {
	format    Format
	records   int
	first     Record
	filled    map[string]bool // our names of fields that a record has a value for
	available map[string]any  // fields of the first records together: one record may lack some
	// Beside says that the file has other fields that are read, so that a header without these is no record.
	Beside bool
}

// FindFields returns the FoundFields of a file of which no record has been added yet.
func (f Format) FindFields() *FoundFields {
	return &FoundFields{format: f, filled: map[string]bool{}, available: map[string]any{}}
}

// Add adds a record, which is not renamed.
func (n *FoundFields) Add(r Record) {
	const most = 1000 // records
	if n.records == 0 {
		n.first = r
	}
	if n.records++; n.records <= most {
		merge(n.available, r.Fields)
	}
	for our, theirs := range n.format.Fields {
		if !n.filled[our] {
			value, _ := Field(r.Fields, theirs)
			n.filled[our] = value != nil
		}
	}
}

// Err returns an error for the fields that Fields names and no record has. If a table's header names none of them, that
// is one error: it may be a record.
func (n *FoundFields) Err(path string) error {
	var all mistakes
	found := false
	for _, our := range slices.Sorted(maps.Keys(n.format.Fields)) {
		theirs := n.format.Fields[our]
		_, there := Field(n.available, theirs)
		found = found || there
		switch {
		case theirs == "" || n.filled[our]:
		case there:
			all.add(Place{File: path}, "%w", &FieldError{our, fmt.Errorf("field %q for %s is empty in every "+
				"record; want a "+
				"value in one at least", theirs, our)})
		default:
			mean := ""
			names := fieldNames(n.available)
			if near, ok := suggest.Nearest(theirs, names); ok {
				mean = fmt.Sprintf("did you mean %q? ", start(near))
				found = true
			}
			all.add(Place{File: path}, "%w", &FieldError{our, fmt.Errorf("no field %q for %s; %savailable: %s", theirs,
				our,
				mean, listed(n.available))})
		}
	}
	for _, theirs := range slices.Sorted(maps.Keys(n.format.Missing)) {
		if _, there := Field(n.available, theirs); there || theirs == "" {
			continue
		}
		mean := ""
		if near, ok := suggest.Nearest(theirs, fieldNames(n.available)); ok {
			mean = fmt.Sprintf("did you mean %q? ", start(near))
		}
		all.add(Place{File: path}, "no field %q, which missing names; %savailable: %s", theirs, mean,
			listed(n.available))
		found = true
	}
	if len(all.shown) > 0 && !found && n.first.headed && !n.Beside {
		theirs := slices.Sorted(maps.Values(n.format.Fields))
		return fmt.Errorf("%s:1: the first line names none of the columns %s; it has %s%s", path,
			listedCells(slices.Compact(theirs)), listed(n.first.Fields), n.first.noHeader())
	}
	return all.err(path)
}

// FieldError is the error of a field that a Format's Fields name and no record of a file has: Field is our name.
type FieldError struct {
	Field string
	error
}

func (e *FieldError) Unwrap() error { return e.error }

func merge(all, fields map[string]any) {
	for name, value := range fields {
		object, nested := value.(map[string]any)
		if !nested {
			if all[name] == nil {
				all[name] = value
			}
			continue
		}
		known, ok := all[name].(map[string]any)
		if !ok {
			known = map[string]any{}
			all[name] = known
		}
		merge(known, object)
	}
}

// Field returns the field with a name, or the one that a path of names leads to: user.text for {"user": {"text": …}}.
// A field of that very name comes first, then the path whose first name is shortest. In a list a path has the index of
// an element, from 0, and in a column of words the name of a feature: misc.NER for NER=B-PER in CoNLL-U. ok is false if
// there is none; the value may be null.
func Field(fields map[string]any, name string) (value any, ok bool) {
	if value, ok = fields[name]; ok {
		return value, true
	}
	for i := range name {
		if name[i] != '.' {
			continue
		}
		if value, ok = within(fields[name[:i]], name[i+1:]); ok {
			return value, true
		}
		if features, isColumn := fields[strings.ToLower(name[:i])].([]string); isColumn { // MISC.NER
			return wordFeature(features, name[i+1:])
		}
	}
	return nil, false
}

// within returns the value that a path leads to within another.
func within(value any, path string) (found any, ok bool) {
	switch v := value.(type) {
	case map[string]any:
		return Field(v, path)
	case []any:
		index, rest, more := strings.Cut(path, ".")
		n, err := strconv.Atoi(index)
		if err != nil || n < 0 || n >= len(v) {
			return nil, err == nil && n >= 0 // an element that this record lacks is missing
		}
		if more {
			return within(v[n], rest)
		}
		return v[n], true
	}
	return nil, false
}

// wordFeature returns the value of a feature for each word, "" for those without it: b of a=b|c=d for a. ok is false if
// no word has it.
func wordFeature(words []string, name string) (value any, ok bool) {
	values := make([]string, len(words))
	for i, features := range words {
		for feature := range strings.SplitSeq(features, "|") {
			if of, is := strings.CutPrefix(feature, name+"="); is {
				values[i], ok = of, true
			}
		}
	}
	if !ok {
		return nil, false
	}
	return values, true
}

// fieldNames returns the names of fields, and of those in objects as paths, sorted.
func fieldNames(fields map[string]any) []string {
	const most = 1000
	var names []string
	var add func(prefix string, fields map[string]any)
	add = func(prefix string, fields map[string]any) {
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			switch object, nested := fields[name].(map[string]any); {
			case len(names) >= most:
				return
			case nested && len(object) > 0:
				add(prefix+name+".", object)
			default:
				names = append(names, prefix+name)
			}
		}
	}
	add("", fields)
	slices.Sort(names)
	return names
}
