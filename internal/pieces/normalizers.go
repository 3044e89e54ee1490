package pieces

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// replace replaces the matches of a finder. As in tokenizers, what takes their place has the place of their last
// character.
type replace struct {
	finder  finder
	content string
}

// normalize implements normalizer.
func (n *replace) normalize(t *segment) {
	lo, hi := n.finder.find(t.text, 0)
	if lo == hi {
		return
	}
	out, done := aligned{t.other.text[:0], t.other.at[:0]}, 0
	for ; lo < hi; lo, hi = n.finder.find(t.text, done) {
		out.copy(&t.aligned, int32(done), int32(lo))
		out.put(n.content, t.at[hi-1])
		done = hi
		if done == len(t.text) {
			break
		}
	}
	out.copy(&t.aligned, int32(done), int32(len(t.text)))
	t.aligned, t.other = out, t.aligned
}

// prepend puts a text before others that are not empty.
type prepend string

// normalize implements normalizer.
func (n prepend) normalize(t *segment) {
	if len(t.text) == 0 {
		return
	}
	out := aligned{t.other.text[:0], t.other.at[:0]}
	out.put(string(n), t.at[0])
	out.copy(&t.aligned, 0, int32(len(t.text)))
	t.aligned, t.other = out, t.aligned
}

// lowercase lowers the case of characters.
type lowercase struct{}

// normalize implements normalizer.
func (lowercase) normalize(t *segment) {
	t.changes = t.changes[:0]
	for i := 0; i < len(t.text); {
		r, size := utf8.DecodeRune(t.text[i:])
		t.changes = append(t.changes, change{LowerCase(r), 0})
		if r == 'İ' {
			t.changes = append(t.changes, change{'\u0307', 1}) // the one rune whose lower case is two
		}
		i += size
	}
	t.rewrite(0)
}

// mapped replaces or drops characters; -1 drops.
type mapped func(r rune) rune

// normalize implements normalizer.
func (f mapped) normalize(t *segment) {
	t.changes = t.changes[:0]
	first, dropped := 0, 0
	for i := 0; i < len(t.text); {
		r, size := utf8.DecodeRune(t.text[i:])
		i += size
		if r = f(r); r < 0 {
			dropped++
			continue
		}
		if n := len(t.changes); n > 0 {
			t.changes[n-1].by = -dropped
		} else {
			first = dropped
		}
		t.changes, dropped = append(t.changes, change{r, 0}), 0
	}
	if n := len(t.changes); n > 0 {
		t.changes[n-1].by = -dropped
	}
	t.rewrite(first)
}

// nmt is the cleaning of sentencepiece's nmt rules: control characters are dropped, other white space and invisible
// characters are blanks.
func nmt(r rune) rune {
	switch {
	case 1 <= r && r <= 8, r == 0x0b, 0x0e <= r && r <= 0x1f, r == 0x7f, r == 0x8f, r == 0x9f:
		return -1
	case strings.ContainsRune("\t\n\f\r\u1680\u2028\u2029\u2581\ufeff\ufffd", r), 0x200b <= r && r <= 0x200f:
		return ' '
	}
	return r
}

// strip removes white space at the ends of texts.
type strip struct {
	Left  bool `json:"strip_left"`
	Right bool `json:"strip_right"`
}

// normalize implements normalizer.
func (n *strip) normalize(t *segment) {
	lo, hi := 0, len(t.text)
	if n.Left {
		lo = hi - len(strings.TrimLeftFunc(string(t.text), unicode.IsSpace))
	}
	if n.Right {
		hi = lo + len(strings.TrimRightFunc(string(t.text[lo:]), unicode.IsSpace))
	}
	t.text, t.at = t.text[lo:hi], t.at[lo:hi]
}
