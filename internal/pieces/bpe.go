package pieces

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// bpe is byte-pair encoding (Sennrich et al. 2016): a split is divided into characters, or bytes, and the pair of
// neighbours that the earliest merge joins is joined, the leftmost first, until none is left.
type bpe struct {
	vocab        map[string]int32
	prefix       string // of symbols after the first of a split
	suffix       string // of the last symbol of a split
	unknown      int32  // or noID: unknown characters have no token
	fuse         bool   // neighbouring unknown characters are one token
	ignoreMerges bool   // a split that is a token is not divided

	byteLevel bool             // a symbol is a byte, not a character
	singles   [256]int32       // ids of the bytes, or of ASCII characters, or noID
	runes     map[rune]int32   // ids of characters
	fallback  *[256]int32      // ids of the bytes of a character that has none; nil without byte_fallback
	whole     map[string]int32 // splits that are tokens, with ignoreMerges
	merges    pairTable
	results   []int32 // id of what each merge makes, by rank

	boundary string // a mark that begins a word: no merge joins another character with it; "" if there is none
	cache    *cache
}

const noID = -1

// symbol is a part of a split during merging.
type symbol struct {
	id, size   int32
	prev, next int32 // indices of the neighbours, -1 for none; size 0 marks a symbol that is merged
}

// bpeScratch is the memory of one division.
type bpeScratch struct {
	symbols []symbol
	ranks   []int32
	queue   []uint64
	name    []byte
}

// tokenize implements model.
func (b *bpe) tokenize(s *state, text []byte) {
	if b.ignoreMerges {
		if id, ok := b.whole[string(text)]; ok {
			s.tokens = append(s.tokens, token{id, 0, int32(len(text))})
			return
		}
	}
	if b.boundary == "" {
		b.cache.appendCached(s, text, 0, b.divide)
		return
	}
	for lo := 0; lo < len(text); {
		hi := lo + b.nextWord(text[lo:])
		b.cache.appendCached(s, text[lo:hi], int32(lo), b.divide)
		lo = hi
	}
}

// nextWord returns the length of the first word of text: it ends before a mark that follows another character.
func (b *bpe) nextWord(text []byte) int {
	at, mark := 0, len(b.boundary)
	for at+mark <= len(text) && string(text[at:at+mark]) == b.boundary {
		at += mark
	}
	first := b.boundary[0]
	for ; at < len(text); at++ {
		if text[at] == first && at+mark <= len(text) && string(text[at:at+mark]) == b.boundary {
			return at
		}
	}
	return at
}

// divide appends the tokens of text.
func (b *bpe) divide(s *state, text []byte) {
	b.fill(&s.bpe, text)
	if len(s.bpe.symbols) <= fewSymbols {
		b.mergeFew(&s.bpe)
	} else {
		b.mergeMany(&s.bpe)
	}
	at := int32(0)
	for _, k := range s.bpe.symbols {
		if k.size > 0 {
			s.tokens = append(s.tokens, token{k.id, at, at + k.size})
			at += k.size
		}
	}
	if cap(s.bpe.symbols) > keepBytes {
		s.bpe = bpeScratch{}
	}
}

// fill sets the symbols to the characters or bytes of text.
func (b *bpe) fill(w *bpeScratch, text []byte) {
	w.symbols = w.symbols[:0]
	unknown := int32(0) // bytes of unknown characters that have no symbol yet
	for at := 0; at < len(text); {
		size := 1
		if !b.byteLevel && text[at] >= utf8.RuneSelf {
			_, size = utf8.DecodeRune(text[at:])
		}
		part := text[at : at+size]
		id := b.symbol(w, part, at == 0, at+size == len(text))
		at += size

		switch {
		case id != noID:
			if unknown > 0 {
				w.add(b.unknown, unknown)
				unknown = 0
			}
			w.add(id, int32(size))
		case b.addBytes(w, part): // as in tokenizers, these come before unknown characters on their left
		case b.unknown != noID:
			if unknown > 0 && !b.fuse {
				w.add(b.unknown, unknown)
				unknown = 0
			}
			unknown += int32(size)
		}
	}
	if unknown > 0 {
		w.add(b.unknown, unknown)
	}
}

// symbol returns the id of a character or byte of a split, or noID.
func (b *bpe) symbol(w *bpeScratch, part []byte, first, last bool) int32 {
	if b.prefix != "" && !first || b.suffix != "" && last {
		w.name = w.name[:0]
		if !first {
			w.name = append(w.name, b.prefix...)
		}
		if b.byteLevel {
			w.name = utf8.AppendRune(w.name, byteRunes[part[0]])
		} else {
			w.name = append(w.name, part...)
		}
		if last {
			w.name = append(w.name, b.suffix...)
		}
		if id, ok := b.vocab[string(w.name)]; ok {
			return id
		}
		return noID
	}
	if b.byteLevel || part[0] < utf8.RuneSelf {
		return b.singles[part[0]]
	}
	r, _ := utf8.DecodeRune(part)
	if id, ok := b.runes[r]; ok {
		return id
	}
	return noID
}

// addBytes adds the bytes of a character as symbols, if all of them have ids.
func (b *bpe) addBytes(w *bpeScratch, part []byte) bool {
	if b.fallback == nil {
		return false
	}
	for _, c := range part {
		if b.fallback[c] == noID {
			return false
		}
	}
	for _, c := range part {
		w.add(b.fallback[c], 1)
	}
	return true
}

func (w *bpeScratch) add(id, size int32) {
	w.symbols = append(w.symbols, symbol{id: id, size: size})
}

// bpeFile is the model of a tokenizer.json.
type bpeFile struct {
	Dropout      float64   `json:"dropout"`
	Unknown      string    `json:"unk_token"`
	Prefix       string    `json:"continuing_subword_prefix"`
	Suffix       string    `json:"end_of_word_suffix"`
	Fuse         bool      `json:"fuse_unk"`
	Fallback     bool      `json:"byte_fallback"`
	IgnoreMerges bool      `json:"ignore_merges"`
	Vocab        ids       `json:"vocab"`
	Merges       mergeList `json:"merges"`
}

// newBPE returns the model of a file. With byteLevel its splits are bytes.
func newBPE(f *bpeFile, byteLevel bool) (*bpe, error) {
	if f.Dropout != 0 {
		return nil, fmt.Errorf("model has dropout %v, which gives a text other tokens each time; want 0", f.Dropout)
	}
	if f.Fallback && (byteLevel || f.Prefix != "" || f.Suffix != "") {
		return nil, &Unsupported{"model", "BPE with byte_fallback and bytes, prefixes or suffixes", "either of them"}
	}
	b := &bpe{vocab: f.Vocab, prefix: f.Prefix, suffix: f.Suffix, unknown: noID, fuse: f.Fuse,
		ignoreMerges: f.IgnoreMerges, byteLevel: byteLevel, cache: newCache()}
	b.fillCharacters()
	if f.Fallback {
		b.fallback = byteTokens(f.Vocab)
	}
	if f.IgnoreMerges {
		b.whole = b.wholeTokens()
	}
	if err := b.setUnknown(f.Unknown); err != nil {
		return nil, err
	}
	if err := b.readMerges(f.Merges); err != nil {
		return nil, err
	}
	if f.Prefix == "" && f.Suffix == "" && !f.IgnoreMerges && !byteLevel {
		b.findBoundary(f.Vocab)
	}
	return b, nil
}

// fillCharacters sets the ids of single characters or bytes.
func (b *bpe) fillCharacters() {
	b.runes = map[rune]int32{}
	for i := range b.singles {
		b.singles[i] = noID
	}
	for name, id := range b.vocab {
		r, size := utf8.DecodeRuneInString(name)
		switch {
		case size != len(name) || size == 0:
		case b.byteLevel:
			if c, ok := byteOf(r); ok {
				b.singles[c] = id
			}
		case r < utf8.RuneSelf:
			b.singles[r] = id
		default:
			b.runes[r] = id
		}
	}
}

// wholeTokens returns the tokens as texts of splits.
func (b *bpe) wholeTokens() map[string]int32 {
	if !b.byteLevel {
		return b.vocab
	}
	whole := make(map[string]int32, len(b.vocab))
	for name, id := range b.vocab {
		if text, ok := bytesOf(name); ok {
			whole[text] = id
		}
	}
	return whole
}

// setUnknown sets the unknown token. Bytes that all have tokens need none.
func (b *bpe) setUnknown(name string) error {
	missing := -1
	for c := range b.singles {
		if b.byteLevel && b.singles[c] == noID && utf8Byte(byte(c)) {
			missing = c
		}
	}
	id, ok := b.vocab[name]
	switch {
	case ok:
		b.unknown = id
	case name != "" && (!b.byteLevel || missing >= 0):
		return fmt.Errorf("model.unk_token is %q, which vocab does not have", name)
	case missing >= 0 && b.prefix == "" && b.suffix == "":
		return fmt.Errorf("model.vocab has no token %q for the byte 0x%02x, and there is no unk_token",
			string(byteRunes[missing]), missing)
	}
	return nil
}

// findBoundary finds whether words can be divided by themselves: the mark of Metaspace has an id, and no token joins
// another character with a mark after it.
func (b *bpe) findBoundary(vocab map[string]int32) {
	if _, ok := vocab[metaspace]; !ok {
		return
	}
	for name := range vocab {
		if strings.Contains(strings.TrimLeft(name, metaspace), metaspace) {
			return
		}
	}
	b.boundary = metaspace
}
