// Package pieces divides texts into the pieces of a vocabulary as a tokenizer.json says: added tokens, a normaliser, a
// pre-tokenizer and a model, byte-pair encoding (Sennrich et al. 2016) or Unigram (Kudo 2018). Pieces have the ids and
// offsets that the library tokenizers 0.23 gives them. The package knows neither examples nor special tokens around a
// text.
package pieces

import (
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

// Piece is a token of a text.
type Piece struct {
	ID         int32
	Start, End int // bytes of the text
}

// Tokenizer divides texts into pieces. It is safe for concurrent use.
type Tokenizer struct {
	vocabulary
	added         AddedTokens
	normalizers   []normalizer
	preTokenizers []preTokenizer
	model         model
	trims         []trim // of offsets, in order
	blank         blankBy
	pool          sync.Pool // *state
}

// normalizer rewrites a text.
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
	token  int32 // id of the added token, or NotAdded
}

// state is the memory of one Append.
type state struct {
	aligned // the text of all splits
	splits  []split
	blank   bool // each text has a blank before it

	previous aligned // what a pre-tokenizer rewrites
	before   []split // what it divides

	segment segment
	matches []Match // of the raw text
	inner   []Match // of a normalised segment
	tokens  []token
	bpe     bpeScratch
	unigram unigramScratch
}

// keepBytes bounds the length of texts whose memory is used again.
const keepBytes = 1 << 20

// Append appends the pieces of text to out. With blank, text is a word that follows a blank: where the vocabulary has
// other tokens for the continuation of a word, and the tokenizer takes the beginning of a text for one, the pieces are
// those of a text with a blank before it, unless it begins with one. Invalid bytes are read as U+FFFD.
func (t *Tokenizer) Append(out []Piece, text string, blank bool) []Piece {
	if len(text) > math.MaxInt32/4 { // a byte may become several
		panic(fmt.Sprintf("pieces: a text of %d bytes, want at most %d", len(text), math.MaxInt32/4))
	}
	clean, sources := validUTF8(text)
	s := t.pool.Get().(*state)
	s.blank = blank && t.blank != noBlank
	first := len(out)
	out = t.append(out, s, clean)
	if len(text) <= keepBytes {
		t.pool.Put(s)
	}
	for i := first; sources != nil && i < len(out); i++ {
		out[i].Start, out[i].End = sources[out[i].Start], sources[out[i].End]
	}
	return out
}

// append appends the pieces of text, which is UTF-8.
func (t *Tokenizer) append(out []Piece, s *state, text string) []Piece {
	t.divide(s, text)
	first := len(out)
	for _, part := range s.splits {
		if part.token != NotAdded {
			k := s.piece(part.token, part.lo, part.hi)
			if len(t.trims) > 0 {
				k = t.trimmed(k, paddingOf(string(s.text[part.lo:part.hi])), text, len(out) == first, s.blank)
			}
			out = append(out, k)
			continue
		}
		s.tokens = s.tokens[:0]
		t.model.tokenize(s, s.text[part.lo:part.hi])
		for _, k := range s.tokens {
			k := s.piece(k.id, part.lo+k.start, part.lo+k.end)
			if len(t.trims) > 0 {
				k = t.trimmed(k, t.padding[k.ID], text, len(out) == first, s.blank)
			}
			out = append(out, k)
		}
	}
	return out
}

// divide sets s to the splits of text.
func (t *Tokenizer) divide(s *state, text string) {
	// Added tokens are matched in the raw text, then in the normalised one.
	s.text, s.at, s.splits = s.text[:0], s.at[:0], s.splits[:0]
	s.matches = t.added.Split(s.matches[:0], text)
	for _, m := range s.matches {
		s.segment.fill(text, m.Lo, m.Hi)
		if m.ID != NotAdded {
			s.add(&s.segment, m.ID)
			continue
		}
		if m.Lo == 0 && s.blank && t.blank == blankByText && text[0] != ' ' && !t.addedFirst(s) {
			s.segment.putBlank()
		}
		for _, n := range t.normalizers {
			n.normalize(&s.segment)
		}
		t.addNormalized(s)
	}
	for _, p := range t.preTokenizers {
		p.preTokenize(s)
	}
}

// addedFirst reports whether the segment begins with an added token after normalisation.
func (t *Tokenizer) addedFirst(s *state) bool {
	if t.added.normalized.empty() {
		return false
	}
	text := string(s.segment.text)
	s.inner = t.added.SplitNormalized(s.inner[:0], []byte(t.normalized(text)))
	return len(s.inner) > 0 && s.inner[0].ID != NotAdded
}

// addNormalized adds the segment as splits, divided at the added tokens that are matched in normalised text.
func (t *Tokenizer) addNormalized(s *state) {
	first := len(s.text)
	s.text, s.at = append(s.text, s.segment.text...), append(s.at, s.segment.at...)
	s.inner = t.added.SplitNormalized(s.inner[:0], s.segment.text)
	for _, m := range s.inner {
		if m.Lo < m.Hi {
			s.splits = append(s.splits, split{int32(first + m.Lo), int32(first + m.Hi), m.ID})
		}
	}
}

// add adds a segment as one split.
func (s *state) add(t *segment, token int32) {
	if len(t.text) == 0 {
		return
	}
	lo := int32(len(s.text))
	s.text, s.at = append(s.text, t.text...), append(s.at, t.at...)
	s.splits = append(s.splits, split{lo, int32(len(s.text)), token})
}

// piece returns the piece of a range of the text.
func (s *state) piece(id, lo, hi int32) Piece {
	start, end := s.at[lo].start, s.at[hi-1].end
	return Piece{id, int(start), int(max(start, end))}
}

// validUTF8 returns text with U+FFFD for each invalid byte. If they differ, sources holds the offset in text of each
// byte of clean, and of its end.
func validUTF8(text string) (clean string, sources []int) {
	if utf8.ValidString(text) {
		return text, nil
	}
	var out strings.Builder
	for i, r := range text {
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
func (t *Tokenizer) setBlank() {
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

// onlySplit returns the split of a text that is one.
func (t *Tokenizer) onlySplit(text string) (split string, ok bool) {
	s := new(state)
	if t.divide(s, text); len(s.splits) != 1 {
		return "", false
	}
	return string(s.text[s.splits[0].lo:s.splits[0].hi]), true
}

// maxGrowth is how many times longer all parts together may make a text.
const maxGrowth = 1 << 13

// growing is a normaliser or a pre-tokenizer that may make texts longer.
type growing interface {
	// growth returns how many times longer, at most.
	growth() int
}

// checkGrowth returns an error for parts that together could make a text longer than memory.
func (t *Tokenizer) checkGrowth() error {
	times := 1
	count := func(part any) {
		if g, ok := part.(growing); ok {
			times = min(times*max(1, g.growth()), 2*maxGrowth)
		}
	}
	for _, n := range t.normalizers {
		count(n)
	}
	for _, p := range t.preTokenizers {
		count(p)
	}
	if times > maxGrowth {
		return fmt.Errorf("normalizer and pre_tokenizer may make a text more than %d times longer", maxGrowth)
	}
	return nil
}

// A pattern matches at least one byte.
func (r *replace) growth() int {
	if text, ok := r.finder.(literal); ok && len(text) > 0 {
		return (len(r.content) + len(text) - 1) / len(text)
	}
	return len(r.content)
}

// The factors of Unicode Standard Annex 15, table "Maximum Expansion Factors".
func (f unicodeForm) growth() int {
	if f.compatible {
		return 11
	}
	return 3
}

func (lowercase) growth() int      { return 2 }
func (p prepend) growth() int      { return 1 + len(p) } // to a segment of a byte
func (p *precompiled) growth() int { return p.longest }
func (m *metaspaces) growth() int  { return 2 * len(m.mark) }
func (b *byteLevel) growth() int   { return 2 } // a blank before a split of a byte
