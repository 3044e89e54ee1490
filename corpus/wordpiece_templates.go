package corpus

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jenga-nlp/jenga/internal/jsonfile"
)

// otherTemplate is WordPiece with special tokens in other places than BERT's, as in MPNet.
type otherTemplate struct {
	tokenizerOfFiles
	words *WordPiece
	trims bool // white space is not part of an added token's offsets
}

var _ Tokenizer = (*otherTemplate)(nil)

// openOtherTemplate reads the tokenizer.json of a folder, which is of WordPiece.
func openOtherTemplate(folder string) (Tokenizer, error) {
	files, err := readTokenizerFiles(folder, "tokenizer.json")
	if err != nil {
		return nil, err
	}
	path, data := files.path("tokenizer.json"), files.data["tokenizer.json"]
	file := newTokenizerFile()
	var other struct {
		PostProcessor struct {
			processor
			Trim bool `json:"trim_offsets"`
		} `json:"post_processor"`
	}
	if err := jsonfile.Unmarshal(path, data, &file); err != nil {
		return nil, err
	}
	if err := jsonfile.Unmarshal(path, data, &other); err != nil {
		return nil, err
	}
	t := &otherTemplate{trims: other.PostProcessor.Trim}
	unknown := file.Model.Unknown // in place of the special tokens, which are those of the template
	if t.words, err = file.tokenizer(files.config, unknown, unknown); err == nil {
		t.tokenizerOfFiles, err = newTokenizerOfFiles(files, t.words.vocabulary, file.Added,
			&other.PostProcessor.processor)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// Encode implements Tokenizer.
func (t *otherTemplate) Encode(e *Example, maxLength int) Encoding {
	s := t.words.scratch.Get().(*scratch)
	defer t.words.scratch.Put(s)
	s.pieces = s.pieces[:0]
	if e.Words == nil {
		t.words.encode(s, e.Text, Span{0, len(e.Text)}, -1)
	}
	for i, word := range e.Words {
		t.words.encode(s, e.Text, word, int32(i))
	}
	text := len(s.pieces)
	if e.Paired {
		t.words.encode(s, e.Pair, Span{0, len(e.Pair)}, -1)
	}
	t.trim(s.pieces[:text], e.Text)
	t.trim(s.pieces[text:], e.Pair)
	return t.fill(e, s.pieces[:text], s.pieces[text:], maxLength)
}

// trim removes white space from the ends of the offsets of tokens: that which added tokens include.
func (t *otherTemplate) trim(tokens []piece, text string) {
	if !t.trims {
		return
	}
	for i := range tokens {
		at := &tokens[i].at
		token := text[at.Start:at.End]
		if first, _ := utf8.DecodeRuneInString(token); unicode.IsSpace(first) {
			at.Start = at.End - len(strings.TrimLeftFunc(token, unicode.IsSpace))
		}
		if last, _ := utf8.DecodeLastRuneInString(token); unicode.IsSpace(last) {
			at.End = max(at.Start, at.Start+len(strings.TrimRightFunc(text[at.Start:at.End], unicode.IsSpace)))
		}
	}
}
