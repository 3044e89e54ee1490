package pieces

import (
	"bytes"
	"unicode/utf8"
)

// finder finds matches in a text.
type finder interface {
	// find returns the first match at or after byte from, which has a byte at least; both bounds are the text's length
	// if there is none.
	find(text []byte, from int) (lo, hi int)
}

// behavior says what becomes of the matches when a split is divided at them.
type behavior string

const (
	isolated       behavior = "Isolated"           // each is a split
	removed        behavior = "Removed"            // they are dropped
	contiguous     behavior = "Contiguous"         // neighbouring matches are one split
	mergedPrevious behavior = "MergedWithPrevious" // each belongs to the split before it
	mergedNext     behavior = "MergedWithNext"     // each belongs to the split after it
)

// rewrite replaces the text of the splits that are not added tokens by what write appends to s for each.
func (s *state) rewrite(write func(from *aligned, k split)) {
	s.previous, s.aligned = s.aligned, aligned{s.previous.text[:0], s.previous.at[:0]}
	kept := s.splits[:0]
	for _, k := range s.splits {
		lo := int32(len(s.text))
		if k.token != NotAdded {
			s.copy(&s.previous, k.lo, k.hi)
		} else {
			write(&s.previous, k)
		}
		if k.lo, k.hi = lo, int32(len(s.text)); k.lo < k.hi {
			kept = append(kept, k)
		}
	}
	s.splits = kept
}

// divide divides the splits that are not added tokens at the matches of f; with invert, at what lies between them.
func (s *state) divide(f finder, b behavior, invert bool) {
	s.before, s.splits = s.splits, s.before[:0]
	for _, k := range s.before {
		if k.token != NotAdded {
			s.splits = append(s.splits, k)
			continue
		}
		d := divider{s: s, behavior: b}
		text := s.text[k.lo:k.hi]
		for done := 0; done < len(text); {
			lo, hi := f.find(text, done)
			if done < lo {
				d.next(k.lo+int32(done), k.lo+int32(lo), invert)
			}
			if lo < hi {
				d.next(k.lo+int32(lo), k.lo+int32(hi), !invert)
			}
			done = hi
		}
		d.flush()
	}
}

// divider collects the parts of a split.
type divider struct {
	s        *state
	behavior behavior
	lo, hi   int32 // the part that may grow; lo == hi for none
	match    bool  // it ends with a match
}

// next takes the next part, which is a match or lies between two.
func (d *divider) next(lo, hi int32, match bool) {
	switch d.behavior {
	case isolated:
		d.add(lo, hi)
		return
	case removed:
		if !match {
			d.add(lo, hi)
		}
		return
	}
	joins := match == d.match
	switch d.behavior {
	case mergedPrevious:
		joins = match && !d.match
	case mergedNext:
		joins = !match && d.match
	}
	if d.lo < d.hi && joins {
		d.hi = hi
	} else {
		d.flush()
		d.lo, d.hi = lo, hi
	}
	d.match = match
}

// flush adds the part that may grow.
func (d *divider) flush() {
	if d.lo < d.hi {
		d.add(d.lo, d.hi)
	}
	d.lo, d.hi = 0, 0
}

func (d *divider) add(lo, hi int32) { d.s.splits = append(d.s.splits, split{lo, hi, NotAdded}) }

// literal finds a text.
type literal []byte

func (l literal) find(text []byte, from int) (lo, hi int) {
	at := bytes.Index(text[from:], l)
	if at < 0 {
		return len(text), len(text)
	}
	return from + at, from + at + len(l)
}

// runesOf finds the characters of a class, each a match.
type runesOf func(r rune) bool

func (f runesOf) find(text []byte, from int) (lo, hi int) {
	for lo = from; lo < len(text); {
		r, size := utf8.DecodeRune(text[lo:])
		if f(r) {
			return lo, lo + size
		}
		lo += size
	}
	return lo, lo
}
