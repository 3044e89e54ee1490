package tokenizer

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// metaspace is the mark of a blank in sentencepiece's vocabularies.
const metaspace = "▁"

type divideAt struct {
	finder   finder
	behavior behavior
	invert   bool
}

func (p *divideAt) preTokenize(s *state) { s.divide(p.finder, p.behavior, p.invert) }

// metaspaces is sentencepiece's pre-tokenizer (Kudo and Richardson 2018): a mark takes the place of blanks and is put
// before words, and splits are divided before each mark.
type metaspaces struct {
	mark   string
	prefix string // which splits the mark is put before: always, first (of the raw text) or never
	words  finder // of marks, at which splits are divided; nil for none
}

func (p *metaspaces) preTokenize(s *state) {
	s.rewrite(func(from *aligned, k split) {
		text := from.text[k.lo:k.hi]
		marked := text[0] == ' ' || len(text) >= len(p.mark) && string(text[:len(p.mark)]) == p.mark
		begins := from.at[k.lo].start == 0
		if !marked && !(begins && s.continues) && (p.prefix == "always" || p.prefix == "first" && begins) {
			s.put(p.mark, from.at[k.lo])
		}
		for i := k.lo; i < k.hi; i++ {
			if from.text[i] == ' ' {
				s.put(p.mark, from.at[i])
			} else {
				s.text, s.at = append(s.text, from.text[i]), append(s.at, from.at[i])
			}
		}
	})
	if p.words != nil {
		s.divide(p.words, mergedNext, false)
	}
}

func (a *aligned) put(text string, at span) {
	a.text = append(a.text, text...)
	for range len(text) {
		a.at = append(a.at, at)
	}
}

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
		if k.token != notAdded {
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
		if k.token != notAdded {
			s.splits = append(s.splits, k)
			continue
		}
		text, first, after := s.text[k.lo:k.hi], len(s.splits), false // after a match
		put := func(lo, hi int, match bool) {
			joins := false // the part before it
			switch b {
			case removed:
				if match {
					return
				}
			case contiguous:
				joins = match == after
			case mergedPrevious:
				joins = match && !after
			case mergedNext:
				joins = !match && after
			}
			if last := len(s.splits) - 1; joins && last >= first {
				s.splits[last].hi = k.lo + int32(hi)
			} else {
				s.splits = append(s.splits, split{k.lo + int32(lo), k.lo + int32(hi), notAdded})
			}
			after = match
		}
		for done := 0; done < len(text); {
			lo, hi := f.find(text, done)
			if done < lo {
				put(done, lo, invert)
			}
			if lo < hi {
				put(lo, hi, !invert)
			}
			done = hi
		}
	}
}

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

// byteLevel is GPT-2's pre-tokenizer (Radford et al. 2019): the model reads the bytes of splits. In files, bytes are
// written as the characters of byteRunes.
type byteLevel struct {
	prefixSpace bool // a blank is put before each split that begins with none
	blanks      bool // so it is for texts with a blank before them
	regex       bool // splits are divided by GPT-2's pattern
}

// byteRunes are the characters that stand for bytes in vocabularies: printable characters of Latin-1 for themselves,
// the others in order from U+0100.
var byteRunes, runeBytes = byteAlphabet()

func byteAlphabet() (runes [256]rune, bytes [512]int16) {
	for i := range bytes {
		bytes[i] = -1
	}
	next := rune(256)
	for c := range runes {
		printable := '!' <= c && c <= '~' || 0xa1 <= c && c <= 0xac || 0xae <= c
		if runes[c] = rune(c); !printable {
			runes[c] = next
			next++
		}
		bytes[runes[c]] = int16(c)
	}
	return runes, bytes
}

func byteOf(r rune) (byte, bool) {
	if int(r) >= len(runeBytes) || runeBytes[r] < 0 {
		return 0, false
	}
	return byte(runeBytes[r]), true
}

func bytesOf(name string) (string, bool) {
	out := make([]byte, 0, len(name))
	for _, r := range name {
		c, ok := byteOf(r)
		if !ok {
			return "", false
		}
		out = append(out, c)
	}
	return string(out), true
}

func utf8Byte(c byte) bool { return c != 0xc0 && c != 0xc1 && c < 0xf5 }

func (p *byteLevel) preTokenize(s *state) {
	if p.prefixSpace || p.blanks && s.blank {
		s.rewrite(func(from *aligned, k split) {
			if from.text[k.lo] != ' ' && !(s.continues && from.at[k.lo].start == 0) {
				s.append(' ', from.at[k.lo])
			}
			s.copy(from, k.lo, k.hi)
		})
	}
	if p.regex {
		s.divide(&gpt2, isolated, false)
	}
}

// trim is the removal of blanks from the offsets of tokens that a post-processor makes.
type trim struct {
	prefixSpace bool // one blank before the first token is kept: byteLevel put it there
}

// padding is the number of blanks at the begin and the end of a token.
type padding struct{ before, after int32 }

// paddingOf counts the blanks around a token as it is written in the vocabulary.
func paddingOf(name string) padding {
	blank := func(r rune) bool { return r == byteRunes[' '] || unicode.IsSpace(r) }
	before := strings.TrimSuffix(name, strings.TrimLeftFunc(name, blank))
	after := strings.TrimPrefix(name, strings.TrimRightFunc(name, blank))
	return padding{int32(utf8.RuneCountInString(before)), int32(utf8.RuneCountInString(after))}
}

// trimmed returns k, whose token has the padding p, with its offsets in text trimmed. First is true for the first token
// of the text of s.
func (t *subwords) trimmed(s *state, k Token, p padding, text string, first bool) Token {
	for _, trim := range t.trims {
		keep := (trim.prefixSpace || s.blank) && (first || k.Start == 0) && !s.continues
		k.Start, k.End = p.trim(text, k.Start, k.End, keep)
	}
	return k
}

// trim moves the offsets of a token by a character for each of its blanks. With keep, a single one is left.
func (p padding) trim(text string, start, end int, keep bool) (int, int) {
	if before := int(p.before); before > 0 && !(keep && before == 1) {
		for ; before > 0 && start < end; before-- {
			_, size := utf8.DecodeRuneInString(text[start:])
			start += size
		}
		start = min(start, end)
	}
	to := end
	for after := p.after; after > 0; after-- {
		if to == 0 {
			return start, end // more blanks than the text has characters
		}
		_, size := utf8.DecodeLastRuneInString(text[:to])
		to -= size
	}
	return start, max(start, to)
}
