package guess

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/internal/files"
	"github.com/jenga-nlp/jenga/internal/floats"
)

// What is read of a file at most.
const (
	maxRecords = 5000
	maxBytes   = 4 << 20  // after decompression, to find out the encoding
	maxText    = 16 << 20 // bytes of texts in records: of SQuAD's form many have the same long context
)

// wide matches the names of encodings with two or four bytes a character, of whose files few are valid UTF-8.
var wide = regexp.MustCompile(`(?i)^(utf|u|ucs)[-_]?(16|32|2|4)`)

// notCP1252 are the bytes that cp1252 does not have; in East Asian encodings they begin characters.
const notCP1252 = "\x81\x8d\x8f\x90\x9d"

const fewBytes = 5 // which may be damage

func (s *Set) detect(ctx context.Context) error {
	kind := corpus.FileType(s.Train)
	if kind == "json" {
		return s.readJSON(ctx)
	}
	if kind == "parquet" || corpus.IsDataFolder(s.Train) {
		return s.read(ctx, s.Format)
	}
	text, err := beginning(s.Train)
	if err != nil {
		return err
	}
	if given := s.Format.Encoding; given != "" {
		if wide.MatchString(given) && utf8.Valid(text) && !bytes.Contains(text, []byte{0}) {
			return fmt.Errorf("%s: the file is UTF-8, not %s; leave out --encoding", s.Train, given)
		}
		s.note("encoding: as it was given")
	} else if s.Format.Encoding = encodingOf(text); s.Format.Encoding != "" {
		s.note("encoding: the file is not UTF-8")
		if word := corpus.OtherScript(text); s.Format.Encoding == "cp1252" && word != "" {
			return fmt.Errorf("%s: the file is not UTF-8, and cp1252 reads words such as %q in it; --encoding NAME "+
				"names its encoding, as cp1251, koi8-r or shift_jis", s.Train, word)
		}
		others := 0
		for _, b := range []byte(notCP1252) {
			others += bytes.Count(text, []byte{b})
		}
		if s.Format.Encoding == "cp1252" && others > fewBytes {
			return fmt.Errorf("%s: the file is not UTF-8, and %d of its bytes are none of cp1252; --encoding NAME "+
				"names its encoding, as shift_jis, gbk or koi8-r", s.Train, others)
		}
	} else if bytes.Count(text, []byte{0})*100 > len(text) {
		return fmt.Errorf("%s: the file is no text; want csv, tsv, jsonl, json, parquet, conll or conllu", s.Train)
	}
	switch {
	case kind != "conllu" && kind != "jsonl" && s.conllu(ctx, text):
		return nil
	case kind == "" && s.Format.Delimiter == "" && s.sniff(ctx, bytes.TrimSpace(text)):
		return nil
	case (kind == "csv" || kind == "tsv") && s.wordLines(ctx, kind, text):
		return nil
	case kind == "" || kind == "csv" || kind == "tsv":
		return s.table(ctx, kind)
	case kind == "conll":
		return s.conll(ctx, s.Format, text)
	}
	if err := s.read(ctx, s.Format); err != nil {
		return err
	}
	return s.studio(ctx)
}

// universal matches the part of speech of a word in CoNLL-U.
var universal = regexp.MustCompile(
	`^(ADJ|ADP|ADV|AUX|CCONJ|DET|INTJ|NOUN|NUM|PART|PRON|PROPN|PUNCT|SCONJ|SYM|VERB|X)$`)

// wordNumber matches the number of a word in CoNLL-U, of several words, as 1-2, and of an empty one, as 1.1. headNumber
// matches that of a word's head, or none.
var (
	wordNumber = regexp.MustCompile(`^[0-9]+([-.][0-9]+)?$`)
	headNumber = regexp.MustCompile(`^([0-9]+|_)$`)
)

// conllu reads a file of another extension whose first lines are those of CoNLL-U, most of them words with a part of
// speech.
func (s *Set) conllu(ctx context.Context, text []byte) bool {
	const first = 200 // lines of words
	lines, tagged := 0, 0
	for line := range bytes.Lines(bytes.TrimPrefix(text, []byte("\ufeff"))) {
		line := strings.TrimSpace(string(line))
		if line == "" || line[0] == '#' {
			continue
		}
		cells := strings.Split(line, "\t")
		if len(cells) != 10 || !wordNumber.MatchString(cells[0]) || !headNumber.MatchString(cells[6]) {
			return false
		}
		if universal.MatchString(cells[3]) {
			tagged++
		} else if cells[3] != "_" {
			return false
		}
		if lines++; lines == first {
			break
		}
	}
	before := s.Format
	f := before
	if f.Type = "conllu"; tagged*2 <= lines || f.Delimiter != "" || s.read(ctx, f) != nil {
		s.Format = before
		return false
	}
	s.note("format: conllu: lines of ten columns with numbers and universal parts of speech of words")
	return true
}

// conll reads lines of words, without those that begin as comments do if they are no words.
func (s *Set) conll(ctx context.Context, f corpus.Format, text []byte) error {
	if named := f; f.Comments == "" && beginsWithNames(text, &named) && s.read(ctx, named) == nil && s.doubt == "" {
		s.note("comments: the first line, %q, names the columns", named.Comments)
		return nil
	}
	err := s.read(ctx, f)
	if err == nil && s.doubt == "" {
		s.dividedWords(ctx, f)
		return nil
	}
	advice := s.doubt
	if err != nil {
		advice = err.Error()
	}
	if commented := f; advised(&commented, advice) && s.read(ctx, commented) == nil && s.doubt == "" {
		s.note("comments: lines that begin with %s are no words", commented.Comments)
		return nil
	}
	return s.read(ctx, f)
}

// beginsWithNames makes the first line of words a comment if it has names of columns, one of words and one of tags.
func beginsWithNames(text []byte, f *corpus.Format) bool {
	for line := range bytes.Lines(text) {
		names := strings.Fields(string(line))
		if len(names) == 0 || names[0] == "-DOCSTART-" {
			continue
		}
		f.Comments = strings.TrimRight(string(line), "\r\n")
		last := strings.TrimPrefix(strings.ToLower(names[len(names)-1]), "ner_")
		areWords := func(name string) bool { return named(name, "words") }
		return len(names) > 1 && slices.ContainsFunc(names, areWords) &&
			(named(last, "tags", "label") || last == "ner" || last == "tag") && bytes.Count(text, []byte("\n"+f.Comments)) < 2
	}
	return false
}

// dividedWords reads lines of words again of which another mark than a tab or blanks divides the columns: where there
// is one column, each of its values has the mark, and what follows are tags.
func (s *Set) dividedWords(ctx context.Context, f corpus.Format) {
	numbered := func(name string) *column {
		columns := columnsOf(s.records, nil)
		if i := slices.IndexFunc(columns, func(c *column) bool { return c.name == name }); i >= 0 {
			return columns[i]
		}
		return nil
	}
	words := numbered("1")
	if f.Delimiter != "" || words == nil || numbered("2") != nil {
		return
	}
	for _, mark := range []string{",", ";", "|", "__", "/", ":"} {
		divided := f
		divided.Delimiter = mark
		undivided := func(value string) bool {
			word, tag, _ := strings.Cut(value, mark)
			return word == "" || tag == ""
		}
		if slices.ContainsFunc(slices.Collect(maps.Keys(words.values)), undivided) || s.read(ctx, divided) != nil {
			continue
		}
		if tags := numbered("2"); tags != nil && (isSpanTags(tags) || tags.areTags()) && numbered("3") == nil {
			s.note("delimiter: %s divides words and tags", mark)
			return
		}
	}
	s.read(ctx, f)
}

// advised sets the beginning of comments that a mistake, or a doubt, of corpus advises.
func advised(f *corpus.Format, advice string) bool {
	found := commentsKey.FindStringSubmatch(advice)
	if found != nil {
		f.Comments, _ = strconv.Unquote(found[1])
	}
	return found != nil
}

// commentsKey finds the beginning of comments that a mistake, or a doubt, of corpus advises: one that skips no word.
var commentsKey = regexp.MustCompile(`comments: ("(?:[^"\\]|\\.)*") skips `)

// wordLines reads a file that is called csv or tsv, and is lines of words and their span tags with empty lines between
// sentences.
func (s *Set) wordLines(ctx context.Context, kind string, text []byte) bool {
	f, notes := s.Format, len(s.Notes)
	words := f
	if words.Type = "conll"; kind == "csv" && words.Delimiter == "" {
		words.Delimiter = ","
	}
	if emptyLine.Match(text) && s.conll(ctx, words, text) == nil &&
		slices.ContainsFunc(columnsOf(s.records, nil), isSpanTags) {
		s.note("format: conll: lines of words with empty lines between sentences")
		return true
	}
	s.Format, s.Notes = f, s.Notes[:notes]
	return false
}

var emptyLine = regexp.MustCompile(`\n\r*\n`)

func beginning(path string) ([]byte, error) {
	file, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var r io.Reader = file
	if strings.HasSuffix(path, ".gz") {
		r = corpus.Decompress(path, r)
	}
	text, err := io.ReadAll(io.LimitReader(r, maxBytes))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(text) < maxBytes {
		return text, nil
	}
	if end := bytes.LastIndexByte(text, '\n'); end >= 0 {
		return text[:end], nil
	}
	// of a line that goes on, a character of UTF-8 that does too is left out
	for n := range utf8.UTFMax {
		if tail := text[len(text)-n:]; n > 0 && utf8.RuneStart(tail[0]) && !utf8.FullRune(tail) {
			return text[:len(text)-n], nil
		}
	}
	return text, nil
}

func (s *Set) read(ctx context.Context, f corpus.Format) (err error) {
	s.Format, s.doubt = f, ""
	f.Warn = func(_ corpus.Place, text string) { s.doubt = text }
	if f.Type == "conll" || f.Type == "" && corpus.FileType(s.Train) == "conll" {
		f.Fields = map[string]string{"words": "1"} // until wordColumns has chosen, by what the columns have
	}
	s.records, err = corpus.First(ctx, s.Train, f, maxRecords)
	s.more = len(s.records) == maxRecords || s.shards[s.Train].n > 1
	size := 0
	for i, r := range s.records {
		s.records[i] = ofList(r.Named())
		for _, value := range r.Fields {
			text, _ := value.(string)
			size += len(text)
		}
		if size > maxText {
			s.records, s.more = s.records[:i+1], s.more || i+1 < len(s.records)
			break
		}
	}
	return err
}

// ofList returns a record that is a list, or has an index and a row, as Hugging Face's viewer writes it, with the
// fields of objects in it by their paths, as 1.entities and row.text.
func ofList(r corpus.Record) corpus.Record {
	_, isText := r.Fields["0"].(string)
	_, isRow := r.Fields["row"].(map[string]any)
	isRow = isRow && r.Fields["row_idx"] != nil
	if !isText && !isRow || len(r.Fields) > 10 {
		return r
	}
	fields := map[string]any{}
	for name, value := range r.Fields {
		object, nested := value.(map[string]any)
		if !nested {
			fields[name] = value
		}
		for key, inner := range object {
			fields[name+"."+key] = inner
		}
	}
	r.Fields = fields
	return r
}

// encodingOf returns the encoding of a text: "" is UTF-8. If lines with other characters than ASCII are UTF-8 the text
// is, and has some wrong bytes: in another encoding those lines would be wrong.
func encodingOf(text []byte) string {
	if bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) {
		return "utf-16"
	}
	var zeros [2]int // bytes, first and second of each two: of UTF-16 without a byte-order mark those of ASCII have one
	for i, b := range text {
		if b == 0 {
			zeros[i%2]++
		}
	}
	if max(zeros[0], zeros[1])*3 > len(text) && min(zeros[0], zeros[1]) == 0 {
		return map[bool]string{true: "utf-16be", false: "utf-16le"}[zeros[0] > 0]
	}
	valid, invalid := 0, 0 // lines
	for line := range bytes.Lines(text) {
		switch {
		case !utf8.Valid(line):
			invalid++
		case utf8.RuneCount(line) < len(line):
			valid++
		}
	}
	const most = 10 // times the lines in UTF-8, which another encoding may be by chance
	if invalid <= most*valid {
		return ""
	}
	return "cp1252" // which has the letters of Latin-1
}

// sniff reads a file whose extension tells nothing, if it is no table.
func (s *Set) sniff(ctx context.Context, text []byte) bool {
	encoding := s.Format.Encoding
	for _, f := range []corpus.Format{
		{Type: "json"}, {Type: "jsonl"}, {Type: "fasttext"}, {Type: "conll"},
		{Type: "csv", NoHeader: true, Delimiter: " ", Columns: []string{"label", "text"}},
	} {
		f.Encoding = encoding
		switch {
		case f.Type == "json" && !corpus.IsSquad(text) && !bytes.HasPrefix(text, []byte("[")),
			f.Type == "jsonl" && !bytes.HasPrefix(text, []byte("{")),
			f.Type == "fasttext" && !isFastText(text),
			f.Type == "conll" && !emptyLine.Match(text),
			f.Type == "conll" && s.conll(ctx, f, text) != nil, f.Type != "conll" && s.read(ctx, f) != nil,
			f.Type == "csv" && !s.leadingLabels():
			continue
		}
		s.note("format: %s: the file begins so, and its name does not tell", f.Type)
		return true
	}
	s.Format = corpus.Format{Encoding: encoding}
	return false
}

// leadingLabels reports whether lines begin with labels. A first word of sentences occurs more than once too, but a few
// of them are not all.
func (s *Set) leadingLabels() bool {
	labels := map[string]bool{}
	for _, r := range s.records {
		label := cell(r, "label")
		if strings.ContainsAny(label, "\t,;|") {
			return false
		}
		labels[label] = true
	}
	return len(labels) > 1 && len(labels) <= 200 && len(labels)*4 <= len(s.records)
}

var delimiters = map[string][]string{
	"csv": {",", ";", "\t", "|"}, "tsv": {"\t", ",", ";", "|"}, "": {"\t", ",", ";", "|"},
}

// table finds out the delimiter, the quotes and the header of a table; kind is the type of its extension.
func (s *Set) table(ctx context.Context, kind string) error {
	f, err := s.delimited(ctx, kind)
	if err != nil {
		return err
	}
	first := s.records[0]
	names := corpus.Numbered(len(first.Fields))
	if f.Delimiter != delimiters[kind][0] || kind == "" && len(names) > 1 {
		s.note("%s separate the columns", cmp.Or(map[string]string{",": "commas", ";": "semicolons", "\t": "tabs",
			"|": "bars"}[f.Delimiter], fmt.Sprintf("%q", f.Delimiter)))
	}
	if f.Quote != "" && len(names) > 1 {
		s.note("quote: none: quotes are characters of the texts")
	}
	if len(s.records) == 1 && allNames(first, names) {
		return fmt.Errorf("%s: no records: its one line, %s, names columns; want at least one row after it", s.Train,
			strings.Join(cells(first, names), ", "))
	}
	if reason := headless(first, s.records[1:], names); reason != "" {
		s.note("header: false: %s", reason)
		s.header, f.Columns = names, names
	} else {
		f.NoHeader, f.Columns = false, nil
		for _, name := range names {
			s.header = append(s.header, cell(first, name))
		}
	}

	// what the extension says anyway is left out
	f.Type = "csv"
	if f.Delimiter == "\t" {
		f.Type = "tsv"
	}
	if f.Delimiter == delimiters[f.Type][0] {
		f.Delimiter = ""
	}
	if f.Type == kind {
		f.Type = ""
	}
	return s.read(ctx, f)
}

// delimited reads the rows with the delimiter and quotes with which all have the same number of cells, at least 2; the
// first row may be a header. Rows between tabs may go on after the columns that all have. Else there is one column.
func (s *Set) delimited(ctx context.Context, kind string) (corpus.Format, error) {
	f := corpus.Format{Type: "csv", NoHeader: true, Encoding: s.Format.Encoding}
	tried := delimiters[kind]
	given := s.Format.Delimiter
	if given != "" {
		tried = []string{given}
	}
	for _, f.Delimiter = range tried {
		f.Quote = ""
		err := s.read(ctx, f)
		commented := f
		if err != nil && advised(&commented, err.Error()) && s.read(ctx, commented) == nil && s.doubt == "" {
			s.note("comments: lines that begin with %q are above the table", commented.Comments)
			f, err = commented, nil
		}
		quoted := err == nil && len(s.records[0].Fields) > 1
		if quoted && s.doubt == "" {
			return f, nil
		}
		if f.Quote = "none"; s.read(ctx, f) == nil && len(s.records[0].Fields) > 1 {
			return f, nil
		}
		if quoted {
			f.Quote = ""
			return f, s.read(ctx, f)
		}
	}
	if given != "" {
		return f, s.read(ctx, f)
	}
	longer := f
	longer.Delimiter = "\t"
	if n := sort.Search(maxColumns-1, func(i int) bool { // columns beyond the first, which all rows have
		longer.Columns = corpus.Numbered(i + 2)
		return s.read(ctx, longer) != nil
	}); n > 0 {
		f.Delimiter, f.Columns = "\t", corpus.Numbered(n+1)
	}
	if f.Columns == nil {
		f.Delimiter = delimiters[kind][0]
		if kind != "" {
			f.Quote = ""
		}
	}
	return f, s.read(ctx, f)
}

func cell(r corpus.Record, name string) string {
	text, _ := r.Fields[name].(string)
	return text
}

func cells(r corpus.Record, names []string) []string {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = cell(r, name)
	}
	return texts
}

// allNames reports whether a row, of at least two cells, has what columns are usually called, and no text.
func allNames(row corpus.Record, names []string) bool {
	known := 0
	for _, text := range cells(row, names) {
		if len(strings.Fields(text)) > 2 {
			return false
		}
		if hint(text) != "" {
			known++
		}
	}
	return len(names) > 1 && known*2 >= len(names)
}

// isEmpty reports whether nearly all cells of a column are empty.
func isEmpty(rows []corpus.Record, name string) bool {
	filled := 0
	for _, r := range rows {
		if strings.TrimSpace(cell(r, name)) != "" {
			filled++
		}
	}
	return filled*10 <= len(rows)
}

// headless returns the reason why the first row does not hold the names of the columns, "" if it does.
func headless(first corpus.Record, rest []corpus.Record, names []string) string {
	header := cells(first, names)
	if len(rest) == 0 {
		return "there is one row"
	}
	if len(names) > 1 && !slices.ContainsFunc(names, func(name string) bool { return hint(cell(first, name)) == "" }) {
		rest = slices.DeleteFunc(slices.Clone(rest), func(r corpus.Record) bool { // tables that were joined
			row := cells(r, names)
			row[0] = strings.TrimPrefix(row[0], "\ufeff") // a file joined to another may begin so
			return slices.Equal(row, header)
		})
	}
	for i, name := range names {
		text := cell(first, name)
		_, isNumber := floats.Parse(strings.TrimSpace(text))
		switch {
		case text == "" && (i == 0 || isEmpty(rest, name)): // an index of pandas; what a sheet has beside the table
		case strings.TrimSpace(text) == "" || isNumber:
			return fmt.Sprintf("cell %s of the first row is empty or a number", name)
		case slices.ContainsFunc(rest, func(r corpus.Record) bool { return cell(r, name) == text }):
			return fmt.Sprintf("%.40q of the first row is in others too", text)
		case len(strings.Fields(text)) > 3 &&
			!slices.ContainsFunc(names, func(name string) bool { return hint(cell(first, name)) != "" }):
			return "the first row has a text"
		}
	}
	return ""
}
