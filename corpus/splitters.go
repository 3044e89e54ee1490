package corpus

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Ways to split a text without words into words.
const (
	SplitPunctuation = "punctuation" // at white space, and each punctuation mark is a word: as the tokenizer does
	SplitEnds        = "ends"        // at white space, and punctuation marks at both ends of a word are words
	SplitClitics     = "clitics"     // as SplitEnds, and English clitics ('s, n't) are words
	SplitTreebank    = "treebank"    // as SplitClitics, and at hyphens, by the rules of English treebanks since 2012
	SplitWhitespace  = "whitespace"  // at white space alone
)

// Splitter returns the function that splits a text in a way; for SplitPunctuation, and for "", that is the tokenizer's.
func Splitter(way string, t Tokenizer) func(text string) []Span {
	switch way {
	case SplitEnds:
		return splitEnds
	case SplitClitics:
		return splitClitics
	case SplitTreebank:
		return splitTreebank
	case SplitWhitespace:
		return splitWhitespace
	}
	return func(text string) []Span { return withDropped(text, t.Split(text)) }
}

// withDropped extends the words that a tokenizer finds by the characters beside them that it drops, such as combining
// marks and joiners: they belong to the word before them, else to the one after, unless white space is between.
func withDropped(text string, words []Span) []Span {
	end := 0 // of the word before
	for i := range words {
		between := text[end:words[i].Start]
		if i > 0 {
			n := strings.IndexFunc(between, unicode.IsSpace)
			if n < 0 {
				n = len(between)
			}
			words[i-1].End += n
			between = between[n:]
		}
		words[i].Start -= len(between) - len(strings.TrimRightFunc(between, notSpace))
		end = words[i].End
	}
	if n := len(words); n > 0 {
		rest := text[end:]
		words[n-1].End += len(rest) - len(strings.TrimLeftFunc(rest, notSpace))
	}
	return words
}

func notSpace(r rune) bool { return !unicode.IsSpace(r) }

func splitWhitespace(text string) []Span {
	words := []Span{}
	start := -1 // of the word, -1 for none
	for i, r := range text {
		switch space := unicode.IsSpace(r); {
		case !space && start < 0:
			start = i
		case space && start >= 0:
			words, start = append(words, Span{start, i}), -1
		}
	}
	if start >= 0 {
		words = append(words, Span{start, len(text)})
	}
	return words
}

func splitEnds(text string) []Span {
	words := []Span{}
	for _, w := range splitWhitespace(text) {
		words = appendEnds(words, text, w)
	}
	return words
}

// appendEnds appends the words of a part of text without white space: the marks at its ends and what is between them.
func appendEnds(words []Span, text string, w Span) []Span {
	// marks before the word
	for w.Start < w.End {
		r, size := utf8.DecodeRuneInString(text[w.Start:w.End])
		if !unicode.IsPunct(r) {
			break
		}
		words, w.Start = append(words, Span{w.Start, w.Start + size}), w.Start+size
	}
	// the word, and the marks after it
	end := w.Start + len(strings.TrimRightFunc(text[w.Start:w.End], unicode.IsPunct))
	if end > w.Start {
		words = append(words, Span{w.Start, end})
	}
	for i, r := range text[end:w.End] {
		words = append(words, Span{end + i, end + i + utf8.RuneLen(r)})
	}
	return words
}

// clitics are English words that are written without a blank before them.
var clitics = []string{"'s", "'re", "'ve", "'ll", "'d", "'m", "n't", "’s", "’re", "’ve", "’ll", "’d", "’m", "n’t"}

func splitClitics(text string) []Span {
	words := []Span{}
	for _, w := range splitEnds(text) {
		at := w.Start + cliticAt(text[w.Start:w.End])
		words = append(words, Span{w.Start, at})
		if at < w.End {
			words = append(words, Span{at, w.End})
		}
	}
	return words
}

// cliticAt returns the byte of a word at which a clitic begins, the word's length if none does.
func cliticAt(word string) int {
	for _, clitic := range clitics {
		if n := len(word) - len(clitic); n > 0 && strings.EqualFold(word[n:], clitic) {
			return n
		}
	}
	return len(word)
}

// SplitAgreement returns the F1 of the words that split finds in the texts of examples, against their given words.
// Where the words were joined by blanks, the text is the one they were split from, or if that is not known, it is
// rebuilt as it is usually written: without a blank before closing punctuation marks and after opening ones.
func SplitAgreement(split func(text string) []Span, examples []*Example) float64 {
	same, all := 0, 0
	for _, e := range examples {
		text, words := rebuilt(e)
		found := split(text)
		all += len(words) + len(found)
		for i, j := 0, 0; i < len(words) && j < len(found); {
			switch {
			case words[i] == found[j]:
				same, i, j = same+1, i+1, j+1
			case words[i].Start < found[j].Start || words[i].Start == found[j].Start && words[i].End < found[j].End:
				i++
			default:
				j++
			}
		}
	}
	if all == 0 {
		return 1
	}
	return float64(2*same) / float64(all)
}

// rebuilt returns the text of an example and the spans of its words in it.
func rebuilt(e *Example) (string, []Span) {
	words := make([]string, len(e.Words))
	for i, w := range e.Words {
		words[i] = e.Text[w.Start:w.End]
	}
	if strings.Join(words, " ") != e.Text {
		return e.Text, e.Words // the text came with its words
	}
	if spans, err := findWords(e.Written, words); err == nil && e.Written != "" {
		return e.Written, spans // without words that are contracted in the text: "del" of de and el
	}
	var text strings.Builder
	spans := make([]Span, len(words))
	for i, w := range words {
		if i > 0 && !closes(w) && !opens(words[i-1]) {
			text.WriteByte(' ')
		}
		spans[i] = Span{text.Len(), text.Len() + len(w)}
		text.WriteString(w)
	}
	return text.String(), spans
}

// closes reports whether a word stands without a blank after the word before it: a closing mark, or an English clitic.
func closes(word string) bool {
	return slices.Contains(clitics, strings.ToLower(word)) || strings.Trim(word, `.,;:!?%)]}…”»،؛؟।。，、！？；：）」』`) == ""
}

// opens reports whether a word stands without a blank before the word after it.
func opens(word string) bool { return strings.Trim(word, "([{“«¿¡$€£（「『") == "" }
