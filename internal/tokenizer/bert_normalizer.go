package tokenizer

import (
	"slices"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"golang.org/x/text/unicode/rangetable"
)

// bertNormalizer normalises raw text as BERT does (Devlin et al. 2019), in the form and with the Unicode versions of
// the Rust crate tokenizers: it cleans, spaces CJK ideographs, removes accents by NFD, and lowers case, in this order.
type bertNormalizer struct {
	clean   bool // drop control and format characters, replace white space by blanks
	chinese bool // add blanks around CJK ideographs
	strip   bool // decompose and drop nonspacing marks
	lower   bool

	ascii [utf8.RuneSelf]byte // the replacement of each ASCII character, or dropped
	class *bertClasses
}

const dropped = 0xff

func newBERTNormalizer(clean, chinese, strip, lower bool) *bertNormalizer {
	z := &bertNormalizer{clean: clean, chinese: chinese, strip: strip, lower: lower, class: bertClassesOfRunes()}
	for c := range z.ascii {
		switch class := z.class[c]; {
		case clean && class&classOther != 0:
			z.ascii[c] = dropped
		case clean && class&classSpace != 0:
			z.ascii[c] = ' '
		case lower:
			z.ascii[c] = byte(unicode.ToLower(rune(c)))
		default:
			z.ascii[c] = byte(c)
		}
	}
	return z
}

// normalized is a text after normalisation, with the bytes of the raw text that each of its bytes comes from.
type normalized struct {
	text  []byte
	spans []Range // [len(text)]

	// The run of marks that is not yet in canonical order, and the raw bytes of those marks that begin the
	// decomposition of a raw rune.
	marks   []mark
	sources []Range
	last    Range  // the raw bytes of the last rune that began a decomposition
	scratch []byte // one rune's decomposition
}

// mark is a rune with a combining class over 0.
type mark struct {
	r     rune
	class uint8
	first bool // of its raw rune's decomposition
}

func (n *normalized) reset() {
	n.text, n.spans, n.marks, n.sources = n.text[:0], n.spans[:0], n.marks[:0], n.sources[:0]
}

// append appends raw, normalised; base is the offset of raw in the text that spans refer to. An invalid byte is read as
// U+FFFD.
func (z *bertNormalizer) append(n *normalized, raw string, base int) {
	n.text = slices.Grow(n.text, len(raw))
	n.spans = slices.Grow(n.spans, len(raw))
	for i := 0; i < len(raw); {
		if raw[i] < utf8.RuneSelf {
			i = z.appendASCII(n, raw, i, base)
			continue
		}
		r, size := utf8.DecodeRuneInString(raw[i:])
		z.rune(n, r, Range{base + i, base + i + size})
		i += size
	}
	z.order(n)
}

// appendASCII appends the run of ASCII characters of raw that begins at byte i, and returns its end.
func (z *bertNormalizer) appendASCII(n *normalized, raw string, i, base int) int {
	for ; i < len(raw) && raw[i] < utf8.RuneSelf && z.ascii[raw[i]] == dropped; i++ {
	}
	if i == len(raw) || raw[i] >= utf8.RuneSelf {
		return i // no character that ends a run of marks
	}
	z.order(n)

	text, spans := n.text, n.spans
	for ; i < len(raw) && raw[i] < utf8.RuneSelf; i++ {
		if b := z.ascii[raw[i]]; b != dropped {
			text = append(text, b)
			spans = append(spans, Range{base + i, base + i + 1})
		}
	}
	n.text, n.spans = text, spans
	return i
}

// rune appends a raw rune that is not ASCII.
func (z *bertNormalizer) rune(n *normalized, r rune, at Range) {
	class := z.class[r]
	switch {
	case z.clean && class&classOther != 0:
	case z.clean && class&classSpace != 0:
		z.order(n)
		n.add(' ', at)
	case z.chinese && class&classChinese != 0:
		z.order(n)
		n.add(' ', at)
		z.decompose(n, r, at)
		n.add(' ', at)
	default:
		z.decompose(n, r, at)
	}
}

// decompose appends the canonical decomposition of r, but collects marks for order.
func (z *bertNormalizer) decompose(n *normalized, r rune, at Range) {
	if !z.strip || z.class[r]&classDecomposed == 0 {
		z.order(n)
		z.fold(n, r, at)
		return
	}
	var raw [utf8.UTFMax]byte
	n.scratch = norm.NFD.Append(n.scratch[:0], raw[:utf8.EncodeRune(raw[:], r)]...)
	for i := 0; i < len(n.scratch); {
		d, size := utf8.DecodeRune(n.scratch[i:])
		if class := norm.NFD.Properties(n.scratch[i:]).CCC(); class != 0 {
			n.marks = append(n.marks, mark{d, class, i == 0})
			if i == 0 {
				n.sources = append(n.sources, at)
			}
		} else {
			z.order(n)
			n.last = at
			z.fold(n, d, at)
		}
		i += size
	}
}

// order appends the collected marks in canonical order. As in the crate, raw bytes are assigned by position: the k-th
// rune that begins a decomposition has those of the k-th raw rune, the others those of their predecessor.
func (z *bertNormalizer) order(n *normalized) {
	if len(n.marks) == 0 {
		return
	}
	slices.SortStableFunc(n.marks, func(a, b mark) int { return int(a.class) - int(b.class) })
	sources := n.sources
	for _, m := range n.marks {
		if m.first {
			n.last, sources = sources[0], sources[1:]
		}
		z.fold(n, m.r, n.last)
	}
	n.marks, n.sources = n.marks[:0], n.sources[:0]
}

// fold appends r, in lower case if z lowers case, unless it is an accent to drop.
func (z *bertNormalizer) fold(n *normalized, r rune, at Range) {
	if z.strip && z.class[r]&classMark != 0 {
		return
	}
	if !z.lower {
		n.add(r, at)
		return
	}
	n.add(lowerCase(r), at)
	if r == 'İ' {
		n.add('\u0307', at) // the one rune whose lower case is two: i and a dot above
	}
}

func (n *normalized) add(r rune, at Range) {
	n.text = utf8.AppendRune(n.text, r)
	for len(n.spans) < len(n.text) {
		n.spans = append(n.spans, at)
	}
}

// source returns the raw bytes that text[lo:hi] comes from.
func (n *normalized) source(lo, hi int) Range {
	return Range{n.spans[lo].Start, n.spans[hi-1].End}
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
	classDecomposed                        // assigned in Unicode 9.0: is decomposed and ordered
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
	set := func(class bertClass, runes *unicode.RangeTable) {
		rangetable.Visit(runes, func(r rune) { c[r] |= class })
	}
	setOld := func(class bertClass, runes *unicode.RangeTable) {
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

// next returns the Range of the first word of text at or after byte from: a run of runes that are neither white space
// nor punctuation, or one punctuation mark. If there is none, both are the text's end.
func (c *bertClasses) next(text []byte, from int) (lo, hi int) {
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
