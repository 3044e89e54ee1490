package tokenizer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/internal/files"
)

// maxFile bounds the size in bytes of a tokenizer's file.
const maxFile = 64 << 20

// The files of a tokenizer that hold settings beside another one.
const (
	configFile  = "tokenizer_config.json"
	specialFile = "special_tokens_map.json"
)

// source is the content of a tokenizer's files.
type source struct {
	folder string
	data   map[string][]byte // by name: what Save writes
	paths  []string          // of the files read
	config tokenizerConfig
}

// readSource reads the files of a folder: required ones, and tokenizer_config.json and special_tokens_map.json if they
// exist.
func readSource(folder string, required ...string) (*source, error) {
	s := &source{folder: folder, data: map[string][]byte{}, config: tokenizerConfig{specialNames: bertNames}}
	for i, name := range append(required, configFile, specialFile) {
		data, err := files.ReadText(s.path(name), maxFile)
		if err == nil {
			s.data[name], s.paths = data, append(s.paths, s.path(name))
		} else if i < len(required) || !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	if !s.has(configFile) {
		return s, nil
	}
	return s, files.UnmarshalJSON(s.path(configFile), s.data[configFile], &s.config)
}

func (s *source) path(name string) string { return filepath.Join(s.folder, name) }

func (s *source) has(name string) bool { return s.data[name] != nil }

func (s *source) save(folder string) error {
	if !s.has(configFile) {
		// Without it AutoTokenizer reads the encoder's config.json, which does not name the tokenizer.
		s.data[configFile] = []byte("{\"tokenizer_class\": \"PreTrainedTokenizerFast\"}\n")
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	for name, data := range s.data {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// tokenizerConfig is a tokenizer_config.json: the settings that vocab.txt lacks.
type tokenizerConfig struct {
	Class     string `json:"tokenizer_class"`
	ModelType string `json:"-"`                      // of config.json, which older forms go by
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
	Unknown specialName `json:"unk_token"`
	Closing specialName `json:"sep_token"`
	Pad     specialName `json:"pad_token"`
	Opening specialName `json:"cls_token"`
	Mask    specialName `json:"mask_token"`
}

var bertNames = specialNames{Unknown: specialName{text: "[UNK]"}, Closing: specialName{text: "[SEP]"},
	Pad: specialName{text: "[PAD]"}, Opening: specialName{text: "[CLS]"}, Mask: specialName{text: "[MASK]"}}

func (n specialNames) all() []string {
	names := []string{n.Pad.text, n.Unknown.text, n.Opening.text, n.Closing.text, n.Mask.text}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// specialName is a token's text. In some files it is an object with the text as content; its lstrip has an effect for
// the mask token. A plain text in a file has none, as in transformers.
type specialName struct {
	text   string
	lstrip bool
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *specialName) UnmarshalJSON(data []byte) (err error) {
	var form addedForm
	if bytes.HasPrefix(data, []byte("{")) {
		err = json.Unmarshal(data, &form)
	} else {
		err = json.Unmarshal(data, &form.Content) // null leaves it empty
	}
	*n = specialName{form.Content, form.LStrip}
	return err
}

// MarshalJSON implements json.Marshaler.
func (n specialName) MarshalJSON() ([]byte, error) {
	if n.text == "" {
		return []byte("null"), nil
	}
	return json.Marshal(n.text)
}

// bytePairClasses are the tokenizers of transformers that set add_prefix_space of ByteLevel from their configuration.
var bytePairClasses = []string{"roberta", "gpt2", "bart", "longformer"}

// family returns the tokenizer's class in lower case, without its usual ending, or the encoder's model_type.
func (c *tokenizerConfig) family() string {
	class := strings.TrimSuffix(strings.TrimSuffix(c.Class, "Fast"), "Tokenizer")
	if class == "PreTrained" {
		class = "" // of no family
	}
	return strings.ToLower(cmp.Or(class, c.ModelType))
}

func (c *tokenizerConfig) prefixSpace() bool { return c.PrefixSpace != nil && *c.PrefixSpace }

// check returns an error if a tokenizer_config.json contradicts a tokenizer.json with added tokens, whose pre-tokenizer
// is ByteLevel with or without a blank before a text, or another one: AutoTokenizer goes by the former.
func (c *tokenizerConfig) check(added []addedToken, byteLevel, blank bool) error {
	const remedy = "; transformers writes both alike: AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)"
	want := c.prefixSpace()
	if byteLevel && want != blank && slices.Contains(bytePairClasses, c.family()) {
		return fmt.Errorf("pre_tokenizer.add_prefix_space is %v, but that of the tokenizer_config.json beside it is "+
			"%v%s", blank, want, remedy)
	}
	for _, form := range c.Added {
		at := slices.IndexFunc(added, func(t addedToken) bool { return t.Content == form.Content })
		if at < 0 {
			return fmt.Errorf("added_tokens lacks %q, which the tokenizer_config.json beside it has%s", form.Content,
				remedy)
		}
		file := added[at]
		if file.LStrip != form.LStrip || file.RStrip != form.RStrip || file.SingleWord != form.SingleWord {
			return fmt.Errorf("added token %q has other options (lstrip, rstrip, single_word) than in the "+
				"tokenizer_config.json beside it%s", form.Content, remedy)
		}
	}
	return nil
}

func linesOf(data []byte) ([]string, error) {
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	if len(lines) > maxID {
		return nil, fmt.Errorf("%d lines, want at most %d", len(lines), maxID)
	}
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, "\r")
	}
	return lines, nil
}

func (c *tokenizerConfig) normalizer() bertSettings {
	orTrue := func(b *bool) bool { return b == nil || *b }
	return bertSettings{Clean: true, Chinese: orTrue(c.Chinese), Strip: c.Strip,
		Lower: orTrue(c.Lower)}
}

// addedTokens returns the tokens that are matched in raw text: the special ones and those that the file lists.
func (c *tokenizerConfig) addedTokens(vocab map[string]int32) ([]addedToken, error) {
	var added []addedToken
	for key, form := range c.Added {
		id, err := strconv.ParseInt(key, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("added_tokens_decoder of tokenizer_config.json has the key %q, want an id", key)
		}
		added = append(added, addedToken{ID: int32(id), addedForm: form})
	}
	slices.SortFunc(added, func(a, b addedToken) int { return int(a.ID) - int(b.ID) })

	for _, name := range c.specialNames.all() {
		if slices.ContainsFunc(added, func(t addedToken) bool { return t.Content == name }) {
			continue
		}
		id, ok := vocab[name]
		if !ok {
			return nil, fmt.Errorf("no special token %q", name)
		}
		lstrip := c.Mask.lstrip && name == c.Mask.text
		added = append(added, addedToken{id, addedForm{Content: name, LStrip: lstrip, Special: true}})
	}
	return added, nil
}
