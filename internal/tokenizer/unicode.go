package tokenizer

import (
	"slices"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
	"golang.org/x/text/unicode/norm"
	"golang.org/x/text/unicode/rangetable"
)

// unicodeForm is a normalisation form of Unicode (UAX 15). The library tokenizers has those of Unicode 9.0: runes that
// it does not assign are left as they are.
type unicodeForm norm.Form

// unicodeForms are the names of the forms, in the order of norm's constants.
var unicodeForms = []string{"NFC", "NFD", "NFKC", "NFKD"}

// runeFlags holds the results of flagsOf, 0 for runes that it was not called for.
var runeFlags [unicode.MaxRune + 1]atomic.Uint32

// Of the flags of a rune, 1<<form says that a normalisation form may change it, alone or beside others.
const (
	inCluster = 1 << (4 + iota) // is in grapheme clusters with others, not only with those that have this flag
	flagged
)

func flagsOf(r rune) uint32 {
	if flags := runeFlags[r].Load(); flags != 0 {
		return flags
	}
	one, flags := string(r), uint32(flagged)
	old := unicode.Is(oldRunes(), r)
	for form := norm.NFC; old && form <= norm.NFKD; form++ {
		if p := form.PropertiesString(one); p.CCC() != 0 || !p.BoundaryBefore() || !form.IsNormalString(one) {
			flags |= 1 << form
		}
	}
	for _, two := range []string{"a" + one, one + "a", one + one} {
		if uniseg.GraphemeClusterCount(two) == 1 {
			flags |= inCluster
		}
	}
	runeFlags[r].Store(flags)
	return flags
}

type runeScratch struct {
	decomposed, held []ordered
	bytes            []byte
}

type ordered struct {
	change
	class uint8 // its combining class
}

func (f unicodeForm) normalize(t *segment) {
	if isASCII(t.text) || !f.changes(t.text) {
		return
	}
	f.decompose(t)
	t.changes = t.changes[:0]
	if f == unicodeForm(norm.NFC) || f == unicodeForm(norm.NFKC) {
		t.recompose()
	} else {
		for _, c := range t.runes.decomposed {
			t.changes = append(t.changes, c.change)
		}
	}
	t.rewrite(0)
}

func (f unicodeForm) changes(text []byte) bool {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if flagsOf(r)&(1<<f) != 0 {
			return true
		}
		i += size
	}
	return false
}

// decompose sets t.runes.decomposed to the decomposition of the text in canonical order.
func (f unicodeForm) decompose(t *segment) {
	form := norm.NFD
	if f >= unicodeForm(norm.NFKC) {
		form = norm.NFKD
	}
	out := t.runes.decomposed[:0]
	start := 0 // of the runes that are not yet in order: one of class 0, and marks
	add := func(r rune, class uint8, by int) {
		if class == 0 {
			sortMarks(out[start:])
			start = len(out)
		}
		out = append(out, ordered{change{r, by}, class})
	}
	for i := 0; i < len(t.text); {
		r, size := utf8.DecodeRune(t.text[i:])
		one := t.text[i : i+size]
		i += size
		if flagsOf(r)&(1<<form) == 0 {
			add(r, 0, 0)
			continue
		}
		t.runes.bytes = form.Append(t.runes.bytes[:0], one...)
		for k, part := range string(t.runes.bytes) {
			add(part, form.Properties(t.runes.bytes[k:]).CCC(), min(k, 1))
		}
	}
	sortMarks(out[start:])
	t.runes.decomposed = out
}

func sortMarks(runes []ordered) {
	if len(runes) > 1 {
		slices.SortStableFunc(runes, func(a, b ordered) int { return int(a.class) - int(b.class) })
	}
}

// recompose composes t.runes.decomposed into t.changes.
func (t *segment) recompose() {
	out, held := t.changes, t.runes.held[:0]
	first, have := change{}, false // the rune that others may join
	for _, c := range t.runes.decomposed {
		if !have && c.class != 0 {
			out = append(out, c.change)
			continue
		}
		if have && (len(held) == 0 || held[len(held)-1].class < c.class) {
			if r, ok := compose(first.r, c.r); ok {
				first = change{r, first.by + c.by - 1}
				continue
			}
		}
		if c.class != 0 {
			held = append(held, c)
			continue
		}
		if have {
			out = append(out, first)
		}
		for _, mark := range held {
			out = append(out, mark.change)
		}
		first, have, held = c.change, true, held[:0]
	}
	if have {
		out = append(out, first)
	}
	for _, mark := range held {
		out = append(out, mark.change)
	}
	t.changes, t.runes.held = out, held[:0]
}

// compose returns the primary composite of two runes, if Unicode 9.0 has it.
func compose(a, b rune) (rune, bool) {
	var raw, composed [2 * utf8.UTFMax]byte
	if norm.NFC.Properties(utf8.AppendRune(raw[:0], b)).BoundaryBefore() {
		return 0, false
	}
	out := norm.NFC.Append(composed[:0], utf8.AppendRune(utf8.AppendRune(raw[:0], a), b)...)
	r, size := utf8.DecodeRune(out)
	return r, size == len(out) && flagsOf(r)&(1<<norm.NFD) != 0
}

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

func classOf(table *[unicode.MaxRune + 1]class, text []byte) (class, int) {
	if text[0] < utf8.RuneSelf {
		return table[text[0]], 1
	}
	r, size := utf8.DecodeRune(text)
	return table[r], size
}

// newCapitals is the lower case of capitals added in Unicode 16 and 17: first, last, distance.
var newCapitals = [][3]rune{
	{0x1C89, 0x1C89, 1}, {0xA7CB, 0xA7CB, 0x264 - 0xA7CB}, {0xA7CC, 0xA7CC, 1}, {0xA7CE, 0xA7CE, 1},
	{0xA7D2, 0xA7D2, 1},
	{0xA7D4, 0xA7D4, 1}, {0xA7DA, 0xA7DA, 1}, {0xA7DC, 0xA7DC, 0x19B - 0xA7DC}, {0x10D50, 0x10D65, 0x20},
	{0x16EA0, 0x16EB8, 0x1B},
}

// lowerCase is unicode.ToLower as of Unicode 17, whatever the version of Go's tables.
func lowerCase(r rune) rune {
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

// clusterEnd returns the end of the grapheme cluster (UAX 29, of Unicode 15.0) of text that begins at byte from.
func clusterEnd(text []byte, from int) int {
	r, size := utf8.DecodeRune(text[from:])
	if at := from + size; r != '\r' && flagsOf(r)&inCluster == 0 {
		if next, _ := utf8.DecodeRune(text[at:]); at == len(text) || flagsOf(next)&inCluster == 0 {
			return at
		}
	}
	cluster, _, _, _ := uniseg.FirstGraphemeCluster(text[from:], -1)
	return from + len(cluster)
}
