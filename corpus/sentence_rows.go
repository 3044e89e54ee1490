package corpus

import (
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/internal/suggest"
)

// sentenceRows joins the rows of a file that has a word a row to records of a sentence each. Format.Sentence is the
// field by whose value they belong together: one that each row has, or one that the first row of each sentence has
// alone. A field of the record is the list of the rows' values; that of Format.Sentence is the sentence's.
type sentenceRows struct {
	first    Record // its first row; without Fields between two sentences
	value    string // of the field that Format.Sentence names
	before   string // that of the row before, "" where it has none
	repeated bool   // a row after the first has it too
	n        int    // rows
	values   int    // that rows have, without those of fields that a row lacks
	fields   map[string][]any
	begin    int64 // offset after the first row
	end      int64 // offset after the last row
}

const (
	maxSentence = 1 << 22 // values of a sentence's rows together
	freeMissing = 1 << 12 // values of fields that rows of a sentence may lack at any ratio
	maxMissing  = 16      // for each value that they have
)

// addRow adds a row of a word to its sentence. It reports the first row whose sentence is not known, and stops.
func (d *reader) addRow(r Record) {
	s, name := &d.sentence, d.format.Sentence
	field, there := Field(r.Fields, name)
	value, ok := scalar(field)
	if noSentence(value) || isMissingMark(value, d.format.marks(name)) {
		value = ""
	}
	known := s.first.Fields != nil
	begins := !known
	switch {
	case !ok:
		d.add(r.Place, "field %q, which sentence: names, is %s; it takes a text or a number", name, kind(field))
		return
	case !known && !there:
		mean := ""
		if near, ok := suggest.Nearest(name, fieldNames(r.Fields)); ok {
			mean = fmt.Sprintf("did you mean %q? ", start(near))
		}
		d.add(r.Place, "no field %q, which sentence: names; %savailable: %s%s", name, mean, r.FieldNames(),
			r.noHeader())
		d.stop()
		return
	case !known && value == "":
		d.add(r.Place, "field %q, which sentence: names, is empty in the first row; a sentence begins with a row that "+
			"has a value", name)
		d.stop()
		return
	case !known:
		s.start(r, value, d.offset)
	case value != "" && (value != s.value || s.before == "" && !s.repeated && s.n > 1):
		d.endSentence()
		s.start(r, value, d.offset)
		begins = true
	case value != "":
		s.repeated = true
	}
	if d.format.Warn != nil {
		d.runs.add(r, name, value, begins)
	}
	s.before, s.end = value, d.offset
	s.append(r.Fields)
	size := s.end-s.begin > maxRecord
	if size || s.n*len(s.fields) > maxSentence || s.missing() > freeMissing+maxMissing*s.values {
		limit := counted(s.n-1, "word")
		if size {
			limit = fmt.Sprintf("%d MiB", maxRecord>>20)
		}
		d.add(s.first.Place, "the sentence that begins here has more than %s up to line %d; want sentence: FIELD with "+
			"a field whose value is another one in the next sentence, and the same fields in all rows",
			limit, r.Place.Line)
		*s = sentenceRows{}
		d.stop()
	}
}

// fieldRuns finds a field, as that of a document, that has another value in rows that are read as one sentence: where a
// sentence ends one document and another of the same number begins the next. All documents begin with the number of the
// first sentence; a field that changes in another one, as that of a phrase or a page, divides sentences.
type fieldRuns struct {
	rows   int
	first  string          // number of the first sentence
	other  bool            // a sentence has another number
	again  bool            // one has the first number after another one
	names  map[string]bool // of the fields that are or were compared
	runs   []*fieldRun     // of those that may be of documents, in an order that is the same for the same file
	values int             // that these have had together
}

type fieldRun struct {
	name   string
	before uint64 // hash of the last value that was not empty, 0 before the first
	shown  string // the start of that value
	seen   map[uint64]bool
	within int // rows that have another value than before, and do not begin a sentence
	same   int // rows that begin a sentence, and have the value of the row before
	at     Place
	change [2]string // that of the first of within
}

const (
	fewRows      = 100     // whose values may all differ
	maxRuns      = 200     // fields that are compared
	maxRunValues = 1 << 18 // values that these have together
)

var runSeed = maphash.MakeSeed()

// add adds a row, by the name of the field of sentences and the number in it; begins: it is the first of its sentence.
func (f *fieldRuns) add(r Record, sentence, number string, begins bool) {
	if f.names == nil {
		f.names, f.first = map[string]bool{}, number
	}
	f.rows++
	f.again = f.again || begins && f.other && number == f.first
	f.other = f.other || begins && number != f.first
	if len(f.names) < maxRuns {
		f.follow(r.Fields, sentence)
	}
	f.runs = slices.DeleteFunc(f.runs, func(run *fieldRun) bool {
		field, there := r.Fields[run.name]
		if !there {
			return false
		}
		known := len(run.seen)
		value, ok := scalar(field)
		ok = ok && run.add(value, r.Place, begins, number == f.first) &&
			(f.rows <= fewRows || len(run.seen)*2 <= f.rows)
		if f.values += len(run.seen) - known; !ok || f.values > maxRunValues {
			f.values -= len(run.seen)
			return true
		}
		return false
	})
}

// follow begins to compare fields that are new.
func (f *fieldRuns) follow(fields map[string]any, sentence string) {
	var added []string
	for name := range fields {
		if name != sentence && !f.names[name] {
			added = append(added, name)
		}
	}
	slices.Sort(added)
	for _, name := range added[:min(len(added), maxRuns-len(f.names))] {
		f.names[name] = true
		f.runs = append(f.runs, &fieldRun{name: name, seen: map[uint64]bool{}})
	}
}

// add adds the value of a row; first: the row's sentence has the first number. It reports whether the field may be that
// of documents.
func (run *fieldRun) add(value string, at Place, begins, first bool) bool {
	hash := maphash.String(runSeed, value)
	switch changes := value != "" && hash != run.before; {
	case !changes && begins:
		run.same++
		return true
	case !changes:
		return true
	case run.seen[hash], run.before != 0 && !first:
		return false
	}
	shown := strings.Clone(start(value))
	if !begins {
		if run.within++; run.within == 1 {
			run.at, run.change = at, [2]string{run.shown, shown}
		}
	}
	run.before, run.shown, run.seen[hash] = hash, shown, true
	return true
}

// report adds the doubt of the field with the fewest values, of those that have another one within sentences.
func (f *fieldRuns) report(d *reader) {
	const few = 20 // rows, of which tags may not come again by chance
	var found *fieldRun
	for _, run := range f.runs {
		if run.within > 0 && run.change[0] != "" && len(run.seen)*2 <= f.rows &&
			(found == nil || len(run.seen) < len(found.seen)) {
			found = run
		}
	}
	if found == nil || f.rows < few || f.other && !f.again {
		return
	}
	remedy := fmt.Sprintf("a field with another value in each sentence, as %q, keeps them apart", found.change[1]+"-1")
	if found.same == 0 {
		remedy = fmt.Sprintf("sentence: %s keeps them apart", found.name)
	}
	d.doubt(found.at, "field %q changes from %q to %q here within a sentence, by sentence: %s%s: if these are two "+
		"sentences, %s", found.name, found.change[0], found.change[1], d.format.Sentence, f.others(found), remedy)
}

func (f *fieldRuns) others(run *fieldRun) string {
	if run.within == 1 {
		return ""
	}
	return ", and " + counted(run.within-1, "more time")
}

// noSentence reports whether a value stands for none, as pandas writes it where the first row of a sentence has one.
func noSentence(value string) bool { return strings.EqualFold(value, "nan") }

// start begins a sentence with its first row, before an offset.
func (s *sentenceRows) start(r Record, value string, offset int64) {
	*s = sentenceRows{first: r, value: value, fields: map[string][]any{}, begin: offset}
}

func (s *sentenceRows) missing() int { return s.n*len(s.fields) - s.values }

func (s *sentenceRows) append(row map[string]any) {
	for name, value := range row {
		list := s.fields[name]
		for len(list) < s.n {
			list = append(list, nil) // earlier rows lack it
		}
		s.fields[name] = append(list, value)
	}
	s.n++
	s.values += len(row)
}

// endSentence adds the record of a sentence, if there is one.
func (d *reader) endSentence() {
	s := d.sentence
	d.sentence = sentenceRows{}
	if s.first.Fields == nil {
		return
	}
	r := s.first
	r.Fields = make(map[string]any, len(s.fields)+1)
	for name, list := range s.fields {
		for len(list) < s.n {
			list = append(list, nil)
		}
		r.Fields[name] = list
		if texts, ok := allTexts(list); ok {
			r.Fields[name] = texts
		}
	}
	r.Fields[d.format.Sentence] = s.value
	d.end = s.end
	d.addWhole(r)
}

func allTexts(list []any) (texts []string, ok bool) {
	texts = make([]string, len(list))
	for i, value := range list {
		if texts[i], ok = value.(string); !ok {
			return nil, false
		}
	}
	return texts, true
}

// SentenceField returns the field of records that are words, one each, by which they belong to sentences: rows of a
// sentence, at least two on average, have the same value, or the first one alone has a value, and other sentences have
// other values. Of several it is that of the shortest sentences: a text has a field too. It returns "" for none, and
// none of the others, which hold the words and their tags: rows in another order have some of these beside one another.
func SentenceField(records []Record, others ...string) string {
	found, most := "", 0
	if len(records) == 0 {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(records[0].Fields)) {
		if n := sentencesBy(records, name); n > most && !slices.Contains(others, name) {
			found, most = name, n
		}
	}
	return found
}

// sentencesBy returns how many sentences there are by a field, 0 if it does not look like theirs.
func sentencesBy(records []Record, name string) int {
	values, before, n := map[string]bool{}, "", 0
	for i, r := range records {
		value, ok := scalar(r.Fields[name])
		if noSentence(value) {
			value = ""
		}
		if !ok || i == 0 && value == "" {
			return 0
		}
		if value != "" && value != before {
			values[value] = true
			n++
		}
		before = value
	}
	// tags are the same again and again, numbers of sentences at most once in each of many texts
	if n < 2 || n*2 > len(records) || len(values)*2 < n && !countsWithin(records, name) {
		return 0
	}
	return n
}

// countsWithin reports whether a field numbers the sentences of documents, each from the same number on: it rises by
// one, or begins again where another field, that of the document, has another value than before, and nowhere else.
func countsWithin(records []Record, name string) bool {
	var again []int // records at which it does
	least, before := 0, 0
	for i, r := range records {
		text, _ := scalar(r.Fields[name])
		n, err := wholeNumber(text)
		switch {
		case err != nil:
			return false
		case i == 0:
			least = n
		case n == least && before != least:
			again = append(again, i)
		case n != before && n != before+1:
			return false
		}
		before = n
	}
	for other := range records[0].Fields {
		var changes []int
		for i := 1; i < len(records); i++ {
			if records[i].Fields[other] != records[i-1].Fields[other] {
				changes = append(changes, i)
			}
		}
		if other != name && slices.Equal(changes, again) {
			return true
		}
	}
	return false
}
