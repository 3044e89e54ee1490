package pieces

import (
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/rangetable"
)

// class is what patterns distinguish of a rune: a letter (\p{L}), a number (\p{N}), white space (\s), or none of these.
type class uint8

const (
	letter class = 1 + iota
	number
	space
)

// classesOfRunes returns the table, computed at first use. The library tokenizers has Unicode 16.0 in its engine of
// patterns; what that added since the version of Go's tables is added here.
var classesOfRunes = sync.OnceValue(func() *[unicode.MaxRune + 1]class {
	c := new([unicode.MaxRune + 1]class)
	set := func(class class, runes *unicode.RangeTable) {
		rangetable.Visit(runes, func(r rune) { c[r] = class })
	}
	set(letter, unicode.L)
	set(number, unicode.N)
	set(space, unicode.White_Space)
	for _, added := range []struct {
		class class
		runes [][2]rune
	}{{letter, newLetters}, {number, newNumbers}} {
		for _, block := range added.runes {
			for r := block[0]; r <= block[1]; r++ {
				c[r] = added.class
			}
		}
	}
	return c
})

// classOf returns the class of the first rune of text and its length.
func classOf(table *[unicode.MaxRune + 1]class, text []byte) (class, int) {
	if text[0] < utf8.RuneSelf {
		return table[text[0]], 1
	}
	r, size := utf8.DecodeRune(text)
	return table[r], size
}

// isSpace is white space of Unicode.
func isSpace(r rune) bool { return unicode.IsSpace(r) }

// newCapitals is the lower case of capitals added in Unicode 16 and 17: first, last, distance.
var newCapitals = [][3]rune{
	{0x1C89, 0x1C89, 1}, {0xA7CB, 0xA7CB, 0x264 - 0xA7CB}, {0xA7CC, 0xA7CC, 1}, {0xA7CE, 0xA7CE, 1},
	{0xA7D2, 0xA7D2, 1},
	{0xA7D4, 0xA7D4, 1}, {0xA7DA, 0xA7DA, 1}, {0xA7DC, 0xA7DC, 0x19B - 0xA7DC}, {0x10D50, 0x10D65, 0x20},
	{0x16EA0, 0x16EB8, 0x1B},
}

// LowerCase is unicode.ToLower as of Unicode 17, whatever the version of Go's tables.
func LowerCase(r rune) rune {
	for _, c := range newCapitals {
		if c[0] <= r && r <= c[1] {
			return r + c[2]
		}
	}
	return unicode.ToLower(r)
}

// newLetters and newNumbers were added by Unicode 15.1 and 16.0.
var (
	newLetters = [][2]rune{
		{0x1C89, 0x1C8A}, {0xA7CB, 0xA7CD}, {0xA7DA, 0xA7DC}, {0x105C0, 0x105F3},
		{0x10D4A, 0x10D65}, {0x10D6F, 0x10D85}, {0x10EC2, 0x10EC4}, {0x11380, 0x11389},
		{0x1138B, 0x1138B}, {0x1138E, 0x1138E}, {0x11390, 0x113B5}, {0x113B7, 0x113B7},
		{0x113D1, 0x113D1}, {0x113D3, 0x113D3}, {0x11BC0, 0x11BE0}, {0x13460, 0x143FA},
		{0x16100, 0x1611D}, {0x16D40, 0x16D6C}, {0x18CFF, 0x18CFF}, {0x1E5D0, 0x1E5ED},
		{0x1E5F0, 0x1E5F0}, {0x2EBF0, 0x2EE5D},
	}
	newNumbers = [][2]rune{
		{0x10D40, 0x10D49}, {0x116D0, 0x116E3}, {0x11BF0, 0x11BF9}, {0x16130, 0x16139},
		{0x16D70, 0x16D79}, {0x1CCF0, 0x1CCF9}, {0x1E5F1, 0x1E5FA},
	}
)

// isNumber is \p{N} of Unicode 17, which Digits has.
func isNumber(r rune) bool {
	return classesOfRunes()[r] == number || 0x11DE0 <= r && r <= 0x11DE9 || 0x16FF4 <= r && r <= 0x16FF6
}

// oldRunes are the runes that Unicode 9.0 assigns.
var oldRunes = sync.OnceValue(func() *unicode.RangeTable { return rangetable.Assigned("9.0.0") })

// stripAccent drops the marks of Unicode 9.0.
func stripAccent(r rune) rune {
	isMark := unicode.Is(unicode.M, r) && r != 0x111C9 || r == 0x1CF2 || r == 0x1CF3 // as of 9.0
	if r >= utf8.RuneSelf && isMark && unicode.Is(oldRunes(), r) {
		return -1
	}
	return r
}
