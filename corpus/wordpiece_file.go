package corpus

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jenga-nlp/jenga/internal/jsonfile"
	"github.com/jenga-nlp/jenga/internal/pieces"
	"github.com/jenga-nlp/jenga/internal/regular"
)

// maxTokenizerFile bounds the size in bytes of a tokenizer's file.
const maxTokenizerFile = 64 << 20

// openWordPiece reads the WordPiece tokenizer of a folder.
func openWordPiece(folder string) (*WordPiece, error) {
	path := filepath.Join(folder, "tokenizer_config.json")
	config, err := readConfig(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	noConfig := err != nil
	var files []string
	if !noConfig {
		files = append(files, path)
	}

	parse := parseTokenizer
	path = filepath.Join(folder, "tokenizer.json")
	data, err := readText(path)
	if errors.Is(err, fs.ErrNotExist) {
		parse, path = parseVocabulary, filepath.Join(folder, "vocab.txt")
		data, err = readText(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("%s: no tokenizer: want tokenizer.json, vocab.txt, or vocab.json with merges.txt",
				folder)
		case err == nil && noConfig:
			return nil, fmt.Errorf("%s: no tokenizer_config.json beside it, which sets do_lower_case",
				path)
		}
	}
	if err != nil {
		return nil, err
	}
	w, err := parse(path, data, config)
	if err != nil {
		return nil, err
	}
	w.files = append(files, path)
	return w, nil
}

// readText returns the content of a file in UTF-8, without a byte-order mark.
func readText(path string) ([]byte, error) {
	data, err := regular.ReadFile(path, maxTokenizerFile)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("%s:%d: not UTF-8", path, lineOf(data, invalidAt(data)))
	}
	return bytes.TrimPrefix(data, []byte("\ufeff")), nil
}

// invalidAt returns the offset of the first invalid byte of data, its length if there is none.
func invalidAt(data []byte) int {
	at := 0
	for at < len(data) {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return at
}

// lineOf returns the number of the line that holds a byte of data.
func lineOf(data []byte, at int) int {
	return 1 + bytes.Count(data[:min(at, len(data))], []byte("\n"))
}

// tokenizerConfig is a tokenizer_config.json: the settings that vocab.txt lacks.
type tokenizerConfig struct {
	Class     string `json:"tokenizer_class"`
	Lower     *bool  `json:"do_lower_case"`          // null: true
	Strip     *bool  `json:"strip_accents"`          // null: as do_lower_case
	Chinese   *bool  `json:"tokenize_chinese_chars"` // null: true
	MaxLength any    `json:"model_max_length,omitempty"`
	specialNames
	PrefixSpace *bool                `json:"add_prefix_space,omitempty"`     // of byte pairs; null: false
	Added       map[string]addedForm `json:"added_tokens_decoder,omitempty"` // by id
}

// specialNames are the names of the special tokens; "" for one that does not exist.
type specialNames struct {
	Unknown tokenName `json:"unk_token"`
	Closing tokenName `json:"sep_token"`
	Pad     tokenName `json:"pad_token"`
	Opening tokenName `json:"cls_token"`
	Mask    tokenName `json:"mask_token"`
}

var bertNames = specialNames{Unknown: "[UNK]", Closing: "[SEP]", Pad: "[PAD]", Opening: "[CLS]", Mask: "[MASK]"}

func (n specialNames) all() []string {
	names := []string{string(n.Pad), string(n.Unknown), string(n.Opening), string(n.Closing), string(n.Mask)}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// tokenName is a token's text. In some files it is an object with the text as content.
type tokenName string

// UnmarshalJSON implements json.Unmarshaler.
func (n *tokenName) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte("{")) {
		var form addedForm
		err := json.Unmarshal(data, &form)
		*n = tokenName(form.Content)
		return err
	}
	var name string // null leaves it empty
	err := json.Unmarshal(data, &name)
	*n = tokenName(name)
	return err
}

// MarshalJSON implements json.Marshaler.
func (n tokenName) MarshalJSON() ([]byte, error) {
	if n == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(n))
}

func readConfig(path string) (tokenizerConfig, error) {
	config := tokenizerConfig{specialNames: bertNames}
	data, err := readText(path)
	if err != nil {
		return config, err
	}
	return config, jsonfile.Unmarshal(path, data, &config)
}

// parseVocabulary returns the tokenizer of a vocab.txt: one token per line, its id the line's index.
func parseVocabulary(path string, data []byte, config tokenizerConfig) (*WordPiece, error) {
	switch strings.TrimSuffix(config.Class, "Fast") {
	case "", "BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer", "MobileBertTokenizer":
	default:
		return nil, fmt.Errorf("%s: the tokenizer_config.json beside it has tokenizer_class %q, whose vocab.txt may "+
			"have another format; want BertTokenizer or DistilBertTokenizer", path, config.Class)
	}
	v, err := vocabularyOfLines(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	added, err := config.addedTokens(v)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	w, err := newWordPiece(v, config.normalizer(), bertMaxRunes, config, added)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return w, nil
}

// vocabularyOfLines returns the vocabulary of a vocab.txt.
func vocabularyOfLines(data []byte) (*vocabulary, error) {
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	if len(lines) > maxTokenID {
		return nil, fmt.Errorf("%d lines, want at most %d", len(lines), maxTokenID)
	}
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, "\r")
	}
	return newVocabulary(lines, innerPrefix), nil
}

// normalizer returns the normaliser that a vocab.txt lacks.
func (c *tokenizerConfig) normalizer() bertNormalizer {
	orTrue := func(b *bool) bool { return b == nil || *b }
	return bertNormalizer{Type: "BertNormalizer", Clean: true, Chinese: orTrue(c.Chinese), Strip: c.Strip,
		Lower: orTrue(c.Lower)}
}

// addedTokens returns the tokens that are matched in raw text: the special ones and those that the file lists.
func (c *tokenizerConfig) addedTokens(v *vocabulary) ([]addedToken, error) {
	var added []addedToken
	for key, form := range c.Added {
		id, err := strconv.ParseInt(key, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("added_tokens_decoder of tokenizer_config.json has the key %q, want an id", key)
		}
		added = append(added, addedToken{ID: int32(id), AddedForm: form})
	}
	slices.SortFunc(added, func(a, b addedToken) int { return int(a.ID) - int(b.ID) })

	for _, name := range c.specialNames.all() {
		if slices.ContainsFunc(added, func(t addedToken) bool { return t.Content == name }) {
			continue
		}
		id, ok := v.whole[name]
		if !ok {
			return nil, fmt.Errorf("no special token %q", name)
		}
		added = append(added, addedToken{ID: id, AddedForm: addedForm{Content: name, Special: true}})
	}
	return added, nil
}

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

// notBERT is the error of a tokenizer.json that has another part than BERT's.
type notBERT struct{ path, key, got, want string }

func (e *notBERT) Error() string {
	return fmt.Sprintf("%s: the %s is of type %q; this build of jenga reads %s with WordPiece%s", e.path, e.key, e.got,
		e.want, nativeHint)
}

// parseTokenizer makes the tokenizer of a tokenizer.json. The names of tokens that play no part in it are config's.
func parseTokenizer(path string, data []byte, config tokenizerConfig) (*WordPiece, error) {
	// Other models have other values under the same keys, so the types are read first.
	var kinds struct {
		Normalizer    typed            `json:"normalizer"`
		PreTokenizer  typed            `json:"pre_tokenizer"`
		PostProcessor typed            `json:"post_processor"`
		Model         pieces.ModelKind `json:"model"`
	}
	if err := jsonfile.Unmarshal(path, data, &kinds); err != nil {
		return nil, err
	}
	for _, part := range []struct {
		key, got string
		want     []string
	}{
		{"model", kinds.Model.Name(), []string{"WordPiece"}},
		{"normalizer", kinds.Normalizer.Type, []string{"BertNormalizer"}},
		{"pre_tokenizer", kinds.PreTokenizer.Type, []string{"BertPreTokenizer"}},
		{"post_processor", kinds.PostProcessor.Type, []string{"TemplateProcessing", "BertProcessing"}},
	} {
		if !slices.Contains(part.want, part.got) {
			return nil, &notBERT{path, part.key, part.got, part.want[0]}
		}
	}

	file := newTokenizerFile()
	if err := jsonfile.Unmarshal(path, data, &file); err != nil {
		return nil, err
	}
	opening, closing, ok := file.PostProcessor.names()
	if !ok {
		return nil, &notBERT{path, "post_processor", kinds.PostProcessor.Type, "BERT's"}
	}
	w, err := file.tokenizer(config, opening, closing)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return w, nil
}

// newTokenizerFile returns a file with the defaults of WordPiece.
func newTokenizerFile() tokenizerFile {
	return tokenizerFile{Model: wordPieceModel{Unknown: "[UNK]", Prefix: innerPrefix, MaxRunes: bertMaxRunes}}
}

// tokenizer returns the tokenizer of a file with the special tokens before the first text and after each.
func (f *tokenizerFile) tokenizer(config tokenizerConfig, opening, closing string) (*WordPiece, error) {
	if len(f.Model.Vocab) == 0 {
		return nil, errors.New("model has no vocab")
	}
	tokens, err := tokensByID(f.Model.Vocab)
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

// names returns the tokens before the first text and after each text. It is not ok if p places them elsewhere.
func (p *postProcessor) names() (opening, closing string, ok bool) {
	if p.Type == "BertProcessing" {
		opening, closing = nameIn(p.Opening), nameIn(p.Closing)
		return opening, closing, opening != "" && closing != ""
	}
	if n := len(p.Single); n > 0 && p.Single[0].Special != nil && p.Single[n-1].Special != nil {
		opening, closing = p.Single[0].Special.ID, p.Single[n-1].Special.ID
	}
	single := fmt.Sprintf("%s:0 $A:0 %s:0", opening, closing)
	pair := single + fmt.Sprintf(" $B:1 %s:1", closing)
	return opening, closing, describe(p.Single) == single && describe(p.Pair) == pair
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
		config.Added[fmt.Sprint(token.ID)] = token.AddedForm
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
