package pieces

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// AddedToken is a token that is matched before a text is divided: in the raw text, or after normalisation.
type AddedToken struct {
	ID int32 `json:"id"`
	AddedForm
}

// AddedForm is an added token without its id.
type AddedForm struct {
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"` // matches no part of a word
	LStrip     bool   `json:"lstrip"`      // includes the white space before it
	RStrip     bool   `json:"rstrip"`      // includes the white space after it
	Normalized bool   `json:"normalized"`  // is normalised, and matched after normalisation
	Special    bool   `json:"special"`
}

// addedTokens finds the added tokens of a tokenizer.
type addedTokens struct{ raw, normalized matcher }

// match is a range of a text, an added token or the text between two.
type match struct {
	lo, hi int
	token  int32 // id, or notAdded
}

// matcher finds added tokens in a text. The zero value finds none.
type matcher struct {
	patterns []string
	tokens   []AddedToken
	trie     *trie // pattern → index in tokens
}

// add adds a token that is matched as pattern; finish must follow.
func (m *matcher) add(pattern string, token AddedToken) {
	if pattern != "" {
		m.patterns, m.tokens = append(m.patterns, pattern), append(m.tokens, token)
	}
}

func (m *matcher) finish() {
	if m.empty() {
		return
	}
	numbers := make([]int32, len(m.patterns))
	for i := range numbers {
		numbers[i] = int32(i)
	}
	m.trie = newTrie(m.patterns, numbers)
}

func (m *matcher) empty() bool { return len(m.patterns) == 0 }

// split appends the ranges of text in order: the added tokens in it, and what lies between them.
func (m *matcher) split(out []match, text string) []match {
	done, spaces := 0, 0 // ends of the last token, and of the last white space that one included
	for from := 0; ; {
		at, token := m.find(text, from)
		if token == nil {
			break
		}
		from = at.hi
		if token.SingleWord && !IsWhole(text, at.lo, at.hi) {
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
func (m *matcher) find(text string, from int) (match, *AddedToken) {
	if m.empty() {
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

// IsWhole reports whether text[lo:hi] begins and ends at word boundaries.
func IsWhole(text string, lo, hi int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:lo])
	after, _ := utf8.DecodeRuneInString(text[hi:])
	return (lo == 0 || !isWordRune(before)) && (hi == len(text) || !isWordRune(after))
}

// isWordRune is \w of Unicode's regular expressions (UTS 18, annex C).
func isWordRune(r rune) bool {
	return unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic,
		unicode.Join_Control)
}
