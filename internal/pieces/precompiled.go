package pieces

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

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

// replacement returns the text at a place, up to NUL.
func (p *precompiled) replacement(at uint32) (string, bool) {
	if int64(at) > int64(len(p.replaced)) || int64(at) < int64(len(p.replaced)) && !utf8.RuneStart(p.replaced[at]) {
		return "", false
	}
	end := int(at)
	for end < len(p.replaced) && p.replaced[end] != 0 {
		end++
	}
	return p.replaced[at:end], true
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

// keeps reports whether text consists of ASCII characters that stay as they are.
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
