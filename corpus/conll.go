package corpus

import (
	"slices"
	"strings"
)

type sentence struct {
	at      Place      // of the first word
	columns [][]string // one list per column
	text    string     // of the comment "# text" of CoNLL-U; "" without one
}

// sentences reads lines of one word each, divided into columns, with an empty line after each sentence.
func (d *reader) sentences() {
	var s sentence
	var names []string
	for line, ok := d.next(); ok; line, ok = d.next() {
		if strings.Trim(line, " \t") == "" {
			d.addSentence(&s, names)
			continue
		}
		cells, word := d.word(line)
		if !word {
			if text, ok := strings.CutPrefix(line, "# text = "); ok && d.format.Type == "conllu" {
				s.text = text
			}
			continue
		}
		if names == nil {
			names = d.columnNames(len(cells))
		}
		extras := len(d.format.Columns) > 0 && len(cells) > len(names)
		if len(cells) != len(names) && !extras {
			d.add(d.place, "columns: %d, want %d; an empty line ends a sentence", len(cells), len(names))
			continue
		}
		if s.columns == nil {
			s.at, s.columns = d.place, make([][]string, len(names))
		}
		for i := range names {
			s.columns[i] = append(s.columns[i], cells[i])
		}
	}
	d.addSentence(&s, names)
}

func (d *reader) addSentence(s *sentence, names []string) {
	if s.columns == nil {
		s.text = ""
		return
	}
	fields := make(map[string]any, len(names)+2)
	for i, name := range names {
		unset := d.format.Type == "conllu" && !slices.ContainsFunc(s.columns[i], func(v string) bool { return v != "" })
		if name != "" && name != "_" && !unset {
			fields[name] = s.columns[i]
		}
	}
	switch {
	case d.format.Type == "conllu":
		fields["words"], fields["tags"] = fields["form"], fields["upos"]
	case len(d.format.Columns) == 0:
		fields["words"] = s.columns[0]
		if len(names) > 1 {
			fields["tags"] = s.columns[len(names)-1]
		}
	}
	d.addRecord(Record{Place: s.at, Fields: fields, written: s.text})
	*s = sentence{}
}

// conlluColumns are the columns of a CoNLL-U file, https://universaldependencies.org/format.html.
var conlluColumns = []string{"id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc"}

func (d *reader) columnNames(n int) []string {
	if d.format.Type == "conllu" {
		return conlluColumns
	}
	if len(d.format.Columns) > 0 {
		return d.format.Columns
	}
	return Numbered(n)
}

// wordCells returns the columns of a line of a conll or conllu file, and what separates them.
func (f Format) wordCells(line string) (cells []string, delimiter string) {
	switch {
	case f.Type == "conllu", f.Delimiter == "" && strings.Contains(line, "\t"):
		delimiter = "\t"
	case f.Delimiter == "", f.blank():
		return splitBlanks(line), " "
	default:
		delimiter = f.Delimiter
	}
	return strings.SplitN(line, delimiter, maxColumns+1), delimiter
}

// isWord reports whether the cells of a line are those of a word: comments, and the multiword tokens (1-2) and empty
// nodes (1.1) of a conllu file, are none.
func (f Format) isWord(cells []string) bool {
	if f.Type == "conllu" {
		return strings.Trim(cells[0], "0123456789") == ""
	}
	return len(cells) > 0 && cells[0] != "-DOCSTART-"
}

func (d *reader) word(line string) (cells []string, ok bool) {
	if d.format.Type == "conllu" {
		return d.conlluWord(line)
	}
	cells, _ = d.format.wordCells(line)
	if len(cells) > maxColumns {
		d.add(d.place, "the line has more than %d columns; want a word and its tags on a line", maxColumns)
		return nil, false
	}
	if !d.format.isWord(cells) {
		return nil, false
	}
	if slices.Contains(cells, "") {
		d.add(d.place, "column %d is empty; want a word and its tags on a line, or an empty line",
			slices.Index(cells, "")+1)
		return nil, false
	}
	return cells, true
}

// conlluWord returns the columns of a word of a CoNLL-U file, "" for those that are not set. Comments, multiword tokens
// (1-2) and empty nodes (1.1) are skipped.
func (d *reader) conlluWord(line string) (cells []string, ok bool) {
	if strings.HasPrefix(line, "#") {
		return nil, false
	}
	if n := strings.Count(line, "\t") + 1; n != len(conlluColumns) {
		d.add(d.place, "columns: %d, want the %d of CoNLL-U with tabs between", n, len(conlluColumns))
		return nil, false
	}
	cells = strings.Split(line, "\t")
	number := strings.Trim(cells[0], "0123456789")
	switch {
	case number == "-" || number == ".":
		return nil, false
	case number != "" || cells[0] == "":
		d.add(d.place, "id %q; want a word's number, a range 1-2 or an empty node 1.1", start(cells[0]))
		return nil, false
	case cells[1] == "":
		d.add(d.place, "word %s has no form; want a word, or _ for an underscore", cells[0])
		return nil, false
	}
	for i := 2; i < len(cells); i++ {
		if cells[i] == "_" {
			cells[i] = ""
		}
	}
	return cells, true
}
