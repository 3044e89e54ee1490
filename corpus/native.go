//go:build native

package corpus

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/daulet/tokenizers"

	"github.com/jenga-nlp/jenga/internal/jsonfile"
)

// native is a tokenizer.json of any kind, read by the Rust crate tokenizers. Through C the crate encodes one text at a
// time: the texts of a pair, and words, are encoded separately, and the special tokens are added here.
type native struct {
	crate  *tokenizers.Tokenizer
	words  *tokenizers.Tokenizer // crate, or one that encodes each word as if a blank preceded it
	single template
	pair   template

	vocabulary *vocabulary
	mask       int32 // -1: none
	splitter   *WordPiece
	files      map[string][]byte // what Save writes
	paths      []string          // of the files read
}

var _ Tokenizer = (*native)(nil)

// openNative reads the tokenizer.json of a folder.
func openNative(folder string, _ *notWordPiece) (Tokenizer, error) {
	files := map[string][]byte{}
	var paths []string
	for _, name := range []string{"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"} {
		path := filepath.Join(folder, name)
		data, err := readText(path)
		if err == nil {
			files[name], paths = data, append(paths, path)
		} else if name == "tokenizer.json" || !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	config := tokenizerConfig{specialNames: bertNames}
	if data, ok := files["tokenizer_config.json"]; ok {
		if err := jsonfile.Unmarshal(filepath.Join(folder, "tokenizer_config.json"), data, &config); err != nil {
			return nil, err
		}
	} else {
		// Without it AutoTokenizer reads the encoder's config.json, which does not name the tokenizer.
		files["tokenizer_config.json"] = []byte("{\"tokenizer_class\": \"PreTrainedTokenizerFast\"}\n")
	}

	path := filepath.Join(folder, "tokenizer.json")
	var file nativeFile
	if err := jsonfile.Unmarshal(path, files["tokenizer.json"], &file); err != nil {
		return nil, err
	}
	n, err := file.open(config.Mask)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	n.files, n.paths = files, paths
	return n, nil
}

// open returns the tokenizer of a file; mask is the name of its mask token.
func (f *nativeFile) open(mask tokenName) (*native, error) {
	n := &native{mask: -1}
	var err error
	if n.vocabulary, err = f.vocabulary(); err != nil {
		return nil, err
	}
	if n.single, n.pair, err = f.PostProcessor.templates(n.Size()); err != nil {
		return nil, err
	}
	if f.Model.Dropout != 0 {
		return nil, fmt.Errorf("model has dropout %v, which gives a text other tokens each time; want 0",
			f.Model.Dropout)
	}
	for _, name := range []tokenName{mask, "<mask>"} {
		if id, ok := n.vocabulary.id(string(name)); ok && mask != "" {
			n.mask = id
			break
		}
	}
	n.splitter = &WordPiece{normalizer: newNormalizer(true, true, false, false),
		scratch: sync.Pool{New: func() any { return new(scratch) }}}
	for _, token := range f.Added {
		n.splitter.raw.add(token.Content, token)
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
	}
	return n, n.check(f.Added)
}

func closeCrate(t *tokenizers.Tokenizer) { t.Close() }

// check returns errors that would otherwise occur only when a text is encoded.
func (n *native) check(added []addedToken) error {
	defer runtime.KeepAlive(n)
	if _, err := n.crate.EncodeWithOptionsErr("\U0010fffd", false); err != nil {
		return errors.New("the model fails on characters outside its vocabulary: it needs an unknown token")
	}
	for _, token := range added {
		got, err := n.crate.EncodeWithOptionsErr(token.Content, false)
		if err == nil && len(got.IDs) == 1 && got.IDs[0] != uint32(token.ID) {
			return fmt.Errorf("added token %q has id %d, but the crate tokenizers gives it %d", token.Content, token.ID,
				got.IDs[0])
		}
	}
	return nil
}

// Size implements Tokenizer.
func (n *native) Size() int { return len(n.vocabulary.tokens) }

// Token implements Tokenizer.
func (n *native) Token(id int32) string { return n.vocabulary.tokens[id] }

// Mask implements Tokenizer.
func (n *native) Mask() (id int32, ok bool) { return n.mask, n.mask >= 0 }

// Files implements Tokenizer.
func (n *native) Files() []string { return n.paths }

// Split implements Tokenizer. The file's own split is not available through C: words are split at white space and
// punctuation, as BERT does, and added tokens are words.
func (n *native) Split(text string) []Span { return n.splitter.Split(text) }

// Save implements Tokenizer. It writes the files that were read.
func (n *native) Save(folder string) error {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	for name, data := range n.files {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// Encode implements Tokenizer. Words are encoded as transformers encodes split words: if the file's byte pairs
// distinguish a word after a blank from the continuation of one, each word has a blank before it (add_prefix_space).
func (n *native) Encode(e *Example, maxLength int) Encoding {
	defer runtime.KeepAlive(n)
	var text, pair []piece
	if e.Words == nil {
		text = appendTokens(nil, n.crate, e.Text, Span{0, len(e.Text)}, -1)
	}
	for i, word := range e.Words {
		text = appendTokens(text, n.words, e.Text, word, int32(i))
	}
	t := n.single
	if e.Paired {
		pair, t = appendTokens(nil, n.crate, e.Pair, Span{0, len(e.Pair)}, -1), n.pair
	}

	keep, keepPair := len(text), len(pair)
	if maxLength > 0 {
		keep, keepPair = longestFirst(keep, keepPair, max(0, maxLength-t.special()))
	}
	return t.encoding(text[:keep], pair[:keepPair], e.Words != nil)
}

// appendTokens appends the tokens of the bytes part of text, as those of the word of index number. A text on which the
// crate fails has none.
func appendTokens(pieces []piece, crate *tokenizers.Tokenizer, text string, part Span, number int32) []piece {
	clean, sources := readable(text[part.Start:part.End])
	got, _ := crate.EncodeWithOptionsErr(clean, false, tokenizers.WithReturnOffsets())
	for i, id := range got.IDs {
		at := Span{runeAt(clean, int(got.Offsets[i][0])), runeAt(clean, int(got.Offsets[i][1]))}
		at.End = max(at.Start, at.End)
		if at == (Span{}) { // a blank that the crate put before the first rune
			at.End = runeAt(clean, 1)
		}
		if sources != nil {
			at = Span{sources[at.Start], sources[at.End]}
		}
		pieces = append(pieces, piece{int32(id), number, Span{part.Start + at.Start, part.Start + at.End}})
	}
	return pieces
}

// readable returns text as the crate reads it, with U+FFFD for invalid bytes and for NUL, which would end a text in C.
// If they differ, sources holds the offset in text of each byte of clean, and of its end.
func readable(text string) (clean string, sources []int) {
	if utf8.ValidString(text) && strings.IndexByte(text, 0) < 0 {
		return text, nil
	}
	var out []byte
	for i, r := range text {
		if r == 0 {
			r = utf8.RuneError
		}
		out = utf8.AppendRune(out, r)
		for len(sources) < len(out) {
			sources = append(sources, i)
		}
	}
	return string(out), append(sources, len(text))
}

// runeAt returns the offset of the first rune at or after byte i. The crate subtracts blanks from offsets as if each
// rune had one byte.
func runeAt(text string, i int) int {
	for i > 0 && i < len(text) && !utf8.RuneStart(text[i]) {
		i++
	}
	return max(0, min(i, len(text)))
}
