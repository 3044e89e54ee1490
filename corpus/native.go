//go:build native

package corpus

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"unicode/utf8"

	"github.com/daulet/tokenizers"

	"github.com/jenga-nlp/jenga/internal/jsonfile"
	"github.com/jenga-nlp/jenga/internal/pieces"
)

// native is a tokenizer.json of any kind, read by the Rust crate tokenizers. Through C the crate encodes one text at a
// time: the texts of a pair, and words, are encoded separately, and the special tokens are added here.
type native struct {
	tokenizerOfFiles
	crate *tokenizers.Tokenizer
	words *tokenizers.Tokenizer // crate, or one that encodes each word as if a blank preceded it
	blank bool                  // words are given to the crate with a blank before them, but for added tokens
	added pieces.AddedTokens
}

var _ Tokenizer = (*native)(nil)

// nativeHint is how forms that this build does not read can be read.
const nativeHint = ""

// openNative reads the tokenizer.json of a folder, which has a form that jenga itself does not read.
func openNative(folder string, _ error) (Tokenizer, error) {
	files, err := readTokenizerFiles(folder, "tokenizer.json")
	if err != nil {
		return nil, err
	}
	path := files.path("tokenizer.json")
	var file nativeFile
	if err := jsonfile.Unmarshal(path, files.data["tokenizer.json"], &file); err != nil {
		return nil, err
	}
	n, err := file.open(files)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return n, nil
}

// open returns the tokenizer of a file.
func (f *nativeFile) open(files *tokenizerFiles) (*native, error) {
	vocabulary, err := f.vocabulary()
	if err != nil {
		return nil, err
	}
	n := &native{}
	if n.tokenizerOfFiles, err = newTokenizerOfFiles(files, vocabulary, f.Added, f.PostProcessor); err != nil {
		return nil, err
	}
	if f.Model.Dropout != 0 {
		return nil, fmt.Errorf("model has dropout %v, which gives a text other tokens each time; want 0",
			f.Model.Dropout)
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
	} else if f.PreTokenizer.Type != "ByteLevel" {
		n.blank = n.marksBlanks()
		n.added = pieces.NewAddedTokens(f.Added, func(content string) string { return content })
	}
	return n, n.check(f.Added)
}

// marksBlanks reports whether the vocabulary distinguishes a word after a blank from the beginning of a text: then
// " a" is one token, the letter with a mark before it, and "a" has no mark.
func (n *native) marksBlanks() bool {
	only := func(text string) string {
		got, err := n.crate.EncodeWithOptionsErr(text, false)
		if err != nil || len(got.IDs) != 1 {
			return ""
		}
		return n.Token(int32(got.IDs[0]))
	}
	bare, marked := only("a"), only(" a")
	return bare == "a" && marked != bare && strings.HasSuffix(marked, bare)
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

// Encode implements Tokenizer. Words are encoded as transformers encodes split words: if the vocabulary distinguishes a
// word after a blank from the continuation of one, each word has a blank before it (add_prefix_space).
func (n *native) Encode(e *Example, maxLength int) Encoding {
	defer runtime.KeepAlive(n)
	var text, pair []piece
	if e.Words == nil {
		text = appendTokens(nil, n.crate, "", e.Text, Span{0, len(e.Text)}, -1)
	}
	for i, word := range e.Words {
		text = appendTokens(text, n.words, n.before(e.Text[word.Start:word.End]), e.Text, word, int32(i))
	}
	if e.Paired {
		pair = appendTokens(nil, n.crate, "", e.Pair, Span{0, len(e.Pair)}, -1)
	}
	return n.fill(e, text, pair, maxLength)
}

// before returns the blank that is put before a word, or "".
func (n *native) before(word string) string {
	if !n.blank || word == "" || word[0] == ' ' || n.added.Split(nil, word)[0].ID != pieces.NotAdded {
		return ""
	}
	return " "
}

// appendTokens appends the tokens of the bytes part of text, with a prefix before it, as those of the word of index
// number. A text on which the crate fails has none.
func appendTokens(out []piece, crate *tokenizers.Tokenizer, prefix, text string, part Span, number int32) []piece {
	clean, sources := readable(text[part.Start:part.End])
	got, _ := crate.EncodeWithOptionsErr(prefix+clean, false, tokenizers.WithReturnOffsets())
	for i, id := range got.IDs {
		at := Span{runeAt(clean, int(got.Offsets[i][0])-len(prefix)), runeAt(clean, int(got.Offsets[i][1])-len(prefix))}
		at.End = max(at.Start, at.End)
		if at == (Span{}) { // a blank that the crate put before the first rune
			at.End = runeAt(clean, 1)
		}
		if sources != nil {
			at = Span{sources[at.Start], sources[at.End]}
		}
		out = append(out, piece{int32(id), number, Span{part.Start + at.Start, part.Start + at.End}})
	}
	return out
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
