package corpus

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// OffsetUnit is what offsets in a text count. Data files count characters; a Span counts bytes.
type OffsetUnit int

// Units of offsets.
const (
	Characters OffsetUnit = iota // Unicode code points, as in Python
	Bytes                        // of UTF-8, as in Go and Rust
	UTF16                        // code units, as in JavaScript, Java and C#
)

// offsetUnits are the names of the units.
var offsetUnits = [...]string{Characters: "characters", Bytes: "bytes", UTF16: "utf16"}

// ParseOffsetUnit returns the unit with a name: characters, bytes or utf16.
func ParseOffsetUnit(name string) (OffsetUnit, error) {
	for unit, known := range offsetUnits {
		if name == known {
			return OffsetUnit(unit), nil
		}
	}
	return 0, fmt.Errorf("%q: want one of %s", name, strings.Join(offsetUnits[:], ", "))
}

// Check returns an error for a number that is none of the units.
func (u OffsetUnit) Check() error {
	if u < 0 || int(u) >= len(offsetUnits) {
		return fmt.Errorf("unit %d: want one of %s", u, strings.Join(offsetUnits[:], ", "))
	}
	return nil
}

func (u OffsetUnit) String() string { return offsetUnits[u] }

// Offsets converts positions in one text from bytes to a unit. The zero value returns bytes unchanged.
type Offsets struct {
	text string
	unit OffsetUnit
	at   []int // the position of the byte i*offsetStep in the unit; nil if all positions are those of bytes
}

// offsetStep is how many bytes lie between two indexed positions: a conversion counts at most that many.
const offsetStep = 64

// NewOffsets indexes a text of valid UTF-8, in time proportional to its length.
func NewOffsets(text string, unit OffsetUnit) Offsets {
	o := Offsets{text: text, unit: unit}
	if unit == Bytes || isASCII(text) {
		return o
	}
	o.at = make([]int, 0, len(text)/offsetStep+1)
	n := 0
	for i := 0; i < len(text); i++ {
		if i%offsetStep == 0 {
			o.at = append(o.at, n)
		}
		n += o.units(text[i])
	}
	return o
}

// units returns the units of the character that begins with a byte, 0 for the bytes inside of a character.
func (o Offsets) units(b byte) int {
	switch {
	case !utf8.RuneStart(b):
		return 0
	case o.unit == UTF16 && b >= 0xf0: // a code point beyond the basic plane is a surrogate pair
		return 2
	}
	return 1
}

// Span returns a span in the unit. A byte inside of a character, where byte-level tokens may begin and end, counts as
// the character's begin at the start of the span and as its end at the end.
func (o Offsets) Span(s Span) Span {
	if o.at == nil {
		return s
	}
	for s.Start < len(o.text) && !utf8.RuneStart(o.text[s.Start]) {
		s.Start--
	}
	for s.End < len(o.text) && !utf8.RuneStart(o.text[s.End]) {
		s.End++
	}
	return Span{o.position(s.Start), o.position(s.End)}
}

// position returns the units before a byte.
func (o Offsets) position(at int) int {
	step := min(at/offsetStep, len(o.at)-1)
	n := o.at[step]
	for _, b := range []byte(o.text[step*offsetStep : at]) {
		n += o.units(b)
	}
	return n
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
