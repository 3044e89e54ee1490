package corpus

import (
	"fmt"
	"slices"
	"strings"
)

// Windowing defines how texts are encoded, and how texts longer than MaxLength are divided or truncated.
type Windowing struct {
	MaxLength        int  // tokens of a text or a pair, special ones included; 0: any number
	Windows          bool // a longer text is divided into windows; else it is truncated
	Stride           int  // tokens that two neighbouring windows share
	SlideOverContext bool // windows slide over the second text of a pair, the context of a question; else see Encode
	Separate         bool // the texts of a pair are encoded separately
}

// Check returns an error if the stride is negative or too large for MaxLength.
func (c Windowing) Check() error {
	if c.Stride < 0 {
		return fmt.Errorf("stride is %d; it is at least 0", c.Stride)
	}
	if most := MaxStride(c.MaxLength); c.Windows && c.MaxLength > 0 && c.Stride > most {
		return fmt.Errorf("stride is %d: two windows of %d tokens, special ones included, share at most half, %d",
			c.Stride, c.MaxLength, most)
	}
	return nil
}

// MaxStride returns the most tokens that two windows of maxLength may share: half of those that are not special.
func MaxStride(maxLength int) int { return max(0, (maxLength-3)/2) }

// Encode returns an example's tokens: one encoding, or one for each window. Windows slide over the longer text of a
// pair, but over the first if its words may have tags and do not all fit beside the second.
func (c Windowing) Encode(t Tokenizer, e *Example) []Encoding {
	if c.Separate && e.Paired {
		text, pair := *e, Example{Text: e.Pair}
		text.Pair, text.Paired = "", false
		windows := c.windows(t, &text)
		for _, w := range c.windows(t, &pair) {
			w.Second = true
			windows = append(windows, w)
		}
		return windows
	}
	return c.windows(t, e)
}

// TruncatedTokens returns the number of tokens of an encoded example that lie after all of its windows.
func (c Windowing) TruncatedTokens(t Tokenizer, e *Example) int {
	if c.MaxLength == 0 || !slices.ContainsFunc(e.Windows, func(w Encoding) bool { return len(w.IDs) >= c.MaxLength }) {
		return 0
	}
	var ends [2]int // of both texts in the windows, in bytes
	for _, w := range e.Windows {
		for i, offset := range w.Offsets {
			ends[w.textOf(i)] = max(ends[w.textOf(i)], offset.End)
		}
	}
	if own, ok := t.(*exampleTokenizer); ok {
		return own.countAfter(e, ends) // without an encoding of all tokens
	}
	n := 0
	for _, w := range (Windowing{Separate: c.Separate}).Encode(t, e) {
		for i, offset := range w.Offsets {
			if offset.End > ends[w.textOf(i)] {
				n++
			}
		}
	}
	return n
}

func (e Encoding) textOf(token int) int {
	if e.Second {
		return 1
	}
	return int(e.Segments[token])
}

func (c Windowing) windows(t Tokenizer, e *Example) []Encoding {
	if !c.Windows || c.MaxLength == 0 {
		return []Encoding{t.Encode(e, c.MaxLength)}
	}
	whole := t.Encode(e, 0)
	if len(whole.IDs) <= c.MaxLength {
		return []Encoding{whole}
	}
	return c.divide(whole)
}

// divide splits an encoding into windows. Each has the special tokens and, for a pair, the beginning of the text that
// the windows do not slide over, at most half a window.
func (c Windowing) divide(whole Encoding) []Encoding {
	every := func(Span) bool { return true }
	first, second := whole.tokensWhere(0, every), whole.tokensWhere(1, every)
	if second.length() == 0 {
		second = Span{first.End, first.End}
	}
	opening, between, closing := Span{0, first.Start}, Span{first.End, second.Start}, Span{second.End, len(whole.IDs)}
	room := max(0, c.MaxLength-(len(whole.IDs)-first.length()-second.length()))
	moving, still := &first, &second
	tagged := whole.Words != nil && first.length() > room/2
	if c.SlideOverContext && second.length() > 0 || second.length() > first.length() && !tagged {
		moving, still = still, moving
	}
	still.End = min(still.End, still.Start+room/2)
	piece := room - still.length()
	step := piece - min(c.Stride, piece/2)
	if room == 0 { // special tokens fill the window
		moving.End = moving.Start
	}

	var windows []Encoding
	for all, start := *moving, moving.Start; ; start += step {
		*moving = Span{start, min(start+piece, all.End)}
		parts, n := []Span{opening, first, between, second, closing}, 0
		for _, part := range parts {
			n += part.length()
		}
		w := Encoding{IDs: make([]int32, 0, n), Offsets: make([]Span, 0, n), Segments: make([]int8, 0, n)}
		for _, part := range parts {
			w.add(whole, part)
		}
		w.forget(whole, start)
		windows = append(windows, w)
		if moving.End == all.End {
			return windows
		}
	}
}

// tokensWhere returns the range from the first to the last token of the first (0) or second (1) text for whose offsets
// is returns true, without special tokens.
func (e Encoding) tokensWhere(text int8, is func(offsets Span) bool) Span {
	var s Span
	for i, offsets := range e.Offsets {
		if offsets == (Span{}) || e.Segments[i] != text || !is(offsets) {
			continue
		}
		if s == (Span{}) {
			s.Start = i
		}
		s.End = i + 1
	}
	return s
}

func (e *Encoding) add(from Encoding, tokens Span) {
	e.IDs = append(e.IDs, from.IDs[tokens.Start:tokens.End]...)
	e.Offsets = append(e.Offsets, from.Offsets[tokens.Start:tokens.End]...)
	e.Segments = append(e.Segments, from.Segments[tokens.Start:tokens.End]...)
	if from.TokenTypes != nil {
		e.TokenTypes = append(e.TokenTypes, from.TokenTypes[tokens.Start:tokens.End]...)
	}
	if from.Words != nil {
		e.Words = append(e.Words, from.Words[tokens.Start:tokens.End]...)
	}
}

// forget handles the word that the window of whole beginning at start begins inside: without its first piece, its other
// pieces do not represent it and get the word -1.
func (e *Encoding) forget(whole Encoding, start int) {
	if whole.Words == nil || start == 0 || whole.Words[start] < 0 || whole.Words[start-1] != whole.Words[start] {
		return
	}
	word := whole.Words[start]
	for i := range e.Words {
		if e.Words[i] == word {
			e.Words[i] = -1
		}
	}
}

func (s Span) length() int { return s.End - s.Start }

// WordsInWindows reports for each word whether a window has a token of it.
func (e *Example) WordsInWindows() []bool {
	there := make([]bool, len(e.Words))
	for _, window := range e.Windows {
		for _, word := range window.Words {
			if word >= 0 {
				there[word] = true
			}
		}
	}
	return there
}

// TokensOf returns the tokens of a part of the second text, End exclusive, or the zero Span if e lacks some of them.
// White space, combining marks and control characters at the part's ends, which tokenizers drop, are ignored.
func (e Encoding) TokensOf(part Span, text string) Span {
	extract := text[part.Start:part.End]
	part.Start += len(extract) - len(strings.TrimLeftFunc(extract, isDropped))
	part.End -= len(extract) - len(strings.TrimRightFunc(extract, isDropped))
	// the window has tokens that begin at or before the part's start, end at or after its end
	before, after := false, false
	found := e.tokensWhere(1, func(o Span) bool {
		before, after = before || o.Start <= part.Start, after || o.End >= part.End
		return o.End > part.Start && o.Start < part.End
	})
	if !before || !after {
		return Span{}
	}
	return found
}

// MarkWords sets the words of the tokens of an example that was encoded without Words: that which a token begins in. In
// a window that begins inside a word, that word has no token, as after Encode. The Windows are new ones.
func (e *Example) MarkWords() {
	e.Windows = slices.Clone(e.Windows)
	for i := range e.Windows {
		w := &e.Windows[i]
		w.Words = make([]int32, len(w.IDs))
		word, cut := 0, int32(-1)
		for t, at := range w.Offsets {
			w.Words[t] = -1
			if at == (Span{}) || w.textOf(t) == 1 {
				continue
			}
			for word < len(e.Words) && e.Words[word].End <= at.Start {
				word++
			}
			if word == len(e.Words) || at.Start < e.Words[word].Start {
				continue
			}
			begun := t > 0 && w.Words[t-1] == int32(word)
			if at.Start > e.Words[word].Start && !begun && (cut == int32(word) || i > 0) {
				cut = int32(word)
				continue
			}
			w.Words[t] = int32(word)
		}
	}
}
