package corpus

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
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
