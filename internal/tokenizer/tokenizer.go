// Package tokenizer reads, trains and writes tokenizers of transformers: WordPiece (Devlin et al. 2019), byte-pair
// encoding (Sennrich et al. 2016) and Unigram (Kudo 2018). A text is divided as its tokenizer.json says, by added
// tokens, a normaliser, a pre-tokenizer and the model; tokens have the ids and offsets that the library tokenizers 0.23
// gives them. The package knows templates of special tokens, but neither examples nor how they are truncated.
package tokenizer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Token is a token of a text.
type Token struct {
	ID, Word   int32 // Word is the number of the word that it belongs to, -1 for none
	Start, End int   // bytes of the text
}

// Range is a range of bytes of a text, End exclusive.
type Range struct{ Start, End int }

// Tokenizer divides texts into tokens. It is safe for concurrent use.
type Tokenizer struct {
	tokens       []string // by id; "" for an id without a token
	append       func(out []Token, text string, words []Range) []Token
	appendSome   appendSome // nil: append, of the whole text
	splitter     *subwords  // into words
	single, pair Template
	mask         int32 // -1: none
	paths        []string
	save         func(folder string) error
}

// Files that hold a vocabulary where there is no tokenizer.json.
const (
	linesFile  = "vocab.txt"
	idsFile    = "vocab.json"
	mergesFile = "merges.txt"
)

// Exists reports whether a folder has the files of a tokenizer that Open reads, by their names.
func Exists(folder string) bool {
	return has(folder, tokenizerFile) || has(folder, linesFile) || has(folder, idsFile)
}

func has(folder, name string) bool {
	_, err := os.Stat(filepath.Join(folder, name))
	return err == nil
}

// Open reads the tokenizer of a folder: its tokenizer.json, of WordPiece, byte pairs or Unigram, or its vocab.txt with
// the settings in tokenizer_config.json, or its vocab.json and merges.txt. Other forms of tokenizer.json are read if
// jenga is built with the tag native. A file's settings for padding and truncation have no effect.
func Open(folder string) (*Tokenizer, error) {
	switch {
	case has(folder, tokenizerFile):
		return openFile(folder)
	case has(folder, linesFile):
		return openLines(folder)
	case has(folder, idsFile):
		return openMerges(folder)
	}
	for _, name := range []string{"sentencepiece.bpe.model", "spiece.model", "spm.model", "tokenizer.model"} {
		if has(folder, name) {
			return nil, fmt.Errorf("%s: a model of sentencepiece, without the tokenizer.json that jenga reads; "+
				"transformers makes it: AutoTokenizer.from_pretrained(%q).save_pretrained(%[2]q)",
				filepath.Join(folder, name), folder)
		}
	}
	return nil, fmt.Errorf("%s: no tokenizer: want tokenizer.json, vocab.txt, or vocab.json with merges.txt", folder)
}

func openFile(folder string) (*Tokenizer, error) {
	s, err := readSource(folder, tokenizerFile)
	if err != nil {
		return nil, err
	}
	return s.open(s.path(tokenizerFile))
}

// open returns the tokenizer of the tokenizer.json of s, which was read or made of the file at path. In a build with
// the tag native, forms that the package does not read are left to the library tokenizers.
func (s *source) open(path string) (*Tokenizer, error) {
	t, err := parse(path, s.data[tokenizerFile], s.config)
	if _, other := errors.AsType[*unsupported](err); other {
		t, err = openNative(s, err)
	}
	if err != nil {
		return nil, err
	}
	t.setFiles(s, path)
	return t, nil
}

// setFiles sets the files that a tokenizer was read from. One that writes its own has the one at path and the settings.
func (t *Tokenizer) setFiles(s *source, path string) {
	if t.save == nil {
		t.save, t.paths = s.save, s.paths
		return
	}
	if s.has(configFile) {
		t.paths = []string{s.path(configFile)}
	}
	t.paths = append(t.paths, path)
}

// newTokenizer returns the tokenizer of a tokenizer.json that is saved as it was read, but for its files: known has the
// ids of the model's tokens, and append divides texts.
func newTokenizer(tokens []string, known map[string]int32, f *file, config tokenizerConfig,
	append func(out []Token, text string, words []Range) []Token) (*Tokenizer, error) {
	t := &Tokenizer{tokens: tokens, append: append, mask: -1, splitter: newSplitter(f.Added)}
	var err error
	if t.single, t.pair, err = f.PostProcessor.templates(len(tokens)); err != nil {
		return nil, err
	}
	for _, name := range []string{config.Mask.text, "<mask>"} {
		if id, ok := idOf(tokens, known, name); ok && config.Mask.text != "" {
			t.mask = id
			break
		}
	}
	return t, nil
}

// newSplitter returns what splits texts into words at white space and punctuation, as BERT does, whatever a file's own
// split is: that of sentencepiece leaves punctuation at the words. Special tokens are words.
func newSplitter(added []addedToken) *subwords {
	var special []addedToken
	for _, token := range added {
		if token.Special { // others may be runs of blanks
			token.LStrip, token.RStrip, token.Normalized = false, false, false
			special = append(special, token)
		}
	}
	return newWords(bertSettings{Clean: true, Chinese: true}, newAddedTokens(special, nil))
}

// Append appends the tokens of text to out, without special ones. With words, the begin and end of each in text, they
// are those of the words alone, which are divided as transformers divides split words: if byte pairs distinguish a word
// after a blank from the continuation of one, each word has a blank before it (add_prefix_space). An added token such
// as [SEP] that is written in a text is that token.
func (t *Tokenizer) Append(out []Token, text string, words []Range) []Token {
	return t.append(out, text, words)
}

// AppendSome is Append of the first most tokens, in memory that they bound and not the text. Where ctx ends before, it
// returns the context's error. A text of some kilobytes without blanks that is read in pieces may have other tokens
// where it is divided than Append gives it.
func (t *Tokenizer) AppendSome(ctx context.Context, out []Token, text string, words []Range, most int) ([]Token,
	error) {
	if t.appendSome != nil {
		return t.appendSome(ctx, out, text, words, most)
	}
	all := t.append(out, text, words)
	return all[:min(len(all), len(out)+most)], ctx.Err()
}

// Split returns the words of raw text, in order, as the tokenizer splits it before it looks them up.
func (t *Tokenizer) Split(text string) []Range {
	s := t.splitter.pool.Get().(*state)
	defer t.splitter.put(s, text)
	t.splitter.divide(s, text)
	var words []Range
	for _, word := range s.splits {
		k := s.piece(0, word.lo, word.hi)
		words = append(words, Range{k.Start, k.End})
	}
	return words
}

// Template returns the template of a text or of a pair.
func (t *Tokenizer) Template(pair bool) Template {
	if pair {
		return t.pair
	}
	return t.single
}

// HasTypes reports whether the token types of its templates do not number the texts.
func (t *Tokenizer) HasTypes() bool {
	return slices.ContainsFunc(slices.Concat(t.single, t.pair), func(p Part) bool { return p.Type != p.Text })
}

// Size returns the number of rows of an embedding of the vocabulary: its largest id plus one.
func (t *Tokenizer) Size() int { return len(t.tokens) }

// Token returns the token with an id below Size, or "" if the vocabulary does not use the id.
func (t *Tokenizer) Token(id int32) string { return t.tokens[id] }

// Mask returns the id of the mask token, if there is one.
func (t *Tokenizer) Mask() (id int32, ok bool) { return max(0, t.mask), t.mask >= 0 }

// Save writes the tokenizer's files to folder, in the form that transformers' AutoTokenizer reads.
func (t *Tokenizer) Save(folder string) error { return t.save(folder) }

// Files returns the paths of the files that the tokenizer was read from, none if it was trained.
func (t *Tokenizer) Files() []string { return t.paths }
