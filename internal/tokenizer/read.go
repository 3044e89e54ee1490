package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/jenga-nlp/jenga/internal/files"
)

// Limits of what is read. The largest vocabulary in use, XLM-V's, has 0.9 million tokens.
const (
	maxID    = 1 << 21
	maxAdded = 1 << 15
	maxParts = 64 // of all Sequences of a kind together, and their depth

	maxToken   = 1 << 10  // bytes of a piece of Unigram or an added token: finding one takes that many steps
	maxBytes   = 32 << 20 // of all of them
	maxPattern = 1 << 12  // bytes of a regular expression
	maxContent = 64       // bytes that may take the place of a character
)

// unsupported is the error of a tokenizer.json with a part of a form that the package does not read.
type unsupported struct {
	key  string // of the part
	form string // its type
	want string // forms that are read
}

func (e *unsupported) Error() string {
	return fmt.Sprintf("the %s is %s; this build of jenga reads %s%s", e.key, e.form, e.want, nativeHint)
}

const tokenizerFile = "tokenizer.json"

// file is a tokenizer.json, but for the options of its model. Its padding and truncation have no effect.
type file struct {
	Version       *string        `json:"version"`
	Added         []addedToken   `json:"added_tokens"`
	Normalizer    *part          `json:"normalizer"`
	PreTokenizer  *part          `json:"pre_tokenizer"`
	PostProcessor *postProcessor `json:"post_processor"`
	Model         *modelKind     `json:"model"`
}

func parse(path string, data []byte, config tokenizerConfig) (*Tokenizer, error) {
	var f file
	if err := files.UnmarshalJSON(path, data, &f); err != nil {
		return nil, err
	}
	m, err := f.model(path, data)
	if err != nil {
		return nil, err
	}
	t, err := f.read(m, config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// modelFile is the model of a tokenizer.json. It sets the model of t, and its vocabulary.
type modelFile interface{ model(t *subwords) error }

func (f *file) model(path string, data []byte) (modelFile, error) {
	m := struct {
		Model modelFile `json:"model"`
	}{}
	switch name := f.Model.name(); {
	case f.Model == nil:
		return nil, fmt.Errorf("%s: no model", path)
	case f.Version != nil && *f.Version != "1.0":
		return nil, fmt.Errorf("%s: version is %q, want 1.0", path, *f.Version)
	case name == "WordPiece":
		defaults := bertModel(bertNames.Unknown, nil)
		m.Model = &defaults
	case name == "BPE":
		m.Model = new(bpeFile)
	case name == "Unigram":
		m.Model = new(unigramFile)
	default:
		return nil, fmt.Errorf("%s: %w", path, &unsupported{"model", fmt.Sprintf("of type %q", name),
			"WordPiece, BPE or Unigram"})
	}
	return m.Model, files.UnmarshalJSON(path, data, &m)
}

func (f *file) read(m modelFile, config tokenizerConfig) (*Tokenizer, error) {
	if m, ok := m.(*wordPieceModel); ok {
		return f.wordPiece(m, config)
	}
	t, err := f.parts()
	if err != nil {
		return nil, err
	}
	made, err := f.tokenizer(t, m, config)
	if err != nil {
		return nil, err
	}
	before := f.PreTokenizer
	byteLevel := before != nil && before.Type == "ByteLevel"
	return made, config.check(f.Added, byteLevel, byteLevel && before.PrefixSpace != nil && *before.PrefixSpace)
}

// parts returns what divides texts as normaliser and pre-tokenizer say, without a model.
func (f *file) parts() (*subwords, error) {
	t := newSubwords()
	var err error
	if t.normalizers, err = flatten(f.Normalizer, "normalizer", "normalizers", 0, (*part).normalizer); err != nil {
		return nil, err
	}
	const key = "pre_tokenizer"
	t.preTokenizers, err = flatten(f.PreTokenizer, key, "pretokenizers", 0, (*part).preTokenizer)
	if err != nil {
		return nil, err
	}
	for i := range len(t.preTokenizers) - 1 {
		if endsInBytes(t.preTokenizers[:i+1]) {
			return nil, &unsupported{key, "a Sequence in which another part follows ByteLevel", "ByteLevel at the end"}
		}
	}
	return t, t.checkGrowth()
}

// tokenizer returns the tokenizer of a file that is saved as it was read, but for its files. t has the parts before the
// model.
func (f *file) tokenizer(t *subwords, m modelFile, config tokenizerConfig) (*Tokenizer, error) {
	if err := f.complete(t, m); err != nil {
		return nil, err
	}
	made, err := newTokenizer(t.tokens, t.known, f, config, t.append)
	if err != nil {
		return nil, err
	}
	made.appendSome = t.appendSome
	return made, nil
}

// complete adds model, added tokens and post-processor to the parts before them.
func (f *file) complete(t *subwords, m modelFile) error {
	if err := m.model(t); err != nil {
		return err
	}
	if err := t.addTokens(f.Added); err != nil {
		return err
	}
	t.setBlank()
	return t.readTrims(f)
}

func (t *subwords) setVocabulary(ids map[string]int32) (err error) {
	t.known = ids
	if t.tokens, err = tokensByID(ids); err != nil {
		return err
	}
	return checkNames("model.vocab", t.tokens)
}

// checkNames returns an error for tokens that are too long to search for.
func checkNames(key string, names []string) error {
	total := 0
	for _, name := range names {
		if len(name) > maxToken {
			return fmt.Errorf("%s has a token of %d bytes, %.20q, want at most %d", key, len(name), name, maxToken)
		}
		total += len(name)
	}
	if total > maxBytes {
		return fmt.Errorf("%s has tokens of %d bytes together, want at most %d", key, total, maxBytes)
	}
	return nil
}

func (t *subwords) readTrims(f *file) (err error) {
	if t.trims, err = f.PostProcessor.trims(nil, 0); err != nil {
		return err
	}
	if len(t.trims) == 0 {
		return nil
	}
	if len(t.trims) > maxParts {
		return fmt.Errorf("post_processor has %d parts that trim offsets, want at most %d", len(t.trims), maxParts)
	}
	t.padding = make([]padding, len(t.tokens))
	for id, name := range t.tokens {
		t.padding[id] = paddingOf(name)
	}
	return nil
}

func (p *postProcessor) trims(out []trim, depth int) (all []trim, err error) {
	isSet := func(b *bool) bool { return b == nil || *b }
	switch {
	case p == nil:
	case (p.Type == "ByteLevel" || p.Type == "RobertaProcessing") && isSet(p.Trim):
		out = append(out, trim{isSet(p.PrefixSpace)})
	case p.Type == "Sequence" && depth == maxParts:
		return nil, fmt.Errorf("post_processor has more than %d Sequences in each other", maxParts)
	case p.Type == "Sequence":
		for i := range p.Processors {
			if out, err = p.Processors[i].trims(out, depth+1); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// modelKind is the part of a model that determines its type.
type modelKind struct {
	Type    string          `json:"type"`
	Dropout float64         `json:"dropout"`
	Merges  json.RawMessage `json:"merges"`
	Vocab   json.RawMessage `json:"vocab"`
}

// name returns the type, which old files do not name.
func (k *modelKind) name() string {
	switch {
	case k == nil:
		return ""
	case k.Type != "":
		return k.Type
	case k.Merges != nil:
		return "BPE"
	case bytes.HasPrefix(k.Vocab, []byte("[")):
		return "Unigram"
	}
	return "WordPiece"
}

// endsInBytes reports whether the splits are bytes: ByteLevel is the last pre-tokenizer.
func endsInBytes(parts []preTokenizer) bool {
	if len(parts) == 0 {
		return false
	}
	_, ok := parts[len(parts)-1].(*byteLevel)
	return ok
}

// part is a normaliser or a pre-tokenizer of a tokenizer.json, with the keys of all types.
type part struct {
	Type          string   `json:"type"`
	Normalizers   partList `json:"normalizers"`
	PreTokenizers partList `json:"pretokenizers"`
	Pattern       *pattern `json:"pattern"`
	strip
	bertSettings

	Content  string `json:"content"`              // Replace
	Prepend  string `json:"prepend"`              // Prepend
	Charsmap string `json:"precompiled_charsmap"` // Precompiled

	PrefixSpace *bool    `json:"add_prefix_space"`  // ByteLevel; old Metaspace
	UseRegex    *bool    `json:"use_regex"`         // ByteLevel; null: true
	Mark        string   `json:"replacement"`       // Metaspace
	Prefix      string   `json:"prepend_scheme"`    // Metaspace: always, first or never
	Split       *bool    `json:"split"`             // Metaspace; null: true
	Behavior    behavior `json:"behavior"`          // Split
	Invert      bool     `json:"invert"`            // Split
	Individual  bool     `json:"individual_digits"` // Digits
}

// partList is the parts of a Sequence, of which there may be maxParts.
type partList []*part

// UnmarshalJSON implements json.Unmarshaler. A part takes more memory than its text.
func (l *partList) UnmarshalJSON(data []byte) error {
	var all []json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	if len(all) > maxParts {
		return fmt.Errorf("a Sequence has %d parts, want at most %d", len(all), maxParts)
	}
	return json.Unmarshal(data, (*[]*part)(l))
}

// flatten returns what one makes of a part, which is at key, or of each part of a Sequence; name is the key of its list.
func flatten[T any](p *part, key, name string, depth int, one func(p *part, key string) (T, error)) ([]T, error) {
	switch {
	case p == nil:
		return nil, nil
	case p.Type == "":
		return nil, fmt.Errorf("%s has no type", key)
	case p.Type != "Sequence":
		made, err := one(p, key)
		return []T{made}, err
	}
	parts := p.Normalizers
	if name == "pretokenizers" {
		parts = p.PreTokenizers
	}
	if depth > maxParts {
		return nil, fmt.Errorf("%s has more than %d parts", key, maxParts)
	}
	var all []T
	for i := range parts {
		some, err := flatten(parts[i], fmt.Sprintf("%s.%s[%d]", key, name, i), name, depth+1, one)
		if err != nil {
			return nil, err
		}
		if all = append(all, some...); len(all) > maxParts {
			return nil, fmt.Errorf("%s has more than %d parts", key, maxParts)
		}
	}
	return all, nil
}

func (p *part) normalizer(key string) (normalizer, error) {
	switch p.Type {
	case "NFC", "NFD", "NFKC", "NFKD":
		return unicodeForm(slices.Index(unicodeForms, p.Type)), nil
	case "Lowercase":
		return lowercase{}, nil
	case "StripAccents":
		return mapped(stripAccent), nil
	case "Nmt":
		return mapped(nmt), nil
	case "Strip":
		return &p.strip, nil
	case "Prepend":
		if len(p.Prepend) > maxToken {
			return nil, fmt.Errorf("%s.prepend has %d bytes, want at most %d", key, len(p.Prepend), maxToken)
		}
		return prepend(p.Prepend), nil
	case "Replace":
		if len(p.Content) > maxContent {
			return nil, fmt.Errorf("%s.content has %d bytes, want at most %d", key, len(p.Content), maxContent)
		}
		f, err := p.Pattern.finder(key)
		return &replace{f, p.Content}, err
	case "Precompiled":
		n, err := newPrecompiled(p.Charsmap)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		return n, nil
	}
	return nil, &unsupported{key, fmt.Sprintf("of type %q", p.Type),
		"NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Replace, Prepend, Nmt, Precompiled or Sequence"}
}

func (p *part) preTokenizer(key string) (preTokenizer, error) {
	switch p.Type {
	case "ByteLevel":
		return &byteLevel{prefixSpace: p.PrefixSpace != nil && *p.PrefixSpace, blanks: key == "pre_tokenizer",
			regex: p.UseRegex == nil || *p.UseRegex}, nil
	case "Metaspace":
		return p.metaspaces(key)
	case "Split":
		f, err := p.Pattern.finder(key)
		if err != nil {
			return nil, err
		}
		switch p.Behavior {
		case isolated, removed, contiguous, mergedPrevious, mergedNext:
			return &divideAt{f, p.Behavior, p.Invert}, nil
		}
		return nil, fmt.Errorf("%s.behavior is %q, want Isolated, Removed, Contiguous, MergedWithPrevious or "+
			"MergedWithNext", key, p.Behavior)
	case "WhitespaceSplit":
		return &divideAt{runesOf(unicode.IsSpace), removed, false}, nil
	case "Digits":
		if p.Individual {
			return &divideAt{runesOf(isNumber), isolated, false}, nil
		}
		return &divideAt{runesOf(isNumber), contiguous, false}, nil
	}
	return nil, &unsupported{key, fmt.Sprintf("of type %q", p.Type),
		"ByteLevel, Metaspace, Split, WhitespaceSplit, Digits or Sequence"}
}

// metaspaces returns a Metaspace. Old files have add_prefix_space in place of prepend_scheme.
func (p *part) metaspaces(key string) (preTokenizer, error) {
	m := &metaspaces{mark: p.Mark, prefix: p.Prefix}
	if utf8.RuneCountInString(m.mark) != 1 {
		return nil, fmt.Errorf("%s.replacement is %.20q, want one character", key, m.mark)
	}
	if p.Split == nil || *p.Split {
		m.words = literal(p.Mark)
	}
	switch m.prefix {
	case "":
		m.prefix = "always"
		if p.PrefixSpace != nil && !*p.PrefixSpace {
			m.prefix = "never"
		}
	case "always", "first", "never":
		if p.PrefixSpace != nil && !*p.PrefixSpace && m.prefix != "never" {
			return nil, fmt.Errorf("%s has add_prefix_space false and prepend_scheme %q, which contradict each other",
				key, m.prefix)
		}
	default:
		return nil, fmt.Errorf("%s.prepend_scheme is %q, want always, first or never", key, m.prefix)
	}
	return m, nil
}

func (t *subwords) addTokens(added []addedToken) (err error) {
	var names []string
	for _, token := range added {
		names = append(names, token.Content)
	}
	if err := checkNames("added_tokens", names); err != nil {
		return err
	}
	if t.tokens, err = includeAdded(t.tokens, t.known, added); err != nil {
		return err
	}

	// those that are found in normalised text
	names = names[:0]
	var wrong error
	t.added = newAddedTokens(added, func(content string) string {
		if wrong != nil {
			return ""
		}
		names = append(names, t.normalized(content))
		wrong = checkNames("added_tokens, normalised,", names[len(names)-1:])
		return names[len(names)-1]
	})
	if wrong != nil {
		return wrong
	}
	return checkNames("added_tokens, normalised,", names)
}

func (t *subwords) normalized(text string) string {
	var s segment
	s.fill(text, 0, len(text))
	for _, n := range t.normalizers {
		n.normalize(&s)
	}
	return string(s.text)
}
