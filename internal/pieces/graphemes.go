package pieces

import (
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/rangetable"
)

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
