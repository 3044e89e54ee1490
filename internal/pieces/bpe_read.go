package pieces

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

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
	var err error
	*m, err = parseMerges(texts)
	return err
}

// parseMerges returns the merges of the lines of a merges.txt.
func parseMerges(lines []string) (mergeList, error) {
	merges := make(mergeList, 0, len(lines))
	for i, line := range lines {
		if strings.HasPrefix(line, "#version") {
			continue
		}
		left, right, ok := strings.Cut(line, " ")
		if !ok || strings.Contains(right, " ") {
			return nil, fmt.Errorf("model.merges: merge %d is %q, want two tokens with a blank between them", i, line)
		}
		merges = append(merges, [2]string{left, right})
	}
	return merges, nil
}
