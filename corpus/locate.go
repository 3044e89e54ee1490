package corpus

import (
	"strings"
	"unicode"
)

// WordsInWindows tells of each word whether a window has a token of it.
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

// TokensOf returns the tokens of the second text that stand for a part of it, End exclusive; none where some are not
// there. White space, accents of their own and control characters at the part's ends, which tokenizers drop, are not
// looked for.
func (e Encoding) TokensOf(part Span, text string) Span {
	extract := text[part.Start:part.End]
	dropped := func(r rune) bool { return unicode.IsSpace(r) || unicode.In(r, unicode.Mn, unicode.Cc, unicode.Cf) }
	part.Start += len(extract) - len(strings.TrimLeftFunc(extract, dropped))
	part.End -= len(extract) - len(strings.TrimRightFunc(extract, dropped))
	var found Span
	before, after := false, false // the window has tokens that begin at or before the part, end at or behind it
	for i, o := range e.Offsets {
		if e.Types[i] != 1 || o == (Span{}) {
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
