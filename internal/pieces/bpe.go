package pieces

import "unicode/utf8"

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
	at, first := int32(0), len(s.tokens)
	for _, k := range s.bpe.symbols {
		if k.size > 0 {
			s.tokens = append(s.tokens, token{k.id, at, at + k.size})
			at += k.size
		}
	}
	if b.byteLevel && int(at) < len(text) {
		b.shift(&s.bpe, text, s.tokens[first:])
	}
	if cap(s.bpe.symbols) > keepBytes {
		s.bpe = bpeScratch{}
	}
}

// shift sets the places of the tokens of a text with bytes that have none. As in tokenizers, their places are those of
// the same number of bytes from the begin on, in the text of the characters that stand for bytes: one or two bytes
// each.
func (b *bpe) shift(w *bpeScratch, text []byte, tokens []token) {
	var places, widths []int32 // the byte that each byte of a character stands for; of the bytes with tokens
	for i := range text {
		width := int32(utf8.RuneLen(byteRunes[text[i]]))
		for range width {
			places = append(places, int32(i))
		}
		if b.symbol(w, text[i:i+1], i == 0, i == len(text)-1) != noID {
			widths = append(widths, width)
		}
	}
	at := int32(0)
	for i := range tokens {
		k, end := &tokens[i], at
		for range k.end - k.start {
			end, widths = end+widths[0], widths[1:]
		}
		k.start, k.end, at = places[at], places[end-1]+1, end
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
