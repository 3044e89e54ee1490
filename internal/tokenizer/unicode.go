package tokenizer

import (
	"slices"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"golang.org/x/text/unicode/rangetable"
)

// unicodeForm is a normalisation form of Unicode (UAX 15). The library tokenizers has those of Unicode 9.0: runes that
// it does not assign are left as they are.
type unicodeForm struct {
	compatible bool // NFKD, NFKC
	composed   bool // NFC, NFKC
}

// runeScratch is the memory of one normalisation.
type runeScratch struct {
	decomposed []change
	held       []change
	bytes      []byte
}

// formTables is what the forms need of Unicode 9.0.
type formTables struct {
	class      map[rune]uint8   // combining classes over 0
	composites map[[2]rune]rune // primary composites, but for Hangul syllables
	special    [unicode.MaxRune + 1]formFlags
}

// formFlags say which forms may change a rune, alone or beside others.
type formFlags uint8

const (
	inNFD formFlags = 1 << iota
	inNFC
	inNFKD
	inNFKC
)

// forms returns the tables, computed at first use.
var forms = sync.OnceValue(func() *formTables {
	t := &formTables{class: map[rune]uint8{}, composites: map[[2]rune]rune{}}
	var raw [utf8.UTFMax]byte
	rangetable.Visit(oldRunes(), func(r rune) {
		one := raw[:utf8.EncodeRune(raw[:], r)]
		canonical := norm.NFD.Properties(one)
		if class := canonical.CCC(); class != 0 {
			t.class[r] = class
			t.special[r] = inNFD | inNFC | inNFKD | inNFKC
		}
		if full := canonical.Decomposition(); full != nil {
			t.special[r] |= inNFD | inNFKD
			t.addComposite(r, one, full)
		}
		if !norm.NFC.IsNormal(one) {
			t.special[r] |= inNFC
		}
		if !norm.NFKC.IsNormal(one) {
			t.special[r] |= inNFKC | inNFKD
		}
	})
	for pair := range t.composites {
		t.special[pair[1]] |= inNFC | inNFKC
	}
	for r := rune(hangulFirst); r <= hangulLast; r++ {
		t.special[r] |= inNFD | inNFKD
	}
	for r := rune(0x1161); r <= 0x11c2; r++ { // vowels and final consonants
		t.special[r] |= inNFC | inNFKC
	}
	return t
})

// addComposite adds r, which is one in UTF-8 and has the full canonical decomposition full, if it is a primary
// composite.
func (t *formTables) addComposite(r rune, one, full []byte) {
	last, size := utf8.DecodeLastRune(full)
	first := norm.NFC.Bytes(full[:len(full)-size])
	f, length := utf8.DecodeRune(first)
	if len(first) == 0 || length != len(first) || 0xac00 <= r && r <= hangulLast {
		return
	}
	if string(norm.NFC.Bytes(full)) == string(one) {
		t.composites[[2]rune{f, last}] = r
	}
}

const (
	hangulFirst, hangulLast = 0xac00, 0xd7a3
	initials, vowels        = 0x1100, 0x1161
	finals                  = 0x11a7 // one before the first final consonant
)

// compose returns the primary composite of two runes.
func (t *formTables) compose(a, b rune) (rune, bool) {
	switch {
	case initials <= a && a < initials+19 && vowels <= b && b < vowels+21:
		return hangulFirst + ((a-initials)*21+b-vowels)*28, true
	case hangulFirst <= a && a <= hangulLast && (a-hangulFirst)%28 == 0 && finals < b && b < finals+28:
		return a + b - finals, true
	}
	r, ok := t.composites[[2]rune{a, b}]
	return r, ok
}

// normalize implements normalizer.
func (f unicodeForm) normalize(t *segment) {
	if isASCII(t.text) {
		return
	}
	tables := forms()
	if !f.changes(tables, t.text) {
		return
	}
	f.decompose(tables, t)
	if f.composed {
		t.recompose(tables)
	} else {
		t.changes = append(t.changes[:0], t.runes.decomposed...)
	}
	t.rewrite(0)
}

// changes reports whether the form may change text.
func (f unicodeForm) changes(tables *formTables, text []byte) bool {
	flag := [2][2]formFlags{{inNFD, inNFC}, {inNFKD, inNFKC}}[btoi(f.compatible)][btoi(f.composed)]
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if tables.special[r]&flag != 0 {
			return true
		}
		i += size
	}
	return false
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// decompose sets t.runes.decomposed to the decomposition of the text in canonical order.
func (f unicodeForm) decompose(tables *formTables, t *segment) {
	form, flag := norm.NFD, inNFD
	if f.compatible {
		form, flag = norm.NFKD, inNFKD
	}
	out := t.runes.decomposed[:0]
	start := 0 // of the runes that are not yet in order: one of class 0, and marks
	add := func(r rune, by int) {
		if tables.class[r] == 0 {
			sortMarks(tables, out[start:])
			start = len(out)
		}
		out = append(out, change{r, by})
	}
	for i := 0; i < len(t.text); {
		r, size := utf8.DecodeRune(t.text[i:])
		if tables.special[r]&flag == 0 {
			add(r, 0)
			i += size
			continue
		}
		t.runes.bytes = form.Append(t.runes.bytes[:0], t.text[i:i+size]...)
		for k := 0; k < len(t.runes.bytes); {
			d, n := utf8.DecodeRune(t.runes.bytes[k:])
			add(d, btoi(k > 0))
			k += n
		}
		i += size
	}
	sortMarks(tables, out[start:])
	t.runes.decomposed = out
}

// sortMarks brings marks into canonical order.
func sortMarks(tables *formTables, runes []change) {
	if len(runes) > 1 {
		slices.SortStableFunc(runes, func(a, b change) int { return int(tables.class[a.r]) - int(tables.class[b.r]) })
	}
}

// recompose composes t.runes.decomposed into t.changes.
func (t *segment) recompose(tables *formTables) {
	out, held := t.changes[:0], t.runes.held[:0]
	first, have, last := change{}, false, uint8(0) // the rune that others may join, and the class of the last held mark
	for _, c := range t.runes.decomposed {
		class := tables.class[c.r]
		if !have {
			if class != 0 {
				out = append(out, c)
			} else {
				first, have = c, true
			}
			continue
		}
		if len(held) == 0 || last < class {
			if r, ok := tables.compose(first.r, c.r); ok {
				first = change{r, first.by + c.by - 1}
				continue
			}
		}
		if class == 0 {
			out = append(append(out, first), held...)
			first, held = c, held[:0]
			continue
		}
		held, last = append(held, c), class
	}
	if have {
		out = append(out, first)
	}
	t.changes, t.runes.held = append(out, held...), held[:0]
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

// grapheme is the class of a rune for grapheme clusters (UAX 29).
type grapheme uint8

const (
	anyRune   grapheme = iota
	control            // line ends too
	extend             // marks, joiners: continue any cluster
	joiner             // extend that joins pictographs
	spacing            // marks with a width
	prepended          // begin the cluster of what follows
	regional           // half of a flag
	pictograph
	hangulL
	hangulV
	hangulT
	hangulLV
	hangulLVT
)

// graphemes returns the table, computed at first use.
var graphemes = sync.OnceValue(func() *[unicode.MaxRune + 1]grapheme {
	g := new([unicode.MaxRune + 1]grapheme)
	set := func(class grapheme, tables ...*unicode.RangeTable) {
		for _, table := range tables {
			rangetable.Visit(table, func(r rune) { g[r] = class })
		}
	}
	blocks := func(class grapheme, blocks ...[2]rune) {
		for _, block := range blocks {
			for r := block[0]; r <= block[1]; r++ {
				g[r] = class
			}
		}
	}
	blocks(control, [2]rune{0xe0000, 0xe0fff}) // tags and what is not yet assigned
	set(control, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
	set(spacing, unicode.Mc)
	blocks(spacing, [2]rune{0x0e33, 0x0e33}, [2]rune{0x0eb3, 0x0eb3})
	blocks(anyRune, notSpacing...)
	set(extend, unicode.Mn, unicode.Me, unicode.Other_Grapheme_Extend)
	blocks(extend, [2]rune{0x1f3fb, 0x1f3ff}, [2]rune{0xe0020, 0xe007f})
	set(prepended, unicode.Prepended_Concatenation_Mark)
	blocks(prepended, repha...)
	blocks(joiner, [2]rune{0x200d, 0x200d})
	set(regional, unicode.Regional_Indicator)
	blocks(pictograph, pictographs...)
	blocks(hangulL, [2]rune{0x1100, 0x115f}, [2]rune{0xa960, 0xa97c})
	blocks(hangulV, [2]rune{0x1160, 0x11a7}, [2]rune{0xd7b0, 0xd7c6})
	blocks(hangulT, [2]rune{0x11a8, 0x11ff}, [2]rune{0xd7cb, 0xd7fb})
	blocks(hangulLVT, [2]rune{hangulFirst, hangulLast})
	for r := rune(hangulFirst); r <= hangulLast; r += 28 {
		g[r] = hangulLV
	}
	return g
})

// clusterEnd returns the end of the grapheme cluster of text that begins at byte from.
func clusterEnd(text []byte, from int) int {
	if from+1 < len(text) && text[from] < utf8.RuneSelf && text[from+1] < utf8.RuneSelf {
		if text[from] == '\r' && text[from+1] == '\n' {
			return from + 2
		}
		return from + 1
	}
	table := graphemes()
	r, size := utf8.DecodeRune(text[from:])
	at, before := from+size, table[r]
	pictures := before == pictograph // a pictograph and marks end here
	flags := btoi(before == regional)
	for at < len(text) {
		r, size = utf8.DecodeRune(text[at:])
		class := table[r]
		if !continues(before, class, pictures, flags) {
			break
		}
		pictures = class == pictograph || pictures && (class == extend || class == joiner)
		flags = btoi(class == regional) * (flags + 1)
		before = class
		at += size
	}
	return at
}

// continues reports whether a cluster continues between two runes: rules GB3 to GB13, but for the conjuncts of GB9c,
// which have six bytes or more.
func continues(before, class grapheme, pictures bool, flags int) bool {
	switch {
	case before == control || class == control:
		return false
	case class == extend || class == joiner || class == spacing || before == prepended:
		return true
	case before == joiner && class == pictograph:
		return pictures
	case before == regional && class == regional:
		return flags%2 == 1
	case before == hangulL:
		return class == hangulL || class == hangulV || class == hangulLV || class == hangulLVT
	case before == hangulLV || before == hangulV:
		return class == hangulV || class == hangulT
	case before == hangulLVT || before == hangulT:
		return class == hangulT
	}
	return false
}

var (
	// notSpacing are the marks with a width that do not continue a cluster.
	notSpacing = [][2]rune{
		{0x102b, 0x102c}, {0x1038, 0x1038}, {0x1062, 0x1064}, {0x1067, 0x106d}, {0x1083, 0x1083}, {0x1087, 0x108c},
		{0x108f, 0x108f}, {0x109a, 0x109c}, {0x1a61, 0x1a61}, {0x1a63, 0x1a64}, {0xaa7b, 0xaa7b}, {0xaa7d, 0xaa7d},
		{0x11720, 0x11721},
	}
	// repha are the letters that are written after the consonant that follows them.
	repha = [][2]rune{
		{0x0d4e, 0x0d4e}, {0x111c2, 0x111c3}, {0x113d1, 0x113d1}, {0x1193f, 0x1193f}, {0x11941, 0x11941},
		{0x11a3a, 0x11a3a}, {0x11a84, 0x11a89}, {0x11d46, 0x11d46}, {0x11f02, 0x11f02},
	}
)

// pictographs is the property Extended_Pictographic of emoji-data.txt 15.0.
var pictographs = [][2]rune{
	{0xA9, 0xA9}, {0xAE, 0xAE}, {0x203C, 0x203C}, {0x2049, 0x2049},
	{0x2122, 0x2122}, {0x2139, 0x2139}, {0x2194, 0x2199}, {0x21A9, 0x21AA},
	{0x231A, 0x231B}, {0x2328, 0x2328}, {0x2388, 0x2388}, {0x23CF, 0x23CF},
	{0x23E9, 0x23F3}, {0x23F8, 0x23FA}, {0x24C2, 0x24C2}, {0x25AA, 0x25AB},
	{0x25B6, 0x25B6}, {0x25C0, 0x25C0}, {0x25FB, 0x25FE}, {0x2600, 0x2605},
	{0x2607, 0x2612}, {0x2614, 0x2685}, {0x2690, 0x2705}, {0x2708, 0x2712},
	{0x2714, 0x2714}, {0x2716, 0x2716}, {0x271D, 0x271D}, {0x2721, 0x2721},
	{0x2728, 0x2728}, {0x2733, 0x2734}, {0x2744, 0x2744}, {0x2747, 0x2747},
	{0x274C, 0x274C}, {0x274E, 0x274E}, {0x2753, 0x2755}, {0x2757, 0x2757},
	{0x2763, 0x2767}, {0x2795, 0x2797}, {0x27A1, 0x27A1}, {0x27B0, 0x27B0},
	{0x27BF, 0x27BF}, {0x2934, 0x2935}, {0x2B05, 0x2B07}, {0x2B1B, 0x2B1C},
	{0x2B50, 0x2B50}, {0x2B55, 0x2B55}, {0x3030, 0x3030}, {0x303D, 0x303D},
	{0x3297, 0x3297}, {0x3299, 0x3299}, {0x1F000, 0x1F0FF}, {0x1F10D, 0x1F10F},
	{0x1F12F, 0x1F12F}, {0x1F16C, 0x1F171}, {0x1F17E, 0x1F17F}, {0x1F18E, 0x1F18E},
	{0x1F191, 0x1F19A}, {0x1F1AD, 0x1F1E5}, {0x1F201, 0x1F20F}, {0x1F21A, 0x1F21A},
	{0x1F22F, 0x1F22F}, {0x1F232, 0x1F23A}, {0x1F23C, 0x1F23F}, {0x1F249, 0x1F3FA},
	{0x1F400, 0x1F53D}, {0x1F546, 0x1F64F}, {0x1F680, 0x1F6FF}, {0x1F774, 0x1F77F},
	{0x1F7D5, 0x1F7FF}, {0x1F80C, 0x1F80F}, {0x1F848, 0x1F84F}, {0x1F85A, 0x1F85F},
	{0x1F888, 0x1F88F}, {0x1F8AE, 0x1F8FF}, {0x1F90C, 0x1F93A}, {0x1F93C, 0x1F945},
	{0x1F947, 0x1FAFF}, {0x1FC00, 0x1FFFD},
}
