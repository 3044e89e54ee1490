package tokenizer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jenga-nlp/jenga/internal/floats"
)

// unknownPenalty is how much less an unknown character has than the least score of the vocabulary.
const unknownPenalty = 10

// unigram is the Unigram model (Kudo 2018): a split is divided into the pieces whose scores, logarithms of
// probabilities, have the largest sum.
type unigram struct {
	trie     *trie // piece → id
	scores   []float64
	unknown  int32
	penalty  float64     // score of an unknown character
	fallback *[256]int32 // ids of the bytes of unknown characters; nil without byte_fallback
	cache    *cache
}

type unigramScratch struct{ best []best }

// best is the best division of a text up to a byte.
type best struct {
	score float64
	id    int32 // its last piece
	start int32 // where that begins, -1 for no division
}

func (u *unigram) tokenize(s *state, text []byte) { u.cache.appendCached(s, text, 0, u.divide) }

// divide appends the tokens of text, by Viterbi's algorithm: in time linear in its length times that of the longest
// piece.
func (u *unigram) divide(s *state, text []byte) {
	if cap(s.unigram.best) <= len(text) {
		s.unigram.best = make([]best, len(text)+1, 2*len(text)+64)
	}
	ends := s.unigram.best[:len(text)+1]
	for i := range ends {
		ends[i] = best{start: -1}
	}
	for at := 0; at < len(text); {
		_, size := utf8.DecodeRune(text[at:])
		u.extend(ends, text, at, size)
		at += size
	}

	// Backwards from the end; a run of unknown characters is one token.
	first := len(s.tokens)
	for end := int32(len(text)); end > 0; {
		last := ends[end]
		start := last.start
		if last.id == u.unknown {
			for start > 0 && ends[start].id == u.unknown {
				start = ends[start].start
			}
			u.appendUnknown(s, text, start, end)
		} else {
			s.tokens = append(s.tokens, token{last.id, start, end})
		}
		end = start
	}
	slices.Reverse(s.tokens[first:])
	if cap(s.unigram.best) > keepBytes {
		s.unigram.best = nil
	}
}

// extend extends the best division up to byte at by each piece that begins there.
func (u *unigram) extend(ends []best, text []byte, at, size int) {
	before, single := ends[at].score, false
	for n, i := int32(0), at; i < len(text); {
		if n = u.trie.child(n, text[i]); n < 0 {
			break
		}
		i++
		if id := u.trie.values[n]; id >= 0 {
			ends[i].take(u.scores[id]+before, id, at)
			single = single || i == at+size
		}
	}
	if !single {
		ends[at+size].take(u.penalty+before, u.unknown, at)
	}
}

func (b *best) take(score float64, id int32, start int) {
	if b.start < 0 || score > b.score {
		*b = best{score, id, int32(start)}
	}
}

// appendUnknown appends the tokens of unknown characters, the last one first.
func (u *unigram) appendUnknown(s *state, text []byte, start, end int32) {
	if id := u.trie.value(text[start:end]); id >= 0 {
		s.tokens = append(s.tokens, token{id, start, end})
		return
	}
	if u.fallback == nil {
		s.tokens = append(s.tokens, token{u.unknown, start, end})
		return
	}
	first := len(s.tokens)
	for i := end - 1; i >= start; i-- {
		id := u.fallback[text[i]]
		if id == noID {
			s.tokens = append(s.tokens[:first], token{u.unknown, start, end})
			return
		}
		s.tokens = append(s.tokens, token{id, start, end})
	}
}

type unigramFile struct {
	Unknown  *int32      `json:"unk_id"`
	Fallback bool        `json:"byte_fallback"`
	Vocab    scoredVocab `json:"vocab"`
}

// scoredVocab is the pieces of a model in the order of their ids, each with its score.
type scoredVocab struct {
	names  []string
	scores []float64
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *scoredVocab) UnmarshalJSON(data []byte) error {
	var entries [][]any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&entries); err != nil {
		return errors.New("model.vocab is no list of tokens with their scores")
	}
	for id, entry := range entries {
		var name string
		var number json.Number
		named, scored := false, false
		if len(entry) == 2 {
			name, named = entry[0].(string)
			number, scored = entry[1].(json.Number)
		}
		if !named || !scored {
			return fmt.Errorf("model.vocab: entry %d is %v, want a token and its score", id, entry)
		}
		v.names, v.scores = append(v.names, name), append(v.scores, parseScore(string(number)))
	}
	return nil
}

// parseScore parses a number as tokenizers does: digits beyond 64 bits are dropped, and what remains is rounded before
// and after it is divided by a power of ten. That may differ from the nearest number in the last bit, on which it
// depends which of two divisions with the same score is better.
func parseScore(number string) float64 {
	digits, rest, _ := strings.Cut(number, "e")
	if rest == "" {
		digits, rest, _ = strings.Cut(number, "E")
	}
	negative := strings.HasPrefix(digits, "-")
	exponent, _ := strconv.Atoi(strings.TrimPrefix(rest, "+"))
	exponent = max(-1<<20, min(exponent, 1<<20))

	significand, full, fraction := uint64(0), false, 0
	for _, c := range []byte(strings.TrimPrefix(digits, "-")) {
		switch {
		case c == '.':
			fraction = 1
			continue
		case full || significand > (math.MaxUint64-uint64(c-'0'))/10:
			full = true
			exponent += 1 - fraction
			continue
		}
		significand = significand*10 + uint64(c-'0')
		exponent -= fraction
	}

	f := float64(significand)
	for ; exponent < -308 && f != 0; exponent += 308 {
		f /= 1e308
	}
	if exponent >= 0 {
		f *= math.Pow10(exponent)
	} else {
		f /= math.Pow10(-exponent)
	}
	if negative {
		return -f
	}
	return f
}

func (f *unigramFile) model(t *subwords) error {
	names, scores := f.Vocab.names, f.Vocab.scores
	switch {
	case len(names) == 0:
		return errors.New("model has no vocab")
	case len(names) > maxID:
		return fmt.Errorf("model.vocab has %d tokens, want at most %d", len(names), maxID)
	case f.Unknown == nil:
		return errors.New("the model fails on characters outside its vocabulary: it needs an unknown token")
	case *f.Unknown < 0 || int(*f.Unknown) >= len(names):
		return fmt.Errorf("model.unk_id is %d, want one of the %d ids of vocab", *f.Unknown, len(names))
	}
	if err := checkNames("model.vocab", names); err != nil {
		return err
	}
	t.tokens, t.known = names, make(map[string]int32, len(names))
	for i, name := range names {
		if other, ok := t.known[name]; ok {
			return fmt.Errorf("model.vocab: entries %d and %d are both %q", other, i, name)
		}
		if !floats.IsFinite(scores[i]) {
			return fmt.Errorf("model.vocab: entry %d has the score %v, want a finite one", i, scores[i])
		}
		t.known[name] = int32(i)
	}
	u := &unigram{trie: newTrie(names), scores: scores, unknown: *f.Unknown,
		penalty: slices.Min(scores) - unknownPenalty, cache: newCache()}
	if f.Fallback {
		u.fallback = byteTokens(t.known)
	}
	t.model = u
	return nil
}

// byteTokens returns the ids of the tokens that stand for bytes, as <0x0A>, or noID.
func byteTokens(vocab map[string]int32) *[256]int32 {
	var found [256]int32
	for c := range found {
		id, ok := vocab[fmt.Sprintf("<0x%02X>", c)]
		if !ok {
			id = noID
		}
		found[c] = id
	}
	return &found
}

// trie maps byte strings to numbers, for searches of prefixes. Its edges are in the order of a breadth-first search:
// edge e leads to node e+1, and the edges of node n are first[n] to first[n+1].
type trie struct {
	first  []int32
	labels []byte  // of edges, ascending within a node
	values []int32 // of nodes, -1 for none
	root   [256]int32
}

// newTrie returns the trie of keys and their indices. Of equal keys the first counts.
func newTrie(keys []string) *trie {
	order := make([]int32, len(keys))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(keys[a], keys[b]) })

	// Each node is a range of the sorted keys that have its prefix.
	type node struct{ lo, hi, depth int32 }
	t := &trie{}
	queue := []node{{0, int32(len(keys)), 0}}
	for i := 0; i < len(queue); i++ {
		n := queue[i]
		t.first = append(t.first, int32(len(t.labels)))
		value := int32(-1)
		for n.lo < n.hi && len(keys[order[n.lo]]) == int(n.depth) {
			if value < 0 {
				value = order[n.lo]
			}
			n.lo++
		}
		t.values = append(t.values, value)
		for n.lo < n.hi {
			label, end := keys[order[n.lo]][n.depth], n.lo+1
			for end < n.hi && keys[order[end]][n.depth] == label {
				end++
			}
			t.labels = append(t.labels, label)
			queue = append(queue, node{n.lo, end, n.depth + 1})
			n.lo = end
		}
	}
	t.first = append(t.first, int32(len(t.labels)))

	for i := range t.root {
		t.root[i] = -1
	}
	for e := range t.first[1] {
		t.root[t.labels[e]] = e + 1
	}
	return t
}

// child returns the node that the edge with a label leads to from node n, or -1.
func (t *trie) child(n int32, label byte) int32 {
	if n == 0 {
		return t.root[label]
	}
	lo, hi := t.first[n], t.first[n+1]
	for hi-lo > 8 {
		if mid := (lo + hi) / 2; t.labels[mid] <= label {
			lo = mid
		} else {
			hi = mid
		}
	}
	for ; lo < hi; lo++ {
		if t.labels[lo] == label {
			return lo + 1
		}
	}
	return -1
}

func (t *trie) value(key []byte) int32 {
	n := int32(0)
	for _, b := range key {
		if n = t.child(n, b); n < 0 {
			return -1
		}
	}
	return t.values[n]
}
