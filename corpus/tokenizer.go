package corpus

import "errors"

// Tokenizer turns texts into tokens. It may be used by many goroutines at once.
type Tokenizer interface {
	// Encode returns the tokens of e, the special ones around its texts included. A maxLength over 0 bounds their
	// number: the longer text of a pair loses tokens first, the special ones always stay. Where e has Words, each is
	// encoded by itself, and the encoding says which token is of which word.
	Encode(e *Example, maxLength int) Encoding
	// Split returns the words of raw text, in order, as the tokenizer parts them before it looks into its vocabulary.
	Split(text string) []Span
	// Size returns how many rows an embedding of the vocabulary needs: one more than its largest id.
	Size() int
	// Token returns the token of an id below Size, or "" where the vocabulary leaves the id out.
	Token(id int32) string
	// Mask returns the id of the token that stands for a hidden one, if there is one.
	Mask() (id int32, ok bool)
	// Save writes the tokenizer's files into folder, in the form that transformers' AutoTokenizer reads.
	Save(folder string) error
	// Files returns the paths of all files that it was opened from, none of one that was trained.
	Files() []string
}

// OpenTokenizer reads the tokenizer of a folder: its tokenizer.json, or its vocab.txt with the settings in
// tokenizer_config.json. A tokenizer.json of another kind than BERT's is read where jenga is built with the tag native.
// Padding and truncation that a file asks for have no effect.
func OpenTokenizer(folder string) (Tokenizer, error) {
	w, err := openWordPiece(folder)
	if other, ok := errors.AsType[*notWordPiece](err); ok {
		return openNative(folder, other)
	}
	if err != nil {
		return nil, err
	}
	return w, nil
}
