package corpus

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// letterTokenizer is a tokenizer with one token per character, between [CLS] and [SEP], and words between blanks.
type letterTokenizer struct{ Tokenizer }

func (letterTokenizer) Encode(e *Example, maxLength int) Encoding {
	var all Encoding
	addSpecial := func(id int32, segment int8) {
		all.IDs, all.Offsets, all.Segments, all.Words = append(all.IDs, id), append(all.Offsets, Span{}),
			append(all.Segments, segment), append(all.Words, -1)
	}
	addText := func(text string, segment int8, words []Span) {
		for i, c := range text {
			if c == ' ' {
				continue
			}
			word := slices.IndexFunc(words, func(w Span) bool { return i >= w.Start && i < w.End })
			all.IDs, all.Offsets = append(all.IDs, c), append(all.Offsets, Span{i, i + 1})
			all.Segments, all.Words = append(all.Segments, segment), append(all.Words, int32(word))
		}
	}
	addSpecial(1, 0)
	addText(e.Text, 0, e.Words)
	addSpecial(2, 0)
	if e.Paired {
		addText(e.Pair, 1, nil)
		addSpecial(2, 1)
	}
	if e.Words == nil {
		all.Words = nil
	}
	if maxLength > 0 && len(all.IDs) > maxLength {
		whole := all
		all = Encoding{}
		all.add(whole, Span{0, maxLength - 1})
		all.add(whole, Span{len(whole.IDs) - 1, len(whole.IDs)})
	}
	return all
}

func (letterTokenizer) Split(string) []Span { return nil }
func (letterTokenizer) Save(string) error   { return nil }

// formatWindows returns the characters of windows, with < for [CLS] and | for [SEP].
func formatWindows(windows []Encoding) []string {
	var all []string
	for _, w := range windows {
		var b strings.Builder
		for _, id := range w.IDs {
			switch id {
			case 1:
				b.WriteByte('<')
			case 2:
				b.WriteByte('|')
			default:
				b.WriteRune(id)
			}
		}
		all = append(all, b.String())
	}
	return all
}

func TestWindows(t *testing.T) {
	for _, c := range []struct {
		rule      string
		windowing Windowing
		e         Example
		want      []string
	}{
		{"a text that fits is one window", Windowing{MaxLength: 7, Windows: true, Stride: 1}, Example{Text: "abcde"},
			[]string{"<abcde|"}},
		{"a longer text has windows that overlap by stride", Windowing{MaxLength: 7, Windows: true, Stride: 2},
			Example{Text: "abcdefghi"},
			[]string{"<abcde|", "<defgh|", "<ghi|"}},
		{"windows without overlap", Windowing{MaxLength: 6, Windows: true}, Example{Text: "abcdefghij"},
			[]string{"<abcd|", "<efgh|", "<ij|"}},
		{"without windows a text is truncated", Windowing{MaxLength: 5}, Example{Text: "abcdefgh"}, []string{"<abc|"}},
		{"without a length nothing is truncated", Windowing{Windows: true}, Example{Text: "abcdefgh"},
			[]string{"<abcdefgh|"}},
		{"windows slide over the longer text of a pair", Windowing{MaxLength: 9, Windows: true, Stride: 1},
			Example{Text: "ab", Pair: "vwxyz123", Paired: true},
			[]string{"<ab|vwxy|", "<ab|yz12|", "<ab|23|"}},
		{"which may be the first text of the pair", Windowing{MaxLength: 9, Windows: true, Stride: 1},
			Example{Text: "vwxyz123", Pair: "ab", Paired: true},
			[]string{"<vwxy|ab|", "<yz12|ab|", "<23|ab|"}},
		{"the other text has at most half of a window", Windowing{MaxLength: 9, Windows: true, Stride: 1},
			Example{Text: "abcdefg", Pair: "vwxyz123", Paired: true},
			[]string{"<abc|vwx|", "<abc|xyz|", "<abc|z12|", "<abc|23|"}},
		{"windows slide over a context, even if it is shorter",
			Windowing{MaxLength: 9, Windows: true, Stride: 1, SlideOverContext: true},
			Example{Text: "abcdefgh", Pair: "vwxyz", Paired: true},
			[]string{"<abc|vwx|", "<abc|xyz|"}},
		{"windows slide over a text with words that does not fit, even if it is shorter",
			Windowing{MaxLength: 9, Windows: true, Stride: 1},
			Example{Text: "abcde", Words: []Span{{0, 5}}, Pair: "vwxyz123", Paired: true},
			[]string{"<abc|vwx|", "<cde|vwx|"}},
		{"windows do not slide over a text with words that fits", Windowing{MaxLength: 9, Windows: true, Stride: 1},
			Example{Text: "ab", Words: []Span{{0, 2}}, Pair: "vwxyz123", Paired: true},
			[]string{"<ab|vwxy|", "<ab|yz12|", "<ab|23|"}},
		{"windows slide over a text without a context", Windowing{MaxLength: 5, Windows: true, SlideOverContext: true},
			Example{Text: "abcde"}, []string{"<abc|", "<de|"}},
		{"an empty text and a long second text", Windowing{MaxLength: 6, Windows: true},
			Example{Pair: "abcdef", Paired: true}, []string{"<|abc|", "<|def|"}},
		{"special tokens fill the window", Windowing{MaxLength: 3, Windows: true},
			Example{Text: "abc", Pair: "xy", Paired: true}, []string{"<||"}},
		{"texts encoded separately", Windowing{MaxLength: 5, Windows: true, Separate: true},
			Example{Text: "abcd", Pair: "xy", Paired: true},
			[]string{"<abc|", "<d|", "<xy|"}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			windows := c.windowing.Encode(letterTokenizer{}, &c.e)
			if got := formatWindows(windows); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			for _, w := range windows {
				if c.windowing.Windows && c.windowing.MaxLength > 0 && len(w.IDs) > c.windowing.MaxLength {
					t.Errorf("a window of %d tokens", len(w.IDs))
				}
			}
		})
	}
}

func TestTruncatedTokens(t *testing.T) {
	for _, test := range []struct {
		windowing  Windowing
		text, pair string
		want       int // tokens
	}{
		{Windowing{}, "abcdefghij", "", 0},
		{Windowing{MaxLength: 12}, "abcdefghij", "", 0}, // with the special ones
		{Windowing{MaxLength: 11}, "abcdefghij", "", 1},
		{Windowing{MaxLength: 2}, "abcdefghij", "", 10},
		{Windowing{MaxLength: 8}, "abc def", "", 0}, // blanks are no tokens
		{Windowing{MaxLength: 6}, "abc def", "", 2},
		{Windowing{MaxLength: 10}, "abcdefghij", "xyz", 5},
		{Windowing{MaxLength: 6, Separate: true}, "abcdefghij", "uvwxyz", 8},
		{Windowing{MaxLength: 8, Windows: true}, "abcdefghij", "", 0},
		{Windowing{MaxLength: 9, Windows: true}, "abcdefghij", "xyz", 0},
		{Windowing{MaxLength: 9, Windows: true}, "abcdefghij", "uvwxyz", 3}, // the pair has half of the 6 tokens
		{Windowing{MaxLength: 9, Windows: true}, "abcdef", "qrstuvwxyz", 3},
		{Windowing{MaxLength: 9, Windows: true, Separate: true}, "abcdefghij", "uvwxyz", 0},
	} {
		e := &Example{Text: test.text, Pair: test.pair, Paired: test.pair != ""}
		e.Windows = test.windowing.Encode(letterTokenizer{}, e)
		if got := test.windowing.TruncatedTokens(letterTokenizer{}, e); got != test.want {
			t.Errorf("%+v of %q, %q: %d tokens are truncated, want %d: %q", test.windowing, test.text, test.pair, got,
				test.want, formatWindows(e.Windows))
		}
	}
}

func TestSeparateWindowsMarkSecondText(t *testing.T) {
	e := Example{Text: "ab", Pair: "cd", Paired: true}
	e.Windows = Windowing{Separate: true}.Encode(letterTokenizer{}, &e)
	rows := Pack([]*Example{&e}).Tokens.Rows
	if !reflect.DeepEqual(rows.Second, []bool{false, true}) || !reflect.DeepEqual(rows.Example, []int{0, 0}) {
		t.Errorf("Second %v and Example %v, want true for the second window of example 0", rows.Second, rows.Example)
	}
	if !reflect.DeepEqual(rows.Segment, make([]int8, 8)) {
		t.Errorf("segments %v, want those of first texts", rows.Segment)
	}
}

func TestWindowsKeepTokenTypes(t *testing.T) {
	e := Example{Text: "abcdef", Pair: "xy", Paired: true}
	whole := letterTokenizer{}.Encode(&e, 0)
	whole.TokenTypes = make([]int8, len(whole.IDs))
	whole.TokenTypes[2] = 1
	e.Windows = Windowing{MaxLength: 7}.divide(whole) // <ab|xy|, <cd|xy|, <ef|xy|
	rows := Pack([]*Example{&e}).Tokens.Rows
	want := make([]int8, 21)
	want[2] = 1
	if got := rows.TokenTypes(); !reflect.DeepEqual(got, want) {
		t.Errorf("token types %v, want %v", got, want)
	}
	if want := []int8{0, 0, 0, 0, 1, 1, 1}; !reflect.DeepEqual(rows.Segment[:7], want) {
		t.Errorf("segments %v, want %v", rows.Segment[:7], want)
	}
}

func TestWordBelongsToWindowOfFirstPiece(t *testing.T) {
	e := Example{Text: "abc def gh", Words: []Span{{0, 3}, {4, 7}, {8, 10}}}
	e.Windows = Windowing{MaxLength: 6, Windows: true, Stride: 0}.Encode(letterTokenizer{}, &e) // abcd, efgh
	rows := Pack([]*Example{&e}).Tokens.Rows
	// the first window ends with d, the first token of the second word; the second window begins with the rest of it
	if want := []int{1, 4, 9}; !reflect.DeepEqual(rows.Words, want) {
		t.Errorf("words begin in rows %v, want %v", rows.Words, want)
	}
	if want := []int{0, 1, 2}; !reflect.DeepEqual(rows.WordIndex, want) {
		t.Errorf("word indices %v, want %v", rows.WordIndex, want)
	}
}

func TestRowsOfExamplesWithSeveralWindows(t *testing.T) {
	long, short := Example{Text: "abcdefgh"}, Example{Text: "x"}
	for _, e := range []*Example{&long, &short} {
		e.Windows = Windowing{MaxLength: 5, Windows: true}.Encode(letterTokenizer{}, e)
	}
	b := Pack([]*Example{&long, &short})
	if from, to := b.Rows(0); from != 0 || to != long.Tokens() {
		t.Errorf("rows %d:%d", from, to)
	}
	if from, to := b.Rows(1); from != long.Tokens() || to != b.Tokens.Rows.Tokens() || short.Tokens() != 3 {
		t.Errorf("rows %d:%d", from, to)
	}
}

func TestTokensOfIgnoresSpaceAtEnds(t *testing.T) {
	e := Example{Text: "q", Pair: "  ab cd ", Paired: true}
	e.Windows = Windowing{}.Encode(letterTokenizer{}, &e) // <q|abcd|
	for _, c := range []struct {
		part, want Span
	}{
		{Span{0, 4}, Span{3, 5}}, {Span{2, 4}, Span{3, 5}}, {Span{5, 8}, Span{5, 7}}, {Span{0, 8}, Span{3, 7}},
		{Span{4, 5}, Span{}},
	} {
		if got := e.Windows[0].TokensOf(c.part, e.Pair); got != c.want {
			t.Errorf("TokensOf(%q) = %v, want %v", e.Pair[c.part.Start:c.part.End], got, c.want)
		}
	}
}

func TestTokensOfIgnoresDroppedCharacters(t *testing.T) {
	tokenizer := fixtureTokenizer(t, "uncased")
	for _, c := range []struct{ context, answer string }{
		{"it is at the cafe\u0301", "cafe\u0301"}, {"\u200fname it", "\u200fname"},
		{"the \u0e1b\u0e35", "\u0e1b\u0e35"},
	} {
		at := strings.Index(c.context, c.answer)
		e := Example{Text: "q", Pair: c.context, Paired: true}
		e.Windows = Windowing{}.Encode(tokenizer, &e)
		if e.Windows[0].TokensOf(Span{at, at + len(c.answer)}, c.context) == (Span{}) {
			t.Errorf("%q is not found in %q: tokens %+v", c.answer, c.context, e.Windows[0])
		}
	}
}

func TestStrideLimit(t *testing.T) {
	if err := (Windowing{MaxLength: 64, Windows: true, Stride: 31}).Check(); err == nil ||
		!strings.Contains(err.Error(), "stride is 31: two windows of 64 tokens") {
		t.Errorf("error %v", err)
	}
	if err := (Windowing{Stride: -1}).Check(); err == nil {
		t.Error("no error for a negative stride")
	}
	if err := (Windowing{MaxLength: 64, Windows: true, Stride: 30}).Check(); err != nil {
		t.Error(err)
	}
}

func FuzzWindows(f *testing.F) {
	f.Add("a long text", "and its pair", 8, 2)
	f.Add("", "", 3, 0)
	f.Add("ab", "cd", 3, 0)
	f.Fuzz(func(t *testing.T, text, pair string, size, stride int) {
		windowing := Windowing{MaxLength: size, Windows: true, Stride: stride, SlideOverContext: size%2 == 0}
		if size < 3 || size > 100 || stride < 0 || windowing.Check() != nil || len(text)+len(pair) > 1000 {
			return
		}
		e := Example{Text: text, Pair: pair, Paired: pair != ""}
		for _, w := range windowing.Encode(letterTokenizer{}, &e) {
			if len(w.IDs) > size || len(w.IDs) == 0 || len(w.Segments) != len(w.IDs) || len(w.Offsets) != len(w.IDs) {
				t.Fatalf("a window of %d tokens, at most %d, with %d types, %d offsets", len(w.IDs), size,
					len(w.Segments),
					len(w.Offsets))
			}
		}
	})
}
