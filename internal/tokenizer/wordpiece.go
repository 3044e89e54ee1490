package tokenizer

import (
	"fmt"
	"iter"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// wordPiece is the tokenizer of BERT (Devlin et al. 2019): a text is normalised, split at white space and punctuation,
// and each word is divided into the longest pieces of a vocabulary.
type wordPiece struct {
	vocabulary *vocabulary
	normalizer *bertNormalizer
	maxRunes   int // longer words are unknown
	matched    addedTokens
	unknown    int32
	trims      bool // white space is not part of an added token's offsets

	// as in files
	settings bertSettings
	config   tokenizerConfig
	added    []addedToken

	scratch sync.Pool // *wordScratch
}

const (
	bertMaxRunes = 100  // BERT's bound on the length of a word
	innerPrefix  = "##" // BERT's prefix of pieces inside a word
)

// newWordPiece returns the tokenizer of its parts, or an error if they do not fit together.
func newWordPiece(v *vocabulary, settings bertSettings, maxRunes int, config tokenizerConfig,
	added []addedToken) (*wordPiece, error) {
	if maxRunes < 1 || maxRunes > maxWordRunes {
		return nil, fmt.Errorf("max_input_chars_per_word is %d, want 1 to %d", maxRunes, maxWordRunes)
	}
	if v.longest > maxToken {
		return nil, fmt.Errorf("the vocabulary has a piece of %d bytes, want at most %d", v.longest, maxToken)
	}
	if len(added) > maxAdded {
		return nil, fmt.Errorf("%d added tokens, want at most %d", len(added), maxAdded)
	}
	strip := settings.Lower
	if settings.Strip != nil {
		strip = *settings.Strip
	}
	w := &wordPiece{
		vocabulary: v,
		normalizer: newBERTNormalizer(settings.Clean, settings.Chinese, strip, settings.Lower),
		maxRunes:   maxRunes,
		settings:   settings,
		config:     config,
		added:      added,
		scratch:    sync.Pool{New: func() any { return new(wordScratch) }},
	}

	var err error
	for _, token := range added {
		if n := len(token.Content); n > maxToken {
			return nil, fmt.Errorf("added token %.20q has %d bytes, want at most %d", token.Content, n, maxToken)
		}
		if err = v.include(token); err != nil {
			return nil, err
		}
	}
	w.matched = newAddedTokens(added, func(content string) string {
		var n normalized
		w.normalizer.append(&n, content, 0)
		return string(n.text)
	})

	if w.unknown, err = w.required(config.Unknown); err != nil {
		return nil, err
	}
	for _, name := range []*tokenName{&w.config.Pad, &w.config.Mask} {
		if _, ok := v.id(string(*name)); !ok {
			*name = ""
		}
	}
	return w, nil
}

// required returns the id of a special token.
func (w *wordPiece) required(name tokenName) (int32, error) {
	id, ok := w.vocabulary.id(string(name))
	if !ok {
		return 0, fmt.Errorf("no token %q, which a WordPiece tokenizer requires", name)
	}
	return id, nil
}

// wordScratch is the memory of one division.
type wordScratch struct {
	normalized     normalized
	matches, inner []match // added tokens of the raw and of the normalised text
	tokens         []Token
}

// append appends the tokens of a text, or of words in it.
func (w *wordPiece) append(out []Token, text string, words []Range) []Token {
	s := w.scratch.Get().(*wordScratch)
	defer w.scratch.Put(s)
	first := len(out)
	s.tokens = out
	if words == nil {
		w.divide(s, text, 0, len(text), -1)
	}
	for i, word := range words {
		w.divide(s, text, word.Start, word.End, int32(i))
	}
	out, s.tokens = s.tokens, nil
	if w.trims {
		trimSpace(out[first:], text)
	}
	return out
}

// divide appends the tokens of text[lo:hi] to s.tokens, as those of the word of index number.
func (w *wordPiece) divide(s *wordScratch, text string, lo, hi int, number int32) {
	for word := range w.words(s, text, lo, hi) {
		if word.id != notAdded {
			s.tokens = append(s.tokens, Token{word.id, number, word.at.Start, word.at.End})
			continue
		}
		before := len(s.tokens)
		if !w.put(s, word, number) {
			s.tokens = append(s.tokens[:before], Token{w.unknown, number, word.at.Start, word.at.End})
		}
	}
}

// put appends the pieces of word to s.tokens, the longest at each position, and reports whether they cover the whole
// word.
func (w *wordPiece) put(s *wordScratch, word word, number int32) bool {
	text, v := s.normalized.text, w.vocabulary
	if utf8.RuneCount(text[word.lo:word.hi]) > w.maxRunes {
		return false
	}
	known := v.whole
	for lo := word.lo; lo < word.hi; known = v.inner {
		length, id := longestIn(known, text[lo:min(word.hi, lo+v.longest)])
		if length == 0 {
			return false
		}
		at := s.normalized.source(lo, lo+length)
		s.tokens = append(s.tokens, Token{id, number, at.Start, at.End})
		lo += length
	}
	return true
}

// trimSpace removes white space from the ends of the offsets of tokens: that which added tokens include.
func trimSpace(tokens []Token, text string) {
	for i := range tokens {
		at := &tokens[i]
		token := text[at.Start:at.End]
		if first, _ := utf8.DecodeRuneInString(token); unicode.IsSpace(first) {
			at.Start = at.End - len(strings.TrimLeftFunc(token, unicode.IsSpace))
		}
		if last, _ := utf8.DecodeLastRuneInString(token); unicode.IsSpace(last) {
			at.End = max(at.Start, at.Start+len(strings.TrimRightFunc(text[at.Start:at.End], unicode.IsSpace)))
		}
	}
}

// word is a range of the normalised text that is divided into pieces, or an added token.
type word struct {
	lo, hi int   // of the normalised text
	at     Range // of the raw text
	id     int32 // of the added token, or notAdded
}

// words yields the words of text[lo:hi]. The text of those that are not added tokens is in s.normalized.
func (w *wordPiece) words(s *wordScratch, text string, lo, hi int) iter.Seq[word] {
	return func(yield func(word) bool) {
		s.matches = w.matched.split(s.matches[:0], text[lo:hi])
		for _, m := range s.matches {
			at := Range{lo + m.lo, lo + m.hi}
			if m.id != notAdded {
				if !yield(word{at: at, id: m.id}) {
					return
				}
				continue
			}
			s.normalized.reset()
			w.normalizer.append(&s.normalized, text[at.Start:at.End], at.Start)
			if !w.normalizedWords(s, yield) {
				return
			}
		}
	}
}

// normalizedWords yields the words of s.normalized and reports whether to continue.
func (w *wordPiece) normalizedWords(s *wordScratch, yield func(word) bool) bool {
	n := &s.normalized
	s.inner = w.matched.splitNormalized(s.inner[:0], n.text)
	for _, m := range s.inner {
		if m.id == notAdded {
			if !w.plainWords(n, m.lo, m.hi, yield) {
				return false
			}
		} else if !yield(word{m.lo, m.hi, n.source(m.lo, m.hi), m.id}) {
			return false
		}
	}
	return true
}

// plainWords yields the words of n.text[lo:hi], which has no added token, and reports whether to continue.
func (w *wordPiece) plainWords(n *normalized, lo, hi int, yield func(word) bool) bool {
	for {
		start, end := w.normalizer.class.next(n.text[:hi], lo)
		if start == end {
			return true
		}
		if !yield(word{start, end, n.source(start, end), notAdded}) {
			return false
		}
		lo = end
	}
}
