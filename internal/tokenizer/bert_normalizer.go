package tokenizer

import (
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"golang.org/x/text/unicode/rangetable"
)

// bertNormalizer normalises raw text as BERT does (Devlin et al. 2019), in the form and with the Unicode versions of
// the Rust crate tokenizers: it cleans, spaces CJK ideographs, removes accents by NFD, and lowers case, in this order.
type bertNormalizer struct {
	bertSettings
	strip bool
	ascii [utf8.RuneSelf]byte // the replacement of each ASCII character, or dropped
	class *bertClasses
}

const dropped = 0xff

func newBERTNormalizer(settings bertSettings) *bertNormalizer {
	z := &bertNormalizer{bertSettings: settings, strip: settings.Lower, class: bertClassesOfRunes()}
	if settings.Strip != nil {
		z.strip = *settings.Strip
	}
	for c := range z.ascii {
		switch class := z.class[c]; {
		case z.Clean && class&classOther != 0:
			z.ascii[c] = dropped
		case z.Clean && class&classSpace != 0:
			z.ascii[c] = ' '
		case z.Lower:
			z.ascii[c] = byte(unicode.ToLower(rune(c)))
		default:
			z.ascii[c] = byte(c)
		}
	}
	return z
}

// bertScratch is a run of marks that is not yet in canonical order, and its places.
type bertScratch struct {
	marks   []ordered
	sources []span // of those marks that begin the decomposition of a rune
	last    span   // of the last rune that began a decomposition
	bytes   []byte // one rune's decomposition
}

// normalize implements normalizer. An invalid byte is read as U+FFFD.
func (z *bertNormalizer) normalize(t *segment) {
	text, at, n, i := t.text, t.at[:len(t.text)], 0, 0
	for ; i < len(text) && text[i] < utf8.RuneSelf; i++ { // in place, as most texts are nothing but ASCII
		if b := z.ascii[text[i]]; b != dropped {
			text[n], at[n] = b, at[i]
			n++
		}
	}
	if i == len(text) {
		t.text, t.at = text[:n], at[:n]
		return
	}
	t.other.text, t.other.at = append(t.other.text[:0], text[:n]...), append(t.other.at[:0], at[:n]...)
	for i < len(t.text) {
		if t.text[i] < utf8.RuneSelf {
			i = z.appendASCII(t, i)
			continue
		}
		r, size := utf8.DecodeRune(t.text[i:])
		z.rune(t, r, t.at[i])
		i += size
	}
	z.order(t)
	t.aligned, t.other = t.other, t.aligned
}

// appendASCII appends the run of ASCII characters that begins at byte i, and returns its end.
func (z *bertNormalizer) appendASCII(t *segment, i int) int {
	for ; i < len(t.text) && t.text[i] < utf8.RuneSelf && z.ascii[t.text[i]] == dropped; i++ {
	}
	if i == len(t.text) || t.text[i] >= utf8.RuneSelf {
		return i // no character that ends a run of marks
	}
	z.order(t)

	text, at := t.other.text, t.other.at
	for ; i < len(t.text) && t.text[i] < utf8.RuneSelf; i++ {
		if b := z.ascii[t.text[i]]; b != dropped {
			text, at = append(text, b), append(at, t.at[i])
		}
	}
	t.other.text, t.other.at = text, at
	return i
}

func (z *bertNormalizer) rune(t *segment, r rune, at span) {
	class := z.class[r]
	switch {
	case z.Clean && class&classOther != 0:
	case z.Clean && class&classSpace != 0:
		z.order(t)
		t.other.append(' ', at)
	case z.Chinese && class&classChinese != 0:
		z.order(t)
		t.other.append(' ', at)
		z.decompose(t, r, at)
		t.other.append(' ', at)
	default:
		z.decompose(t, r, at)
	}
}

// decompose appends the canonical decomposition of r, but collects marks for order.
func (z *bertNormalizer) decompose(t *segment, r rune, at span) {
	if !z.strip || flagsOf(r)&(1<<norm.NFD) == 0 {
		z.order(t)
		z.fold(t, r, at)
		return
	}
	var raw [utf8.UTFMax]byte
	n := &t.bert
	n.bytes = norm.NFD.Append(n.bytes[:0], raw[:utf8.EncodeRune(raw[:], r)]...)
	for i := 0; i < len(n.bytes); {
		d, size := utf8.DecodeRune(n.bytes[i:])
		if class := norm.NFD.Properties(n.bytes[i:]).CCC(); class != 0 {
			n.marks = append(n.marks, ordered{change{d, min(i, 1)}, class})
			if i == 0 {
				n.sources = append(n.sources, at)
			}
		} else {
			z.order(t)
			n.last = at
			z.fold(t, d, at)
		}
		i += size
	}
}

// order appends the collected marks in canonical order. As in the crate, raw bytes are assigned by position: the k-th
// rune that begins a decomposition has those of the k-th raw rune, the others those of their predecessor.
func (z *bertNormalizer) order(t *segment) {
	n := &t.bert
	if len(n.marks) == 0 {
		return
	}
	sortMarks(n.marks)
	sources := n.sources
	for _, m := range n.marks {
		if m.by == 0 {
			n.last, sources = sources[0], sources[1:]
		}
		z.fold(t, m.r, n.last)
	}
	n.marks, n.sources = n.marks[:0], n.sources[:0]
}

// fold appends r, in lower case if z lowers case, unless it is an accent to drop.
func (z *bertNormalizer) fold(t *segment, r rune, at span) {
	if z.strip && z.class[r]&classMark != 0 {
		return
	}
	if !z.Lower {
		t.other.append(r, at)
		return
	}
	t.other.append(lowerCase(r), at)
	if r == 'İ' {
		t.other.append('\u0307', at) // the one rune whose lower case is two: i and a dot above
	}
}

// bertClasses holds the class of each rune in BERT's normalisation and its split into words.
type bertClasses [unicode.MaxRune + 1]bertClass

type bertClass uint8

const (
	classOther       bertClass = 1 << iota // control, format, private use, U+FFFD: dropped by cleaning
	classSpace                             // white space
	classPunctuation                       // a word of its own
	classMark                              // nonspacing mark: an accent
	classChinese                           // CJK ideograph
	classOld                               // assigned in Unicode 8.0
)

// chinese lists the blocks that BERT's tokenization.py calls Chinese. In the crate tokenizers the block at U+2B820
// begins at U+2B920.
var chinese = [][2]rune{
	{0x4E00, 0x9FFF}, {0x3400, 0x4DBF}, {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
	{0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0xF900, 0xFAFF}, {0x2F800, 0x2FA1F},
}

// bertClassesOfRunes returns the table, computed at first use. The crate tokenizers 0.23 uses the categories of Unicode
// 8.0, the decompositions of 9.0, and white space and letter case of a current version: Go's tables are restricted to
// the runes assigned in these versions, and runes whose category has changed since are corrected.
var bertClassesOfRunes = sync.OnceValue(func() *bertClasses {
	c := new(bertClasses)
	set := func(class bertClass, runes *unicode.RangeTable, of bertClass) { // of the runes that have a class, 0: all
		rangetable.Visit(runes, func(r rune) {
			if c[r]&of == of {
				c[r] |= class
			}
		})
	}

	set(classOld, rangetable.Assigned("8.0.0"), 0)
	set(classSpace, unicode.White_Space, 0)
	set(classOther, unicode.Cc, 0)
	set(classOther, unicode.Co, 0)
	set(classOther, unicode.Cf, classOld)
	set(classPunctuation, unicode.P, classOld)
	set(classMark, unicode.Mn, classOld)

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

// find implements finder. A match is a word: a run of runes that are neither white space nor punctuation, or one
// punctuation mark.
func (c *bertClasses) find(text []byte, from int) (lo, hi int) {
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
