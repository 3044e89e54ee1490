package corpus

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Names of fields that say which records are to be used: Prodigy's answer, Argilla's status, Label Studio's
// was_cancelled, and those that people give such a column.
var (
	markNames = regexp.MustCompile(`(?i)(^|[._])(answer|status|state|decision|verdict|review|annotation_status)$`)
	badNames  = regexp.MustCompile(`(?i)(^|[._])(is_|was_)?(reject|rejected|ignore|ignored|skip|skipped|cancelled|` +
		`canceled|discard|discarded|invalid|exclude|excluded|deleted|removed)$`)
	goodNames = regexp.MustCompile(`(?i)(^|[._])(is_|was_)?(accept|accepted|approved|valid)$`)
)

// Words in such fields: of records to use, of others, and of those that nobody has looked at. In a field of another
// name bad is a label.
var (
	goodWords = wordSet("accept accepted approve approved valid validated submit submitted done completed ok keep " +
		"good gold final")
	badWords = wordSet("reject rejected ignore ignored skip skipped cancel cancelled canceled discard discarded " +
		"invalid exclude excluded deleted removed declined")
	openWords = wordSet("pending draft default todo open in_progress in_review needs_review to_review unreviewed " +
		"unknown")
	yes = wordSet("true yes 1 1.0")
	no  = wordSet("false no 0 0.0")
)

// toolMarks are the fields of Prodigy, Argilla and Label Studio, with their values.
var toolMarks = map[string]map[string]bool{
	"answer":        wordSet("accept reject ignore"),
	"status":        wordSet("submitted completed validated discarded draft pending default"),
	"was_cancelled": wordSet("true false"),
}

func wordSet(list string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(list) {
		set[word] = true
	}
	return set
}

// Marks are the values of a field that says which records are to be used, each in its order of sorting.
type Marks struct {
	Use, Leave []string // values of records to use, and of those to leave out
	Open       []string // of those that nobody has looked at
	Other      []string
	Tool       bool // an annotation tool writes this field, with these values
}

// MayMark reports whether a field with a value, and a name, may be one that says which records are to be used.
func MayMark(name, value string) bool {
	return markOf(name, value) != noMark || markNames.MatchString(name) // of any words some are such marks
}

// MarksOf sorts the values of a field by what they say of their records. The field says which are to be used if it has
// some of Use and some of Leave.
func MarksOf[V any](name string, values map[string]V) Marks {
	tool := toolMarks[name[strings.LastIndexByte(name, '.')+1:]]
	m := Marks{Tool: tool != nil}
	lists := map[mark]*[]string{useMark: &m.Use, leaveMark: &m.Leave, openMark: &m.Open, noMark: &m.Other}
	for _, value := range slices.Sorted(maps.Keys(values)) {
		list := lists[markOf(name, value)]
		*list = append(*list, value)
		m.Tool = m.Tool && tool[strings.ToLower(value)]
	}
	return m
}

type mark int

const (
	noMark mark = iota
	useMark
	leaveMark
	openMark
)

func markOf(name, value string) mark {
	word := strings.Join(strings.Fields(strings.ToLower(value)), "_")
	bad, good, marks := badNames.MatchString(name), goodNames.MatchString(name), markNames.MatchString(name)
	switch {
	case bad && yes[word], good && no[word]:
		return leaveMark
	case bad && (no[word] || word == ""), good && yes[word]:
		return useMark
	case good && word == "":
		return openMark
	case bad || good:
		return noMark
	case badWords[word], marks && word == "bad":
		return leaveMark
	case goodWords[word]:
		return useMark
	case openWords[word], word == "":
		return openMark
	}
	return noMark
}

// likeSplits match values that are what a split may be called, although SplitNamed does not know them: with the name of
// one at the beginning or the end, as validation_matched and PublicTest, and other words.
var likeSplits = []struct {
	split string
	is    *regexp.Regexp
}{
	{"train", regexp.MustCompile(`(?i)^train(ing)?([-_ .]?[0-9]+$|[-_ .])|[-_ .]train(ing)?$`)},
	{"dev", regexp.MustCompile(`(?i)^(dev|val|valid|validation)([-_ .]?[0-9]+$|[-_ .])|` +
		`[-_ .](dev|val|valid|validation)$|^(eval|evaluation|trial)$`)},
	{"test", regexp.MustCompile(`(?i)^test(ing)?([-_ .]?[0-9]+$|[-_ .])|([-_ .]|^public|^private)test(ing)?$|` +
		`^h[eo]ld[-_ ]?out$`)},
}

// splitNames matches the names of fields that say which split a record is of.
var splitNames = regexp.MustCompile(`(?i)(^|[._])(splits?|partition|subset)$`)

// LikeSplit reports whether a value of a field is what a split may be called, and which one, "" if it is unknown: all
// values are in a field that has the name of one.
func LikeSplit(name, value string) (split string, ok bool) {
	if split, ok = SplitNamed(value); ok {
		return split, true
	}
	for _, like := range likeSplits {
		if like.is.MatchString(strings.TrimSpace(value)) {
			return like.split, true
		}
	}
	return "", splitNames.MatchString(name)
}

// SplitNamed returns the split that a value of a field means: train, dev or test.
func SplitNamed(value string) (split string, ok bool) {
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "train", "training", "trn":
		return "train", true
	case "dev", "devel", "development", "val", "valid", "validate", "validation":
		return "dev", true
	case "test", "testing", "tst":
		return "test", true
	}
	return "", false
}
