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

// AddedTokens finds the added tokens of a tokenizer: some in the raw text, then the others in the normalised text
// between them. The zero value finds none.
type AddedTokens struct{ raw, normalized matcher }

// Match is a range of a text, an added token or the text between two.
type Match struct {
	Lo, Hi int
	ID     int32 // of the token, or NotAdded
}

// NotAdded is the ID of the text between two added tokens.
const NotAdded = -1

// NewAddedTokens returns what finds the added tokens; normalize normalises those that are found in normalised text.
func NewAddedTokens(added []AddedToken, normalize func(string) string) AddedTokens {
	var a AddedTokens
	// Special tokens come first: of two that are the same after normalisation, that one is found.
	for _, special := range []bool{true, false} {
		for _, token := range added {
			switch {
			case token.Special != special:
			case token.Normalized:
				a.normalized.add(normalize(token.Content), token)
			default:
				a.raw.add(token.Content, token)
			}
		}
	}
	a.raw.finish()
	a.normalized.finish()
	return a
}

// Split appends the ranges of a raw text to out, in order.
func (a *AddedTokens) Split(out []Match, text string) []Match { return a.raw.split(out, text) }

// SplitNormalized appends the ranges of a normalised text to out, in order.
func (a *AddedTokens) SplitNormalized(out []Match, text []byte) []Match {
	if a.normalized.empty() {
		if len(text) == 0 {
			return out
		}
		return append(out, Match{0, len(text), NotAdded})
	}
	return a.normalized.split(out, string(text))
}

// matcher finds tokens in a text.
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
func (m *matcher) split(out []Match, text string) []Match {
	done, spaces := 0, 0 // ends of the last token, and of the last white space that one included
	for from := 0; ; {
		at, token := m.find(text, from)
		if token == nil {
			break
		}
		from = at.Hi
		if token.SingleWord && !isWhole(text, at.Lo, at.Hi) {
			continue
		}
		if token.LStrip {
			before := text[min(done, at.Lo):at.Lo]
			at.Lo = max(done, at.Lo-len(before)+len(strings.TrimRightFunc(before, unicode.IsSpace)))
		}
		if token.RStrip {
			if at.Hi >= spaces {
				spaces = len(text) - len(strings.TrimLeftFunc(text[at.Hi:], unicode.IsSpace))
			}
			at.Hi = spaces
		}
		if done < at.Lo {
			out = append(out, Match{done, at.Lo, NotAdded})
		}
		out = append(out, at)
		done = at.Hi
	}
	if done < len(text) {
		out = append(out, Match{done, len(text), NotAdded})
	}
	return out
}

// find returns the first added token at or after byte from, the longest if several begin there, or nil.
func (m *matcher) find(text string, from int) (Match, *AddedToken) {
	if m.empty() {
		return Match{}, nil
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
			return Match{from, end, token.ID}, token
		}
	}
	return Match{}, nil
}

// isWhole reports whether text[lo:hi] begins and ends at word boundaries.
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
