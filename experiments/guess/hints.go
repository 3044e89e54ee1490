package guess

import (
	"regexp"
	"slices"
	"strings"
)

// hints are the roles that columns have by their names, in lower case without blanks, _, - and #.
var hints = map[string]string{}

func init() {
	for role, names := range map[string]string{
		"text": "text sentence body content message review comment utterance title tweet document description " +
			"abstract query premise hypothesis headline note notes mail email post request string " +
			"article summary transcript",
		"question": "question",
		"context":  "context passage paragraph",
		"answers":  "answers",
		"words":    "words tokens",
		"tags":     "tags nertags postags slots upos bio",
		"entities": "entities spans",
		"label": "label labels category categories class intent topic sentiment emotion emotions target genre type " +
			"polarity quality stance domain",
		"number": "score scores value rating similarity relatedness price amount count length age grade stars",
		"id": "id idx index uid uuid guid key url link date time timestamp created author user username file " +
			"filename path source split page year number",
	} {
		for name := range strings.FieldsSeq(names) {
			hints[name] = role
		}
	}
}

var (
	notLetters = regexp.MustCompile(`[^\pL\pN]+`)
	numbered   = regexp.MustCompile(`^(.*?)[\s_#-]*([12AaBb])$`)
	idAtEnd    = regexp.MustCompile(`(^|[\s_#-])(id|ID|Id|idx|uid|date|time)$|[a-z](Id|ID|Date|Time)$|_at$`)
)

// hint returns the role that a column has by its name, "" for none.
func hint(name string) string {
	if idAtEnd.MatchString(name) {
		return "id"
	}
	plain := strings.ToLower(notLetters.ReplaceAllString(name, ""))
	if role := hints[plain]; role != "" {
		return role
	}
	if m := numbered.FindStringSubmatch(name); m != nil && m[1] != "" {
		return hints[strings.ToLower(notLetters.ReplaceAllString(m[1], ""))]
	}
	if strings.HasPrefix(name, "#") { // as "#1 String" of MRPC
		last := plain[strings.LastIndexAny(plain, "0123456789")+1:]
		return hints[last]
	}
	parts := notLetters.Split(strings.ToLower(name), -1)
	if len(parts) > 3 {
		return "" // a sentence rather than a name
	}
	for _, part := range slices.Backward(parts) {
		if role := hints[part]; role != "" {
			return role
		}
	}
	return ""
}

// pairs are names of columns that hold the two texts of a pair.
var pairs = [][2]string{
	{"premise", "hypothesis"}, {"text", "pair"}, {"query", "passage"}, {"query", "document"}, {"question", "sentence"},
	{"question", "passage"}, {"question", "context"}, {"question", "answer"}, {"anchor", "positive"},
	{"source", "target"}, {"claim", "evidence"}, {"headline", "body"},
}

// arePair reports whether two columns in this order hold the two texts of a pair, by their names.
func arePair(first, second string) bool {
	for _, p := range pairs {
		if strings.EqualFold(first, p[0]) && strings.EqualFold(second, p[1]) {
			return true
		}
	}
	// names that differ in 1 and 2, or in A and B
	for _, marks := range [][2]string{{"1", "2"}, {"A", "B"}, {"a", "b"}} {
		if i := strings.LastIndex(first, marks[0]); i >= 0 && first[:i]+marks[1]+first[i+1:] == second {
			return true
		}
		if i := strings.Index(first, marks[0]); i >= 0 && first[:i]+marks[1]+first[i+1:] == second {
			return true
		}
	}
	return false
}

// named reports whether a column has one of the roles by its name.
func named(name string, roles ...string) bool { return slices.Contains(roles, hint(name)) }
