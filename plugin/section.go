package plugin

import (
	"fmt"
	"slices"
)

// Section is a value of an experiment file with its place. Aliases are followed and merge keys merged.
type Section struct {
	Place   Place
	Kind    Kind
	Text    string     // of a scalar, as written
	Items   []*Section // of a List
	Entries []Entry    // of a Mapping, in the order of the file, without duplicate keys
}

// Entry is one key of a mapping and its value.
type Entry struct {
	Key   string
	Place Place // of the key
	Value *Section
}

// Kind is the kind of a value of an experiment file.
type Kind int

// The kinds. All before List are scalars.
const (
	Null Kind = iota
	Bool
	Int
	Float
	Text
	List
	Mapping
)

// At returns the value of a key of a mapping, nil if s is nil, not a mapping, or lacks the key.
func (s *Section) At(key string) *Section {
	if i := s.index(key); i >= 0 {
		return s.Entries[i].Value
	}
	return nil
}

// Has reports whether a mapping has a key whose value is not null.
func (s *Section) Has(key string) bool {
	v := s.At(key)
	return v != nil && v.Kind != Null
}

// Put sets the value of a key of a mapping.
func (s *Section) Put(key string, value *Section) {
	if i := s.index(key); i >= 0 {
		s.Entries[i].Value = value
		return
	}
	s.Entries = append(s.Entries, Entry{key, value.Place, value})
}

// Remove removes keys and their values from a mapping.
func (s *Section) Remove(keys ...string) {
	s.Entries = slices.DeleteFunc(s.Entries, func(e Entry) bool { return slices.Contains(keys, e.Key) })
}

func (s *Section) index(key string) int {
	if s == nil {
		return -1
	}
	return slices.IndexFunc(s.Entries, func(e Entry) bool { return e.Key == key })
}

// String describes the value for errors.
func (s *Section) String() string {
	switch s.Kind {
	case Null:
		return "nothing"
	case Text:
		return "text " + quoted(s.Text)
	case List:
		return "a list"
	case Mapping:
		return "a mapping"
	case Bool, Int, Float:
		return truncate(s.Text)
	}
	panic(fmt.Sprintf("plugin: unknown kind %d", s.Kind))
}
