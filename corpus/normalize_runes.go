package corpus

import (
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/rangetable"
)

// classes holds the class of each rune in BERT's normalisation and its split into words.
type classes [unicode.MaxRune + 1]class

type class uint8

const (
	classOther       class = 1 << iota // control, format, private use, U+FFFD: dropped by cleaning
	classSpace                         // white space
	classPunctuation                   // a word of its own
	classMark                          // nonspacing mark: an accent
	classChinese                       // CJK ideograph
	classDecomposed                    // assigned in Unicode 9.0: is decomposed and ordered
	classOld                           // assigned in Unicode 8.0
)

// chinese lists the blocks that BERT's tokenization.py calls Chinese. In the crate tokenizers the block at U+2B820
// begins at U+2B920.
var chinese = [][2]rune{
	{0x4E00, 0x9FFF}, {0x3400, 0x4DBF}, {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
	{0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0xF900, 0xFAFF}, {0x2F800, 0x2FA1F},
}

// classesOfRunes returns the table, computed at first use. The crate tokenizers 0.23 uses the categories of Unicode
// 8.0, the decompositions of 9.0, and white space and letter case of a current version: Go's tables are restricted to
// the runes assigned in these versions, and runes whose category has changed since are corrected.
var classesOfRunes = sync.OnceValue(func() *classes {
	c := new(classes)
	set := func(class class, runes *unicode.RangeTable) {
		rangetable.Visit(runes, func(r rune) { c[r] |= class })
	}
	setOld := func(class class, runes *unicode.RangeTable) {
		rangetable.Visit(runes, func(r rune) {
			if c[r]&classOld != 0 {
				c[r] |= class
			}
		})
	}

	set(classOld, rangetable.Assigned("8.0.0"))
	set(classDecomposed, rangetable.Assigned("9.0.0"))
	set(classSpace, unicode.White_Space)
	set(classOther, unicode.Cc)
	set(classOther, unicode.Co)
	setOld(classOther, unicode.Cf)
	setOld(classPunctuation, unicode.P)
	setOld(classMark, unicode.Mn)

	for _, r := range "\t\n\r" {
		c[r] &^= classOther
	}
	c[unicode.ReplacementChar] |= classOther
	for _, r := range "$+<=>^`|~" {
		c[r] |= classPunctuation // ASCII symbols that BERT treats as punctuation
	}
	for _, r := range []rune{0x166D, 0x111C9} {
		c[r] |= classPunctuation
	}
	c[0x1734] |= classMark
	for _, r := range []rune{0x1885, 0x1886, 0xA9BD, 0x111C9} {
		c[r] &^= classMark
	}
	for _, block := range chinese {
		for r := block[0]; r <= block[1]; r++ {
			c[r] |= classChinese
		}
	}
	return c
})

// next returns the bounds of the first word of text at or after byte from: a run of runes that are neither white space
// nor punctuation, or one punctuation mark. If there is none, both are the text's end.
func (c *classes) next(text []byte, from int) (lo, hi int) {
	lo = -1
	for i := from; i < len(text); {
		r, size := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(text[i:])
		}
		switch class := c[r]; {
		case class&(classSpace|classPunctuation) == 0:
			if lo < 0 {
				lo = i
			}
		case lo >= 0:
			return lo, i
		case class&classPunctuation != 0:
			return i, i + size
		}
		i += size
	}
	if lo < 0 {
		lo = len(text)
	}
	return lo, len(text)
}
