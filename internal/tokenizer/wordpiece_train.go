package tokenizer

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// minVocabulary is the smallest size of a trained vocabulary: the special tokens and some letters.
const minVocabulary = 16

// TrainWordPiece trains a tokenizer of up to size tokens on texts: BERT's five special tokens, the letters, and the
// tokens that result from repeatedly merging the most frequent pair of neighbouring tokens (Sennrich et al. 2016), as
// the WordPieceTrainer of the crate tokenizers does. Of equally frequent pairs the one with the smaller ids is merged
// first, so the vocabulary does not depend on the order of texts. Letters take at most half of the vocabulary; words
// with a letter too rare to be included are unknown.
func TrainWordPiece(texts iter.Seq[string], size int, lower bool) (*Tokenizer, error) {
	config, splitter := newTrained(lower)
	counts, err := countWords(texts, splitter, size)
	if err != nil {
		return nil, err
	}
	t := newTrainer(counts, size)
	for len(t.tokens) < size && t.merge() {
	}
	return newBERTFiles(t.tokens, config)
}

// newTrained returns the settings of a tokenizer that is trained, and what divides texts into words by them.
func newTrained(lower bool) (tokenizerConfig, *subwords) {
	config := tokenizerConfig{specialNames: bertNames, Lower: &lower}
	return config, newWords(config.normalizer(), addedTokens{})
}

// countWords counts the words of texts that a tokenizer divides into pieces, for a vocabulary of so many tokens. It is
// an error if there are none.
func countWords(texts iter.Seq[string], t *subwords, size int) (map[string]int, error) {
	if size < minVocabulary || size > maxID {
		return nil, fmt.Errorf("vocabulary of %d tokens, want %d to %d", size, minVocabulary, maxID)
	}
	counts := make(map[string]int)
	s := t.pool.Get().(*state)
	defer t.pool.Put(s)
	count := func(text string, times int) {
		t.divide(s, text)
		for _, k := range s.splits {
			if word := s.text[k.lo:k.hi]; utf8.RuneCount(word) <= bertMaxRunes {
				counts[string(word)] += times
			}
		}
	}
	const long = 1 << 14 // bytes
	last, times := "", 0 // a long text: questions about one context follow one another
	for text := range texts {
		switch {
		case len(text) < long:
			count(text, 1)
		case text == last:
			times++
		default:
			count(last, times)
			last, times = text, 1
		}
	}
	count(last, times)
	if len(counts) == 0 {
		return nil, errors.New("no words to train a vocabulary on")
	}
	return counts, nil
}

type trainer struct {
	tokens []string
	ids    map[string]int32
	words  []spelling
	counts map[neighbours]int
	where  map[neighbours][]int // indices of words that have, or had, the pair
	queue  candidates
}

type spelling struct {
	tokens []int32
	count  int // in the texts
}

type neighbours struct{ left, right int32 }

// neighbours yields the pairs of neighbouring tokens in the word.
func (s *spelling) neighbours() iter.Seq[neighbours] {
	return func(yield func(neighbours) bool) {
		for i := range len(s.tokens) - 1 {
			if !yield(neighbours{s.tokens[i], s.tokens[i+1]}) {
				return
			}
		}
	}
}

func newTrainer(counts map[string]int, size int) *trainer {
	t := &trainer{ids: make(map[string]int32), counts: make(map[neighbours]int), where: make(map[neighbours][]int)}
	for _, name := range bertNames.all() {
		t.id(name)
	}
	t.addLetters(counts, size/2)
	for _, word := range slices.Sorted(maps.Keys(counts)) {
		if tokens := t.spell(word); tokens != nil {
			t.words = append(t.words, spelling{tokens, counts[word]})
		}
	}
	for i, word := range t.words {
		for pair := range word.neighbours() {
			t.counts[pair] += word.count
			t.where[pair] = append(t.where[pair], i)
		}
	}
	for pair, count := range t.counts {
		t.queue = append(t.queue, candidate{pair, count})
	}
	heap.Init(&t.queue)
	return t
}

// addLetters adds the letters of words, with their form inside a word for those that occur there, up to most tokens in
// all. The rarest are left out.
func (t *trainer) addLetters(words map[string]int, most int) {
	count, within := make(map[rune]int), make(map[rune]bool)
	for word, times := range words {
		for i, r := range word {
			count[r] += times
			within[r] = within[r] || i > 0
		}
	}
	letters := slices.SortedFunc(maps.Keys(count), func(a, b rune) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b))
	})
	room := most - len(t.tokens)
	for i, r := range letters {
		room--
		if within[r] {
			room--
		}
		if room < 0 {
			letters = letters[:i]
			break
		}
	}

	slices.Sort(letters)
	for _, r := range letters {
		t.id(string(r))
	}
	for _, r := range letters {
		if within[r] {
			t.id(innerPrefix + string(r))
		}
	}
}

func (t *trainer) id(token string) int32 {
	id, ok := t.ids[token]
	if !ok {
		id = int32(len(t.tokens))
		t.ids[token] = id
		t.tokens = append(t.tokens, token)
	}
	return id
}

// spell returns the ids of the letters of a word, or nil if one of them is not in the vocabulary.
func (t *trainer) spell(word string) []int32 {
	var tokens []int32
	for i, r := range word {
		letter := string(r)
		if i > 0 {
			letter = innerPrefix + letter
		}
		id, ok := t.ids[letter]
		if !ok {
			return nil
		}
		tokens = append(tokens, id)
	}
	return tokens
}

// merge makes a token of the most frequent pair. It returns false if there is no pair left.
func (t *trainer) merge() bool {
	best, ok := t.best()
	if !ok {
		return false
	}
	merged := t.id(t.tokens[best.left] + strings.TrimPrefix(t.tokens[best.right], innerPrefix))

	places := t.where[best]
	delete(t.where, best)
	slices.Sort(places)
	touched := make(map[neighbours]bool)
	for _, i := range slices.Compact(places) {
		word := &t.words[i]
		for pair := range word.neighbours() {
			t.counts[pair] -= word.count
		}
		word.replace(best, merged)
		for pair := range word.neighbours() {
			t.counts[pair] += word.count
			if pair.left == merged || pair.right == merged {
				t.where[pair] = append(t.where[pair], i)
				touched[pair] = true
			}
		}
	}
	for pair := range touched {
		heap.Push(&t.queue, candidate{pair, t.counts[pair]})
	}
	return true
}

// best removes the most frequent pair from the queue and returns it. Counts in the queue may be out of date: too high
// for pairs whose occurrences were merged, while a pair that became more frequent is queued again.
func (t *trainer) best() (neighbours, bool) {
	for len(t.queue) > 0 {
		top := heap.Pop(&t.queue).(candidate)
		if now := t.counts[top.pair]; now != top.count {
			heap.Push(&t.queue, candidate{top.pair, now})
		} else if now > 0 {
			return top.pair, true
		}
	}
	return neighbours{}, false
}

// replace replaces each occurrence of a pair by merged, from left to right.
func (s *spelling) replace(pair neighbours, merged int32) {
	out := s.tokens[:0]
	for i := 0; i < len(s.tokens); i++ {
		if i+1 < len(s.tokens) && s.tokens[i] == pair.left && s.tokens[i+1] == pair.right {
			out = append(out, merged)
			i++
		} else {
			out = append(out, s.tokens[i])
		}
	}
	s.tokens = out
}

type candidate struct {
	pair  neighbours
	count int
}

// candidates is a heap with the most frequent pair on top.
type candidates []candidate

func (c candidates) Len() int      { return len(c) }
func (c candidates) Swap(i, j int) { c[i], c[j] = c[j], c[i] }
func (c candidates) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(c[j].count, c[i].count), cmp.Compare(c[i].pair.left, c[j].pair.left),
		cmp.Compare(c[i].pair.right, c[j].pair.right)) < 0
}

// Push implements heap.Interface.
func (c *candidates) Push(x any) { *c = append(*c, x.(candidate)) }

// Pop implements heap.Interface.
func (c *candidates) Pop() any {
	last := len(*c) - 1
	x := (*c)[last]
	*c = (*c)[:last]
	return x
}

// TrainWords trains a tokenizer of whole words: WordPiece without pieces inside a word, so that each word is one
// token, and a word outside the vocabulary is the unknown token. The vocabulary has up to size tokens: BERT's five
// special tokens, the most frequent words of texts, equally frequent ones in byte order, and those that further adds
// while there is room. add reports whether the vocabulary has a word; one that the tokenizer would split or normalise
// is not added.
func TrainWords(texts iter.Seq[string], size int, lower bool, further func(add func(word string) bool)) (*Tokenizer,
	error) {
	config, splitter := newTrained(lower)
	counts, err := countWords(texts, splitter, size)
	if err != nil {
		return nil, err
	}
	words := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	special := bertNames.all()
	words = words[:min(size-len(special), len(words))]
	known := map[string]bool{}
	for _, word := range words {
		known[word] = true
	}
	further(func(word string) bool {
		if known[word] || len(special)+len(words) == size {
			return known[word]
		}
		found, err := countWords(func(yield func(string) bool) { yield(word) }, splitter, size)
		if err != nil || len(found) != 1 || found[word] != 1 {
			return false
		}
		words, known[word] = append(words, word), true
		return true
	})
	return newBERTFiles(append(special, words...), config)
}
