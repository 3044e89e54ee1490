package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/bits"
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
	at, mark := 0, []byte(b.boundary)
	for bytes.HasPrefix(text[at:], mark) {
		at += len(mark)
	}
	if next := bytes.Index(text[at:], mark); next >= 0 {
		return at + next
	}
	return len(text)
}

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

// fewSymbols is the length up to which a search of the next merge among all pairs is faster than a queue.
const fewSymbols = 32

// noRank is the rank of a pair that no merge joins.
const noRank = 1<<31 - 1

// mergeFew joins the symbols, in quadratic time.
func (b *bpe) mergeFew(w *bpeScratch) {
	symbols := w.symbols
	w.ranks = w.ranks[:0]
	for i := 1; i < len(symbols); i++ {
		w.ranks = append(w.ranks, b.merges.rank(symbols[i-1].id, symbols[i].id))
	}
	ranks := w.ranks
	for {
		best, at := int32(noRank), -1
		for i, rank := range ranks {
			if rank < best {
				best, at = rank, i
			}
		}
		if at < 0 {
			break
		}
		symbols[at].id = b.results[best]
		symbols[at].size += symbols[at+1].size
		copy(symbols[at+1:], symbols[at+2:])
		symbols = symbols[:len(symbols)-1]
		copy(ranks[at:], ranks[at+1:])
		ranks = ranks[:len(ranks)-1]
		if at > 0 {
			ranks[at-1] = b.merges.rank(symbols[at-1].id, symbols[at].id)
		}
		if at < len(ranks) {
			ranks[at] = b.merges.rank(symbols[at].id, symbols[at+1].id)
		}
	}
	w.symbols = symbols
}

// mergeMany joins the symbols, in time n·log n: a queue holds the pairs by rank and place. A pair whose symbols have
// been joined since is skipped when it comes up.
func (b *bpe) mergeMany(w *bpeScratch) {
	symbols := w.symbols
	w.queue = w.queue[:0]
	for i := range symbols {
		symbols[i].prev, symbols[i].next = int32(i-1), int32(i+1)
		if i > 0 {
			w.push(b.merges.rank(symbols[i-1].id, symbols[i].id), int32(i-1))
		}
	}
	symbols[len(symbols)-1].next = -1

	for len(w.queue) > 0 {
		rank, at := w.pop()
		left := &symbols[at]
		if left.size == 0 || left.next < 0 {
			continue
		}
		right := &symbols[left.next]
		if now := b.merges.rank(left.id, right.id); now == noRank || b.results[now] != b.results[rank] {
			continue
		}
		left.id, left.size, left.next = b.results[rank], left.size+right.size, right.next
		right.size = 0
		if left.prev >= 0 {
			w.push(b.merges.rank(symbols[left.prev].id, left.id), left.prev)
		}
		if left.next >= 0 {
			symbols[left.next].prev = at
			w.push(b.merges.rank(left.id, symbols[left.next].id), at)
		}
	}
}

// push adds the pair at a place to the queue, a binary heap, unless no merge joins it.
func (w *bpeScratch) push(rank, at int32) {
	if rank == noRank {
		return
	}
	key, i := uint64(rank)<<32|uint64(at), len(w.queue)
	w.queue = append(w.queue, key)
	for i > 0 {
		parent := (i - 1) / 2
		if w.queue[parent] <= key {
			break
		}
		w.queue[i], i = w.queue[parent], parent
	}
	w.queue[i] = key
}

// pop removes the pair of the lowest rank, the leftmost of them, from the queue.
func (w *bpeScratch) pop() (rank, at int32) {
	top, last := w.queue[0], w.queue[len(w.queue)-1]
	w.queue = w.queue[:len(w.queue)-1]
	n, i := len(w.queue), 0
	for n > 0 {
		child := 2*i + 1
		if child+1 < n && w.queue[child+1] < w.queue[child] {
			child++
		}
		if child >= n || last <= w.queue[child] {
			w.queue[i] = last
			break
		}
		w.queue[i], i = w.queue[child], child
	}
	return int32(top >> 32), int32(top & (1<<32 - 1))
}

// pairTable maps pairs of ids to ranks of merges: a hash table with linear probing.
type pairTable struct {
	slots []pairSlot // a power of two, at most half of them in use
	shift int
}

type pairSlot struct {
	pair uint64 // the two ids, plus one: 0 is an empty slot
	rank int32
}

func newPairTable(pairs int) pairTable {
	log := bits.Len(uint(2*pairs + 1))
	return pairTable{make([]pairSlot, 1<<log), 64 - log}
}

// slot returns the slot of a pair, or the empty one where it belongs.
func (t *pairTable) slot(a, b int32) *pairSlot {
	pair := uint64(a)<<32 + uint64(b) + 1
	for i := pair * 0x9e3779b97f4a7c15 >> t.shift; ; i = (i + 1) & uint64(len(t.slots)-1) {
		if s := &t.slots[i]; s.pair == pair || s.pair == 0 {
			return s
		}
	}
}

// rank returns the rank of the merge that joins two ids, or noRank.
func (t *pairTable) rank(a, b int32) int32 {
	if s := t.slot(a, b); s.pair != 0 {
		return s.rank
	}
	return noRank
}

func (t *pairTable) set(a, b, rank int32) {
	s := t.slot(a, b)
	s.pair, s.rank = uint64(a)<<32+uint64(b)+1, rank
}

type bpeFile struct {
	Dropout      float64          `json:"dropout"`
	Unknown      string           `json:"unk_token"`
	Prefix       string           `json:"continuing_subword_prefix"`
	Suffix       string           `json:"end_of_word_suffix"`
	Fuse         bool             `json:"fuse_unk"`
	Fallback     bool             `json:"byte_fallback"`
	IgnoreMerges bool             `json:"ignore_merges"`
	Vocab        map[string]int32 `json:"vocab"`
	Merges       mergeList        `json:"merges"`
}

func (f *bpeFile) model(t *subwords) (err error) {
	if err := t.setVocabulary(f.Vocab); err != nil {
		return err
	}
	t.model, err = newBPE(f, endsInBytes(t.preTokenizers))
	return err
}

func dropoutError(p float64) error {
	return fmt.Errorf("model has dropout %v, which gives a text other tokens each time; want 0", p)
}

// newBPE returns the model of a file. With byteLevel its splits are bytes.
func newBPE(f *bpeFile, byteLevel bool) (*bpe, error) {
	if f.Dropout != 0 {
		return nil, dropoutError(f.Dropout)
	}
	if f.Fallback && (byteLevel || f.Prefix != "" || f.Suffix != "") {
		return nil, &unsupported{"model", "BPE with byte_fallback and bytes, prefixes or suffixes", "either of them"}
	}
	if n := max(len(f.Prefix), len(f.Suffix)); n > maxToken {
		return nil, fmt.Errorf("model has a prefix or suffix of %d bytes, want at most %d", n, maxToken)
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
		b.findBoundary(f.Merges)
	}
	return b, nil
}

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

// setUnknown sets the unknown token. Without one, unknown characters and bytes have no tokens.
func (b *bpe) setUnknown(name string) error {
	id, ok := b.vocab[name]
	if ok {
		b.unknown = id
		return nil
	}
	needed := !b.byteLevel
	for c, id := range b.singles {
		needed = needed || id == noID && utf8Byte(byte(c))
	}
	if name != "" && needed {
		return fmt.Errorf("model.unk_token is %q, which vocab does not have", name)
	}
	return nil
}

// findBoundary finds whether words can be divided by themselves: the mark of Metaspace has an id, and no merge joins
// another character with a mark after it.
func (b *bpe) findBoundary(merges mergeList) {
	if _, ok := b.vocab[metaspace]; !ok {
		return
	}
	for _, merge := range merges {
		if strings.Contains(strings.TrimLeft(merge[0]+merge[1], metaspace), metaspace) {
			return
		}
	}
	b.boundary = metaspace
}

// readMerges fills the table of merges. Of two merges of the same pair the last counts.
func (b *bpe) readMerges(merges mergeList) error {
	b.merges, b.results = newPairTable(len(merges)), make([]int32, len(merges))
	for rank, merge := range merges {
		left, right := merge[0], merge[1]
		if left == "" || right == "" {
			return fmt.Errorf("model.merges: merge %d joins %q and %q, want two tokens", rank, left, right)
		}
		rest, ok := strings.CutPrefix(right, b.prefix)
		if !ok {
			return fmt.Errorf("model.merges: merge %d joins %q and %q, which does not begin with "+
				"continuing_subword_prefix %q", rank, left, right, b.prefix)
		}
		var numbers [3]int32
		for i, name := range []string{left, right, left + rest} {
			if numbers[i], ok = b.vocab[name]; !ok {
				return fmt.Errorf("model.merges: merge %d joins %q and %q, but vocab does not have %q", rank, left,
					right, name)
			}
		}
		b.merges.set(numbers[0], numbers[1], int32(rank))
		b.results[rank] = numbers[2]
	}
	return nil
}

// mergeList is the merges of a model, in old files each a text with a blank between the tokens.
type mergeList [][2]string

// UnmarshalJSON implements json.Unmarshaler.
func (m *mergeList) UnmarshalJSON(data []byte) error {
	var lists [][]string
	if err := json.Unmarshal(data, &lists); err == nil {
		*m = make(mergeList, len(lists))
		for i, tokens := range lists {
			if len(tokens) != 2 {
				return fmt.Errorf("model.merges: merge %d is %q, want two tokens", i, tokens)
			}
			(*m)[i] = [2]string{tokens[0], tokens[1]}
		}
		return nil
	}
	var texts []string
	if err := json.Unmarshal(data, &texts); err != nil {
		return fmt.Errorf("model.merges is %.20q, want a list of pairs of tokens", bytes.TrimSpace(data))
	}
	*m = make(mergeList, 0, len(texts))
	for i, line := range texts {
		if strings.HasPrefix(line, "#version") {
			continue
		}
		left, right, ok := strings.Cut(line, " ")
		if !ok || strings.Contains(right, " ") {
			return fmt.Errorf("model.merges: merge %d is %q, want two tokens with a blank between them", i, line)
		}
		*m = append(*m, [2]string{left, right})
	}
	return nil
}
