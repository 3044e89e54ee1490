package tokenizer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	bertMaxRunes = 100  // BERT's bound on the length of a word
	innerPrefix  = "##" // BERT's prefix of pieces inside a word
	maxWordRunes = 1000 // of max_input_chars_per_word, on which the time to find pieces depends
)

// wordPiece is the model of BERT (Devlin et al. 2019): a text is split into words, and each is divided into the longest
// pieces of a vocabulary.
type wordPiece struct {
	class    *bertClasses
	whole    map[string]int32 // pieces that begin a word
	inner    map[string]int32 // pieces inside a word, without the prefix
	longest  int              // bytes of the longest piece
	maxRunes int              // longer words are unknown
	unknown  int32
	cache    *cache // of words that are not pieces
}

// tokenize implements model. Splitting is left to the model because that is faster than to write down all splits first.
func (w *wordPiece) tokenize(s *state, text []byte) {
	for lo, hi := w.class.find(text, 0); lo < hi; lo, hi = w.class.find(text, hi) {
		word := text[lo:hi]
		if id, ok := w.whole[string(word)]; ok && len(word) <= w.maxRunes { // most words
			s.tokens = append(s.tokens, token{id, int32(lo), int32(hi)})
		} else {
			w.cache.appendCached(s, word, int32(lo), w.divide)
		}
	}
}

// divide appends the tokens of a word: the unknown one if pieces do not cover the whole word.
func (w *wordPiece) divide(s *state, word []byte) {
	first, known := len(s.tokens), w.whole
	fits := utf8.RuneCount(word) <= w.maxRunes
	for lo := 0; lo < len(word); known = w.inner {
		length, id := longestIn(known, word[lo:min(len(word), lo+w.longest)])
		if length == 0 || !fits {
			s.tokens = append(s.tokens[:first], token{w.unknown, 0, int32(len(word))})
			return
		}
		s.tokens = append(s.tokens, token{id, int32(lo), int32(lo + length)})
		lo += length
	}
}

// longestIn returns the length and the id of the longest prefix of text that is in known, or 0.
func longestIn(known map[string]int32, text []byte) (int, int32) {
	for end := len(text); end > 0; end-- {
		if id, ok := known[string(text[:end])]; ok {
			return end, id
		}
	}
	return 0, 0
}

// newWords returns what splits texts into words as BERT does, and finds added tokens in them.
func newWords(settings bertSettings, added addedTokens) *subwords {
	t := newSubwords(newBERTNormalizer(settings))
	t.preTokenizers, t.added = []preTokenizer{&divideAt{bertClassesOfRunes(), removed, true}}, added
	return t
}

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

type bertPart struct {
	typed
	bertSettings
}

type bertSettings struct {
	Clean   bool  `json:"clean_text"`           // drop control and format characters, replace white space by blanks
	Chinese bool  `json:"handle_chinese_chars"` // add blanks around CJK ideographs
	Strip   *bool `json:"strip_accents"`        // decompose and drop nonspacing marks; null: as lowercase
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

func bertModel(unknown specialName, vocab idMap) wordPieceModel {
	return wordPieceModel{"WordPiece", unknown.text, innerPrefix, bertMaxRunes, vocab}
}

func (m *wordPieceModel) model(t *subwords) (err error) {
	if err := t.setVocabulary(m.Vocab); err != nil {
		return err
	}
	if m.MaxRunes < 1 || m.MaxRunes > maxWordRunes {
		return fmt.Errorf("max_input_chars_per_word is %d, want 1 to %d", m.MaxRunes, maxWordRunes)
	}
	w := &wordPiece{class: bertClassesOfRunes(), whole: m.Vocab, inner: make(map[string]int32, len(m.Vocab)),
		maxRunes: m.MaxRunes, cache: newCache()}
	for name, id := range m.Vocab {
		w.longest = max(w.longest, len(name))
		if rest, goesOn := strings.CutPrefix(name, m.Prefix); goesOn {
			w.inner[rest] = id
		}
	}
	t.model = w
	w.unknown, err = t.required(m.Unknown)
	return err
}

func (t *subwords) required(name string) (int32, error) {
	id, ok := idOf(t.tokens, t.known, name)
	if !ok {
		return 0, fmt.Errorf("no token %q, which a WordPiece tokenizer requires", name)
	}
	return id, nil
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

// checkBERT returns an error for a part of a tokenizer.json of WordPiece of another type than BERT's.
func (f *file) checkBERT() error {
	check := func(key string, p *part, want string) error {
		if kind := cmp.Or(p, new(part)).Type; kind != want {
			return &unsupported{key, fmt.Sprintf("of type %q", kind), want + " with WordPiece"}
		}
		return nil
	}
	return cmp.Or(check("normalizer", f.Normalizer, "BertNormalizer"),
		check("pre_tokenizer", f.PreTokenizer, "BertPreTokenizer"))
}

// wordPiece returns the tokenizer of a file with a model of WordPiece, but for its files. One whose special tokens are
// where BERT has them, before the first text and after each, is saved in a form of its own.
func (f *file) wordPiece(model *wordPieceModel, config tokenizerConfig) (*Tokenizer, error) {
	if err := f.checkBERT(); err != nil {
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
	settings := f.Normalizer.bertSettings
	if err := cmp.Or(config.checkBERT(settings), config.check(f.Added, false, false)); err != nil {
		return nil, err
	}
	t := newSubwords(newBERTNormalizer(settings))
	made, err := f.tokenizer(t, model, config)
	if err != nil {
		return nil, err
	}
	opening, closing, ok := post.names()
	if !ok {
		return made, nil
	}
	for i, name := range []string{opening, closing} {
		id, err := t.required(name)
		if err != nil {
			return nil, err
		}
		if in := made.single[2*i].Special[0].ID; in != id {
			return nil, fmt.Errorf("post_processor gives %q the id %d, the vocabulary %d", name, in, id)
		}
	}
	config.Unknown.text, config.Opening.text, config.Closing.text = model.Unknown, opening, closing
	for _, name := range []*string{&config.Pad.text, &config.Mask.text} {
		if _, ok := idOf(t.tokens, t.known, *name); !ok {
			*name = ""
		}
	}
	made.splitter = newWords(settings, t.added)
	made.save = (&bertFiles{*model, settings, config, f.Added, t.tokens}).save
	return made, nil
}

// checkBERT returns an error for settings that contradict a file's. Of a class of its own, such as BertTokenizer,
// transformers normalises as these settings say, and the defaults of those that are missing; the crate tokenizers
// normalises as the file says, and transformers too where the class is a general one.
func (c *tokenizerConfig) checkBERT(file bertSettings) error {
	if c.Class == "BertTokenizerLegacy" { // of transformers 5, in Python
		if err := c.checkFast(); err != nil {
			return err
		}
	}
	general := strings.HasPrefix(c.Class, "PreTrainedTokenizer") || c.Class == "TokenizersBackend"
	if c.missing || general {
		return nil
	}
	strips := func(s bertSettings) bool { return s.Strip != nil && *s.Strip || s.Strip == nil && s.Lower }
	settings := c.normalizer()
	for _, setting := range []struct {
		key, of      string
		config, file bool
	}{
		{"do_lower_case", "lowercase", settings.Lower, file.Lower},
		{"tokenize_chinese_chars", "handle_chinese_chars", settings.Chinese, file.Chinese},
		{"strip_accents", "strip_accents", strips(settings), strips(file)},
	} {
		if setting.config != setting.file {
			return fmt.Errorf("the normalizer has %s %v, but by the tokenizer_config.json beside it transformers has "+
				"%v; write \"%s\": %[2]v there, or make tokenizer.json again: "+
				"AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)", setting.of, setting.file,
				setting.config, setting.key)
		}
	}
	return nil
}

// bertFiles is what the files of a tokenizer of BERT are written from.
type bertFiles struct {
	model    wordPieceModel
	settings bertSettings
	config   tokenizerConfig
	added    []addedToken
	tokens   []string // by id, with the added ones
}

// newBERTFiles returns those of BERT's model with the tokens of vocab, whose special tokens config names.
func newBERTFiles(tokens []string, config tokenizerConfig) (*Tokenizer, error) {
	b := &bertFiles{model: bertModel(config.Unknown, idsOf(tokens)), settings: config.normalizer(), config: config,
		tokens: tokens}
	var err error
	if b.added, err = config.addedTokens(b.model.Vocab); err != nil {
		return nil, err
	}
	w := b.file()
	f := &file{Added: w.Added, Normalizer: &part{Type: w.Normalizer.Type, bertSettings: b.settings},
		PreTokenizer: &part{Type: w.PreTokenizer.Type}, PostProcessor: &w.PostProcessor}
	return f.wordPiece(&b.model, config)
}

// save writes the tokenizer's files, in a form that does not depend on the files that it was read from.
func (b *bertFiles) save(folder string) error {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	config := b.config
	config.Lower, config.Chinese, config.Strip = &b.settings.Lower, &b.settings.Chinese, b.settings.Strip
	config.Class, config.notFast = "BertTokenizer", notFast{}
	if !b.settings.Clean || b.model.Prefix != innerPrefix || b.model.MaxRunes != bertMaxRunes {
		// this class reads all settings from tokenizer.json; BertTokenizer lacks these
		config.Class = "PreTrainedTokenizerFast"
	}
	config.Added = make(map[string]addedForm, len(b.added))
	for _, token := range b.added {
		config.Added[fmt.Sprint(token.ID)] = token.addedForm
	}

	for _, file := range []struct {
		name    string
		content any
	}{
		{tokenizerFile, b.file()},
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
	return os.WriteFile(filepath.Join(folder, linesFile), b.lines(), 0o666)
}

// lines returns the vocabulary as a vocab.txt: empty lines for ids that have no piece.
func (b *bertFiles) lines() []byte {
	var out []byte
	for id, token := range b.tokens {
		if other, ok := b.model.Vocab[token]; ok && int(other) == id {
			out = append(out, token...)
		}
		out = append(out, '\n')
	}
	return append(bytes.TrimRight(out, "\n"), '\n')
}

func (b *bertFiles) file() wordPieceFile {
	opening, closing := b.config.Opening.text, b.config.Closing.text
	unit := func(name string) templateUnit {
		id, _ := idOf(b.tokens, b.model.Vocab, name)
		return templateUnit{name, []int32{id}, []string{name}}
	}
	special := func(name string, segment int) templatePiece {
		return templatePiece{Special: &templateID{name, segment}}
	}
	text := func(name string, segment int) templatePiece {
		return templatePiece{Sequence: &templateID{name, segment}}
	}
	single := []templatePiece{special(opening, 0), text("A", 0), special(closing, 0)}
	model := b.model
	model.Type = "WordPiece" // which old files do not name
	return wordPieceFile{
		Version:      "1.0",
		Added:        b.added,
		Normalizer:   bertPart{typed{"BertNormalizer"}, b.settings},
		PreTokenizer: typed{"BertPreTokenizer"},
		PostProcessor: postProcessor{
			Type:   "TemplateProcessing",
			Single: single,
			Pair:   append(slices.Clip(single), text("B", 1), special(closing, 1)),
			Tokens: map[string]templateUnit{opening: unit(opening), closing: unit(closing)},
		},
		Decoder: decoder{"WordPiece", b.model.Prefix, true},
		Model:   model,
	}
}
