package dataset

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/tasks"
)

// fewExamples is how many examples a file has at least for a reading of it to be called degenerate: of fewer, all may
// be alike by chance.
const fewExamples = 20

// degenerate returns warnings of targets of head h from which nothing can be learned, because the file has been read
// otherwise than it was meant: one of each kind, with the likely cause and its key.
func (d *Dataset) degenerate(group *Group, h int, of Head, labels []uint32) []string {
	kind, train := d.Tasks[of.Number].Output(), group.surveys[config.Train].Heads[h]
	if train.Labelled < fewExamples || tasks.DescriptionOf(d.Tasks[of.Number]).CheckTargets != nil {
		return nil // a task that checks its targets knows what equal ones mean
	}
	if !kind.HasLabels {
		return nonEmpty(constantNumber(train, kind))
	}
	counts := labelCounts(group, h)
	return nonEmpty(sameLabels(counts, labels, kind), cmp.Or(tagSequences(train, kind),
		mostlyDifferent(train, kind)))
}

// areNoWords reports whether all words of a text are numbers, or all are tags of spans.
func areNoWords(text string) bool {
	numbers, tags, some := true, true, false
	for word := range strings.FieldsSeq(text) {
		some, numbers = true, numbers && strings.Trim(word, "0123456789") == ""
		if tags = tags && corpus.IsSpanTag(word); !numbers && !tags {
			return false
		}
	}
	return some
}

// noWords warns of a file in which what is read as words are numbers of words, or tags.
func (d *Dataset) noWords(group *Group) {
	s, task := group.surveys[config.Train], d.Experiment.Tasks[group.Tasks[0]]
	if s.Examples < fewExamples || s.NoWords < s.Examples {
		return
	}
	column := ""
	if file := TrainingFile(task.Data); cmp.Or(formatOf(task, file).Type, corpus.FileType(file.Name)) == "conll" {
		column = `, as "2" for the second`
	}
	d.warn(task, "the words of all %d training texts are numbers, or tags; data: {words: FIELD, tags: FIELD} names "+
		"the columns of the words and their tags%s", s.Examples, column)
}

// tagSequences warns where the labels of texts are tags of their words.
func tagSequences(train headSurvey, kind *outputs.Kind) string {
	sequences, first := 0, ""
	for _, name := range slices.Sorted(maps.Keys(train.Labels)) {
		words := strings.Fields(name)
		if len(words) > 1 && !slices.ContainsFunc(words, func(w string) bool { return !corpus.IsSpanTag(w) }) {
			sequences, first = sequences+1, cmp.Or(first, name)
		}
	}
	if kind.PerWord || sequences*10 < len(train.Labels)*9 || sequences == 0 {
		return ""
	}
	return fmt.Sprintf("labels are tags of words, as %.60q: type: ner with data: {words: FIELD, tags: FIELD} learns "+
		"them", first)
}

func nonEmpty(texts ...string) []string {
	return slices.DeleteFunc(texts, func(text string) bool { return text == "" })
}

// ConstantNumber says that all training numbers of head h of a group are the same, and the likely cause; "" where they
// are not, or are no numbers.
func (d *Dataset) ConstantNumber(group *Group, h int) string {
	of, survey := d.Heads(group)[h], group.surveys[config.Train]
	if survey == nil || d.Tasks[of.Number].Output().HasLabels {
		return ""
	}
	return strings.Join(d.degenerate(group, h, of, nil), "")
}

func constantNumber(train headSurvey, kind *outputs.Kind) string {
	if train.Numbers == 0 || train.Least != train.Most {
		return ""
	}
	return fmt.Sprintf("all %d training numbers are %v: a constant is learned; data: {%s: FIELD} names the field "+
		"of the number", train.Numbers, train.Least, kind.Field)
}

// sameLabels warns where all labelled texts have the same labels, or all words the same tag. labels has a sum of those
// of each text, 0 for none.
func sameLabels(counts map[string]int, labels []uint32, kind *outputs.Kind) string {
	names, texts, first := slices.Sorted(maps.Keys(counts)), 0, uint32(0)
	for _, sum := range labels {
		switch {
		case sum == 0:
			continue
		case first == 0:
			first = sum
		case sum != first && !kind.PerWord:
			return ""
		}
		texts++
	}
	if texts < fewExamples || len(names) == 0 || kind.PerWord && len(names) > 1 { // which words have them is learned
		return ""
	}
	cause := ""
	if flags := []string{"0", "1"}; !kind.PerWord && slices.Equal(names, flags) {
		cause = "lists of 0 and 1 for each label are written as {HEAD: [1, 0]}; else "
	}
	return fmt.Sprintf("all %d labelled texts have the same %s, %s: nothing can be learned from them; %sdata: "+
		"{%s: FIELD} names the field of the labels", texts, plugin.Agree(len(names), "label", "labels"),
		list(quoted(names)), cause, kind.Field)
}

func quoted(names []string) []string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = strconv.Quote(name)
	}
	return all
}

// mostlyDifferent warns where more than half of a head's labels occur once: they are texts, numbers or names of
// records.
func mostlyDifferent(train headSurvey, kind *outputs.Kind) string {
	total, once := 0, 0
	for _, n := range train.Labels {
		if total += n; n == 1 {
			once++
		}
	}
	if kind.PerWord || len(train.Labels)*2 <= total || once*2 <= len(train.Labels) {
		return ""
	}
	return fmt.Sprintf("%d different labels in %d training texts, %d of them once, as %s: what occurs once is not "+
		"learned; data: {%s: FIELD} names the field of the labels, and type: regression learns numbers",
		len(train.Labels), train.Labelled, once, list(quoted(firstLabels(train.Labels))), kind.Field)
}

func firstLabels(labels map[string]int) []string {
	const shown = 3
	names := slices.SortedFunc(maps.Keys(labels), compareLabels)
	return names[:min(shown, len(names))]
}

// oneWord looks for a file that has a word a row and was read as a text a row: all texts of train are one word. Where a
// field says which rows belong together and a task has an output for each word, that is a mistake, else a warning.
func (d *Dataset) oneWord(group *Group, mistakes *plugin.Mistakes) {
	s := group.surveys[config.Train]
	if s.Examples < fewExamples || s.OneWord < s.Examples {
		return
	}
	task := d.Experiment.Tasks[group.Tasks[0]]
	file := TrainingFile(task.Data)
	text := fmt.Sprintf("all %d training texts of %s are one word", s.Examples, file.Name)
	perWord := slices.ContainsFunc(group.Tasks, func(n int) bool { return d.Tasks[n].Output().PerWord })
	format := formatOf(task, file)
	switch field := d.sentenceField(file, format); {
	case format.Sentence != "":
		text += fmt.Sprintf(": sentence: %s has another value in each row; want a field that the rows of a sentence "+
			"have in common", format.Sentence)
	case field != "" && perWord:
		mistakes.Add(file.Place, "task %q: %s: a row is a word, and its field %q says which rows are a sentence; want "+
			"data: {sentence: %s}", task.Name, text, field, flow(field))
		return
	case field != "":
		text += fmt.Sprintf("; if a row is a word, data: {sentence: %s} joins those with the same %q; else data: "+
			"{text: FIELD} names the field of the text", flow(field), field)
	case perWord:
		text += ": a tag is learned without the words around it; data: {sentence: FIELD} joins the rows of a sentence"
	default:
		text += "; data: {text: FIELD} names the field of the text"
	}
	d.warn(task, "%s", text)
}

// sentenceField returns the field of a file whose rows are words that says which of them are a sentence; "": none.
func (d *Dataset) sentenceField(file config.File, format corpus.Format) string {
	const enough = 5000 // records
	paths := file.Paths()
	if len(paths) == 0 || format.Sentence != "" {
		return ""
	}
	if info, err := os.Stat(paths[0]); err != nil || !info.Mode().IsRegular() {
		return "" // a pipe is read once
	}
	records, err := corpus.First(d.ctx, paths[0], format, enough)
	if err != nil {
		return "" // it has been read, and has changed since
	}
	return corpus.SentenceField(records, "words", "text", "tags")
}

// isOneWord reports whether a text is a word alone. A text in a script without blanks between words is none.
func isOneWord(text string) bool {
	const longest = 40 // characters
	if text = strings.TrimSpace(text); text == "" || utf8.RuneCountInString(text) > longest {
		return false
	}
	return !strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai,
			unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Tibetan)
	})
}
