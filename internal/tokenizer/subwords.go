package tokenizer

import (
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// subwords divides texts into the pieces of byte pairs or Unigram: the text is normalised, divided by pre-tokenizers,
// and each split is divided by the model.
type subwords struct {
	tokens        []string         // by id; "" for an id without a token
	known         map[string]int32 // of the model
	added         addedTokens
	normalizers   []normalizer
	preTokenizers []preTokenizer
	model         model
	trims         []trim    // of offsets, in order
	padding       []padding // of tokens, by id; nil if no offsets are trimmed
	blank         blankBy
	piece         int       // bytes of a text that appendSome divides at once
	pool          sync.Pool // *state
}

type normalizer interface{ normalize(t *segment) }

// preTokenizer divides the splits of a text that are not added tokens into smaller ones, and may rewrite them.
type preTokenizer interface{ preTokenize(s *state) }

// model appends the tokens of a split to s.tokens.
type model interface{ tokenize(s *state, text []byte) }

// token is a token of a split, with its place in the text of the split.
type token struct{ id, start, end int32 }

// split is a range of a text that is tokenized by itself, or is an added token.
type split struct {
	lo, hi int32
	token  int32 // id of the added token, or notAdded
}

// state is the memory of one Append.
type state struct {
	aligned // the text of all splits
	splits  []split
	blank   bool // each text has a blank before it
	inside       // the text is a piece of a longer one

	previous aligned // what a pre-tokenizer rewrites
	before   []split // what it divides

	segment segment
	matches []match // of the raw text
	inner   []match // of a normalised segment
	tokens  []token
	bpe     bpeScratch
	unigram unigramScratch
}

// inside says that a text begins or ends within a longer one: what is put or removed at the begin or end of a text is
// not there.
type inside struct{ continues, goesOn bool }

// keepBytes bounds the length of texts whose memory is used again.
const keepBytes = 1 << 20

func newSubwords(normalizers ...normalizer) *subwords {
	return &subwords{normalizers: normalizers, piece: pieceBytes,
		pool: sync.Pool{New: func() any { return new(state) }}}
}

// put gives back the memory that was used for a text, unless that was long.
func (t *subwords) put(s *state, text string) {
	if len(text) <= keepBytes {
		t.pool.Put(s)
	}
}

func (t *subwords) append(out []Token, text string, words []Range) []Token {
	s := t.pool.Get().(*state)
	if words == nil {
		out = t.appendPart(out, s, text, 0, len(text), -1)
	}
	for i, word := range words {
		out = t.appendPart(out, s, text, word.Start, word.End, int32(i))
	}
	t.put(s, text)
	return out
}

// appendPart appends the tokens of text[lo:hi], as those of the word of index number, or of a text for -1. A word
// follows a blank: where the vocabulary has other tokens for the continuation of a word, and the tokenizer takes the
// beginning of a text for one, its tokens are those of a text with a blank before it, unless it begins with one.
// Invalid bytes are read as U+FFFD.
func (t *subwords) appendPart(out []Token, s *state, text string, lo, hi int, number int32) []Token {
	part := text[lo:hi]
	if len(part) > math.MaxInt32/4 { // a byte may become several
		panic(fmt.Sprintf("tokenizer: a text of %d bytes, want at most %d", len(part), math.MaxInt32/4))
	}
	clean, sources := validUTF8(part, false)
	s.blank = number >= 0 && t.blank != noBlank
	first := len(out)
	out = t.appendClean(out, s, clean)
	for i := first; i < len(out); i++ {
		k := &out[i]
		if sources != nil {
			k.Start, k.End = sources[k.Start], sources[k.End]
		}
		if k.Start == 0 && k.End == 0 { // a blank that was put before the first rune, without its offsets
			_, k.End = utf8.DecodeRuneInString(part)
		}
		k.Word, k.Start, k.End = number, lo+k.Start, lo+k.End
	}
	return out
}

// appendClean appends the tokens of text, which is UTF-8.
func (t *subwords) appendClean(out []Token, s *state, text string) []Token {
	t.divide(s, text)
	first := len(out)
	for _, part := range s.splits {
		if part.token != notAdded {
			k := s.piece(part.token, part.lo, part.hi)
			if len(t.trims) > 0 {
				k = t.trimmed(s, k, paddingOf(string(s.text[part.lo:part.hi])), text, len(out) == first)
			}
			out = append(out, k)
			continue
		}
		s.tokens = s.tokens[:0]
		t.model.tokenize(s, s.text[part.lo:part.hi])
		for _, k := range s.tokens {
			k := s.piece(k.id, part.lo+k.start, part.lo+k.end)
			if len(t.trims) > 0 {
				k = t.trimmed(s, k, t.padding[k.ID], text, len(out) == first)
			}
			out = append(out, k)
		}
	}
	return out
}

// divide sets s to the splits of text.
func (t *subwords) divide(s *state, text string) {
	// Added tokens are matched in the raw text, then in the normalised one.
	s.text, s.at, s.splits = s.text[:0], s.at[:0], s.splits[:0]
	s.matches = t.added.raw.split(s.matches[:0], text)
	for _, m := range s.matches {
		s.segment.fill(text, m.lo, m.hi)
		if m.id != notAdded {
			s.inner = append(s.inner[:0], match{0, m.hi - m.lo, m.id})
			s.addSegment()
			continue
		}
		s.segment.inside = inside{s.continues && m.lo == 0, s.goesOn && m.hi == len(text)}
		if m.lo == 0 && s.blank && !s.continues && t.blank == blankByText && text[0] != ' ' && !t.addedFirst(s) {
			s.segment.putBlank()
		}
		for _, n := range t.normalizers {
			n.normalize(&s.segment)
		}
		s.inner = t.added.splitNormalized(s.inner[:0], s.segment.text)
		s.addSegment()
	}
	for _, p := range t.preTokenizers {
		p.preTokenize(s)
	}
}

// addedFirst reports whether the segment begins with an added token after normalisation.
func (t *subwords) addedFirst(s *state) bool {
	if t.added.normalized.trie == nil {
		return false
	}
	text := string(s.segment.text)
	s.inner = t.added.splitNormalized(s.inner[:0], []byte(t.normalized(text)))
	return len(s.inner) > 0 && s.inner[0].id != notAdded
}

// addSegment adds the segment as splits, divided at the added tokens in it, which s.inner has.
func (s *state) addSegment() {
	first := len(s.text)
	if first == 0 { // most texts are one segment
		s.aligned, s.segment.aligned = s.segment.aligned, s.aligned
	} else {
		s.copy(&s.segment.aligned, 0, int32(len(s.segment.text)))
	}
	for _, m := range s.inner {
		if m.lo < m.hi {
			s.splits = append(s.splits, split{int32(first + m.lo), int32(first + m.hi), m.id})
		}
	}
}

func (s *state) piece(id, lo, hi int32) Token {
	start, end := s.at[lo].start, s.at[hi-1].end
	return Token{ID: id, Start: int(start), End: int(max(start, end))}
}

// validUTF8 returns text with U+FFFD for each invalid byte, and with noNUL for each NUL. If they differ, sources holds
// the offset in text of each byte of clean, and of its end.
func validUTF8(text string, noNUL bool) (clean string, sources []int) {
	if utf8.ValidString(text) && !(noNUL && strings.Contains(text, "\x00")) {
		return text, nil
	}
	var out strings.Builder
	for i, r := range text {
		if r == 0 && noNUL {
			r = utf8.RuneError
		}
		out.WriteRune(r)
		for len(sources) < out.Len() {
			sources = append(sources, i)
		}
	}
	return out.String(), append(sources, len(text))
}

const (
	cacheSlots  = 1 << 15
	cachedBytes = 64 // longer texts are not kept
)

// cache holds the tokens of short texts: of those with the same hash, the last one.
type cache struct {
	seed  maphash.Seed
	slots []atomic.Pointer[cacheEntry]
}

type cacheEntry struct {
	text   string
	tokens []token
}

func newCache() *cache {
	return &cache{maphash.MakeSeed(), make([]atomic.Pointer[cacheEntry], cacheSlots)}
}

// slot returns where the tokens of a text are kept, nil if they are not.
func (c *cache) slot(text []byte) *atomic.Pointer[cacheEntry] {
	if len(text) > cachedBytes {
		return nil
	}
	return &c.slots[maphash.Bytes(c.seed, text)%cacheSlots]
}

// appendCached appends the tokens of text, which tokenize appends where the cache has none. Their places count from
// offset.
func (c *cache) appendCached(s *state, text []byte, offset int32, tokenize func(s *state, text []byte)) {
	slot := c.slot(text)
	first := len(s.tokens)
	if slot == nil {
		tokenize(s, text)
	} else if entry := slot.Load(); entry != nil && entry.text == string(text) {
		s.tokens = append(s.tokens, entry.tokens...)
	} else {
		tokenize(s, text)
		slot.Store(&cacheEntry{string(text), append([]token(nil), s.tokens[first:]...)})
	}
	if offset == 0 {
		return
	}
	for i := first; i < len(s.tokens); i++ {
		s.tokens[i].start += offset
		s.tokens[i].end += offset
	}
}

// blankBy is what puts a blank before a word that is encoded by itself.
type blankBy int

const (
	noBlank          blankBy = iota // a word has the same pieces with and without it
	blankByText                     // it is the first character of the text
	blankByByteLevel                // the pre-tokenizer ByteLevel puts it, as its add_prefix_space does
)

// setBlank finds out whether words need a blank before them: the text " a" is then one split, the letter with a mark
// before it, with which tokens of the vocabulary begin, and the text "a" has no mark.
func (t *subwords) setBlank() {
	if len(t.preTokenizers) == 1 {
		if p, ok := t.preTokenizers[0].(*byteLevel); ok && p.blanks {
			if !p.prefixSpace {
				t.blank = blankByByteLevel
			}
			return
		}
	}
	if text, ok := t.onlySplit("a"); !ok || text != "a" {
		return
	}
	text, ok := t.onlySplit(" a")
	mark, marked := strings.CutSuffix(text, "a")
	if !ok || !marked || mark == "" {
		return
	}
	if endsInBytes(t.preTokenizers) {
		mark = string(byteRunes[' '])
	}
	begins := func(token string) bool { return len(token) > len(mark) && strings.HasPrefix(token, mark) }
	if slices.ContainsFunc(t.tokens, begins) {
		t.blank = blankByText
	}
}

func (t *subwords) onlySplit(text string) (split string, ok bool) {
	s := new(state)
	if t.divide(s, text); len(s.splits) != 1 {
		return "", false
	}
	return string(s.text[s.splits[0].lo:s.splits[0].hi]), true
}

// maxGrowth is how many times longer all parts together may make a text.
const maxGrowth = 1 << 13

// checkGrowth returns an error for parts that together could make a text longer than memory.
func (t *subwords) checkGrowth() error {
	times := 1
	count := func(part any) { times = min(times*max(1, growth(part)), 2*maxGrowth) }
	for _, n := range t.normalizers {
		count(n)
	}
	for _, p := range t.preTokenizers {
		count(p)
	}
	t.piece = max(minPiece, pieceBytes/times)
	if times > maxGrowth {
		return fmt.Errorf("normalizer and pre_tokenizer may make a text more than %d times longer", maxGrowth)
	}
	return nil
}

// growth returns how many times longer, at most, a normaliser or a pre-tokenizer makes a text.
func growth(part any) int {
	switch p := part.(type) {
	case *replace: // a pattern matches at least one byte
		if text, ok := p.finder.(literal); ok && len(text) > 0 {
			return (len(p.content) + len(text) - 1) / len(text)
		}
		return len(p.content)
	case unicodeForm: // Unicode Standard Annex 15, table "Maximum Expansion Factors"
		if p >= unicodeForm(norm.NFKC) {
			return 11
		}
		return 3
	case prepend: // to a segment of a byte
		return 1 + len(p)
	case *precompiled:
		return p.longest
	case *metaspaces:
		return 2 * len(p.mark)
	case lowercase, *byteLevel: // a blank before a split of a byte
		return 2
	}
	return 1
}
