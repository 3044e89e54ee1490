package corpus

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

type sentence struct {
	at      Place      // of the first word
	begin   int64      // offset of its line
	over    bool       // it is too long, and the rest of it is skipped
	columns [][]string // one list per column
	text    string     // of the comment "# text" of CoNLL-U; "" without one
}

// sentences reads lines of one word each, divided into columns, with an empty line after each sentence.
func (d *reader) sentences() {
	var s sentence
	var comments commentLines
	var names []string
	for line, ok := d.next(); ok; line, ok = d.next() {
		if line = d.unjoined(line); strings.Trim(line, " \t") == "" {
			d.addSentence(&s, names)
			continue
		}
		if names == nil {
			if d.format.Type == "conll" && (d.format.isComment(line) || !d.format.isWord(splitBlanks(line))) {
				continue // it shows neither a separator nor columns
			}
			const problem = "no word and its tags"
			if names = d.columnNames(line); names == nil {
				if !comments.add(d, line, problem) {
					d.add(d.place, problem)
				}
				continue
			}
		}
		cells, problem, word := d.word(line)
		if !word {
			if text, ok := strings.CutPrefix(line, "# text = "); ok && d.format.Type == "conllu" {
				s.text = text
			}
			continue
		}
		extras := len(d.format.Columns) > 0 && len(cells) > len(names)
		tabbed := d.separator == " " && strings.Contains(line, "\t")
		switch {
		case problem != "":
		case len(cells) != len(names) && !extras && !tabbed:
			problem = fmt.Sprintf("columns: %d, want %d; an empty line ends a sentence", len(cells), len(names))
		case len(cells) != len(names) && !extras:
			problem = fmt.Sprintf("columns: %d, want %d; %s", len(cells), len(names), otherSeparator)
		case tabbed:
			problem = "the line has a tab; " + otherSeparator
		}
		if problem != "" {
			if !comments.add(d, line, problem) {
				d.add(d.place, "%s", problem)
			}
			continue
		}
		comments.addWord(d.place, line, cells[0], s.columns == nil)
		if s.columns == nil {
			s.at, s.begin, s.columns = d.place, d.offset-int64(len(line)), make([][]string, len(names))
		}
		d.addWord(&s, cells[:len(names)])
	}
	d.addSentence(&s, names)
	d.reportJoints()
	if d.format.Type == "conll" {
		comments.report(d)
	}
}

// unjoined returns a line without a byte-order mark, which the first line of a file has that was joined to another.
func (d *reader) unjoined(line string) string {
	rest := unmarked(line)
	if rest == line {
		return line
	}
	if d.joints++; d.joints == 1 {
		d.firstJoint = d.place
	}
	return rest
}

func (d *reader) reportJoints() {
	if d.joints > 0 {
		d.doubt(d.firstJoint, "a byte-order mark, U+FEFF, begins %s, as where files were joined; it is left out, and "+
			"an empty line before it ends the sentence", counted(d.joints, "line"))
	}
}

// unmarked returns a line without the byte-order mark that it begins with, if that is no word of its own.
func unmarked(line string) string {
	rest, marked := strings.CutPrefix(line, byteOrderMark)
	if !marked || strings.HasPrefix(rest, " ") || strings.HasPrefix(rest, "\t") {
		return line
	}
	return rest
}

const otherSeparator = `blanks separate the columns of most lines; delimiter: " " separates by tabs too`

// commentMarks are the characters that comments of lines begin with.
const commentMarks = "#%;/"

// commentLines are the lines of a conll file that may be comments, because they are unlike the lines of words.
type commentLines struct {
	n       int // lines that begin with a mark and are no word
	first   Place
	problem string // of the first
	shown   int    // the number of its mistake
	common  string // how all of them begin

	words [len(commentMarks)]markedWords
}

// markedWords are the words whose lines begin with a mark.
type markedWords struct {
	begin map[string]bool // how the lines begin, of which mostBegin are kept; whether it is one of bare

	bare, within int // sentences whose first word is a mark alone, and other words that are
	bareAt       Place
	bareBegin    string // how all lines of bare begin
}

const mostBegin = 1000

// add notes a line that is no word of the file, for a reason. ok is false if it does not look like a comment.
func (c *commentLines) add(d *reader, line, problem string) (ok bool) {
	if d.format.Type != "conll" || d.format.Comments != "" || !strings.Contains(commentMarks, line[:1]) ||
		c.n > 0 && line[0] != c.common[0] {
		return false
	}
	if c.n++; c.n == 1 {
		c.first, c.problem, c.common = d.place, problem, beginning(line)
		c.shown = d.add(d.place, "%s", problem)
	}
	c.common = commonBeginning(c.common, line)
	return true
}

// addWord notes the line of a word; begins: it is the first of its sentence.
func (c *commentLines) addWord(at Place, line, word string, begins bool) {
	mark := strings.Index(commentMarks, line[:1])
	if mark < 0 {
		return
	}
	w := &c.words[mark]
	bare := strings.Trim(word, commentMarks) == ""
	if bare && begins {
		if w.bare++; w.bare == 1 {
			w.bareAt, w.bareBegin = at, beginning(line)
		}
		w.bareBegin = commonBeginning(w.bareBegin, line)
	} else if bare {
		w.within++
	}
	if w.begin == nil {
		w.begin = map[string]bool{}
	}
	if len(w.begin) < mostBegin {
		w.begin[beginning(line)] = bare && begins
	}
}

// key returns what comments begin with and no word does: their mark, or common, as all of them do; "" if words do too,
// or may, because there are too many. bareToo: the words of bare are no comments.
func (w *markedWords) key(common string, bareToo bool) string {
	for _, key := range []string{common[:1], common} {
		skips := len(w.begin) == mostBegin
		for word, bare := range w.begin {
			skips = skips || strings.HasPrefix(word, key) && (bareToo || !bare)
		}
		if !skips {
			return key
		}
	}
	return ""
}

// commonBeginning returns what a beginning and a line both begin with.
func commonBeginning(begin, line string) string {
	for !strings.HasPrefix(line, begin) {
		_, size := utf8.DecodeLastRuneInString(begin)
		begin = begin[:len(begin)-size]
	}
	return begin
}

func beginning(line string) string { return strings.Clone(strings.TrimSuffix(start(line), "…")) }

// report makes the lines that look like comments one mistake, which names the key that skips them, if one does. It is a
// doubt if words look like comments: if a mark alone begins sentences, and is nowhere else.
func (c *commentLines) report(d *reader) {
	if c.n == 0 {
		for i, w := range c.words {
			if w.bare < 2 || w.within > 0 || d.format.Comments != "" {
				continue
			}
			if key := w.key(w.bareBegin, false); key != "" {
				d.doubt(w.bareAt, "%s begin with the word %q, which is no other word: if these lines are comments, "+
					"comments: %q skips them", counted(w.bare, "sentence"), commentMarks[i:i+1], key)
			}
		}
		return
	}
	words := c.words[strings.Index(commentMarks, c.common[:1])]
	remedy := "remove it"
	if key := words.key(c.common, true); key != "" {
		remedy = fmt.Sprintf("comments: %q skips lines that begin so", key)
	}
	more := ""
	if c.n > 1 {
		more = fmt.Sprintf(", as %s with %q at the beginning", counted(c.n-1, "more line"), c.common[:1])
	}
	problem, _, _ := strings.Cut(c.problem, "; ")
	d.replace(c.shown, c.first, "%s; the line is unlike the rest%s; if it is a comment, %s", problem, more, remedy)
}

// maxWords is the largest number of words of a sentence, each of which takes memory beside its letters.
const maxWords = 1 << 20

// addWord adds the word of the line that was read last to a sentence. It is a mistake once if that becomes too long.
func (d *reader) addWord(s *sentence, cells []string) {
	limit := ""
	switch {
	case s.over:
		return
	case len(s.columns[0]) == maxWords:
		limit = counted(maxWords, "word")
	case d.offset-s.begin > maxRecord:
		limit = fmt.Sprintf("%d MiB", maxRecord>>20)
	}
	if limit != "" {
		d.add(s.at, "the sentence that begins here has more than %s, up to line %d; an empty line ends a sentence",
			limit, d.place.Line)
		s.over, s.columns = true, make([][]string, len(s.columns)) // whose memory is free
		return
	}
	for i, cell := range cells {
		s.columns[i] = append(s.columns[i], cell)
	}
}

func (d *reader) addSentence(s *sentence, names []string) {
	if s.columns == nil || s.over {
		*s = sentence{}
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

// columnNames returns the names of the columns from a line on. Those of a conll file without names are numbered, as
// many as most of the next words have; nil if there are no words there, or only lines that may be comments.
func (d *reader) columnNames(line string) []string {
	if d.format.Type == "conllu" {
		d.separator = "\t"
		return conlluColumns
	}
	if d.offset <= d.wordless {
		return nil
	}
	sample, _ := d.in.Peek(sampleSize)
	lines, others := d.format.wordLines(line+"\n", string(sample))
	switch {
	case len(lines) == 0 && len(others) > 0 && (len(sample) < sampleSize || d.format.Comments != ""):
		lines = others
	case len(lines) == 0:
		d.wordless = d.offset + int64(bytes.LastIndexByte(sample, '\n')+1)
		return nil
	}
	if d.separator == "" {
		d.separator = d.format.separator(lines)
	}
	if len(d.format.Columns) > 0 {
		return d.format.Columns
	}
	n, counts := 0, map[int]int{}
	for _, line := range lines {
		counts[min(len(wordCells(line, d.separator)), maxColumns)]++
	}
	for _, line := range lines { // of several that most have, the first
		if m := min(len(wordCells(line, d.separator)), maxColumns); counts[m] > counts[n] {
			n = m
		}
	}
	return Numbered(n)
}

// sampleSize is how much of a file shows what it is like, in bytes.
const sampleSize = 1 << 14

// wordLines returns the lines of words in the beginning of a conll file: those of a line and of a sample after it,
// without the last one of a whole sample, of which the end is missing. others are lines that may be comments.
func (f Format) wordLines(first, sample string) (words, others []string) {
	if len(sample) == sampleSize {
		sample = sample[:strings.LastIndexByte(sample, '\n')+1]
	}
	for line := range strings.Lines(first + sample) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.Trim(line, " \t") == "", f.isComment(line), !f.isWord(splitBlanks(line)):
		case strings.Contains(commentMarks, line[:1]):
			others = append(others, line)
		default:
			words = append(words, line)
		}
	}
	return words, others
}

// anyBlank separates columns by blanks and tabs.
const anyBlank = " \t"

// separator returns what separates the columns of a conll or conllu file, by lines of words: of a file without a
// delimiter of its own a tab, if most have one, else blanks.
func (f Format) separator(lines []string) string {
	switch {
	case f.Type == "conllu":
		return "\t"
	case f.blank():
		return anyBlank
	case f.Delimiter != "":
		return f.Delimiter
	}
	tabs := 0
	for _, line := range lines {
		if strings.Contains(line, "\t") {
			tabs++
		}
	}
	if tabs > 0 && 2*tabs >= len(lines) {
		return "\t"
	}
	return " "
}

func wordCells(line, separator string) []string {
	switch separator {
	case anyBlank:
		return splitBlanks(line)
	case " ":
		return strings.FieldsFunc(line, func(r rune) bool { return r == ' ' })
	}
	return strings.SplitN(line, separator, maxColumns+1)
}

func (f Format) isComment(line string) bool {
	return f.Comments != "" && strings.HasPrefix(line, f.Comments)
}

// isWord reports whether the cells of a line are those of a word: comments, and the multiword tokens (1-2) and empty
// nodes (1.1) of a conllu file, are none.
func (f Format) isWord(cells []string) bool {
	if f.Type == "conllu" {
		return strings.Trim(cells[0], "0123456789") == ""
	}
	return len(cells) > 0 && cells[0] != "-DOCSTART-"
}

// word returns the columns of the line of a word, and what is wrong with it; ok is false if it is no line of a word.
func (d *reader) word(line string) (cells []string, problem string, ok bool) {
	if d.format.Type == "conllu" {
		cells, ok = d.conlluWord(line)
		return cells, "", ok
	}
	if d.format.isComment(line) {
		return nil, "", false
	}
	cells = wordCells(line, d.separator)
	switch {
	case len(cells) > maxColumns:
		problem = fmt.Sprintf("the line has more than %d columns; want a word and its tags on a line", maxColumns)
	case !d.format.isWord(cells):
		return nil, "", false
	case slices.Contains(cells, ""):
		problem = fmt.Sprintf("column %d is empty; want a word and its tags on a line, or an empty line",
			slices.Index(cells, "")+1)
	}
	return cells, problem, true
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
