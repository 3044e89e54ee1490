package corpus

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jenga-nlp/jenga/internal/jsonfile"
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
