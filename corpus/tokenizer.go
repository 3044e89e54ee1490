package corpus

// Tokenizer turns texts into tokens. It may be used by many goroutines at once.
type Tokenizer interface {
	// Encode returns the tokens of e, the special ones around its texts included. A maxLength over 0 bounds their number:
	// the longer text of a pair loses tokens first, the special ones always stay. Where e has Words, each is encoded by
	// itself, and the encoding says which token is of which word.
	Encode(e *Example, maxLength int) Encoding
	// Split returns the words of raw text, in order, as the tokenizer parts them before it looks into its vocabulary.
	Split(text string) []Span
	// Save writes the tokenizer's files into folder, in the form that transformers' AutoTokenizer reads.
	Save(folder string) error
}
