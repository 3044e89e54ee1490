package corpus

import (
	"fmt"
	"iter"
	"sync"
	"unicode/utf8"

	"github.com/jenga-nlp/jenga/internal/pieces"
)

// WordPiece is the tokenizer of BERT (Devlin et al. 2019): a text is normalised, split at white space and punctuation,
// and each word is divided into the longest pieces of a vocabulary. Its tokens are those of the Rust crate tokenizers
// 0.23.
type WordPiece struct {
	vocabulary *vocabulary
	normalizer *normalizer
	maxRunes   int // longer words are unknown
	matched    pieces.AddedTokens
	unknown    int32
	opening    int32 // before the first text
	closing    int32 // after each text

	settings bertNormalizer // for Save, like the next two
	config   tokenizerConfig
	added    []addedToken
	files    []string
	scratch  sync.Pool // *scratch
}

var _ Tokenizer = (*WordPiece)(nil)

const (
	bertMaxRunes = 100  // BERT's bound on the length of a word
	innerPrefix  = "##" // BERT's prefix of pieces inside a word
)

// newWordPiece returns the tokenizer of its parts, or an error if they do not fit together.
func newWordPiece(v *vocabulary, settings bertNormalizer, maxRunes int, config tokenizerConfig,
	added []addedToken) (*WordPiece, error) {
	if maxRunes < 1 || maxRunes > maxWordRunes {
		return nil, fmt.Errorf("max_input_chars_per_word is %d, want 1 to %d", maxRunes, maxWordRunes)
	}
	if v.longest > maxPieceBytes {
		return nil, fmt.Errorf("the vocabulary has a piece of %d bytes, want at most %d", v.longest, maxPieceBytes)
	}
	if len(added) > maxAdded {
		return nil, fmt.Errorf("%d added tokens, want at most %d", len(added), maxAdded)
	}
	settings.Type = "BertNormalizer"
	strip := settings.Lower
	if settings.Strip != nil {
		strip = *settings.Strip
	}
	w := &WordPiece{
		vocabulary: v,
		normalizer: newNormalizer(settings.Clean, settings.Chinese, strip, settings.Lower),
		maxRunes:   maxRunes,
		settings:   settings,
		config:     config,
		added:      added,
		scratch:    sync.Pool{New: func() any { return new(scratch) }},
	}

	for _, token := range added {
		if n := len(token.Content); n > maxPieceBytes {
			return nil, fmt.Errorf("added token %.20q has %d bytes, want at most %d", token.Content, n, maxPieceBytes)
		}
		if err := v.include(token); err != nil {
			return nil, err
		}
	}
	w.matched = pieces.NewAddedTokens(added, func(content string) string {
		var n normalized
		w.normalizer.append(&n, content, 0)
		return string(n.text)
	})

	for _, special := range []struct {
		name tokenName
		id   *int32
	}{{config.Unknown, &w.unknown}, {config.Opening, &w.opening}, {config.Closing, &w.closing}} {
		id, ok := v.id(string(special.name))
		if !ok {
			return nil, fmt.Errorf("no token %q, which a WordPiece tokenizer requires", special.name)
		}
		*special.id = id
	}
	for _, name := range []*tokenName{&w.config.Pad, &w.config.Mask} {
		if _, ok := v.id(string(*name)); !ok {
			*name = ""
		}
	}
	return w, nil
}

// piece is one token of a text.
type piece struct {
	id   int32
	word int32
	at   Span
}

// scratch is the memory of one Encode.
type scratch struct {
	normalized     normalized
	matches, inner []pieces.Match // added tokens of the raw and of the normalised text
	pieces         []piece
}

// Size implements Tokenizer.
func (w *WordPiece) Size() int { return len(w.vocabulary.tokens) }

// Token implements Tokenizer.
func (w *WordPiece) Token(id int32) string { return w.vocabulary.tokens[id] }

// Files implements Tokenizer.
func (w *WordPiece) Files() []string { return w.files }

// Mask implements Tokenizer.
func (w *WordPiece) Mask() (id int32, ok bool) { return w.vocabulary.id(string(w.config.Mask)) }

// Encode implements Tokenizer. As in the crate, an added token such as [SEP] that is written in a text is that token.
func (w *WordPiece) Encode(e *Example, maxLength int) Encoding {
	s := w.scratch.Get().(*scratch)
	defer w.scratch.Put(s)

	s.pieces = s.pieces[:0]
	if e.Words == nil {
		w.encode(s, e.Text, Span{0, len(e.Text)}, -1)
	}
	for i, word := range e.Words {
		w.encode(s, e.Text, word, int32(i))
	}
	text, special := len(s.pieces), 2
	if e.Paired {
		w.encode(s, e.Pair, Span{0, len(e.Pair)}, -1)
		special = 3
	}

	keep, keepPair := text, len(s.pieces)-text
	if maxLength > 0 {
		keep, keepPair = longestFirst(keep, keepPair, max(0, maxLength-special))
	}
	return w.encoding(e, s.pieces[:keep], s.pieces[text:text+keepPair])
}

// longestFirst returns how many of the n and pair tokens of two texts remain if both together may have room tokens.
func longestFirst(n, pair, room int) (int, int) {
	if n+pair <= room {
		return n, pair
	}
	short := min(n, pair)
	if long := room - short; long >= short {
		return min(n, long), min(pair, long)
	}

	// Both are truncated to half; if room is odd, the longer text has one more, or the second of two of equal length.
	if half := room / 2; n <= pair {
		return half, room - half
	}
	return room - room/2, room / 2
}

// encoding adds the special tokens around the pieces of a text and of its pair.
func (w *WordPiece) encoding(e *Example, text, pair []piece) Encoding {
	n := len(text) + 2
	if e.Paired {
		n += len(pair) + 1
	}
	out := Encoding{IDs: make([]int32, 0, n), Offsets: make([]Span, 0, n), Segments: make([]int8, 0, n)}
	if e.Words != nil {
		out.Words = make([]int32, 0, n)
	}
	add := func(segment int8, pieces ...piece) {
		for _, p := range pieces {
			out.IDs = append(out.IDs, p.id)
			out.Offsets = append(out.Offsets, p.at)
			out.Segments = append(out.Segments, segment)
			if e.Words != nil {
				out.Words = append(out.Words, p.word)
			}
		}
	}

	add(0, piece{id: w.opening, word: -1})
	add(0, text...)
	add(0, piece{id: w.closing, word: -1})
	if e.Paired {
		add(1, pair...)
		add(1, piece{id: w.closing, word: -1})
	}
	return out
}

// encode appends the pieces of the bytes part of text, as those of the word of index number.
func (w *WordPiece) encode(s *scratch, text string, part Span, number int32) {
	for word := range w.words(s, text, part) {
		if word.id != pieces.NotAdded {
			s.pieces = append(s.pieces, piece{word.id, number, word.at})
			continue
		}
		before := len(s.pieces)
		if !w.put(s, word, number) {
			s.pieces = append(s.pieces[:before], piece{w.unknown, number, word.at})
		}
	}
}

// put appends the pieces of word, the longest at each position, and reports whether they cover the whole word.
func (w *WordPiece) put(s *scratch, word word, number int32) bool {
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
		s.pieces = append(s.pieces, piece{id, number, s.normalized.source(lo, lo+length)})
		lo += length
	}
	return true
}

// word is a range of the normalised text that is divided into pieces, or an added token.
type word struct {
	lo, hi int   // of the normalised text
	at     Span  // of the raw text
	id     int32 // of the added token, or pieces.NotAdded
}

// words yields the words of the bytes part of text. The text of those that are not added tokens is in s.normalized.
func (w *WordPiece) words(s *scratch, text string, part Span) iter.Seq[word] {
	return func(yield func(word) bool) {
		s.matches = w.matched.Split(s.matches[:0], text[part.Start:part.End])
		for _, m := range s.matches {
			at := Span{part.Start + m.Lo, part.Start + m.Hi}
			if m.ID != pieces.NotAdded {
				if !yield(word{at: at, id: m.ID}) {
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
func (w *WordPiece) normalizedWords(s *scratch, yield func(word) bool) bool {
	n := &s.normalized
	s.inner = w.matched.SplitNormalized(s.inner[:0], n.text)
	for _, m := range s.inner {
		if m.ID == pieces.NotAdded {
			if !w.plainWords(n, m.Lo, m.Hi, yield) {
				return false
			}
		} else if !yield(word{m.Lo, m.Hi, n.source(m.Lo, m.Hi), m.ID}) {
			return false
		}
	}
	return true
}

// plainWords yields the words of n.text[lo:hi], which has no added token, and reports whether to continue.
func (w *WordPiece) plainWords(n *normalized, lo, hi int, yield func(word) bool) bool {
	for {
		start, end := w.normalizer.class.next(n.text[:hi], lo)
		if start == end {
			return true
		}
		if !yield(word{start, end, n.source(start, end), pieces.NotAdded}) {
			return false
		}
		lo = end
	}
}

// Split implements Tokenizer.
func (w *WordPiece) Split(text string) []Span {
	s := w.scratch.Get().(*scratch)
	defer w.scratch.Put(s)
	var words []Span
	for word := range w.words(s, text, Span{0, len(text)}) {
		words = append(words, word.at)
	}
	return words
}
