//go:build native

package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"unicode/utf8"

	"github.com/daulet/tokenizers"

	"github.com/jenga-nlp/jenga/internal/files"
)

// native is a tokenizer.json of any kind, read by the Rust crate tokenizers. Through C the crate encodes one text at a
// time: the texts of a pair, and words, are encoded separately, and the special tokens are added here.
type native struct {
	tokens []string
	crate  *tokenizers.Tokenizer
	words  *tokenizers.Tokenizer // crate, or one that encodes each word as if a blank preceded it
	blank  bool                  // words are given to the crate with a blank before them, but for added tokens
	added  addedTokens
}

const nativeHint = ""

// openNative reads the tokenizer.json of s, which has a form that jenga itself does not read.
func openNative(s *source, _ error) (*Tokenizer, error) {
	path := s.path(tokenizerFile)
	var f nativeFile
	for _, into := range []any{&f.file, &f.parts} {
		if err := files.UnmarshalJSON(path, s.data[tokenizerFile], into); err != nil {
			return nil, err
		}
	}
	t, err := f.open(s.config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// OpenNative is Open by the crate alone, for tests that compare it with what the package reads itself.
func OpenNative(folder string) (*Tokenizer, error) {
	s, err := readSource(folder, tokenizerFile)
	if err != nil {
		return nil, err
	}
	t, err := openNative(s, nil)
	if err != nil {
		return nil, err
	}
	t.setFiles(s, s.path(tokenizerFile))
	return t, nil
}

// open returns the tokenizer of a file, but for its files.
func (f *nativeFile) open(config tokenizerConfig) (*Tokenizer, error) {
	ids, err := f.vocabulary()
	if err != nil {
		return nil, err
	}
	n := new(native)
	if n.tokens, err = tokensByID(ids); err != nil {
		return nil, err
	}
	if n.tokens, err = includeAdded(n.tokens, ids, f.Added); err != nil {
		return nil, err
	}
	t, err := newTokenizer(n.tokens, ids, &f.file, config, n.append)
	if err != nil {
		return nil, err
	}
	if f.Model.Dropout != 0 {
		return nil, dropoutError(f.Model.Dropout)
	}

	if n.crate, err = f.crate(false); err != nil {
		return nil, err
	}
	runtime.AddCleanup(n, closeCrate, n.crate)
	n.words = n.crate
	if f.needsBlank() {
		if n.words, err = f.crate(true); err != nil {
			return nil, err
		}
		runtime.AddCleanup(n, closeCrate, n.words)
	} else if f.PreTokenizer == nil || f.PreTokenizer.Type != "ByteLevel" {
		n.blank = n.marksBlanks()
		n.added = newAddedTokens(f.Added, func(content string) string { return content })
	}
	return t, n.check()
}

// marksBlanks reports whether the vocabulary distinguishes a word after a blank from the beginning of a text: then
// " a" is one token, the letter with a mark before it, and "a" has no mark.
func (n *native) marksBlanks() bool {
	only := func(text string) string {
		got, err := n.crate.EncodeWithOptionsErr(text, false)
		if err != nil || len(got.IDs) != 1 {
			return ""
		}
		return n.tokens[got.IDs[0]]
	}
	bare, marked := only("a"), only(" a")
	return bare == "a" && marked != bare && strings.HasSuffix(marked, bare)
}

func closeCrate(t *tokenizers.Tokenizer) { t.Close() }

// check returns errors that would otherwise occur only when a text is encoded.
func (n *native) check() error {
	defer runtime.KeepAlive(n)
	if _, err := n.crate.EncodeWithOptionsErr("\U0010fffd", false); err != nil {
		return errors.New("the model fails on characters outside its vocabulary: it needs an unknown token")
	}
	return nil
}

// append appends the tokens of a text, or of words in it. Words are encoded as transformers encodes split words: if the
// vocabulary distinguishes a word after a blank from the continuation of one, each word has a blank before it
// (add_prefix_space).
func (n *native) append(out []Token, text string, words []Range) []Token {
	defer runtime.KeepAlive(n)
	if words == nil {
		return appendTokens(out, n.crate, "", text, 0, len(text), -1)
	}
	for i, word := range words {
		before := n.before(text[word.Start:word.End])
		out = appendTokens(out, n.words, before, text, word.Start, word.End, int32(i))
	}
	return out
}

func (n *native) before(word string) string {
	if !n.blank || word == "" || word[0] == ' ' || n.added.raw.split(nil, word)[0].id != notAdded {
		return ""
	}
	return " "
}

// appendTokens appends the tokens of text[lo:hi], with a prefix before it, as those of the word of index number. A text
// on which the crate fails has none.
func appendTokens(out []Token, crate *tokenizers.Tokenizer, prefix, text string, lo, hi int, number int32) []Token {
	clean, sources := validUTF8(text[lo:hi], true) // a NUL would end a text in C
	got, _ := crate.EncodeWithOptionsErr(prefix+clean, false, tokenizers.WithReturnOffsets())
	for i, id := range got.IDs {
		start := runeAt(clean, int(got.Offsets[i][0])-len(prefix))
		at := Range{start, max(start, runeAt(clean, int(got.Offsets[i][1])-len(prefix)))}
		if at == (Range{}) { // a blank that the crate put before the first rune
			at.End = runeAt(clean, 1)
		}
		if sources != nil {
			at = Range{sources[at.Start], sources[at.End]}
		}
		out = append(out, Token{int32(id), number, lo + at.Start, lo + at.End})
	}
	return out
}

// runeAt returns the offset of the first rune at or after byte i. The crate subtracts blanks from offsets as if each
// rune had one byte.
func runeAt(text string, i int) int {
	for i > 0 && i < len(text) && !utf8.RuneStart(text[i]) {
		i++
	}
	return max(0, min(i, len(text)))
}

type nativeFile struct {
	file
	parts map[string]json.RawMessage // the whole file, by key
}

// vocabulary returns the ids of the model's tokens. Unigram's file lists the tokens in the order of their ids, each with
// its score.
func (f *nativeFile) vocabulary() (map[string]int32, error) {
	if f.Model == nil || f.Model.Vocab == nil {
		return nil, errors.New("model has no vocab")
	}
	var ids map[string]int32
	if json.Unmarshal(f.Model.Vocab, &ids) == nil {
		return ids, nil
	}
	if !bytes.HasPrefix(f.Model.Vocab, []byte("[")) {
		return nil, errors.New("model.vocab is neither an object of token ids nor a list of tokens with their scores")
	}
	var scored scoredVocab
	err := json.Unmarshal(f.Model.Vocab, &scored)
	return idsOf(scored.names), err
}

// needsBlank reports whether words must be encoded with a blank before them: byte pairs have different tokens for the
// continuation of a word, and this file encodes the beginning of a text as a continuation.
func (f *nativeFile) needsBlank() bool {
	p := f.PreTokenizer
	return p != nil && p.Type == "ByteLevel" && (p.PrefixSpace == nil || !*p.PrefixSpace)
}

// crate returns the crate's tokenizer of the file, without padding and truncation; with blank, one that encodes each
// text as if a blank preceded it.
func (f *nativeFile) crate(blank bool) (*tokenizers.Tokenizer, error) {
	parts := maps.Clone(f.parts)
	delete(parts, "padding")
	delete(parts, "truncation")
	if blank {
		for _, key := range []string{"pre_tokenizer", "post_processor"} {
			var part any
			if err := json.Unmarshal(parts[key], &part); err != nil {
				continue // there is none
			}
			putBlank(part)
			parts[key], _ = json.Marshal(part)
		}
	}
	data, err := json.Marshal(parts)
	if err != nil {
		return nil, err
	}
	crate, err := tokenizers.FromBytes(data)
	if err != nil {
		// The line and column refer to data, not to the file.
		message, _, _ := strings.Cut(err.Error(), " at line 1 column ")
		return nil, errors.New(strings.TrimPrefix(message, "Failed to create tokenizer from bytes: "))
	}
	return crate, nil
}

func putBlank(part any) {
	fields, _ := part.(map[string]any)
	switch fields["type"] {
	case "ByteLevel", "RobertaProcessing":
		fields["add_prefix_space"] = true
	case "Sequence":
		processors, _ := fields["processors"].([]any)
		for _, processor := range processors {
			putBlank(processor)
		}
	}
}
