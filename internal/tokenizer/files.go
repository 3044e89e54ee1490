package tokenizer

import (
	"bytes"
	"cmp"
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

	"github.com/jenga-nlp/jenga/internal/files"
)

// maxFile bounds the size in bytes of a tokenizer's file.
const maxFile = 64 << 20

// The files of a tokenizer that hold settings beside another one.
const (
	configFile  = "tokenizer_config.json"
	specialFile = "special_tokens_map.json"
	addedFile   = "added_tokens.json" // which transformers 4 wrote
)

// source is the content of a tokenizer's files.
type source struct {
	folder string
	data   map[string][]byte // by name: what Save writes
	paths  []string          // of the files read
	added  string            // path of added_tokens.json, "" for none
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
	s.config.missing = !s.has(configFile)
	if s.has(configFile) {
		if err := files.UnmarshalJSON(s.path(configFile), s.data[configFile], &s.config); err != nil {
			return nil, err
		}
	}
	return s, s.readAdded(&s.config)
}

// readAdded sets the tokens of c that other files of the folder add, as transformers does: where tokenizer_config.json
// has an added_tokens_decoder, that has all but its own lists of special tokens.
func (s *source) readAdded(c *tokenizerConfig) error {
	lists := c.specialLists
	if len(c.Added) == 0 && len(lists.Additional)+len(lists.Extra) == 0 && s.has(specialFile) {
		if err := files.UnmarshalJSON(s.path(specialFile), s.data[specialFile], &lists); err != nil {
			return err
		}
	}
	special := lists.Extra
	if len(special) == 0 {
		special = lists.Additional
	}
	c.specialLists, c.listed = specialLists{}, nil
	if len(c.Added) == 0 {
		ids := map[string]int32{}
		data, err := files.ReadText(s.path(addedFile), maxFile)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		default:
			if err := files.UnmarshalJSON(s.path(addedFile), data, &ids); err != nil {
				return err
			}
			s.added = s.path(addedFile)
		}
		for content, id := range ids {
			if id < 0 || content == "" {
				return fmt.Errorf("%s: the added token %q has the id %d; want a text with an id from 0 on", s.added,
					content, id)
			}
		}
		names := c.specialNames.all()
		for content, id := range ids {
			form := addedForm{Content: content, Normalized: true, Special: slices.Contains(names, content)}
			c.listed = append(c.listed, addedToken{id, form})
		}
		slices.SortFunc(c.listed, func(a, b addedToken) int {
			return cmp.Or(cmp.Compare(a.ID, b.ID), strings.Compare(a.Content, b.Content))
		})
	}
	for _, form := range special {
		form.Special = true
		if at := slices.IndexFunc(c.listed, isNamed(form.Content)); at >= 0 {
			c.listed[at].addedForm = form
			continue
		}
		c.listed = append(c.listed, addedToken{nextID, form})
	}
	return nil
}

// nextID stands for the id of an added token that a list of special tokens has without one.
const nextID = -1

func isNamed(content string) func(addedToken) bool {
	return func(t addedToken) bool { return t.Content == content }
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
	notFast
	MaxLength any `json:"model_max_length,omitempty"`
	specialNames
	PrefixSpace *bool                `json:"add_prefix_space,omitempty"`     // of byte pairs; null: false
	Added       map[string]addedForm `json:"added_tokens_decoder,omitempty"` // by id
	specialLists
	listed  []addedToken // of added_tokens.json, by id, and then those of the lists
	missing bool         // there is no such file
}

// notFast are the settings of a tokenizer_config.json that tokenizers of transformers in Python go by, and those of the
// crate tokenizers do not, which AutoTokenizer returns.
type notFast struct {
	Basic *bool    `json:"do_basic_tokenize,omitempty"` // null: true; false divides at white space only
	Whole []string `json:"never_split,omitempty"`
}

// checkFast returns an error if the settings that only a tokenizer in Python goes by change ids.
func (c *tokenizerConfig) checkFast() error {
	names, key, now, want := c.specialNames.all(), "", "", ""
	switch {
	case c.Basic != nil && !*c.Basic:
		key, now, want = "do_basic_tokenize", "false", "true"
	case slices.ContainsFunc(c.Whole, func(token string) bool { return !slices.Contains(names, token) }):
		key, now, want = "never_split", fmt.Sprintf("%.200q", c.Whole), "null"
	default:
		return nil
	}
	return fmt.Errorf("the tokenizer_config.json beside it has %s %s: jenga divides texts as AutoTokenizer, which "+
		"ignores it, and not as the tokenizers in Python (use_fast=False), which go by it; write \"%[1]s\": %[3]s "+
		"there if the encoder is of AutoTokenizer", key, now, want)
}

// specialLists are further special tokens, in two forms that mean the same.
type specialLists struct {
	Additional tokenList `json:"additional_special_tokens,omitempty"`
	Extra      tokenList `json:"extra_special_tokens,omitempty"`
}

// tokenList is a list of tokens, each a text or an object with the text as content, or an object of them by a name.
type tokenList []addedForm

// UnmarshalJSON implements json.Unmarshaler.
func (l *tokenList) UnmarshalJSON(data []byte) error {
	*l = nil
	var all []json.RawMessage
	if bytes.HasPrefix(data, []byte("{")) {
		var named map[string]json.RawMessage
		if err := json.Unmarshal(data, &named); err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(named)) {
			all = append(all, named[name])
		}
	} else if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	for _, one := range all {
		var form addedForm
		err := json.Unmarshal(one, &form.Content)
		if err != nil {
			err = json.Unmarshal(one, &form)
		}
		if err != nil {
			return err
		}
		*l = append(*l, form)
	}
	return nil
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
	for _, token := range c.listed {
		if !slices.ContainsFunc(added, isNamed(token.Content)) {
			return fmt.Errorf("added_tokens lacks %q, which %s, %s or %s beside it adds%s", token.Content, addedFile,
				configFile, specialFile, remedy)
		}
	}
	for _, form := range c.Added {
		at := slices.IndexFunc(added, isNamed(form.Content))
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

// addedTokens returns the tokens that are matched before a text is divided: those that the files list, and the special
// ones.
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

	next := int32(len(vocab)) // the id of a token that the vocabulary lacks
	for _, token := range added {
		next = max(next, token.ID+1)
	}
	for _, token := range c.listed {
		if slices.ContainsFunc(added, isNamed(token.Content)) {
			continue // in added_tokens_decoder
		}
		id, ok := vocab[token.Content]
		if !ok {
			id, next = next, next+1
		}
		if token.ID != id && token.ID != nextID {
			return nil, fmt.Errorf("%s has the id %d for %q, but transformers gives it %d, that of the vocabulary "+
				"or the next free one; write that id there", addedFile, token.ID, token.Content, id)
		}
		added = append(added, addedToken{id, token.addedForm})
	}
	for _, name := range c.specialNames.all() {
		if slices.ContainsFunc(added, isNamed(name)) {
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
