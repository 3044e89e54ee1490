package pieces

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
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

// Unsupported is the error of a tokenizer.json with a part of a form that the package does not read.
type Unsupported struct {
	Key  string // of the part
	Form string // its type
	Want string // forms that are read
}

func (e *Unsupported) Error() string { return fmt.Sprintf("%s is %s; want %s", e.Key, e.Form, e.Want) }

// file is a tokenizer.json.
type file struct {
	Version       *string         `json:"version"`
	Added         []AddedToken    `json:"added_tokens"`
	Normalizer    *part           `json:"normalizer"`
	PreTokenizer  *part           `json:"pre_tokenizer"`
	PostProcessor postProcessor   `json:"post_processor"`
	Model         json.RawMessage `json:"model"`
}

// Read returns the tokenizer of the content of a tokenizer.json. Its padding and truncation have no effect.
func Read(data []byte) (*Tokenizer, error) {
	var f file
	if err := decode("", data, &f); err != nil {
		return nil, err
	}
	if f.Version != nil && *f.Version != "1.0" {
		return nil, fmt.Errorf("version is %q, want 1.0", *f.Version)
	}
	t := &Tokenizer{pool: sync.Pool{New: func() any { return new(state) }}}
	var err error
	if t.normalizers, err = f.Normalizer.normalizers("normalizer", 0); err != nil {
		return nil, err
	}
	if t.preTokenizers, err = f.PreTokenizer.preTokenizers("pre_tokenizer", 0); err != nil {
		return nil, err
	}
	if err := t.checkGrowth(); err != nil {
		return nil, err
	}
	if err := t.readModel(f.Model); err != nil {
		return nil, err
	}
	if err := t.addTokens(f.Added); err != nil {
		return nil, err
	}
	t.setBlank()
	return t, t.readTrims(&f)
}

// decode parses data, which is at key. A value of another type is an error with its key.
func decode(key string, data []byte, into any) error {
	err := json.Unmarshal(data, into)
	other, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return err
	}
	want := "a string"
	switch other.Type.Kind() {
	case reflect.Int32, reflect.Int:
		want = "a whole number"
	case reflect.Float64:
		want = "a number"
	case reflect.Bool:
		want = "true or false"
	case reflect.Slice:
		want = "a list"
	case reflect.Map, reflect.Struct:
		want = "an object"
	}
	return fmt.Errorf("%s is of type %s, want %s", strings.Trim(key+"."+other.Field, "."), other.Value, want)
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

// readTrims sets what happens to offsets.
func (t *Tokenizer) readTrims(f *file) (err error) {
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

// postProcessor is the part of a post-processor that concerns offsets.
type postProcessor struct {
	Type        string          `json:"type"`
	Trim        *bool           `json:"trim_offsets"`
	PrefixSpace *bool           `json:"add_prefix_space"`
	Processors  []postProcessor `json:"processors"`
}

// trims appends how the post-processor trims offsets.
func (p *postProcessor) trims(out []trim, depth int) (all []trim, err error) {
	isSet := func(b *bool) bool { return b == nil || *b }
	switch {
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

// ModelKind is the part of a model that determines its type.
type ModelKind struct {
	Type   string          `json:"type"`
	Merges json.RawMessage `json:"merges"`
	Vocab  json.RawMessage `json:"vocab"`
}

// Name returns the type, which old files do not name.
func (k *ModelKind) Name() string {
	switch {
	case k.Type != "":
		return k.Type
	case k.Merges != nil:
		return "BPE"
	case bytes.HasPrefix(k.Vocab, []byte("[")):
		return "Unigram"
	}
	return "WordPiece"
}

// readModel reads the model and its vocabulary.
func (t *Tokenizer) readModel(data json.RawMessage) error {
	if data == nil {
		return errors.New("no model")
	}
	var k ModelKind
	if err := decode("model", data, &k); err != nil {
		return err
	}
	if len(k.Vocab) == 0 {
		return errors.New("model has no vocab")
	}
	switch name := k.Name(); name {
	case "BPE":
		var f bpeFile
		if err := decode("model", data, &f); err != nil {
			return err
		}
		if err := t.vocabulary.read(f.Vocab); err != nil {
			return err
		}
		if err := checkNames("model.vocab", t.tokens); err != nil {
			return err
		}
		m, err := newBPE(&f, endsInBytes(t.preTokenizers))
		t.model = m
		return err
	case "Unigram":
		var f unigramFile
		if err := decode("model", data, &f); err != nil {
			return err
		}
		if len(f.Vocab.names) > maxID {
			return fmt.Errorf("model.vocab has %d tokens, want at most %d", len(f.Vocab.names), maxID)
		}
		if err := checkNames("model.vocab", f.Vocab.names); err != nil {
			return err
		}
		t.tokens, t.modelSize = f.Vocab.names, len(f.Vocab.names)
		m, err := newUnigram(&f)
		t.model = m
		return err
	default:
		return &Unsupported{"model", fmt.Sprintf("of type %q", name), "WordPiece, BPE or Unigram"}
	}
}

// endsInBytes reports whether the splits are bytes: ByteLevel is the last pre-tokenizer.
func endsInBytes(parts []preTokenizer) bool {
	if len(parts) == 0 {
		return false
	}
	_, ok := parts[len(parts)-1].(*byteLevel)
	return ok
}
