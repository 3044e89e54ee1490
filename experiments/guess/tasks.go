package guess

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/plugin"
)

func (s *Set) assign(ctx context.Context) error {
	s.columns = columnsOf(s.records, s.header)
	if len(s.columns) == maxColumns {
		s.note("at most %d columns are looked at, texts and those with most values first; "+
			"data: names others", maxColumns)
	}
	s.marked()
	s.oneOfSeveral()
	s.writtenLists()
	if !s.sentences() && !s.questions() && !s.plainTexts() {
		if len(s.records) == 1 {
			return fmt.Errorf("%s: no text in its only record; a file of a header alone has no data", s.Train)
		}
		if len(s.columns) == 0 {
			return fmt.Errorf("%s: no text in the first %s: their cells are empty", s.Train, records(len(s.records)))
		}
		return fmt.Errorf("%s: no column of texts among %s; an experiment needs one, named by data: {text: COLUMN}",
			s.Train, strings.Join(s.names(), ", "))
	}
	s.targets(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	s.features()
	for _, c := range s.columns {
		isField := slices.Contains([]string{"text", "pair", "words"}, c.name)
		if isField && !s.has(c.name) && !slices.Contains(s.texts, c) {
			s.Fields = append(s.Fields, Field{c.name, &column{}}) // not read, although it has the name
		}
	}
	if s.unnamed() {
		s.nameColumns()
	}
	if len(s.Tasks) == 0 {
		if s.keysAreLabels() {
			s.note("the keys %s may be labels, and each list their texts, which are no columns: %s",
				strings.Join(s.names(), ", "), corpus.KeysAsLabels)
		}
		masked := Task{Name: s.Name, Type: "mlm", Reason: "no column holds labels: masked tokens are predicted"}
		if len(s.columns) > 1 || !s.unnamed() { // beside plain lines, labels may have been meant
			masked.Doubt = masked.Reason
		}
		s.Tasks = []Task{masked}
	}
	return nil
}

// names returns the names of the first columns.
func (s *Set) names() (names []string) {
	for _, c := range s.columns[:min(len(s.columns), 20)] {
		names = append(names, c.name)
	}
	return names
}

// keysAreLabels reports whether an object of lists may have the texts of each label: all of them are texts, and no key
// is a name of such a column.
func (s *Set) keysAreLabels() bool {
	return s.Format.Type == "columns" && len(s.columns) > 1 && !slices.ContainsFunc(s.columns, func(c *column) bool {
		return !c.isText() || hint(c.name) != ""
	})
}

func (s *Set) has(field string) bool {
	return slices.ContainsFunc(s.Fields, func(f Field) bool { return f.Name == field })
}

func (s *Set) unnamed() bool { return s.Format.NoHeader && s.Format.Delimiter != " " }

func (s *Set) use(field string, c *column) {
	c.used = true
	s.texts = append(s.texts, c)
	s.Fields = append(s.Fields, Field{field, c})
}

// sentences finds words given one by one: those of conll and slots, or lists.
func (s *Set) sentences() bool {
	if cmp.Or(s.Format.Type, corpus.FileType(s.Train)) == "conll" {
		s.word, _ = s.wordColumns()
	}
	at := slices.IndexFunc(s.columns, func(c *column) bool {
		return (s.word == "" && named(c.name, "words") || c.name == s.word) && c.lists == c.n && s.aligned(c, c)
	})
	if at < 0 {
		return false
	}
	c := s.columns[at]
	s.use("words", c)
	s.note("words: %s, %s in %s", c.name, plugin.Count(c.items, "word"), records(c.n))
	if kind := cmp.Or(s.Format.Type, corpus.FileType(s.Train)); kind == "conll" || kind == "conllu" {
		tags := "tags"
		if kind == "conll" {
			_, tags = s.wordColumns()
		}
		for _, c := range s.columns { // words and tags are copies of two of them
			c.used = c.used || c.name != tags
		}
		if n := len(s.columns) - 2; n > 2 {
			s.note("tags: one of %d columns; data: {tags: …} reads another", n)
		}
	}
	return true
}

// wordColumns returns the columns of a conll file that have the words and the tags, "words" and "tags" if these are the
// first and the last: numbers of words, what is the same on all lines, and tags are no words.
func (s *Set) wordColumns() (words, tags string) {
	words, tags = "words", "tags"
	var columns []*column // by their position
	for i := range len(s.columns) {
		if c := s.column(strconv.Itoa(i + 1)); c != nil {
			columns = append(columns, c)
		}
	}
	same := func(c *column) bool { return len(c.values) == 1 && c.items > 1 }
	at := slices.IndexFunc(columns, func(c *column) bool { return !same(c) && !isSpanTags(c) && !c.all(wholeNumber) })
	if at > 0 {
		words = columns[at].name
	}
	for i, c := range slices.Backward(columns) {
		if i != max(at, 0) && !same(c) {
			if i < len(columns)-1 {
				tags = c.name
			}
			break
		}
	}
	return words, tags
}

// writtenLists finds words and their tags that are texts with blanks between, as in the cells of a table: a column of
// texts, and one that has a span tag, or a tag by its name, for each of its words.
func (s *Set) writtenLists() {
	if s.word != "" {
		return
	}
	haveTags := func(c *column) bool {
		return c != nil && (isSpanTags(c) || named(c.name, "tags") && c.areTags())
	}
	listed := false // the words are lists
	for _, c := range s.columns {
		if !haveTags(s.asList(c)) {
			continue
		}
		isList := func(words *column) bool {
			return words != c && named(words.name, "words") && words.lists == words.n && s.aligned(words, c)
		}
		if at := slices.IndexFunc(s.columns, isList); at >= 0 { // the text may have blanks between the same words
			s.word, listed = s.columns[at].name, true
			break
		}
		at := slices.IndexFunc(s.columns, func(text *column) bool {
			return text != c && text.isSingle() && text.words >= 2*text.n && s.nearlyAligned(text, c)
		})
		if at >= 0 {
			s.columns[at] = s.asList(s.columns[at])
			s.word = s.columns[at].name
			break
		}
	}
	if s.word == "" {
		return
	}
	for i, c := range s.columns {
		tags := s.asList(c)
		if listed && !haveTags(tags) {
			continue
		}
		if c.isSingle() && tags.areTags() && s.nearlyAligned(&column{name: s.word}, c) {
			s.columns[i] = tags
		}
	}
}

// asList returns a column whose texts are read as lists of what is between blanks, nil if they are none.
func (s *Set) asList(c *column) *column {
	if !c.isSingle() && (c.lists < c.n || c.nested > 0) || c.n == 0 {
		return nil
	}
	all := &column{name: c.name, missing: c.missing, values: map[string]int{}}
	for _, r := range s.records {
		if values, ok, _ := r.Strings(c.name); ok {
			all.add(values)
		}
	}
	return all
}

func (s *Set) questions() bool {
	first := func(role string) *column {
		i := slices.IndexFunc(s.columns, func(c *column) bool {
			return named(c.name, role) && c.n > 0 && (c.isSingle() || role == "answers")
		})
		if i < 0 {
			return nil
		}
		return s.columns[i]
	}
	question, context, answers := first("question"), first("context"), first("answers")
	if question == nil || context == nil || answers == nil {
		return false
	}
	record := func(i int) (corpus.Record, error) {
		r := s.records[i]
		r.Fields = map[string]any{"question": r.Fields[question.name], "context": r.Fields[context.name],
			"answers": r.Fields[answers.name], "is_impossible": r.Fields["is_impossible"]}
		return r, nil
	}
	unit := ""
	found, without, misplaced := s.answers(record, unit)
	if misplaced > 0 {
		unit, _ = corpus.FitOffsets(len(s.records), record, nil)
		found, without, misplaced = s.answers(record, unit)
	}
	inContext := func(r corpus.Record) bool {
		text, _, _ := r.String(context.name)
		return hasPart(text, r.Fields[answers.name])
	}
	if found == 0 && misplaced > 0 && !slices.ContainsFunc(s.records, inContext) {
		s.noteDoubt("%s: no answer of %s is a part of its %s, so that there is nothing to extract", answers.name,
			records(len(s.records)), context.name)
		return false
	}
	if found+misplaced == 0 || (found+without+misplaced)*10 < len(s.records)*9 {
		return false
	}

	s.use("question", question)
	s.use("context", context)
	task := Task{Name: "answer", Type: "question_answering", Field: "answers", column: answers,
		Reason: fmt.Sprintf("answers: %d of %s are parts of their context, %d have none", found,
			records(len(s.records)), without)}
	if unit != "" && unit != "characters" {
		s.Format.Offsets = unit
		task.Reason += fmt.Sprintf("; their offsets fit in %s alone", unit)
	}
	if misplaced > 0 {
		task.Reason += fmt.Sprintf("; those of %d are not where their offsets say, as jenga check reports", misplaced)
	}
	if without > 0 {
		task.Head = []Option{{"type", "span"}, {"no_answer", true}}
	}
	s.Tasks = append(s.Tasks, task)
	for _, c := range s.columns {
		c.used = c.used || c == answers || c.name == "is_impossible" || c.name == "title"
	}
	return true
}

// answers counts the records whose answers are parts of their context, with offsets in a unit, those without any, and
// those whose answers are not where their offsets say.
func (s *Set) answers(record func(int) (corpus.Record, error), unit string) (found, without, misplaced int) {
	for i := range s.records {
		r, _ := record(i)
		text, _, _ := r.String("context")
		spans, ok, err := r.WithOffsets(unit).Answers(text)
		_, ofOffsets := errors.AsType[*corpus.OffsetsError](err)
		switch {
		case ofOffsets:
			misplaced++
		case err == nil && ok && len(spans) == 0:
			without++
		case err == nil && ok:
			found++
		}
	}
	return found, without, misplaced
}

// hasPart reports whether a text has a part that is a string of a value, whatever offset the value gives.
func hasPart(text string, value any) bool {
	has := func(v any) bool { return hasPart(text, v) }
	switch v := value.(type) {
	case string:
		list, held := corpus.ParseCell(v)
		return v != "" && strings.Contains(text, v) || held && has(list)
	case []any:
		return slices.ContainsFunc(v, has)
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), has)
	}
	return false
}

// plainTexts finds the column of the text, and of the second text of a pair. Two texts without names are one.
func (s *Set) plainTexts() bool {
	texts := slices.DeleteFunc(slices.Clone(s.columns), func(c *column) bool { return !c.isText() })
	var pair []*column // of several that of the shortest name: others are made from it, as parses of sentence1
	able := slices.DeleteFunc(slices.Clone(s.columns), func(c *column) bool {
		return !c.isText() && !c.isRepeatedText()
	})
	for _, first := range able {
		for _, second := range able {
			two := s.unnamed() && len(texts) == 2 && first == texts[0]
			if first != second && (two || arePair(first.name, second.name)) && (first.isText() || second.isText()) &&
				(pair == nil || len(first.name) < len(pair[0].name)) {
				pair = []*column{first, second}
			}
		}
	}
	if pair != nil {
		s.use("text", pair[0])
		s.use("pair", pair[1])
		s.note("text and pair: columns %s and %s, texts", pair[0].name, pair[1].name)
		return true
	}

	// the longest text of those named as one, else of all; else short texts, or texts that are often the same
	var text *column
	for _, c := range texts {
		ours, theirs := named(c.name, "text", "question"), text != nil && named(text.name, "text", "question")
		if text == nil || ours && !theirs || ours == theirs && c.characters*text.n > text.characters*c.n {
			text = c
		}
	}
	for _, c := range s.columns {
		if text == nil && c.isSingle() && !c.isNumeric() && named(c.name, "text", "question") {
			text = c
		}
	}
	if text == nil {
		return false
	}
	s.use("text", text)
	for _, c := range texts {
		if c != text {
			c.used = true
			s.note("%s is left out: another text; pair: %[1]s would read both", c.name)
		}
	}
	s.note("text: column %s, %.3g words on average", text.name, float64(text.words)/float64(text.n))
	return true
}

// targets makes a task of each column that holds labels. Of columns without names only those beside a text are taken:
// the others are as often years, sources and numbers of texts.
func (s *Set) targets(ctx context.Context) {
	for i, c := range s.columns {
		if ctx.Err() != nil || c.used || c.n == 0 || c.name == s.Format.Sentence || s.Format.Where[c.name] != nil {
			continue
		}
		if s.splitBy(c) {
			continue
		}
		c.dropMarks()
		task, reason := s.target(c)
		if s.unnamed() && !slices.ContainsFunc(s.columns[max(i-1, 0):min(i+2, len(s.columns))],
			func(c *column) bool { return slices.Contains(s.texts, c) }) {
			task.Type, reason = "", "it has no name, and is not next to a text"
		}
		if task.Type == "" {
			s.note("%s is left out: %s", c.name, reason)
			continue
		}
		task.Name, task.column, task.Reason = c.name, c, fmt.Sprintf("%s: %s", c.name, reason)
		if c.missing > 0 {
			task.Reason += fmt.Sprintf("; %s without a value", records(c.missing))
		}
		if len(c.marks) > 0 {
			task.Reason += fmt.Sprintf(", by missing, as %s stand for none", strings.Join(c.marks, ", "))
		}
		s.Tasks = append(s.Tasks, task)
	}

	// the two texts of a pair are encoded separately for their similarity, if it is the only task
	if s.has("pair") && len(s.Tasks) == 1 && s.Tasks[0].Type == "regression" {
		t := &s.Tasks[0]
		t.Type = "similarity"
		t.Head = []Option{{"type", "similarity"},
			{"range", []float64{math.Floor(min(t.column.least, 0)), math.Ceil(t.column.most)}}}
		t.Reason += "; of pairs: their similarity. type: regression would encode the two texts together"
	}
}

// splitBy makes a column that names the split of each record that of the set, whose files do not name any.
func (s *Set) splitBy(c *column) bool {
	if s.split != nil || s.Dev != "" || s.Test != "" || s.unnamed() || !c.namesSplits(s.more) || s.onlyLabel(c) {
		return false
	}
	s.split, c.used = c, true
	for value := range c.values {
		split, _ := corpus.SplitNamed(value)
		s.devs = s.devs || split == "dev"
	}
	s.note("%s: the split of each record", c.name)
	return true
}

// onlyLabel reports whether a column has the name of labels, and no other has labels: whatever its values are, as train
// and test of means of transport, they are those.
func (s *Set) onlyLabel(c *column) bool {
	return named(c.name, "label", "tags", "entities") && len(s.Tasks) == 0 &&
		!slices.ContainsFunc(s.columns, func(other *column) bool {
			if other == c || other.used || other.n == 0 || other.namesSplits(s.more) {
				return false
			}
			task, _ := s.target(other)
			return task.Type != ""
		})
}

const mostLabels = 500

// The tasks of a column, without what is the column's.
var (
	classification = Task{Type: "classification", Field: "label"}
	multiLabel     = Task{Type: "multi_label", Field: "labels"}
	regression     = Task{Type: "regression", Field: "value"}
)

// target returns the task that a column allows, none with the reason if it allows none: the first case that it is.
func (s *Set) target(c *column) (task Task, reason string) {
	if task, reason = s.unlike(c); reason != "" {
		return task, reason
	}
	switch labels := len(c.values); {
	case c.lists == c.n && hint(c.name) == "id":
		return Task{}, "no label by its name"
	case s.has("words") && c.lists == c.n && s.aligned(s.texts[0], c):
		return tagsTask(c)
	case c.lists == c.n && c.nested > 0 || c.spans:
		return s.entities(c)
	case c.areFlags():
		return Task{}, "lists of 0 and 1; type: multi_label reads them as {HEAD: [1, 0]}, or lists of the labels " +
			"that hold"
	case c.lists == c.n && labels == 1 && c.items == c.n && (hint(c.name) != "label" || !s.more): // of all records
		return Task{}, fmt.Sprintf("lists of one label, %.40q", slices.Collect(maps.Keys(c.values))[0])
	case c.lists == c.n && c.items > 0 && c.several == 0 && (labels > 1 || c.items == c.n) && labels*2 <= c.items+2:
		return classification, fmt.Sprintf("lists of one of %s in %s; type: multi_label would predict several",
			plugin.Count(labels, "label"), records(c.n))
	case c.lists == c.n && c.items > 0 && labels*2 <= c.items+2:
		return multiLabel, fmt.Sprintf("lists of %s in %s", plugin.Count(labels, "label"), records(c.n))
	case c.lists > 0 && c.lists < c.n && c.objects+c.nested == 0 && labels*2 <= c.n && c.characters <= 40*(c.n-c.lists):
		return multiLabel, fmt.Sprintf("%s in %s, of which %d are lists", plugin.Count(labels, "label"), records(c.n),
			c.lists)
	case !c.isSingle():
		if task, reason = s.entities(c); task.Type == "" || (c.lists+c.objects)*2 <= c.n {
			return Task{}, "lists, objects or both, which are no labels"
		}
		return task, reason
	case c.namesOtherSplits() && !named(c.name, "label"):
		return Task{}, "the split of each record, not as train, dev and test; where: {FIELD: VALUE} uses some of them"
	case hint(c.name) == "id":
		return Task{}, "no label by its name"
	case splitFlag.MatchString(c.name) && c.all(flag):
		return Task{}, fmt.Sprintf("whether a record is of a split; where: {%s: VALUE} uses those of one", c.name)
	case c.marksRecords() && labelsBeside(s.columns, c.name): // else it may be the label
		use := strings.Join(corpus.MarksOf(c.name, c.values).Use, ", ")
		return Task{}, fmt.Sprintf("a mark of records to use or not; where: {%s: [%s]} uses such records alone", c.name,
			use)
	}
	return s.single(c)
}

var (
	splitFlag    = regexp.MustCompile(`(?i)^is[_ ]?(train|dev|val|test)(ing)?$`)
	flag         = regexp.MustCompile(`(?i)^(true|false|yes|no|[01](\.0)?)$`)
	wholeNumber  = regexp.MustCompile(`^[0-9]+$`)
	date         = regexp.MustCompile(`^[0-9]{1,4}[-./][0-9]{1,2}[-./][0-9]{1,4}([T ][0-9:.,+Z ]*)?$`)
	decimalComma = regexp.MustCompile(`^-?[0-9]{1,3}(\.[0-9]{3})*,[0-9]+$`)
)

// all reports whether all values match a pattern.
func (c *column) all(pattern *regexp.Regexp) bool {
	for value := range c.values {
		if !pattern.MatchString(strings.TrimSpace(value)) {
			return false
		}
	}
	return true
}

func (s *Set) single(c *column) (Task, string) {
	different, in := len(c.values), records(c.n)
	role, number := hint(c.name), c.isNumeric()
	whole := number && c.whole == c.n
	repeated := different <= mostLabels && different*2 <= c.n
	labels, several, separator := 0, 0, ""
	for _, separator = range []string{",", "|", ";", "#"} {
		if labels, several = c.listed(separator); several > 0 {
			break
		}
	}

	switch {
	case different == 1 && (number || role != "label" || !s.more): // else a file may be sorted
		return Task{}, fmt.Sprintf("one value, %.40q", slices.Collect(maps.Keys(c.values))[0])

	// numbers
	case whole && (role == "label" && repeated || different == 2):
		return classification, fmt.Sprintf("%d labels in %s", different, in)
	case whole && role != "number" && different == c.n:
		return Task{}, "another number in each of " + in
	case whole && role != "number" && different <= 20:
		return classification, fmt.Sprintf("%d labels in %s; type: regression would predict a number", different, in)
	case number && max(-c.least, c.most) > outputs.LargestNumber:
		return Task{}, fmt.Sprintf("numbers up to %g; rescale them", max(-c.least, c.most))
	case number:
		return regression, fmt.Sprintf("%d different numbers from %v to %v in %s", different, c.least, c.most, in)

	// labels
	case role != "label" && c.all(date):
		return Task{}, "dates"
	case role != "label" && c.all(decimalComma):
		return Task{}, "numbers with a decimal comma; with a point they are numbers"
	case several > 0:
		task, between := multiLabel, "commas"
		if separator != "," {
			task.Separator, between = separator, fmt.Sprintf("%q", separator)
		}
		return task, fmt.Sprintf("%s in %s, %d with several and %s between them", plugin.Count(labels, "label"), in,
			several, between)
	case c.longest > 100:
		return Task{}, fmt.Sprintf("values of up to %d characters", c.longest)
	case repeated || role == "label" && different <= mostLabels && different*5 <= c.n*4:
		return classification, fmt.Sprintf("%s in %s", plugin.Count(different, "label"), in)
	}
	return Task{}, fmt.Sprintf("%d different values in %s", different, in)
}

// nameColumns names the columns of a table without a header after the fields that they hold.
func (s *Set) nameColumns() {
	fields := slices.Clone(s.Fields)
	for _, t := range s.Tasks {
		fields = append(fields, Field{t.Field, t.column})
	}
	for _, c := range s.columns {
		if c.name == s.Format.Sentence {
			fields, s.Format.Sentence = append(fields, Field{"sentence", c}), "sentence"
		}
	}
	s.Format.Columns = slices.Repeat([]string{"_"}, len(s.header))
	for _, f := range fields {
		if at := slices.Index(s.header, f.column.name); at >= 0 {
			if slices.Contains(s.Format.Columns, f.Name) {
				f.Name += "_" + f.column.name
			}
			s.Format.Columns[at], f.column.name = f.Name, f.Name
		}
	}
}

func records(n int) string { return plugin.Count(n, "record") }
