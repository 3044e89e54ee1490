package pieces

import (
	"fmt"
	"slices"
)

// ids maps tokens to their ids.
type ids = map[string]int32

// vocabulary is the tokens of a model and the added ones.
type vocabulary struct {
	tokens    []string  // by id; "" for an id without a token
	known     ids       // of the model; nil for Unigram, whose ids are places
	modelSize int       // tokens of the model
	padding   []padding // of tokens, by id; nil if no offsets are trimmed
}

// Tokens returns the tokens by id, "" for an id without a token. It must not be changed.
func (v *vocabulary) Tokens() []string { return v.tokens }

// ID returns the id of a token, of the model or an added one; 0, false if there is none.
func (v *vocabulary) ID(name string) (int32, bool) {
	if id, ok := v.known[name]; ok {
		return id, true
	}
	id := slices.Index(v.tokens, name)
	if id < 0 || name == "" {
		return 0, false
	}
	return int32(id), true
}

// read sets the vocabulary of a model. Duplicate ids are an error.
func (v *vocabulary) read(known ids) error {
	if len(known) == 0 {
		return fmt.Errorf("model has no vocab")
	}
	size := int32(0)
	for name, id := range known {
		if id < 0 || id >= maxID {
			return fmt.Errorf("token %q has id %d, want 0 to %d", name, id, maxID-1)
		}
		size = max(size, id+1)
	}
	v.tokens, v.known, v.modelSize = make([]string, size), known, len(known)
	used := make([]bool, size)
	for name, id := range known {
		if used[id] {
			other := v.tokens[id]
			return fmt.Errorf("tokens %q and %q both have id %d", min(name, other), max(name, other), id)
		}
		v.tokens[id], used[id] = name, true
	}
	return nil
}

// addTokens adds the added tokens. As in tokenizers, one that the model does not have has the next id after the model's
// and those before it.
func (t *Tokenizer) addTokens(added []AddedToken) error {
	if len(added) > maxAdded {
		return fmt.Errorf("%d added_tokens, want at most %d", len(added), maxAdded)
	}
	var names []string
	for _, token := range added {
		names = append(names, token.Content)
	}
	if err := checkNames("added_tokens", names); err != nil {
		return err
	}
	model, byName := t.modelIDs(), map[string]bool{}
	largest := int32(-1)
	t.tokens = slices.Clip(t.tokens) // the model may have the same ones
	for _, token := range added {
		if byName[token.Content] {
			return fmt.Errorf("duplicate added token %q", token.Content)
		}
		byName[token.Content] = true
		id, ok := model(token.Content)
		if !ok {
			id = max(largest+1, int32(t.modelSize))
		}
		if token.Content == "" || id != token.ID {
			return fmt.Errorf("added token %q has id %d, but tokenizers gives it %d", token.Content, token.ID, id)
		}
		largest = max(largest, id)
		if int(id) >= len(t.tokens) {
			t.tokens = append(t.tokens, make([]string, int(id)+1-len(t.tokens))...)
		}
		if other := t.tokens[id]; other != "" && other != token.Content {
			return fmt.Errorf("added token %q has id %d, which is %q", token.Content, id, other)
		}
		t.tokens[id] = token.Content
	}

	// those that are found in normalised text
	names = names[:0]
	var wrong error
	t.added = NewAddedTokens(added, func(content string) string {
		if wrong != nil {
			return ""
		}
		names = append(names, t.normalized(content))
		wrong = checkNames("added_tokens, normalised,", names[len(names)-1:])
		return names[len(names)-1]
	})
	if wrong != nil {
		return wrong
	}
	return checkNames("added_tokens, normalised,", names)
}

// modelIDs returns the lookup of the model's tokens.
func (t *Tokenizer) modelIDs() func(name string) (int32, bool) {
	if u, ok := t.model.(*unigram); ok {
		return func(name string) (int32, bool) {
			id := u.trie.value([]byte(name))
			return id, id >= 0
		}
	}
	return func(name string) (int32, bool) {
		id, ok := t.known[name]
		return id, ok
	}
}

// normalized returns a text after normalisation.
func (t *Tokenizer) normalized(text string) string {
	var s segment
	s.fill(text, 0, len(text))
	for _, n := range t.normalizers {
		n.normalize(&s)
	}
	return string(s.text)
}
