package pieces

import "unicode/utf8"

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

// byteOf returns the byte that a character stands for.
func byteOf(r rune) (byte, bool) {
	if int(r) >= len(runeBytes) || runeBytes[r] < 0 {
		return 0, false
	}
	return byte(runeBytes[r]), true
}

// bytesOf returns the bytes that the characters of name stand for.
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

// utf8Byte reports whether a byte occurs in UTF-8.
func utf8Byte(c byte) bool { return c != 0xc0 && c != 0xc1 && c < 0xf5 }

// preTokenize implements preTokenizer.
func (p *byteLevel) preTokenize(s *state) {
	if p.prefixSpace || p.blanks && s.blank {
		s.rewrite(func(from *aligned, k split) {
			if from.text[k.lo] != ' ' {
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
	blank := func(r rune) bool { return r == byteRunes[' '] || isSpace(r) }
	var p padding
	rest := name
	for r, size := utf8.DecodeRuneInString(rest); size > 0 && blank(r); r, size = utf8.DecodeRuneInString(rest) {
		p.before, rest = p.before+1, rest[size:]
	}
	rest = name
	last := utf8.DecodeLastRuneInString
	for r, size := last(rest); size > 0 && blank(r); r, size = last(rest) {
		p.after, rest = p.after+1, rest[:len(rest)-size]
	}
	return p
}

// trimmed returns k, whose token has the padding p, with its offsets in text trimmed. First is true for the first token
// of a text, blank if the text has a blank before it.
func (t *Tokenizer) trimmed(k Piece, p padding, text string, first, blank bool) Piece {
	for _, trim := range t.trims {
		keep := (trim.prefixSpace || blank) && (first || k.Start == 0)
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
