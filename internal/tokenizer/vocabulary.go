package tokenizer

import (
	"errors"
	"fmt"
	"slices"
)

// tokensByID returns the tokens of ids by id. Duplicate ids are an error.
func tokensByID(ids map[string]int32) ([]string, error) {
	if len(ids) == 0 {
		return nil, errors.New("model has no vocab")
	}
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

// idsOf returns the ids of tokens by id. A duplicate token has its last id.
func idsOf(tokens []string) map[string]int32 {
	ids := make(map[string]int32, len(tokens))
	for id, token := range tokens {
		ids[token] = int32(id)
	}
	return ids
}

// idOf returns the id of a token of a model, or an added one, of which only tokens has the id; 0, false if there is
// none, and for the empty name, which marks unused ids.
func idOf(tokens []string, model map[string]int32, token string) (int32, bool) {
	if id, ok := model[token]; ok && token != "" {
		return id, true
	}
	id := slices.Index(tokens, token)
	if id < 0 || token == "" {
		return 0, false
	}
	return int32(id), true
}

// includeAdded returns the tokens of a model and added ones by id. As in tokenizers, one that the model does not have
// has the next id after the model's and those before it.
func includeAdded(tokens []string, model map[string]int32, added []addedToken) ([]string, error) {
	if len(added) > maxAdded {
		return nil, fmt.Errorf("%d added_tokens, want at most %d", len(added), maxAdded)
	}
	byName, largest := map[string]bool{}, int32(-1)
	tokens = slices.Clip(tokens) // the model may have the same ones
	for _, token := range added {
		if byName[token.Content] {
			return nil, fmt.Errorf("duplicate added token %q", token.Content)
		}
		byName[token.Content] = true
		id, ok := model[token.Content]
		if !ok {
			id = max(largest+1, int32(len(model)))
		}
		if token.Content == "" {
			return nil, fmt.Errorf("the added token of id %d is empty; want a text", token.ID)
		}
		if id != token.ID {
			return nil, fmt.Errorf("added token %q has id %d, but tokenizers gives it %d", token.Content, token.ID, id)
		}
		largest = max(largest, id)
		if int(id) >= len(tokens) {
			tokens = append(tokens, make([]string, int(id)+1-len(tokens))...)
		}
		if other := tokens[id]; other != "" && other != token.Content {
			return nil, fmt.Errorf("added token %q has id %d, which is %q", token.Content, token.ID, other)
		}
		tokens[id] = token.Content
	}
	return tokens, nil
}
