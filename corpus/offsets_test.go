package corpus

import (
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"
)

// manyScripts are texts whose characters take one to four bytes, some with combining marks.
var manyScripts = []string{
	"", "plain ASCII", "Zoë ordered crème brûlée",
	"👩‍👩‍👧 lives in 🇫🇷, 👍🏽",      // joined and modified emoji: several code points each
	"e\u0301cole, a\u0308\u0323", // combining marks are characters of their own
	"أغنية لفيروز من بيروت", "मुंबई में बारिश", "我想听周杰伦的歌", "𠮷野家 𝒳",
	strings.Repeat("ä", 64) + strings.Repeat("😀x", 3*64), // long ones
}

func TestOffsetsAreThoseOfTheUnit(t *testing.T) {
	lengths := map[OffsetUnit]func(text string) int{
		Characters: utf8.RuneCountInString,
		Bytes:      func(text string) int { return len(text) },
		UTF16:      func(text string) int { return len(utf16.Encode([]rune(text))) },
	}
	for _, text := range manyScripts {
		for unit, length := range lengths {
			offsets := NewOffsets(text, unit)
			for at := range text + "." { // each character, and the end
				want := Span{length(text[:at]), length(text)}
				if got := offsets.Span(Span{at, len(text)}); got != want {
					t.Errorf("%.20q from byte %d on: %v %v, want %v", text, at, got, unit, want)
				}
				if got := offsets.Span(Span{at, at}); got != (Span{want.Start, want.Start}) {
					t.Errorf("%.20q at byte %d: %v %v, want %d", text, at, got, unit, want.Start)
				}
			}
		}
	}
}

// Offsets of characters are those that Entities and Answers read.
func TestCharacterOffsetsAreReadAsTheyAreWritten(t *testing.T) {
	for _, text := range manyScripts {
		offsets, bytes := NewOffsets(text, Characters), positionsIn(text, "").at
		for at := range text + "." {
			if got := offsets.Span(Span{0, at}).End; bytes[got] != at {
				t.Errorf("%.20q: byte %d is written as %d and read as byte %d", text, at, got, bytes[got])
			}
		}
	}
}

func TestASpanInsideOfACharacterCoversIt(t *testing.T) {
	offsets := NewOffsets("a😀b", Characters)
	for _, s := range []Span{{1, 5}, {2, 3}, {1, 2}, {4, 5}} {
		if got, want := offsets.Span(s), (Span{1, 2}); got != want {
			t.Errorf("bytes %v are characters %v, want %v", s, got, want)
		}
	}
	if got, want := (Offsets{}).Span(Span{3, 7}), (Span{3, 7}); got != want {
		t.Errorf("without a text: %v, want %v", got, want)
	}
}

func TestParseOffsetUnit(t *testing.T) {
	for _, unit := range []OffsetUnit{Characters, Bytes, UTF16} {
		if got, err := ParseOffsetUnit(unit.String()); err != nil || got != unit {
			t.Errorf("ParseOffsetUnit(%q) = %v, %v", unit, got, err)
		}
	}
	_, err := ParseOffsetUnit("runes")
	if want := `"runes": want one of characters, bytes, utf16`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// The time of a conversion does not depend on where in the text it is: 1 MB has 500000 spans.
func BenchmarkOffsetsOfALongText(b *testing.B) {
	text := strings.Repeat("ä ", 350_000)
	for b.Loop() {
		offsets := NewOffsets(text, Characters)
		for at := range text {
			offsets.Span(Span{at, at + 1})
		}
	}
}
