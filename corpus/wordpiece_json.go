package corpus

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// tokenizerFile is the part of a tokenizer.json that WordPiece uses.
type tokenizerFile struct {
	Version       string         `json:"version"`
	Truncation    *struct{}      `json:"truncation"`
	Padding       *struct{}      `json:"padding"`
	Added         []addedToken   `json:"added_tokens"`
	Normalizer    bertNormalizer `json:"normalizer"`
	PreTokenizer  typed          `json:"pre_tokenizer"`
	PostProcessor postProcessor  `json:"post_processor"`
	Decoder       decoder        `json:"decoder"`
	Model         wordPieceModel `json:"model"`
}

type typed struct {
	Type string `json:"type"`
}

type bertNormalizer struct {
	Type    string `json:"type"`
	Clean   bool   `json:"clean_text"`
	Chinese bool   `json:"handle_chinese_chars"`
	Strip   *bool  `json:"strip_accents"` // null: as lowercase
	Lower   bool   `json:"lowercase"`
}

// postProcessor defines the special tokens around a text and around a pair.
type postProcessor struct {
	Type   string                  `json:"type"`
	Single []templatePiece         `json:"single"`
	Pair   []templatePiece         `json:"pair"`
	Tokens map[string]templateUnit `json:"special_tokens"`
	// BertProcessing has only these two tokens.
	Closing []any `json:"sep,omitempty"`
	Opening []any `json:"cls,omitempty"`
}

type templatePiece struct {
	Special  *templateID `json:"SpecialToken,omitempty"`
	Sequence *templateID `json:"Sequence,omitempty"`
}

type templateID struct {
	ID   string `json:"id"`
	Type int    `json:"type_id"`
}

type templateUnit struct {
	ID     string   `json:"id"`
	IDs    []int32  `json:"ids"`
	Tokens []string `json:"tokens"`
}

type decoder struct {
	Type    string `json:"type"`
	Prefix  string `json:"prefix"`
	Cleanup bool   `json:"cleanup"`
}

type wordPieceModel struct {
	Type     string `json:"type"`
	Unknown  string `json:"unk_token"`
	Prefix   string `json:"continuing_subword_prefix"`
	MaxRunes int    `json:"max_input_chars_per_word"`
	Vocab    idMap  `json:"vocab"`
}

// idMap maps tokens to ids. It is written in the order of ids.
type idMap map[string]int32

// MarshalJSON implements json.Marshaler.
func (m idMap) MarshalJSON() ([]byte, error) {
	tokens := slices.SortedFunc(maps.Keys(m), func(a, b string) int { return int(m[a]) - int(m[b]) })
	out := []byte("{")
	for i, token := range tokens {
		key, err := json.Marshal(token)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = fmt.Appendf(out, "%s:%d", key, m[token])
	}
	return append(out, '}'), nil
}
