package corpus

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/internal/jsonfile"
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

// modelKind is the part of a model that determines its type.
type modelKind struct {
	Type   string          `json:"type"`
	Merges json.RawMessage `json:"merges"`
	Vocab  json.RawMessage `json:"vocab"`
}

// name returns the type, which old files do not name.
func (m modelKind) name() string {
	switch {
	case m.Type != "":
		return m.Type
	case m.Merges != nil:
		return "BPE"
	case bytes.HasPrefix(m.Vocab, []byte("[")):
		return "Unigram"
	}
	return "WordPiece"
}

// notWordPiece is the error of a tokenizer.json that is of another kind than WordPiece.
type notWordPiece struct{ path, key, got, want string }

func (e *notWordPiece) Error() string {
	return fmt.Sprintf("%s: the %s is of type %q; this build of jenga reads %s alone; scripts/native.sh makes the "+
		"library that reads all, for go build -tags native", e.path, e.key, e.got, e.want)
}

// parseTokenizer makes the tokenizer of a tokenizer.json. The names of tokens that play no part in it are config's.
func parseTokenizer(path string, data []byte, config tokenizerConfig) (*WordPiece, error) {
	// Other models have other values under the same keys, so the types are read first.
	var kinds struct {
		Normalizer    typed     `json:"normalizer"`
		PreTokenizer  typed     `json:"pre_tokenizer"`
		PostProcessor typed     `json:"post_processor"`
		Model         modelKind `json:"model"`
	}
	if err := jsonfile.Unmarshal(path, data, &kinds); err != nil {
		return nil, err
	}
	for _, part := range []struct {
		key, got string
		want     []string
	}{
		{"model", kinds.Model.name(), []string{"WordPiece"}},
		{"normalizer", kinds.Normalizer.Type, []string{"BertNormalizer"}},
		{"pre_tokenizer", kinds.PreTokenizer.Type, []string{"BertPreTokenizer"}},
		{"post_processor", kinds.PostProcessor.Type, []string{"TemplateProcessing", "BertProcessing"}},
	} {
		if !slices.Contains(part.want, part.got) {
			return nil, &notWordPiece{path, part.key, part.got, part.want[0]}
		}
	}

	file := tokenizerFile{Model: wordPieceModel{Unknown: "[UNK]", Prefix: innerPrefix, MaxRunes: bertMaxRunes}}
	if err := jsonfile.Unmarshal(path, data, &file); err != nil {
		return nil, err
	}
	w, err := file.tokenizer(config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return w, nil
}

func (f *tokenizerFile) tokenizer(config tokenizerConfig) (*WordPiece, error) {
	if len(f.Model.Vocab) == 0 {
		return nil, errors.New("model has no vocab")
	}
	tokens, err := tokensByID(f.Model.Vocab)
	if err != nil {
		return nil, err
	}
	opening, closing, err := f.PostProcessor.names()
	if err != nil {
		return nil, err
	}
	for name, unit := range f.PostProcessor.Tokens {
		if id, ok := f.Model.Vocab[name]; ok && !slices.Equal(unit.IDs, []int32{id}) {
			return nil, fmt.Errorf("post_processor gives %q the ids %v, the vocabulary %d", name, unit.IDs, id)
		}
	}
	for _, setting := range []struct {
		key    string
		config *bool
		file   *bool
	}{
		{"do_lower_case", config.Lower, &f.Normalizer.Lower},
		{"tokenize_chinese_chars", config.Chinese, &f.Normalizer.Chinese},
		{"strip_accents", config.Strip, f.Normalizer.Strip},
	} {
		// transformers would use the config's setting, the crate tokenizers the file's.
		if setting.config != nil && setting.file != nil && *setting.config != *setting.file {
			return nil, fmt.Errorf("the normalizer contradicts %s: %v in the tokenizer_config.json beside it",
				setting.key, *setting.config)
		}
	}
	config.Unknown, config.Opening, config.Closing = tokenName(f.Model.Unknown), tokenName(opening), tokenName(closing)
	return newWordPiece(newVocabulary(tokens, f.Model.Prefix), f.Normalizer, f.Model.MaxRunes, config, f.Added)
}

// names returns the tokens before the first text and after each text. It is an error if p places them elsewhere.
func (p *postProcessor) names() (opening, closing string, err error) {
	if p.Type == "BertProcessing" {
		opening, closing = nameIn(p.Opening), nameIn(p.Closing)
		if opening == "" || closing == "" {
			return "", "", errors.New("post_processor does not name cls and sep")
		}
		return opening, closing, nil
	}
	single := describe(p.Single)
	if n := len(p.Single); n > 0 && p.Single[0].Special != nil && p.Single[n-1].Special != nil {
		opening, closing = p.Single[0].Special.ID, p.Single[n-1].Special.ID
	}
	want := fmt.Sprintf("%s:0 $A:0 %s:0", opening, closing)
	if single != want {
		return "", "", fmt.Errorf("post_processor makes %q of a text, want %q", single, "[CLS]:0 $A:0 [SEP]:0")
	}
	want += fmt.Sprintf(" $B:1 %s:1", closing)
	if pair := describe(p.Pair); pair != want {
		return "", "", fmt.Errorf("post_processor makes %q of a pair, want %q", pair, want)
	}
	return opening, closing, nil
}

// nameIn returns the name in a token's [name, id].
func nameIn(token []any) string {
	if len(token) == 0 {
		return ""
	}
	name, _ := token[0].(string)
	return name
}

// describe formats a template in the short form of the crate tokenizers.
func describe(template []templatePiece) string {
	var parts []string
	for _, piece := range template {
		if piece.Special != nil {
			parts = append(parts, fmt.Sprintf("%s:%d", piece.Special.ID, piece.Special.Type))
		}
		if piece.Sequence != nil {
			parts = append(parts, fmt.Sprintf("$%s:%d", piece.Sequence.ID, piece.Sequence.Type))
		}
	}
	return strings.Join(parts, " ")
}

// Save implements Tokenizer.
func (w *WordPiece) Save(folder string) error {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	config := w.config
	config.Lower, config.Chinese, config.Strip = &w.settings.Lower, &w.settings.Chinese, w.settings.Strip
	config.Class = "BertTokenizer"
	if !w.settings.Clean || w.vocabulary.prefix != innerPrefix || w.maxRunes != bertMaxRunes {
		// this class reads all settings from tokenizer.json; BertTokenizer lacks these
		config.Class = "PreTrainedTokenizerFast"
	}
	config.Added = make(map[string]addedForm, len(w.added))
	for _, token := range w.added {
		config.Added[fmt.Sprint(token.ID)] = token.addedForm
	}

	for _, file := range []struct {
		name    string
		content any
	}{
		{"tokenizer.json", w.file()},
		{"tokenizer_config.json", config},
		{"special_tokens_map.json", config.specialNames},
	} {
		var out bytes.Buffer
		encoder := json.NewEncoder(&out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(file.content); err != nil {
			panic("corpus: " + err.Error()) // all of it is strings and numbers
		}
		if err := os.WriteFile(filepath.Join(folder, file.name), out.Bytes(), 0o666); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(folder, "vocab.txt"), w.lines(), 0o666)
}

// lines returns the vocabulary as a vocab.txt: empty lines for ids that have no piece.
func (w *WordPiece) lines() []byte {
	var out []byte
	for id, token := range w.vocabulary.tokens {
		if other, ok := w.vocabulary.whole[token]; ok && int(other) == id {
			out = append(out, token...)
		}
		out = append(out, '\n')
	}
	return append(bytes.TrimRight(out, "\n"), '\n')
}

// file returns the tokenizer as a tokenizer.json.
func (w *WordPiece) file() tokenizerFile {
	opening, closing := string(w.config.Opening), string(w.config.Closing)
	special := func(name string, segment int) templatePiece {
		return templatePiece{Special: &templateID{name, segment}}
	}
	text := func(name string, segment int) templatePiece {
		return templatePiece{Sequence: &templateID{name, segment}}
	}
	single := []templatePiece{special(opening, 0), text("A", 0), special(closing, 0)}
	return tokenizerFile{
		Version:      "1.0",
		Added:        w.added,
		Normalizer:   w.settings,
		PreTokenizer: typed{"BertPreTokenizer"},
		PostProcessor: postProcessor{
			Type:   "TemplateProcessing",
			Single: single,
			Pair:   append(slices.Clip(single), text("B", 1), special(closing, 1)),
			Tokens: map[string]templateUnit{
				opening: {opening, []int32{w.opening}, []string{opening}},
				closing: {closing, []int32{w.closing}, []string{closing}},
			},
		},
		Decoder: decoder{"WordPiece", w.vocabulary.prefix, true},
		Model: wordPieceModel{"WordPiece", string(w.config.Unknown), w.vocabulary.prefix, w.maxRunes,
			w.vocabulary.whole},
	}
}
