//go:build native

package corpus

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/daulet/tokenizers"
)

// nativeFile is the part of a tokenizer.json that the crate does not return through C.
type nativeFile struct {
	Added        []addedToken `json:"added_tokens"`
	PreTokenizer struct {
		typed
		Blank bool `json:"add_prefix_space"` // ByteLevel adds a blank before a text
	} `json:"pre_tokenizer"`
	PostProcessor *processor `json:"post_processor"`
	Model         struct {
		Vocab   nativeVocab `json:"vocab"`
		Dropout float64     `json:"dropout"`
	} `json:"model"`
	parts map[string]json.RawMessage // the whole file, by key
}

// UnmarshalJSON implements json.Unmarshaler.
func (f *nativeFile) UnmarshalJSON(data []byte) error {
	type plain nativeFile
	if err := json.Unmarshal(data, (*plain)(f)); err != nil {
		return err
	}
	return json.Unmarshal(data, &f.parts)
}

// nativeVocab maps tokens to ids. Unigram's file lists the tokens in the order of their ids, each with its score.
type nativeVocab map[string]int32

// UnmarshalJSON implements json.Unmarshaler.
func (v *nativeVocab) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, (*map[string]int32)(v)) == nil {
		return nil
	}
	var pieces [][]any
	err := json.Unmarshal(data, &pieces)
	*v = make(nativeVocab, len(pieces))
	for id, piece := range pieces {
		if len(piece) == 0 {
			return fmt.Errorf("model.vocab: entry %d is empty, want a token and its score", id)
		}
		token, ok := piece[0].(string)
		if !ok {
			return fmt.Errorf("model.vocab: entry %d is %v, want a token and its score", id, piece[0])
		}
		(*v)[token] = int32(id)
	}
	if err != nil {
		return errors.New("model.vocab is neither an object of token ids nor a list of tokens with their scores")
	}
	return nil
}

// vocabulary returns the tokens of the model and the added ones.
func (f *nativeFile) vocabulary() (*vocabulary, error) {
	if len(f.Model.Vocab) == 0 {
		return nil, errors.New("model has no vocab")
	}
	if len(f.Added) > maxAdded {
		return nil, fmt.Errorf("%d added_tokens, want at most %d", len(f.Added), maxAdded)
	}
	tokens, err := tokensByID(f.Model.Vocab)
	if err != nil {
		return nil, err
	}
	v := &vocabulary{tokens: tokens, whole: f.Model.Vocab}
	for _, token := range f.Added {
		if err := v.include(token); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// needsBlank reports whether words must be encoded with a blank before them: byte pairs have different tokens for the
// continuation of a word, and this file encodes the beginning of a text as a continuation.
func (f *nativeFile) needsBlank() bool {
	return f.PreTokenizer.Type == "ByteLevel" && !f.PreTokenizer.Blank
}

// crate returns the crate's tokenizer of the file, without padding and truncation; with blank, one that encodes each
// text as if a blank preceded it.
func (f *nativeFile) crate(blank bool) (*tokenizers.Tokenizer, error) {
	parts := maps.Clone(f.parts)
	delete(parts, "padding")
	delete(parts, "truncation")
	if blank {
		for _, key := range []string{"pre_tokenizer", "post_processor"} {
			var part any
			if err := json.Unmarshal(parts[key], &part); err != nil {
				continue // there is none
			}
			putBlank(part)
			parts[key], _ = json.Marshal(part)
		}
	}
	data, err := json.Marshal(parts)
	if err != nil {
		return nil, err
	}
	crate, err := tokenizers.FromBytes(data)
	if err != nil {
		// The line and column refer to data, not to the file.
		message, _, _ := strings.Cut(err.Error(), " at line 1 column ")
		return nil, errors.New(strings.TrimPrefix(message, "Failed to create tokenizer from bytes: "))
	}
	return crate, nil
}

// putBlank sets add_prefix_space in a pre-tokenizer or post-processor.
func putBlank(part any) {
	fields, _ := part.(map[string]any)
	switch fields["type"] {
	case "ByteLevel", "RobertaProcessing":
		fields["add_prefix_space"] = true
	case "Sequence":
		processors, _ := fields["processors"].([]any)
		for _, processor := range processors {
			putBlank(processor)
		}
	}
}
