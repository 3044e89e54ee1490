package corpus

import (
	"strings"
	"unicode"
)

// WordsInWindows reports for each word whether a window has a token of it.
func (e *Example) WordsInWindows() []bool {
	there := make([]bool, len(e.Words))
	for _, window := range e.Windows {
		for _, word := range window.Words {
			if word >= 0 {
				there[word] = true
			}
		}
	}
	return there
}

// TokensOf returns the tokens of a part of the second text, End exclusive, or the zero Span if e lacks some of them.
// White space, combining marks and control characters at the part's ends, which tokenizers drop, are ignored.
func (e Encoding) TokensOf(part Span, text string) Span {
	extract := text[part.Start:part.End]
	dropped := func(r rune) bool { return unicode.IsSpace(r) || unicode.In(r, unicode.Mn, unicode.Cc, unicode.Cf) }
	part.Start += len(extract) - len(strings.TrimLeftFunc(extract, dropped))
	part.End -= len(extract) - len(strings.TrimRightFunc(extract, dropped))
	var found Span
	// the window has tokens that begin at or before the part's start, end at or after its end
	before, after := false, false
	for i, o := range e.Offsets {
		if e.Segments[i] != 1 || o == (Span{}) {
			continue
		}
		before, after = before || o.Start <= part.Start, after || o.End >= part.End
		if o.End > part.Start && o.Start < part.End {
			if found == (Span{}) {
				found.Start = i
			}
			found.End = i + 1
		}
	}
	if !before || !after {
		return Span{}
	}
	return found
}
