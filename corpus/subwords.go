package corpus

import (
	"errors"
	"fmt"
	"sync"
	"unicode/utf8"

	"github.com/jenga-nlp/jenga/internal/jsonfile"
	"github.com/jenga-nlp/jenga/internal/pieces"
)

// subwords is a tokenizer.json of byte pairs or Unigram, read by package pieces.
type subwords struct {
	tokenizerOfFiles
	pieces  *pieces.Tokenizer
	scratch sync.Pool // *subwordScratch
}

var _ Tokenizer = (*subwords)(nil)

// subwordScratch is the memory of one Encode.
type subwordScratch struct {
	raw        []pieces.Piece
	text, pair []piece
}

// openSubwords reads the tokenizer.json of a folder. In a build with the tag native, forms that package pieces does not
// read are left to the library tokenizers.
func openSubwords(folder string) (Tokenizer, error) {
	files, err := readTokenizerFiles(folder, "tokenizer.json")
	if err != nil {
		return nil, err
	}
	t, err := newSubwords(files, files.data["tokenizer.json"])
	if refusal, ok := errors.AsType[*pieces.Unsupported](err); ok {
		return openNative(folder, fmt.Errorf("%s: the %s is %s; this build of jenga reads %s%s",
			files.path("tokenizer.json"), refusal.Key, refusal.Form, refusal.Want, nativeHint))
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

// newSubwords returns the tokenizer of the content of a tokenizer.json.
func newSubwords(files *tokenizerFiles, data []byte) (*subwords, error) {
	path := files.path("tokenizer.json")
	var file struct {
		Added         []addedToken `json:"added_tokens"`
		PostProcessor *processor   `json:"post_processor"`
		PreTokenizer  struct {
			typed
			PrefixSpace bool `json:"add_prefix_space"`
		} `json:"pre_tokenizer"`
	}
	if err := jsonfile.Unmarshal(path, data, &file); err != nil {
		return nil, err
	}
	t := &subwords{scratch: sync.Pool{New: func() any { return new(subwordScratch) }}}
	var err error
	if t.pieces, err = pieces.Read(data); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	v := &vocabulary{tokens: t.pieces.Tokens()}
	if t.tokenizerOfFiles, err = newTokenizerOfFiles(files, v, file.Added, file.PostProcessor); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	before := &file.PreTokenizer
	if err := files.config.check(file.Added, before.Type == "ByteLevel", before.PrefixSpace); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// Encode implements Tokenizer. Words are encoded as transformers encodes split words: if the file's byte pairs
// distinguish a word after a blank from the continuation of one, each word has a blank before it (add_prefix_space).
func (t *subwords) Encode(e *Example, maxLength int) Encoding {
	s := t.scratch.Get().(*subwordScratch)
	defer t.scratch.Put(s)
	s.text, s.pair = s.text[:0], s.pair[:0]
	if e.Words == nil {
		s.text = t.append(s.text, s, e.Text, Span{0, len(e.Text)}, -1)
	}
	for i, word := range e.Words {
		s.text = t.append(s.text, s, e.Text, word, int32(i))
	}
	if e.Paired {
		s.pair = t.append(s.pair, s, e.Pair, Span{0, len(e.Pair)}, -1)
	}
	return t.fill(e, s.text, s.pair, maxLength)
}

// append appends the tokens of the bytes part of text, as those of the word of index number, or of a text for -1.
func (t *subwords) append(out []piece, s *subwordScratch, text string, part Span, number int32) []piece {
	word := text[part.Start:part.End]
	s.raw = t.pieces.Append(s.raw[:0], word, number >= 0)
	for _, p := range s.raw {
		if p.Start == 0 && p.End == 0 { // a blank that was put before the first rune, without its offsets
			_, p.End = utf8.DecodeRuneInString(word)
		}
		out = append(out, piece{p.ID, number, Span{part.Start + p.Start, part.Start + p.End}})
	}
	return out
}
