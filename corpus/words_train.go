package corpus

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
)

// WordTrainer trains a tokenizer of whole words on texts.
type WordTrainer struct {
	lower      bool
	normalizer *normalizer
	room       int      // how many more words may be added
	words      []string // the most frequent first
	known      map[string]bool
}

// NewWordTrainer counts the words of texts, for a vocabulary of up to size tokens: BERT's five special tokens and the
// most frequent words, equally frequent ones in byte order.
func NewWordTrainer(texts iter.Seq[string], size int, lower bool) (*WordTrainer, error) {
	if size < minVocabulary || size > maxTokenID {
		return nil, fmt.Errorf("vocabulary of %d tokens, want %d to %d", size, minVocabulary, maxTokenID)
	}
	t := &WordTrainer{lower: lower, normalizer: trainedNormalizer(lower), room: size - len(bertNames.all()),
		known: map[string]bool{}}
	counts, err := countWords(texts, t.normalizer)
	if err != nil {
		return nil, err
	}
	words := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	for _, word := range words[:min(t.room, len(words))] {
		t.take(word)
	}
	return t, nil
}

// Add adds a word, which the texts need not contain, to the vocabulary if there is room, and reports whether the
// vocabulary has it. A word that the tokenizer would split or normalise is not added.
func (t *WordTrainer) Add(word string) bool {
	if t.known[word] {
		return true
	}
	if t.room == 0 || !t.whole(word) {
		return false
	}
	t.take(word)
	return true
}

func (t *WordTrainer) take(word string) {
	t.words, t.known[word] = append(t.words, word), true
	t.room--
}

// whole reports whether the tokenizer looks a word up unchanged.
func (t *WordTrainer) whole(word string) bool {
	counts, err := countWords(func(yield func(string) bool) { yield(word) }, t.normalizer)
	return err == nil && len(counts) == 1 && counts[word] == 1
}

// Tokenizer returns the tokenizer: WordPiece without pieces inside a word, so that each word is one token, and a word
// outside the vocabulary is the unknown token.
func (t *WordTrainer) Tokenizer() (*WordPiece, error) {
	return newTrained(append(bertNames.all(), t.words...), t.lower)
}
