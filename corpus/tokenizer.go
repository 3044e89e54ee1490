package corpus

import (
	"context"
	"iter"
	"slices"
	"sort"
	"sync"
	"unsafe"

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
	long    longTokens
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

// longTokens has the tokens of the long texts of pairs that were encoded last: many questions follow one another that
// have the same context. Goroutines may use it at once.
type longTokens struct {
	sync.Mutex
	last []*longText // the latest at the end
}

type longText struct {
	text string
	once sync.Once
	textTokens
	size int // in bytes; 0 before it has its tokens
}

type textTokens struct {
	tokens []tokenizer.Token
	sorted bool // by their ends; false: not known
}

// What longTokens has.
const (
	longBytes = 1 << 14 // of a text at least
	mostTexts = 16
	mostBytes = 1 << 27 // of texts and tokens; a text that takes more is encoded each time
	tokenSize = int(unsafe.Sizeof(tokenizer.Token{}))
)

// of returns the tokens of a text, which encode returns for a new one. ok is false for one that is too short.
func (l *longTokens) of(text string, encode func(text string) []tokenizer.Token) (tokens textTokens, ok bool) {
	if len(text) < longBytes {
		return textTokens{}, false
	}
	entry := l.entry(text)
	entry.once.Do(func() { // goroutines that want it wait, those with other texts do not
		entry.tokens = encode(text)
		entry.sorted = slices.IsSortedFunc(entry.tokens, func(a, b tokenizer.Token) int { return a.End - b.End })
		l.keep(entry)
	})
	return entry.textTokens, true
}

func (l *longTokens) entry(text string) *longText {
	l.Lock()
	defer l.Unlock()
	for _, entry := range slices.Backward(l.last) {
		if entry.text == text {
			entry.text = text // of the same bytes, mostly those of the next example, with which it is compared fast
			return entry
		}
	}
	entry := &longText{text: text}
	l.last = append(slices.Delete(l.last, 0, max(0, len(l.last)+1-mostTexts)), entry)
	return entry
}

// keep forgets the texts before the latest that are not more than mostBytes, now that one has its tokens.
func (l *longTokens) keep(entry *longText) {
	l.Lock()
	defer l.Unlock()
	entry.size = len(entry.text) + tokenSize*len(entry.tokens)
	from, size := len(l.last), 0
	for ; from > 0 && size+l.last[from-1].size <= mostBytes; from-- {
		size += l.last[from-1].size
	}
	l.last = slices.Delete(l.last, 0, from)
}

// after returns how many tokens end after a byte of the text.
func (t textTokens) after(end int) (n int) {
	if t.sorted {
		return len(t.tokens) - sort.Search(len(t.tokens), func(i int) bool { return t.tokens[i].End > end })
	}
	for i := range t.tokens {
		if t.tokens[i].End > end {
			n++
		}
	}
	return n
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
	return t.encode(e, maxLength, nil, func(out []tokenizer.Token, text string,
		words []tokenizer.Range) []tokenizer.Token {
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
	return t.encode(e, maxLength, &t.long, t.Append)
}

type appendTokens func(out []tokenizer.Token, text string, words []tokenizer.Range) []tokenizer.Token

func (t *exampleTokenizer) encode(e *Example, maxLength int, long *longTokens, appendTo appendTokens) Encoding {
	scratch := t.scratch.Get().(*encodingScratch)
	defer t.scratch.Put(scratch)
	texts := scratch.texts(e, long, appendTo)
	template := t.Template(e.Paired)
	keep, keepPair := len(texts[0].tokens), len(texts[1].tokens)
	if maxLength > 0 {
		keep, keepPair = longestFirst(keep, keepPair, max(0, maxLength-template.Specials()))
	}
	kept := [2][]tokenizer.Token{texts[0].tokens[:keep], texts[1].tokens[:keepPair]}
	return t.encoding(template, kept, e.Words != nil)
}

// texts returns the tokens of both texts of an example, which are valid until the scratch is used again. Those of long
// texts of a pair are from long, if it is not nil.
func (s *encodingScratch) texts(e *Example, long *longTokens, appendTo appendTokens) (texts [2]textTokens) {
	var known [2]bool
	if long != nil && e.Paired {
		encode := func(text string) []tokenizer.Token {
			s.tokens = appendTo(s.tokens[:0], text, nil)
			return slices.Clone(s.tokens)
		}
		if e.Words == nil {
			texts[0], known[0] = long.of(e.Text, encode)
		}
		texts[1], known[1] = long.of(e.Pair, encode)
	}
	var words []tokenizer.Range
	if e.Words != nil {
		words = s.words[:0]
		for _, word := range e.Words {
			words = append(words, tokenizer.Range(word))
		}
		s.words = words
	}
	s.tokens = s.tokens[:0]
	if !known[0] {
		s.tokens = appendTo(s.tokens, e.Text, words)
	}
	first := len(s.tokens)
	if e.Paired && !known[1] {
		s.tokens = appendTo(s.tokens, e.Pair, nil)
	}
	if !known[0] {
		texts[0].tokens = s.tokens[:first]
	}
	if !known[1] {
		texts[1].tokens = s.tokens[first:]
	}
	return texts
}

// countAfter returns how many tokens of an example's texts end after a byte of each.
func (t *exampleTokenizer) countAfter(e *Example, ends [2]int) (n int) {
	scratch := t.scratch.Get().(*encodingScratch)
	defer t.scratch.Put(scratch)
	for i, text := range scratch.texts(e, &t.long, t.Append) {
		n += text.after(ends[i])
	}
	return n
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
