package corpus

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
	"strings"
	"sync"

	"github.com/jenga-nlp/jenga/internal/jsonfile"
	"github.com/jenga-nlp/jenga/internal/pieces"
)

// Tokenizer encodes texts as tokens. It is safe for concurrent use.
type Tokenizer interface {
	// Encode returns the tokens of e, the special ones around its texts included. A maxLength over 0 bounds their
	// number: the longer text of a pair is truncated first, special tokens are never removed. If e has Words, each is
	// encoded separately, and the encoding has the word of each token.
	Encode(e *Example, maxLength int) Encoding
	// Split returns the words of raw text, in order, as the tokenizer splits it before it looks them up.
	Split(text string) []Span
	// Size returns the number of rows of an embedding of the vocabulary: its largest id plus one.
	Size() int
	// Token returns the token with an id below Size, or "" if the vocabulary does not use the id.
	Token(id int32) string
	// Mask returns the id of the mask token, if there is one.
	Mask() (id int32, ok bool)
	// Save writes the tokenizer's files to folder, in the form that transformers' AutoTokenizer reads.
	Save(folder string) error
	// Files returns the paths of the files that the tokenizer was read from, none if it was trained.
	Files() []string
}

// HasTokenizer reports whether a folder has the files of a tokenizer that OpenTokenizer reads, by their names.
func HasTokenizer(folder string) bool {
	return slices.ContainsFunc([]string{"tokenizer.json", "vocab.txt", "vocab.json"}, func(name string) bool {
		_, err := os.Stat(filepath.Join(folder, name))
		return err == nil
	})
}

// OpenTokenizer reads the tokenizer of a folder: its tokenizer.json, of WordPiece, byte pairs or Unigram, or its
// vocab.txt with the settings in tokenizer_config.json, or its vocab.json and merges.txt. Other forms of tokenizer.json
// are read if jenga is built with the tag native. A file's settings for padding and truncation have no effect.
func OpenTokenizer(folder string) (Tokenizer, error) {
	if t, ok, err := noTokenizerJSON(folder); ok {
		return t, err
	}
	w, err := openWordPiece(folder)
	other, ok := errors.AsType[*notBERT](err)
	switch {
	case ok && other.key == "model":
		return openSubwords(folder)
	case ok && other.key == "post_processor":
		return openOtherTemplate(folder)
	case ok:
		return openNative(folder, other)
	}
	if err != nil {
		return nil, err
	}
	return w, nil
}

// tokenizerFiles is the content of a tokenizer's files.
type tokenizerFiles struct {
	folder string
	data   map[string][]byte // by name: what Save writes
	paths  []string          // of the files read
	config tokenizerConfig
}

// readTokenizerFiles reads the files of a folder: required ones, and tokenizer_config.json and special_tokens_map.json
// if they exist.
func readTokenizerFiles(folder string, required ...string) (*tokenizerFiles, error) {
	f := &tokenizerFiles{folder: folder, data: map[string][]byte{},
		config: tokenizerConfig{specialNames: bertNames}}
	for i, name := range append(required, "tokenizer_config.json", "special_tokens_map.json") {
		data, err := readText(f.path(name))
		if err == nil {
			f.data[name], f.paths = data, append(f.paths, f.path(name))
		} else if i < len(required) || !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	data, ok := f.data["tokenizer_config.json"]
	if !ok {
		// Without it AutoTokenizer reads the encoder's config.json, which does not name the tokenizer.
		f.data["tokenizer_config.json"] = []byte("{\"tokenizer_class\": \"PreTrainedTokenizerFast\"}\n")
		return f, nil
	}
	return f, jsonfile.Unmarshal(f.path("tokenizer_config.json"), data, &f.config)
}

func (f *tokenizerFiles) path(name string) string { return filepath.Join(f.folder, name) }

// tokenizerOfFiles is what the tokenizers of a tokenizer.json have in common.
type tokenizerOfFiles struct {
	files      *tokenizerFiles
	vocabulary *vocabulary
	single     template
	pair       template
	mask       int32 // -1: none
	splitter   *WordPiece
}

// newTokenizerOfFiles returns a tokenizer with a vocabulary and added tokens, and the special tokens of a
// post-processor.
func newTokenizerOfFiles(files *tokenizerFiles, v *vocabulary, added []addedToken, p *processor) (tokenizerOfFiles,
	error) {
	t := tokenizerOfFiles{files: files, vocabulary: v, mask: -1}
	var err error
	if t.single, t.pair, err = p.templates(t.Size()); err != nil {
		return t, err
	}
	for _, name := range []tokenName{files.config.Mask, "<mask>"} {
		if id, ok := v.id(string(name)); ok && files.config.Mask != "" {
			t.mask = id
			break
		}
	}
	var special []addedToken
	for _, token := range added {
		if token.Special { // others may be runs of blanks
			token.LStrip, token.RStrip, token.Normalized = false, false, false
			special = append(special, token)
		}
	}
	t.splitter = &WordPiece{normalizer: newNormalizer(true, true, false, false),
		matched: pieces.NewAddedTokens(special, nil), scratch: sync.Pool{New: func() any { return new(scratch) }}}
	return t, nil
}

// Size implements Tokenizer.
func (t *tokenizerOfFiles) Size() int { return len(t.vocabulary.tokens) }

// Token implements Tokenizer.
func (t *tokenizerOfFiles) Token(id int32) string { return t.vocabulary.tokens[id] }

// Mask implements Tokenizer.
func (t *tokenizerOfFiles) Mask() (id int32, ok bool) { return t.mask, t.mask >= 0 }

// Files implements Tokenizer.
func (t *tokenizerOfFiles) Files() []string { return t.files.paths }

// Split implements Tokenizer. Words are split at white space and punctuation, as BERT does, whatever the file's own
// split is: that of sentencepiece leaves punctuation at the words. Special tokens are words.
func (t *tokenizerOfFiles) Split(text string) []Span { return t.splitter.Split(text) }

// Save implements Tokenizer. It writes the files that were read.
func (t *tokenizerOfFiles) Save(folder string) error {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	for name, data := range t.files.data {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// fill returns the encoding of e with the tokens of its text and its pair, truncated to maxLength.
func (t *tokenizerOfFiles) fill(e *Example, text, pair []piece, maxLength int) Encoding {
	form := t.single
	if e.Paired {
		form = t.pair
	}
	keep, keepPair := len(text), len(pair)
	if maxLength > 0 {
		keep, keepPair = longestFirst(keep, keepPair, max(0, maxLength-form.special()))
	}
	return form.encoding(text[:keep], pair[:keepPair], e.Words != nil)
}

// bytePairClasses are the tokenizers of transformers that set add_prefix_space of ByteLevel from their configuration.
var bytePairClasses = []string{"roberta", "gpt2", "bart", "longformer"}

// family returns the tokenizer's class in lower case, without its usual ending.
func (c *tokenizerConfig) family() string {
	if c.Class == "PreTrainedTokenizerFast" {
		return "" // of no family
	}
	return strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(c.Class, "Fast"), "Tokenizer"))
}

// prefixSpace reports whether byte pairs have a blank before a text.
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

// noTokenizerJSON returns the tokenizer of a folder without tokenizer.json, in one of the older forms that are read as
// the tokenizer.json that transformers makes of them: the vocab.txt of MPNet, or vocab.json and merges.txt. It is not
// ok if there is another form in the folder, or none.
func noTokenizerJSON(folder string) (t Tokenizer, ok bool, err error) {
	files := tokenizerFiles{folder: folder}
	has := func(name string) bool {
		_, err := os.Stat(files.path(name))
		return err == nil
	}
	switch {
	case has("tokenizer.json"):
		return nil, false, nil
	case has("vocab.txt"):
		return openMPNet(folder)
	case has("vocab.json"):
		t, err := openMerges(folder)
		if err != nil {
			return nil, true, err
		}
		return t, true, nil
	}
	for _, name := range []string{"sentencepiece.bpe.model", "spiece.model", "spm.model", "tokenizer.model"} {
		if has(name) {
			return nil, true, fmt.Errorf("%s: a model of sentencepiece, without the tokenizer.json that jenga reads; "+
				"transformers makes it: AutoTokenizer.from_pretrained(%q).save_pretrained(%[2]q)", files.path(name),
				folder)
		}
	}
	return nil, false, nil
}

// olderConfig is what the older forms lack: the settings of tokenizer_config.json, special_tokens_map.json and
// config.json.
type olderConfig struct {
	tokenizerConfig
	ModelType string   `json:"-"` // of config.json
	Mask      maskForm `json:"mask_token"`
}

// maskForm is the mask token. LStrip is heeded only if the token is an object, as in transformers.
type maskForm struct {
	name   tokenName
	LStrip bool `json:"lstrip"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *maskForm) UnmarshalJSON(data []byte) error {
	*m = maskForm{}
	if bytes.HasPrefix(data, []byte("{")) {
		type plain maskForm
		if err := json.Unmarshal(data, (*plain)(m)); err != nil {
			return err
		}
	}
	return json.Unmarshal(data, &m.name)
}

// readOlder reads a folder's files of an older form, and their settings. The special tokens that no file names are
// names; the mask has the option lstrip if no file has it as an object.
func readOlder(folder string, names specialNames, lstrip bool, required ...string) (*tokenizerFiles, *olderConfig,
	error) {
	files, err := readTokenizerFiles(folder, required...)
	if err != nil {
		return nil, nil, err
	}
	c := &olderConfig{tokenizerConfig: tokenizerConfig{specialNames: names}, Mask: maskForm{names.Mask, lstrip}}
	// The class may be absent: then the encoder's model_type says what the tokenizer is.
	err = jsonfile.Read(files.path("config.json"), jsonfile.MaxConfig, &struct {
		ModelType *string `json:"model_type"`
	}{&c.ModelType})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, nil, err
	}
	for _, name := range []string{"tokenizer_config.json", "special_tokens_map.json"} {
		if !slices.Contains(files.paths, files.path(name)) || len(c.Added) > 0 {
			continue // added_tokens_decoder has the special tokens too
		}
		if err := jsonfile.Unmarshal(files.path(name), files.data[name], c); err != nil {
			return nil, nil, err
		}
	}
	c.specialNames.Mask = c.Mask.name
	return files, c, nil
}

// family returns the tokenizer's class in lower case, without its usual ending, or the encoder's model_type.
func (c *olderConfig) family() string {
	return cmp.Or(c.tokenizerConfig.family(), strings.ToLower(c.ModelType))
}

// addedTokens returns the tokens that are matched in raw text, with the mask's own form.
func (c *olderConfig) addedTokens(v *vocabulary) ([]addedToken, error) {
	added, err := c.tokenizerConfig.addedTokens(v)
	for i := range added {
		if added[i].Content == string(c.specialNames.Mask) {
			added[i].LStrip = added[i].LStrip || c.Mask.LStrip
		}
	}
	return added, err
}

// robertaNames are the special tokens of RoBERTa, and of the models with its tokenizer.
var robertaNames = specialNames{Unknown: "<unk>", Closing: "</s>", Pad: "<pad>", Opening: "<s>", Mask: "<mask>"}

// endOfText is the special token of GPT-2.
const endOfText = "<|endoftext|>"

// isGPT2 reports whether the tokenizer is GPT-2's, which adds no special tokens, not RoBERTa's.
func (c *olderConfig) isGPT2() (bool, error) {
	switch c.family() {
	case "gpt2":
		return true, nil
	case "roberta", "bart", "longformer":
		return false, nil
	}
	return false, fmt.Errorf("the tokenizer is of class %q; without a tokenizer.json, jenga reads RobertaTokenizer "+
		"and GPT2Tokenizer, which tokenizer_class of tokenizer_config.json or model_type of config.json names",
		cmp.Or(c.Class, c.ModelType))
}

// openMerges reads the vocab.json and merges.txt of a folder.
func openMerges(folder string) (*subwords, error) {
	files, config, err := readOlder(folder, robertaNames, false, "vocab.json", "merges.txt")
	if err != nil {
		return nil, err
	}
	data, err := mergesFile(files, config)
	if err != nil {
		return nil, err
	}
	files.data["tokenizer.json"] = data
	return newSubwords(files, data)
}

// mergesFile returns the tokenizer.json that transformers makes of vocab.json and merges.txt.
func mergesFile(files *tokenizerFiles, config *olderConfig) ([]byte, error) {
	path := files.path("vocab.json")
	gpt2, err := config.isGPT2()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var vocab map[string]int32
	if err := json.Unmarshal(files.data["vocab.json"], &vocab); err != nil {
		return nil, fmt.Errorf("%s: want an object of tokens and their ids: %w", path, err)
	}
	merges, err := mergeLines(string(files.data["merges.txt"]), vocab)
	if err != nil {
		return nil, fmt.Errorf("%s:%w", files.path("merges.txt"), err)
	}

	type object = map[string]any
	bytePairs := object{"type": "ByteLevel", "add_prefix_space": config.prefixSpace(), "trim_offsets": true,
		"use_regex": true}
	file := object{
		"version": "1.0", "normalizer": nil, "pre_tokenizer": bytePairs, "post_processor": nil, "decoder": bytePairs,
		"model": object{"type": "BPE", "vocab": json.RawMessage(files.data["vocab.json"]), "merges": merges},
	}
	names := &config.specialNames
	if gpt2 {
		*names = specialNames{}
		if _, ok := vocab[endOfText]; ok {
			names.Unknown = endOfText
		}
	} else {
		file["post_processor"] = object{"type": "RobertaProcessing", "trim_offsets": true,
			"add_prefix_space": config.prefixSpace(),
			"sep":              []any{names.Closing, vocab[string(names.Closing)]},
			"cls":              []any{names.Opening, vocab[string(names.Opening)]}}
	}
	files.config.specialNames = *names
	if file["added_tokens"], err = config.addedTokens(&vocabulary{whole: vocab}); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return json.Marshal(file)
}

// mergeLines returns the merges of a merges.txt, in which a blank is between the two tokens of each. Errors begin with
// the number of the line.
func mergeLines(text string, vocab map[string]int32) ([]string, error) {
	var merges []string
	number := 0
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		number++
		line = strings.TrimSuffix(line, "\r")
		if line == "" || strings.HasPrefix(line, "#version") {
			continue
		}
		a, b, ok := strings.Cut(line, " ")
		if !ok || a == "" || b == "" {
			return nil, fmt.Errorf("%d: %.40q, want two tokens with a blank between them", number, line)
		}
		for _, token := range []string{a, b, a + b} {
			if _, ok := vocab[token]; !ok {
				return nil, fmt.Errorf("%d: %.40q joins %.20q and %.20q, but vocab.json does not have %.40q", number,
					line, a, b, token)
			}
		}
		merges = append(merges, line)
	}
	return merges, nil
}
