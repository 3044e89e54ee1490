package corpus

import (
	"context"
	"iter"
	"sync"

	"github.com/jenga-nlp/jenga/internal/tokenizer"
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

// OpenTokenizer reads the tokenizer of a folder: its tokenizer.json, its vocab.txt with the settings in
// tokenizer_config.json, or its vocab.json and merges.txt.
func OpenTokenizer(folder string) (Tokenizer, error) { return newTokenizer(tokenizer.Open(folder)) }

// HasTokenizer reports whether a folder has the files of a tokenizer that OpenTokenizer reads, by their names.
func HasTokenizer(folder string) bool { return tokenizer.Exists(folder) }

// TrainWordPiece trains a tokenizer of up to size tokens on texts, as the WordPieceTrainer of the crate tokenizers
// does. The vocabulary does not depend on the order of texts.
func TrainWordPiece(texts iter.Seq[string], size int, lower bool) (Tokenizer, error) {
	return newTokenizer(tokenizer.TrainWordPiece(texts, size, lower))
}

// TrainWords trains a tokenizer of up to size tokens on texts, each a whole word: BERT's five special tokens, the most
// frequent words, and those that further adds while there is room. add reports whether the vocabulary has a word.
func TrainWords(texts iter.Seq[string], size int, lower bool, further func(add func(word string) bool)) (Tokenizer,
	error) {
	return newTokenizer(tokenizer.TrainWords(texts, size, lower, further))
}

// exampleTokenizer encodes the texts of examples by templates of special tokens.
type exampleTokenizer struct {
	*tokenizer.Tokenizer
	types   bool      // encodings have token types
	scratch sync.Pool // *encodingScratch
}

type encodingScratch struct {
	words  []tokenizer.Range // not nil
	tokens []tokenizer.Token
}

func newTokenizer(t *tokenizer.Tokenizer, err error) (Tokenizer, error) {
	if err != nil {
		return nil, err
	}
	return &exampleTokenizer{Tokenizer: t, types: t.HasTypes(),
		scratch: sync.Pool{New: func() any { return &encodingScratch{words: []tokenizer.Range{}} }}}, nil
}

// Bounded is a Tokenizer for texts of strangers: its memory does not depend on their length.
type Bounded struct {
	Tokenizer
	ctx  context.Context
	most int // tokens of a text
	err  error
}

// Bound returns t as one that reads at most the first most tokens of each text, and stops where ctx ends.
func Bound(ctx context.Context, t Tokenizer, most int) *Bounded {
	return &Bounded{Tokenizer: t, ctx: ctx, most: most}
}

// Encode implements Tokenizer. What it returns is not to be used if Err is an error.
func (b *Bounded) Encode(e *Example, maxLength int) Encoding {
	t, ok := b.Tokenizer.(*exampleTokenizer)
	if !ok {
		return b.Tokenizer.Encode(e, maxLength)
	}
	return t.encode(e, maxLength, func(out []tokenizer.Token, text string, words []tokenizer.Range) []tokenizer.Token {
		if b.err == nil {
			out, b.err = t.AppendSome(b.ctx, out, text, words, b.most)
		}
		return out
	})
}

// Err returns the context's error if that has ended before a text was read.
func (b *Bounded) Err() error { return b.err }

// Encode implements Tokenizer.
func (t *exampleTokenizer) Encode(e *Example, maxLength int) Encoding {
	return t.encode(e, maxLength, t.Append)
}

func (t *exampleTokenizer) encode(e *Example, maxLength int,
	appendTo func(out []tokenizer.Token, text string, words []tokenizer.Range) []tokenizer.Token) Encoding {
	scratch := t.scratch.Get().(*encodingScratch)
	defer t.scratch.Put(scratch)
	scratch.words = scratch.words[:0]
	for _, word := range e.Words {
		scratch.words = append(scratch.words, tokenizer.Range(word))
	}
	var words []tokenizer.Range
	if e.Words != nil {
		words = scratch.words
	}
	tokens := appendTo(scratch.tokens[:0], e.Text, words)
	text := len(tokens)
	if e.Paired {
		tokens = appendTo(tokens, e.Pair, nil)
	}
	scratch.tokens = tokens

	template := t.Template(e.Paired)
	keep, keepPair := text, len(tokens)-text
	if maxLength > 0 {
		keep, keepPair = longestFirst(keep, keepPair, max(0, maxLength-template.Specials()))
	}
	return t.encoding(template, [2][]tokenizer.Token{tokens[:keep], tokens[text : text+keepPair]}, e.Words != nil)
}

// longestFirst returns how many of the n and pair tokens of two texts remain if both together may have room tokens.
func longestFirst(n, pair, room int) (int, int) {
	if n+pair <= room {
		return n, pair
	}
	short := min(n, pair)
	if long := room - short; long >= short {
		return min(n, long), min(pair, long)
	}

	// Both are truncated to half; if room is odd, the longer text has one more, or the second of two of equal length.
	if half := room / 2; n <= pair {
		return half, room - half
	}
	return room - room/2, room / 2
}

func (t *exampleTokenizer) encoding(template tokenizer.Template, texts [2][]tokenizer.Token, words bool) Encoding {
	n := template.Specials() + len(texts[0]) + len(texts[1])
	out := Encoding{IDs: make([]int32, n), Offsets: make([]Span, n), Segments: make([]int8, n)}
	if t.types {
		out.TokenTypes = make([]int8, n)
	}
	if words {
		out.Words = make([]int32, n)
	}
	at := 0
	for _, part := range template {
		tokens := part.Special
		if part.IsText {
			tokens = texts[part.Text]
		}
		for i := range tokens {
			k := &tokens[i]
			out.IDs[at], out.Offsets[at], out.Segments[at] = k.ID, Span{k.Start, k.End}, part.Text
			if t.types {
				out.TokenTypes[at] = part.Type
			}
			if words {
				out.Words[at] = k.Word
			}
			at++
		}
	}
	return out
}

// Split implements Tokenizer.
func (t *exampleTokenizer) Split(text string) []Span {
	var words []Span
	for _, word := range t.Tokenizer.Split(text) {
		words = append(words, Span(word))
	}
	return words
}
