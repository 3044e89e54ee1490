//go:build native

package corpus

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"

	"github.com/daulet/tokenizers"
)

// maxAddedTokens bounds the added tokens of a file: the crate's time to add them is quadratic.
const maxAddedTokens = 1 << 15

// nativeFile is the part of a tokenizer.json that the crate does not return through C.
type nativeFile struct {
	Added        []addedToken `json:"added_tokens"`
	PreTokenizer struct {
		typed
		Blank bool `json:"add_prefix_space"` // ByteLevel adds a blank before a text
	} `json:"pre_tokenizer"`
	PostProcessor nativeProcessor `json:"post_processor"`
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
	if len(f.Added) > maxAddedTokens {
		return nil, fmt.Errorf("%d added_tokens, want at most %d", len(f.Added), maxAddedTokens)
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

// nativeProcessor is a post-processor of any kind.
type nativeProcessor struct {
	postProcessor
	Processors []nativeProcessor `json:"processors"`
}

// template is the order of the tokens of a text or a pair.
type template []templatePart

// templatePart is the tokens of a text, or special tokens.
type templatePart struct {
	isText  bool
	special []piece
	text    int8 // the text, 1 for the second of a pair; for special tokens, the text before them
	kind    int8 // token type
}

// templates returns the templates for a text and for a pair, with their special tokens. size bounds ids.
func (p *nativeProcessor) templates(size int) (single, pair template, err error) {
	a, b := templatePart{isText: true}, templatePart{isText: true, text: 1, kind: 1}
	single, pair = template{a}, template{a, b}
	switch p.Type {
	case "", "ByteLevel":
		return single, pair, nil
	case "BertProcessing", "RobertaProcessing":
		opening, err := specialPart(p.Opening, size)
		if err != nil {
			return nil, nil, fmt.Errorf("post_processor's cls: %w", err)
		}
		closing, err := specialPart(p.Closing, size)
		if err != nil {
			return nil, nil, fmt.Errorf("post_processor's sep: %w", err)
		}
		last := closing
		last.text = 1
		single = template{opening, a, closing}
		if p.Type == "BertProcessing" {
			last.kind = 1
			return single, template{opening, a, closing, b, last}, nil
		}
		b.kind = 0
		return single, template{opening, a, closing, closing, b, last}, nil
	case "TemplateProcessing":
		if single, err = p.template(p.Single, "A", size); err != nil {
			return nil, nil, fmt.Errorf("post_processor for a text: %w", err)
		}
		if pair, err = p.template(p.Pair, "AB", size); err != nil {
			return nil, nil, fmt.Errorf("post_processor for a pair: %w", err)
		}
		return single, pair, nil
	case "Sequence":
		found := false
		for _, part := range p.Processors {
			if part.Type == "ByteLevel" {
				continue
			}
			if found {
				return nil, nil, errors.New("post_processor: two of its processors add special tokens, want one")
			}
			found = true
			if single, pair, err = part.templates(size); err != nil {
				return nil, nil, err
			}
		}
		return single, pair, nil
	}
	return nil, nil, fmt.Errorf("post_processor is of type %q; jenga reads TemplateProcessing, BertProcessing, "+
		"RobertaProcessing, ByteLevel, Sequence", p.Type)
}

// specialPart reads a special token written as [name, id].
func specialPart(token []any, size int) (templatePart, error) {
	if len(token) == 2 {
		if id, ok := token[1].(float64); ok {
			pieces, err := specialPieces([]int32{int32(min(max(id, -1), maxTokenID))}, size)
			return templatePart{special: pieces}, err
		}
	}
	return templatePart{}, fmt.Errorf("%v, want a token and its id", token)
}

func specialPieces(ids []int32, size int) ([]piece, error) {
	var pieces []piece
	for _, id := range ids {
		if id < 0 || int(id) >= size {
			return nil, fmt.Errorf("id %d is outside the vocabulary of %d", id, size)
		}
		pieces = append(pieces, piece{id: id, word: -1})
	}
	return pieces, nil
}

// template reads a template, which must have each text once.
func (p *nativeProcessor) template(pieces []templatePiece, texts string, size int) (template, error) {
	var t template
	var seen string
	for _, piece := range pieces {
		part, id := templatePart{text: int8(max(0, len(seen)-1))}, piece.Special
		if piece.Sequence != nil {
			id = piece.Sequence
			seen += id.ID
			part.isText, part.text = true, int8(len(seen)-1)
		} else if id != nil {
			unit, ok := p.Tokens[id.ID]
			if !ok {
				return nil, fmt.Errorf("special_tokens lacks %q", id.ID)
			}
			var err error
			if part.special, err = specialPieces(unit.IDs, size); err != nil {
				return nil, fmt.Errorf("special_tokens has %q: %w", id.ID, err)
			}
		} else {
			return nil, errors.New("a piece is neither SpecialToken nor Sequence")
		}
		if id.Type < 0 || id.Type > math.MaxInt8 {
			return nil, fmt.Errorf("%q has type_id %d, want 0 to %d", id.ID, id.Type, math.MaxInt8)
		}
		part.kind = int8(id.Type)
		t = append(t, part)
	}
	if seen != texts {
		return nil, fmt.Errorf("the template is %q, want each of the texts %q in it once", describe(pieces),
			strings.Split(texts, ""))
	}
	return t, nil
}

// special returns the number of special tokens.
func (t template) special() int {
	n := 0
	for _, part := range t {
		n += len(part.special)
	}
	return n
}

// encoding fills the template with the tokens of a text and of its pair.
func (t template) encoding(text, pair []piece, words bool) Encoding {
	n := t.special() + len(text) + len(pair)
	out := Encoding{IDs: make([]int32, 0, n), Offsets: make([]Span, 0, n), Segments: make([]int8, 0, n),
		TokenTypes: make([]int8, 0, n)}
	if words {
		out.Words = make([]int32, 0, n)
	}
	for _, part := range t {
		pieces := part.special
		if part.isText {
			pieces = [][]piece{text, pair}[part.text]
		}
		for _, p := range pieces {
			out.IDs = append(out.IDs, p.id)
			out.Offsets = append(out.Offsets, p.at)
			out.Segments = append(out.Segments, part.text)
			out.TokenTypes = append(out.TokenTypes, part.kind)
			if words {
				out.Words = append(out.Words, p.word)
			}
		}
	}
	return out
}
