package pieces

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
