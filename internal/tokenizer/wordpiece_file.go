package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// wordPieceFile is the tokenizer.json of WordPiece, as it is saved.
type wordPieceFile struct {
	Version       string         `json:"version"`
	Truncation    *struct{}      `json:"truncation"`
	Padding       *struct{}      `json:"padding"`
	Added         []addedToken   `json:"added_tokens"`
	Normalizer    bertPart       `json:"normalizer"`
	PreTokenizer  typed          `json:"pre_tokenizer"`
	PostProcessor postProcessor  `json:"post_processor"`
	Decoder       decoder        `json:"decoder"`
	Model         wordPieceModel `json:"model"`
}

type typed struct {
	Type string `json:"type"`
}

// bertPart is BERT's normaliser.
type bertPart struct {
	typed
	bertSettings
}

// bertSettings are the options of BERT's normaliser.
type bertSettings struct {
	Clean   bool  `json:"clean_text"`
	Chinese bool  `json:"handle_chinese_chars"`
	Strip   *bool `json:"strip_accents"` // null: as lowercase
	Lower   bool  `json:"lowercase"`
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

// bertKinds are the parts that WordPiece has in a tokenizer.json.
var bertKinds = map[string]string{"normalizer": "BertNormalizer", "pre_tokenizer": "BertPreTokenizer"}

// checkBERT returns an error for a part of a tokenizer.json of WordPiece of another type than BERT's.
func (f *file) checkBERT() error {
	for _, part := range []struct {
		key string
		got *part
	}{{"normalizer", f.Normalizer}, {"pre_tokenizer", f.PreTokenizer}} {
		kind := ""
		if part.got != nil {
			kind = part.got.Type
		}
		if want := bertKinds[part.key]; kind != want {
			return &unsupported{part.key, fmt.Sprintf("of type %q", kind), want + " with WordPiece"}
		}
	}
	return nil
}

// wordPiece returns the tokenizer of a file with a model of WordPiece, but for its files.
func (f *file) wordPiece(model *wordPieceModel, config tokenizerConfig) (*Tokenizer, error) {
	if len(model.Vocab) == 0 {
		return nil, errors.New("model has no vocab")
	}
	if err := f.checkBERT(); err != nil {
		return nil, err
	}
	tokens, err := tokensByID(model.Vocab)
	if err != nil {
		return nil, err
	}
	post := f.PostProcessor
	if post == nil {
		return nil, errors.New("no post_processor, which has the special tokens of WordPiece")
	}
	for name, unit := range post.Tokens {
		if id, ok := model.Vocab[name]; ok && !slices.Equal(unit.IDs, []int32{id}) {
			return nil, fmt.Errorf("post_processor gives %q the ids %v, the vocabulary %d", name, unit.IDs, id)
		}
	}
	if err := config.checkBERT(f.Normalizer.bertSettings); err != nil {
		return nil, err
	}
	config.Unknown = tokenName(model.Unknown)
	w, err := newWordPiece(newVocabulary(tokens, model.Prefix), f.Normalizer.bertSettings, model.MaxRunes, config,
		f.Added)
	if err != nil {
		return nil, err
	}
	if opening, closing, ok := post.names(); ok {
		return w.bert(tokenName(opening), tokenName(closing))
	}
	if post.PrefixSpace != nil && *post.PrefixSpace {
		return nil, errors.New("post_processor has add_prefix_space, which is for byte pairs; want false")
	}
	w.trims = post.Trim != nil && *post.Trim
	return newTokenizer(w.vocabulary.tokens, f, config, w.vocabulary.id, w.append)
}

// checkBERT returns an error for settings that contradict a file's: transformers would use these, the crate tokenizers
// the file's.
func (c *tokenizerConfig) checkBERT(file bertSettings) error {
	for _, setting := range []struct {
		key          string
		config, file *bool
	}{
		{"do_lower_case", c.Lower, &file.Lower},
		{"tokenize_chinese_chars", c.Chinese, &file.Chinese},
		{"strip_accents", c.Strip, file.Strip},
	} {
		if setting.config != nil && setting.file != nil && *setting.config != *setting.file {
			return fmt.Errorf("the normalizer contradicts %s: %v in the tokenizer_config.json beside it",
				setting.key, *setting.config)
		}
	}
	return nil
}

// bert returns the tokenizer that has special tokens where BERT has them: before the first text and after each.
func (w *wordPiece) bert(opening, closing tokenName) (*Tokenizer, error) {
	w.config.Opening, w.config.Closing = opening, closing
	var ids [2]int32
	var err error
	for i, name := range []tokenName{opening, closing} {
		if ids[i], err = w.required(name); err != nil {
			return nil, err
		}
	}
	before, after := Part{Special: []Token{special(ids[0])}}, Part{Special: []Token{special(ids[1])}}
	last := after
	last.Text, last.Type = 1, 1
	t := &Tokenizer{tokens: w.vocabulary.tokens, append: w.append, splitter: w, save: w.save, mask: -1}
	t.single = Template{before, {IsText: true}, after}
	t.pair = append(slices.Clip(t.single), Part{IsText: true, Text: 1, Type: 1}, last)
	if id, ok := w.vocabulary.id(string(w.config.Mask)); ok {
		t.mask = id
	}
	return t, nil
}

// save writes the tokenizer's files, in a form that does not depend on the files that it was read from.
func (w *wordPiece) save(folder string) error {
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
		{tokenizerFile, w.file()},
		{configFile, config},
		{specialFile, config.specialNames},
	} {
		var out bytes.Buffer
		encoder := json.NewEncoder(&out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(file.content); err != nil {
			panic("tokenizer: " + err.Error()) // all of it is strings and numbers
		}
		if err := os.WriteFile(filepath.Join(folder, file.name), out.Bytes(), 0o666); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(folder, "vocab.txt"), w.lines(), 0o666)
}

// lines returns the vocabulary as a vocab.txt: empty lines for ids that have no piece.
func (w *wordPiece) lines() []byte {
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
func (w *wordPiece) file() wordPieceFile {
	opening, closing := string(w.config.Opening), string(w.config.Closing)
	openingID, _ := w.vocabulary.id(opening)
	closingID, _ := w.vocabulary.id(closing)
	special := func(name string, segment int) templatePiece {
		return templatePiece{Special: &templateID{name, segment}}
	}
	text := func(name string, segment int) templatePiece {
		return templatePiece{Sequence: &templateID{name, segment}}
	}
	single := []templatePiece{special(opening, 0), text("A", 0), special(closing, 0)}
	return wordPieceFile{
		Version:      "1.0",
		Added:        w.added,
		Normalizer:   bertPart{typed{"BertNormalizer"}, w.settings},
		PreTokenizer: typed{"BertPreTokenizer"},
		PostProcessor: postProcessor{
			Type:   "TemplateProcessing",
			Single: single,
			Pair:   append(slices.Clip(single), text("B", 1), special(closing, 1)),
			Tokens: map[string]templateUnit{
				opening: {opening, []int32{openingID}, []string{opening}},
				closing: {closing, []int32{closingID}, []string{closing}},
			},
		},
		Decoder: decoder{"WordPiece", w.vocabulary.prefix, true},
		Model: wordPieceModel{"WordPiece", string(w.config.Unknown), w.vocabulary.prefix, w.maxRunes,
			w.vocabulary.whole},
	}
}
