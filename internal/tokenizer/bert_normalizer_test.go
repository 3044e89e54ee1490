package tokenizer

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// normalizedRune returns what r between two x is normalised to, in the notation of testdata/runes.txt.gz: `=`
// unchanged, `-` dropped, `_` a split, `|=|` unchanged as a separate word, +N or -N the rune at that distance, `hangul`
// its jamo, else the code points, with | for splits.
func normalizedRune(z *subwords, s *state, r rune) string {
	z.divide(s, "x"+string(r)+"x")
	var words []string
	for _, k := range s.splits {
		words = append(words, string(s.text[k.lo:k.hi]))
	}
	got := strings.Join(words, "|")
	got = got[1 : len(got)-1]

	first, size := utf8.DecodeRuneInString(got)
	switch {
	case got == string(r):
		return "="
	case got == "|"+string(r)+"|":
		return "|=|"
	case got == "":
		return "-"
	case got == "|":
		return "_"
	case size == len(got):
		return fmt.Sprintf("%+d", first-r)
	case got == jamo(r):
		return "hangul"
	}
	var parts []string
	for _, part := range got {
		if part == '|' {
			parts = append(parts, "|")
		} else {
			parts = append(parts, fmt.Sprintf("%X", part))
		}
	}
	return strings.Join(parts, " ")
}

// splitter returns what splits texts into words.
func splitter(settings bertSettings) *subwords { return newWords(settings, addedTokens{}) }

// jamo decomposes a syllable as in section 3.12 of the Unicode standard; it returns "" for other runes.
func jamo(r rune) string {
	s := r - 0xAC00
	if s < 0 || s > 0xD7A3-0xAC00 {
		return ""
	}
	letters := []rune{0x1100 + s/588, 0x1161 + s%588/28}
	if s%28 != 0 {
		letters = append(letters, 0x11A7+s%28)
	}
	return string(letters)
}

func TestNormalizedRunesMatchTokenizersCrate(t *testing.T) {
	normalizers := map[string]*subwords{
		"uncased":          splitter(bertSettings{Clean: true, Chinese: true, Lower: true}),
		"uncased, accents": splitter(bertSettings{Clean: true, Chinese: true, Strip: new(bool), Lower: true}),
		"cased":            splitter(bertSettings{Clean: true, Chinese: true}),
	}
	seen := make(map[string]int)
	var s state
	wrong := 0
	file, err := os.Open("testdata/runes.txt.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	runes, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(runes)
	for lines.Scan() {
		field := strings.Split(lines.Text(), "\t")
		first, err := strconv.ParseInt(field[1], 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		last, err := strconv.ParseInt(field[2], 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		z := normalizers[field[0]]
		for r := rune(first); r <= rune(last); r++ {
			seen[field[0]]++
			if got, want := normalizedRune(z, &s, r), field[3]; got != want && wrong < 20 {
				wrong++
				t.Errorf("%s: %U becomes %q, want %q", field[0], r, got, want)
			}
		}
	}
	for _, name := range []string{"uncased", "uncased, accents", "cased"} {
		if want := 0x110000 - 0x800; seen[name] != want {
			t.Errorf("%s: %d runes, want %d", name, seen[name], want)
		}
	}
}

func TestLongRunsOfMarksAreSorted(t *testing.T) {
	// sorting a million marks must take n log n steps, not n²
	z := splitter(bertSettings{Clean: true, Chinese: true, Lower: true})
	want := "x" + strings.Repeat("\U0001d165", 300_000) + strings.Repeat("\u302e", 300_000) // classes 216 and 224
	if got := z.normalized("x" + strings.Repeat("\u302e\U0001d165\u0334", 300_000)); got != want {
		t.Errorf("got %d bytes, want the marks in order", len(got))
	}
}
