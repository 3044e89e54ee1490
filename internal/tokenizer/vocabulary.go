package tokenizer

import (
	"fmt"
	"slices"
	"strings"
)

// vocabulary is the pieces that words are divided into.
type vocabulary struct {
	tokens  []string         // by id; "" for an id without a token
	whole   map[string]int32 // pieces that begin a word
	inner   map[string]int32 // pieces inside a word, without the prefix
	prefix  string           // of pieces inside a word
	longest int              // bytes of the longest piece
}

// newVocabulary returns the vocabulary of tokens by id. A duplicate token has its last id.
func newVocabulary(tokens []string, prefix string) *vocabulary {
	v := &vocabulary{tokens: tokens, prefix: prefix, whole: make(map[string]int32, len(tokens)),
		inner: make(map[string]int32, len(tokens))}
	for id, token := range tokens {
		if token == "" {
			continue
		}
		v.whole[token] = int32(id)
		v.longest = max(v.longest, len(token))
		if rest, goesOn := strings.CutPrefix(token, prefix); goesOn && rest != "" {
			v.inner[rest] = int32(id)
		}
	}
	return v
}

// tokensByID returns the tokens of ids by id. Duplicate ids are an error.
func tokensByID(ids map[string]int32) ([]string, error) {
	size := int32(0)
	for token, id := range ids {
		if id < 0 || id >= maxID {
			return nil, fmt.Errorf("token %q has id %d, want 0 to %d", token, id, maxID-1)
		}
		size = max(size, id+1)
	}
	tokens, used := make([]string, size), make([]bool, size)
	for token, id := range ids {
		if used[id] {
			other := tokens[id]
			return nil, fmt.Errorf("tokens %q and %q both have id %d", min(token, other), max(token, other), id)
		}
		tokens[id], used[id] = token, true
	}
	return tokens, nil
}

// include adds an added token, whose id may lie beyond the vocabulary.
func (v *vocabulary) include(token addedToken) error {
	if id, ok := v.whole[token.Content]; ok {
		if id != token.ID {
			return fmt.Errorf("added token %q has id %d, but %d in the vocabulary", token.Content, token.ID, id)
		}
		return nil
	}
	if token.ID < 0 || token.ID >= maxID {
		return fmt.Errorf("added token %q has id %d, want 0 to %d", token.Content, token.ID, maxID-1)
	}
	if missing := int(token.ID) + 1 - len(v.tokens); missing > 0 {
		v.tokens = append(v.tokens, make([]string, missing)...)
	}
	if other := v.tokens[token.ID]; other != "" && other != token.Content {
		return fmt.Errorf("added token %q has id %d, which is %q", token.Content, token.ID, other)
	}
	v.tokens[token.ID] = token.Content
	return nil
}

// id returns the id of a token, a piece or an added token; 0, false if there is none, and for the empty name.
func (v *vocabulary) id(token string) (int32, bool) { return idOf(v.tokens, v.whole, token) }

// idOf returns the id of a token of a model, or an added one, of which only tokens has the id; 0, false if there is
// none, and for the empty name.
func idOf(tokens []string, model map[string]int32, token string) (int32, bool) {
	if id, ok := model[token]; ok {
		return id, true
	}
	id := slices.Index(tokens, token)
	if id < 0 || token == "" { // the empty name marks unused ids
		return 0, false
	}
	return int32(id), true
}

// longestIn returns the length and the id of the longest prefix of text that is in known, or 0.
func longestIn(known map[string]int32, text []byte) (int, int32) {
	for end := len(text); end > 0; end-- {
		if id, ok := known[string(text[:end])]; ok {
			return end, id
		}
	}
	return 0, 0
}

// maxWordRunes bounds max_input_chars_per_word, on which the time to find pieces depends.
const maxWordRunes = 1000
