package tokenizer

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// replace replaces the matches of a finder. As in tokenizers, what takes their place has the place of their last
// character.
type replace struct {
	finder  finder
	content string
}

func (n *replace) normalize(t *segment) {
	lo, hi := n.finder.find(t.text, 0)
	if lo == hi {
		return
	}
	out, done := aligned{t.other.text[:0], t.other.at[:0]}, 0
	for ; lo < hi; lo, hi = n.finder.find(t.text, done) {
		out.copy(&t.aligned, int32(done), int32(lo))
		out.put(n.content, t.at[hi-1])
		done = hi
		if done == len(t.text) {
			break
		}
	}
	out.copy(&t.aligned, int32(done), int32(len(t.text)))
	t.aligned, t.other = out, t.aligned
}

// prepend puts a text before others that are not empty.
type prepend string

func (n prepend) normalize(t *segment) {
	if len(t.text) == 0 || t.continues {
		return
	}
	out := aligned{t.other.text[:0], t.other.at[:0]}
	out.put(string(n), t.at[0])
	out.copy(&t.aligned, 0, int32(len(t.text)))
	t.aligned, t.other = out, t.aligned
}

type lowercase struct{}

func (lowercase) normalize(t *segment) {
	t.changes = t.changes[:0]
	for i := 0; i < len(t.text); {
		r, size := utf8.DecodeRune(t.text[i:])
		t.changes = append(t.changes, change{lowerCase(r), 0})
		if r == 'İ' {
			t.changes = append(t.changes, change{'\u0307', 1}) // the one rune whose lower case is two
		}
		i += size
	}
	t.rewrite(0)
}

// mapped replaces or drops characters; -1 drops.
type mapped func(r rune) rune

func (f mapped) normalize(t *segment) {
	t.changes = t.changes[:0]
	first, dropped := 0, 0
	for i := 0; i < len(t.text); {
		r, size := utf8.DecodeRune(t.text[i:])
		i += size
		if r = f(r); r < 0 {
			dropped++
			continue
		}
		if n := len(t.changes); n > 0 {
			t.changes[n-1].by = -dropped
		} else {
			first = dropped
		}
		t.changes, dropped = append(t.changes, change{r, 0}), 0
	}
	if n := len(t.changes); n > 0 {
		t.changes[n-1].by = -dropped
	}
	t.rewrite(first)
}

// nmt is the cleaning of sentencepiece's nmt rules: control characters are dropped, other white space and invisible
// characters are blanks.
func nmt(r rune) rune {
	switch {
	case 1 <= r && r <= 8, r == 0x0b, 0x0e <= r && r <= 0x1f, r == 0x7f, r == 0x8f, r == 0x9f:
		return -1
	case strings.ContainsRune("\t\n\f\r\u1680\u2028\u2029\u2581\ufeff\ufffd", r), 0x200b <= r && r <= 0x200f:
		return ' '
	}
	return r
}

type strip struct {
	Left  bool `json:"strip_left"`
	Right bool `json:"strip_right"`
}

func (n *strip) normalize(t *segment) {
	lo, hi := 0, len(t.text)
	if n.Left && !t.continues {
		lo = hi - len(strings.TrimLeftFunc(string(t.text), unicode.IsSpace))
	}
	if n.Right && !t.goesOn {
		hi = lo + len(strings.TrimRightFunc(string(t.text[lo:]), unicode.IsSpace))
	}
	t.text, t.at = t.text[lo:hi], t.at[lo:hi]
}

// aligned is a text with the bytes of the raw text that each of its bytes comes from.
type aligned struct {
	text []byte
	at   []span // [len(text)]
}

type span struct{ start, end int32 }

// segment is a part of the raw text that is normalised by itself.
type segment struct {
	aligned
	inside
	base    int32 // its offset in the raw text
	changes []change
	other   aligned // memory for the next version of the text
	runes   runeScratch
	bert    bertScratch
}

// change is a rune of a rewritten text. By is how many runes it adds to the text that is rewritten: 0 for a rune that
// takes the place of one, 1 for a new rune, -n for one that takes the place of n+1.
type change struct {
	r  rune
	by int
}

func (t *segment) fill(raw string, lo, hi int) {
	t.base = int32(lo)
	t.text, t.at = append(t.text[:0], raw[lo:hi]...), slices.Grow(t.at[:0], hi-lo)[:hi-lo]
	text, at := t.text, t.at
	for i := 0; i < len(text); {
		if text[i] < utf8.RuneSelf {
			at[i] = span{int32(lo + i), int32(lo + i + 1)}
			i++
			continue
		}
		_, size := utf8.DecodeRune(text[i:])
		for k := range size {
			at[i+k] = span{int32(lo + i), int32(lo + i + size)}
		}
		i += size
	}
}

// putBlank puts a blank before the segment, which takes no byte of the raw text.
func (t *segment) putBlank() {
	t.text = slices.Insert(t.text, 0, ' ')
	t.at = slices.Insert(t.at, 0, span{t.base, t.base})
}

// rewrite replaces the text by t.changes after its first removed runes. As in the library tokenizers, places are
// assigned by position: a rune that takes the place of another has its bytes of the raw text, a new one those of its
// predecessor.
func (t *segment) rewrite(removed int) {
	old, out := t.aligned, aligned{t.other.text[:0], t.other.at[:0]}
	from := 0
	skip := func(runes int) {
		for ; runes > 0 && from < len(old.text); runes-- {
			_, size := utf8.DecodeRune(old.text[from:])
			from += size
		}
	}
	skip(removed)
	for _, c := range t.changes {
		at := span{t.base, t.base}
		switch {
		case c.by <= 0 && from < len(old.at):
			at = old.at[from]
			skip(1 - c.by)
		case from > 0:
			at = old.at[from-1]
		}
		out.append(c.r, at)
	}
	t.aligned, t.other = out, old
}

func (a *aligned) append(r rune, at span) {
	a.text = utf8.AppendRune(a.text, r)
	for len(a.at) < len(a.text) {
		a.at = append(a.at, at)
	}
}

func (a *aligned) copy(from *aligned, lo, hi int32) {
	a.text, a.at = append(a.text, from.text[lo:hi]...), append(a.at, from.at[lo:hi]...)
}

func isASCII(text []byte) bool {
	for _, b := range text {
		if b >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// precompiled is the normaliser of sentencepiece (Kudo and Richardson 2018): a double array (Aoe 1989) maps sequences
// of characters to places in a text of what replaces them, each ended by NUL.
type precompiled struct {
	units    []uint32
	replaced string
	longest  int                 // bytes of a replacement
	plain    [utf8.RuneSelf]bool // ASCII characters that stay as they are before another one
}

// newPrecompiled reads a precompiled_charsmap: the size of the array in bytes, the array, the text.
func newPrecompiled(charsmap string) (*precompiled, error) {
	data, err := base64.StdEncoding.DecodeString(charsmap)
	if err != nil {
		return nil, fmt.Errorf("precompiled_charsmap is not in base64: %w", err)
	}
	if len(data) < 4 {
		return nil, fmt.Errorf("precompiled_charsmap has %d bytes, want 4 at least", len(data))
	}
	size, data := binary.LittleEndian.Uint32(data), data[4:]
	if uint64(size) > uint64(len(data)) {
		return nil, fmt.Errorf("precompiled_charsmap has an array of %d bytes, but %d bytes follow", size, len(data))
	}
	p := &precompiled{units: make([]uint32, size/4), replaced: string(data[size/4*4:])}
	for i := range p.units {
		p.units[i] = binary.LittleEndian.Uint32(data[4*i:])
	}
	if len(p.units) == 0 {
		return nil, errors.New("precompiled_charsmap has an array without units")
	}
	if !utf8.ValidString(p.replaced) {
		return nil, errors.New("precompiled_charsmap has replacements that are not UTF-8")
	}
	for text := range strings.SplitSeq(p.replaced, "\x00") {
		if len(text) > maxContent {
			return nil, fmt.Errorf("precompiled_charsmap has a replacement of %d bytes, want at most %d", len(text),
				maxContent)
		}
		p.longest = max(p.longest, len(text))
	}
	for c := range p.plain {
		_, changed := p.find([]byte{byte(c)})
		p.plain[c] = !changed && c != '\r'
	}
	return p, nil
}

// find returns what replaces text: the replacement of its shortest prefix that has one.
func (p *precompiled) find(text []byte) (string, bool) {
	at := offset(p.units[0])
	for _, c := range text {
		if c == 0 {
			break
		}
		at ^= uint32(c)
		if int64(at) >= int64(len(p.units)) {
			return "", false
		}
		unit := p.units[at]
		if unit&(1<<31|0xff) != uint32(c) {
			return "", false
		}
		at ^= offset(unit)
		if unit>>8&1 == 1 {
			if int64(at) >= int64(len(p.units)) {
				return "", false
			}
			return p.replacement(p.units[at] &^ (1 << 31))
		}
	}
	return "", false
}

// offset returns the distance from a unit to those of its children.
func offset(unit uint32) uint32 { return unit >> 10 << (unit & (1 << 9) >> 6) }

func (p *precompiled) replacement(at uint32) (string, bool) {
	if int64(at) > int64(len(p.replaced)) || int64(at) < int64(len(p.replaced)) && !utf8.RuneStart(p.replaced[at]) {
		return "", false
	}
	text, _, _ := strings.Cut(p.replaced[at:], "\x00")
	return text, true
}

// normalize implements normalizer. As in tokenizers, grapheme clusters of less than six bytes are looked up whole, and
// characters by themselves.
func (p *precompiled) normalize(t *segment) {
	if p.keeps(t.text) {
		return
	}
	t.changes = t.changes[:0]
	changed := false
	for i := 0; i < len(t.text); {
		end := clusterEnd(t.text, i)
		if end-i < 6 {
			if with, ok := p.find(t.text[i:end]); ok {
				t.replace(t.text[i:end], with)
				i, changed = end, true
				continue
			}
		}
		for i < end {
			r, size := utf8.DecodeRune(t.text[i:])
			if with, ok := p.find(t.text[i : i+size]); ok {
				t.replace(t.text[i:i+size], with)
				changed = true
			} else {
				t.changes = append(t.changes, change{r, 0})
			}
			i += size
		}
	}
	if changed {
		t.rewrite(0)
	}
}

func (p *precompiled) keeps(text []byte) bool {
	for _, c := range text {
		if c >= utf8.RuneSelf || !p.plain[c] {
			return false
		}
	}
	return true
}

// replace adds the changes that replace old by text. The last characters are new if there are more than before, the
// last one takes the place of those that are missing if there are fewer; what is dropped at the beginning of a text
// shifts the places after it, as in tokenizers.
func (t *segment) replace(old []byte, text string) {
	missing := utf8.RuneCount(old)
	for _, r := range text {
		t.changes = append(t.changes, change{r, 0})
		missing--
	}
	if n := len(t.changes); missing > 0 && n > 0 {
		t.changes[n-1].by -= missing
	} else {
		for ; missing < 0; missing++ {
			t.changes[n+missing].by = 1
		}
	}
}
