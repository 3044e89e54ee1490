package tokenizer

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// addedToken is a token that is matched before a text is divided: in the raw text, or after normalisation.
type addedToken struct {
	ID int32 `json:"id"`
	addedForm
}

type addedForm struct {
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"` // matches no part of a word
	LStrip     bool   `json:"lstrip"`      // includes the white space before it
	RStrip     bool   `json:"rstrip"`      // includes the white space after it
	Normalized bool   `json:"normalized"`  // is normalised, and matched after normalisation
	Special    bool   `json:"special"`
}

// addedTokens finds the added tokens of a tokenizer: some in the raw text, then the others in the normalised text
// between them. The zero value finds none.
type addedTokens struct {
	raw, normalized matcher
	blanks          bool // some have a blank before a letter
}

// match is a range of a text, an added token or the text between two.
type match struct {
	lo, hi int
	id     int32 // of the token, or notAdded
}

// notAdded is the id of the text between two added tokens.
const notAdded = -1

// newAddedTokens returns what finds the added tokens; normalize normalises those that are found in normalised text.
func newAddedTokens(added []addedToken, normalize func(string) string) addedTokens {
	var patterns [2][]string // of those in raw text, and in normalised text
	var tokens [2][]addedToken
	// Special tokens come first: of two that are the same after normalisation, that one is found.
	for _, special := range []bool{true, false} {
		for _, token := range added {
			at, pattern := 0, token.Content
			if token.Special != special {
				continue
			}
			if token.Normalized {
				at, pattern = 1, normalize(pattern)
			}
			if pattern != "" {
				patterns[at], tokens[at] = append(patterns[at], pattern), append(tokens[at], token)
			}
		}
	}
	inner := func(token addedToken) bool { return strings.Contains(strings.TrimSpace(token.Content), " ") }
	return addedTokens{newMatcher(patterns[0], tokens[0]), newMatcher(patterns[1], tokens[1]),
		slices.ContainsFunc(added, inner)}
}

func (a *addedTokens) splitNormalized(out []match, text []byte) []match {
	if a.normalized.trie == nil {
		if len(text) == 0 {
			return out
		}
		return append(out, match{0, len(text), notAdded})
	}
	return a.normalized.split(out, string(text))
}

type matcher struct {
	tokens []addedToken
	trie   *trie // pattern → index in tokens; nil if there are none
}

func newMatcher(patterns []string, tokens []addedToken) matcher {
	if len(patterns) == 0 {
		return matcher{}
	}
	return matcher{tokens, newTrie(patterns)}
}

func (m *matcher) split(out []match, text string) []match {
	done, spaces := 0, 0 // ends of the last token, and of the last white space that one included
	for from := 0; ; {
		at, token := m.find(text, from)
		if token == nil {
			break
		}
		from = at.hi
		if token.SingleWord && !isWhole(text, at.lo, at.hi) {
			continue
		}
		if token.LStrip {
			before := text[min(done, at.lo):at.lo]
			at.lo = max(done, at.lo-len(before)+len(strings.TrimRightFunc(before, unicode.IsSpace)))
		}
		if token.RStrip {
			if at.hi >= spaces {
				spaces = len(text) - len(strings.TrimLeftFunc(text[at.hi:], unicode.IsSpace))
			}
			at.hi = spaces
		}
		if done < at.lo {
			out = append(out, match{done, at.lo, notAdded})
		}
		out = append(out, at)
		done = at.hi
	}
	if done < len(text) {
		out = append(out, match{done, len(text), notAdded})
	}
	return out
}

// find returns the first added token at or after byte from, the longest if several begin there, or nil.
func (m *matcher) find(text string, from int) (match, *addedToken) {
	if m.trie == nil {
		return match{}, nil
	}
	for ; from < len(text); from++ {
		n := m.trie.root[text[from]]
		end, found := 0, int32(-1)
		for i := from + 1; n >= 0; i++ {
			if v := m.trie.values[n]; v >= 0 {
				end, found = i, v
			}
			if i == len(text) {
				break
			}
			n = m.trie.child(n, text[i])
		}
		if found >= 0 {
			token := &m.tokens[found]
			return match{from, end, token.ID}, token
		}
	}
	return match{}, nil
}

func isWhole(text string, lo, hi int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:lo])
	after, _ := utf8.DecodeRuneInString(text[hi:])
	return (lo == 0 || !isWordRune(before)) && (hi == len(text) || !isWordRune(after))
}

// isWordRune is \w of Unicode's regular expressions (UTS 18, annex C).
func isWordRune(r rune) bool {
	return unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic,
		unicode.Join_Control)
}
