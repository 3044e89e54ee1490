package pieces

import (
	"slices"
	"unicode/utf8"
)

// aligned is a text with the bytes of the raw text that each of its bytes comes from.
type aligned struct {
	text []byte
	at   []span // [len(text)]
}

// span is a range of the raw text.
type span struct{ start, end int32 }

// segment is a part of the raw text that is normalised by itself.
type segment struct {
	aligned
	base    int32 // its offset in the raw text
	changes []change
	other   aligned // memory for the next version of the text
	runes   runeScratch
}

// change is a rune of a rewritten text. By is how many runes it adds to the text that is rewritten: 0 for a rune that
// takes the place of one, 1 for a new rune, -n for one that takes the place of n+1.
type change struct {
	r  rune
	by int
}

// fill sets the segment to raw[lo:hi].
func (t *segment) fill(raw string, lo, hi int) {
	t.base = int32(lo)
	t.text, t.at = append(t.text[:0], raw[lo:hi]...), t.at[:0]
	for i := lo; i < hi; {
		size := 1
		if raw[i] >= utf8.RuneSelf {
			_, size = utf8.DecodeRuneInString(raw[i:])
		}
		at := span{int32(i), int32(i + size)}
		for range size {
			t.at = append(t.at, at)
		}
		i += size
	}
}

// putBlank puts a blank before the segment, which takes no byte of the raw text.
func (t *segment) putBlank() {
	t.text = slices.Insert(t.text, 0, ' ')
	t.at = slices.Insert(t.at, 0, span{t.base, t.base})
}

// rewrite replaces the text by t.changes after its first removed runes. As in the library tokenizers, places are
// assigned by position: a rune that takes the place of another has its bytes of the raw text, a new one those of its
// predecessor.
func (t *segment) rewrite(removed int) {
	old, out := t.aligned, aligned{t.other.text[:0], t.other.at[:0]}
	from := 0
	skip := func(runes int) {
		for ; runes > 0 && from < len(old.text); runes-- {
			_, size := utf8.DecodeRune(old.text[from:])
			from += size
		}
	}
	skip(removed)
	for _, c := range t.changes {
		at := span{t.base, t.base}
		switch {
		case c.by <= 0 && from < len(old.at):
			at = old.at[from]
			skip(1 - c.by)
		case from > 0:
			at = old.at[from-1]
		}
		out.append(c.r, at)
	}
	t.aligned, t.other = out, old
}

func (a *aligned) append(r rune, at span) {
	a.text = utf8.AppendRune(a.text, r)
	for len(a.at) < len(a.text) {
		a.at = append(a.at, at)
	}
}

// copy appends a range of another text.
func (a *aligned) copy(from *aligned, lo, hi int32) {
	a.text, a.at = append(a.text, from.text[lo:hi]...), append(a.at, from.at[lo:hi]...)
}

// isASCII reports whether text has no other bytes.
func isASCII(text []byte) bool {
	for _, b := range text {
		if b >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
