package plugin

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"sort"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// Limits of an experiment file, far above what one needs. They bound the cost of a hostile file.
const (
	maxBytes  = 1 << 20
	maxDepth  = 64
	maxValues = 100_000 // values that aliases repeat are counted each time
)

// Parse parses the single YAML document of a file. If there is none it adds a mistake and returns nil.
func Parse(file string, data []byte, mistakes *Mistakes) *Section {
	return parse(func(line, col int) Place { return Place{File: file, Line: line, Col: col} }, data, mistakes)
}

// ParseValue parses YAML that is not from a file: all its values and mistakes are at place.
func ParseValue(place Place, text string, mistakes *Mistakes) *Section {
	return parse(func(int, int) Place { return place }, []byte(text), mistakes)
}

func parse(at func(line, col int) Place, data []byte, mistakes *Mistakes) *Section {
	if len(data) > maxBytes {
		mistakes.Add(at(0, 0), "%d bytes; an experiment file has at most %d", len(data), maxBytes)
		return nil
	}
	if i := invalidByte(data); i >= 0 {
		line := 1 + bytes.Count(data[:i], []byte("\n"))
		start := bytes.LastIndexByte(data[:i], '\n') + 1
		mistakes.Add(at(line, 1+utf8.RuneCount(data[start:i])), "byte 0x%02x is not UTF-8; save the file as UTF-8",
			data[i])
		return nil
	}

	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, second yaml.Node
	if err := decode(decoder, &document); err == io.EOF {
		mistakes.Add(at(0, 0), "empty; an experiment has at least model and tasks")
		return nil
	} else if err != nil {
		syntaxMistake(at, data, err, mistakes)
		return nil
	}
	if err := decode(decoder, &second); err == nil {
		mistakes.Add(at(second.Line, second.Column), "a second document begins; an experiment file has one")
	} else if err != io.EOF {
		syntaxMistake(at, data, err, mistakes)
	}

	r := reader{at: at, mistakes: mistakes, open: map[*yaml.Node]bool{}}
	root := r.section(document.Content[0], 0)
	if r.stopped {
		return nil
	}
	return root
}

// decode reads the next document. The YAML library panics on unexpected events; such a panic is returned as an error,
// since the file caused it.
func decode(d *yaml.Decoder, into *yaml.Node) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: %v", r)
		}
	}()
	return d.Decode(into)
}

func invalidByte(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

var yamlError = regexp.MustCompile(`^yaml: (?:line \d+: )?(.*)$`)

func syntaxMistake(at func(line, col int) Place, data []byte, err error, mistakes *Mistakes) {
	text := err.Error()
	if parts := yamlError.FindStringSubmatch(text); parts != nil {
		text = parts[1]
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	// the parser reports a tab at another line, or as a character that it does not expect
	for n, indented := range lines {
		blanks := indented[:len(indented)-len(bytes.TrimLeft(indented, " \t"))]
		if column := bytes.IndexByte(blanks, '\t') + 1; column > 0 && len(bytes.TrimSpace(indented)) > 0 {
			mistakes.Add(at(n+1, column), "not YAML: the line is indented with a tab; indent with spaces, not "+
				"with a tab")
			return
		}
	}

	// the parser reports the line before, or where the mapping begins: the line is the last of the shortest beginning
	// of the file that has the same error
	line := 1 + sort.Search(len(lines)-1, func(n int) bool {
		decoder, into := yaml.NewDecoder(bytes.NewReader(bytes.Join(lines[:n+1], nil))), yaml.Node{}
		now := decode(decoder, &into)
		if now == nil {
			now = decode(decoder, &into)
		}
		return now != nil && now.Error() == err.Error()
	})
	shown := ""
	if found := bytes.TrimSpace(lines[line-1]); len(lines) > 1 && len(found) > 0 {
		shown = ", in " + quoted(string(found))
	}
	switch {
	case strings.HasPrefix(text, "mapping values are not allowed"):
		text = "unexpected colon: the line has two, or the line above has none, or they are indented differently"
	case text == "found unexpected end of stream":
		text = "the quote is not closed"
	}
	mistakes.Add(at(line, 0), "not YAML: %s%s", text, shown)
}

type reader struct {
	at       func(line, col int) Place
	mistakes *Mistakes
	open     map[*yaml.Node]bool // lists and mappings that are being read
	alias    *yaml.Node          // the outermost alias that is being followed
	values   int
	stopped  bool // by a mistake after which the rest is meaningless
}

// stop adds a mistake at n, or at the alias that led there, and ends the reading.
func (r *reader) stop(n *yaml.Node, format string, args ...any) {
	if r.stopped {
		return
	}
	if r.alias != nil {
		n = r.alias
	}
	r.mistakes.Add(r.at(n.Line, n.Column), format, args...)
	r.stopped = true
}

func (r *reader) section(n *yaml.Node, depth int) *Section {
	s := &Section{Place: r.at(n.Line, n.Column)}
	if r.values++; r.values > maxValues {
		r.stop(n, "more than %d values, those of aliases counted each time", maxValues)
	}
	if depth > maxDepth {
		r.stop(n, "values nest more than %d deep", maxDepth)
	}
	if r.stopped {
		return s
	}
	if n.Style&yaml.TaggedStyle != 0 {
		r.mistakes.Add(s.Place, "tag %s: tags are not read; write the value alone", quoted(n.Tag))
		return s
	}

	switch n.Kind {
	case yaml.AliasNode:
		if r.open[n.Alias] {
			r.stop(n, "alias %s is within its own value", quoted("*"+n.Value))
			return s
		}
		if r.alias == nil {
			r.alias = n
			defer func() { r.alias = nil }()
		}
		return r.section(n.Alias, depth)
	case yaml.ScalarNode:
		s.Text, s.Kind = n.Value, scalarKind(n)
	case yaml.SequenceNode:
		s.Kind = List
		r.open[n] = true
		for _, item := range n.Content {
			s.Items = append(s.Items, r.section(item, depth+1))
		}
		delete(r.open, n)
	case yaml.MappingNode:
		s.Kind = Mapping
		r.open[n] = true
		r.entries(s, n, depth)
		delete(r.open, n)
	default:
		panic(fmt.Sprintf("plugin: YAML node of kind %d", n.Kind))
	}
	return s
}

func scalarKind(n *yaml.Node) Kind {
	switch n.ShortTag() {
	case "!!null":
		return Null
	case "!!bool":
		return Bool
	case "!!int":
		return Int
	case "!!float":
		return Float
	}
	return Text // dates too
}

// entries reads a mapping. Its own keys take precedence over merged ones, earlier merged ones over later.
func (r *reader) entries(s *Section, n *yaml.Node, depth int) {
	lines := map[string]int{} // the first line of each key
	var merged []*Section
	for i := 0; i < len(n.Content) && !r.stopped; i += 2 {
		key := n.Content[i]
		place := r.at(key.Line, key.Column)
		if key.ShortTag() == "!!merge" {
			merged = append(merged, r.merged(n.Content[i+1], depth)...)
			continue
		}
		value := r.section(n.Content[i+1], depth+1)
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode {
			r.mistakes.Add(place, "a key is a list or a mapping; want text")
			continue
		}
		if first, twice := lines[key.Value]; twice {
			r.mistakes.Add(place, "duplicate key %s, first in line %d", quoted(key.Value), first)
			continue
		}
		lines[key.Value] = place.Line
		s.Entries = append(s.Entries, Entry{key.Value, place, value})
	}
	for _, m := range merged {
		for _, e := range m.Entries {
			if _, own := lines[e.Key]; !own {
				lines[e.Key] = e.Place.Line
				s.Entries = append(s.Entries, e)
			}
		}
	}
}

func (r *reader) merged(n *yaml.Node, depth int) []*Section {
	s := r.section(n, depth+1)
	all := []*Section{s}
	if s.Kind == List {
		all = s.Items
	}
	for _, m := range all {
		if m.Kind != Mapping && !r.stopped {
			r.mistakes.Add(m.Place, "<< merges mappings, not %s", m)
		}
	}
	return all
}
