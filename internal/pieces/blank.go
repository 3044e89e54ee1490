package pieces

import (
	"slices"
	"strings"
)

// blankBy is what puts a blank before a word that is encoded by itself.
type blankBy int

const (
	noBlank          blankBy = iota // a word has the same pieces with and without it
	blankByText                     // it is the first character of the text
	blankByByteLevel                // the pre-tokenizer ByteLevel puts it, as its add_prefix_space does
)

// setBlank finds out whether words need a blank before them: the text " a" is then one split, the letter with a mark
// before it, with which tokens of the vocabulary begin, and the text "a" has no mark.
func (t *Tokenizer) setBlank() {
	if len(t.preTokenizers) == 1 {
		if p, ok := t.preTokenizers[0].(*byteLevel); ok && p.blanks {
			if !p.prefixSpace {
				t.blank = blankByByteLevel
			}
			return
		}
	}
	if text, ok := t.onlySplit("a"); !ok || text != "a" {
		return
	}
	text, ok := t.onlySplit(" a")
	mark, marked := strings.CutSuffix(text, "a")
	if !ok || !marked || mark == "" {
		return
	}
	if endsInBytes(t.preTokenizers) {
		mark = string(byteRunes[' '])
	}
	begins := func(token string) bool { return len(token) > len(mark) && strings.HasPrefix(token, mark) }
	if slices.ContainsFunc(t.tokens, begins) {
		t.blank = blankByText
	}
}

// onlySplit returns the split of a text that is one.
func (t *Tokenizer) onlySplit(text string) (split string, ok bool) {
	s := new(state)
	if t.divide(s, text); len(s.splits) != 1 {
		return "", false
	}
	return string(s.text[s.splits[0].lo:s.splits[0].hi]), true
}
