package corpus

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
)

// WordTrainer makes a tokenizer of whole words from texts.
type WordTrainer struct {
	lower      bool
	normalizer *normalizer
	room       int      // for so many more words
	words      []string // the most frequent first
	known      map[string]bool
}

// NewWordTrainer counts the words of texts, for a vocabulary of up to size tokens: the five special ones of BERT and
// the most frequent words, of equally frequent ones the first by their letters.
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

// Add takes a word that the texts may not have into the vocabulary, where there is room, and tells whether it is there.
// What the tokenizer would not leave whole is not taken.
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

// whole tells whether a tokenizer looks a word up as it is.
func (t *WordTrainer) whole(word string) bool {
	counts, err := countWords(func(yield func(string) bool) { yield(word) }, t.normalizer)
	return err == nil && len(counts) == 1 && counts[word] == 1
}

// Tokenizer returns the tokenizer: WordPiece without pieces that go on in a word, so that each word is one token, and
// one that is not in the vocabulary is unknown.
func (t *WordTrainer) Tokenizer() (*WordPiece, error) {
	return newTrained(append(bertNames.all(), t.words...), t.lower)
}
