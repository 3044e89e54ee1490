package corpus

import (
	"encoding/json"
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
	return newOtherTemplate(files, files.path("tokenizer.json"))
}

// newOtherTemplate returns the tokenizer of the tokenizer.json among files. Errors have the path.
func newOtherTemplate(files *tokenizerFiles, path string) (Tokenizer, error) {
	data, file := files.data["tokenizer.json"], newTokenizerFile()
	var other struct {
		PostProcessor struct {
			processor
			Trim        bool `json:"trim_offsets"`
			PrefixSpace bool `json:"add_prefix_space"`
		} `json:"post_processor"`
	}
	if err := jsonfile.Unmarshal(path, data, &file); err != nil {
		return nil, err
	}
	if err := jsonfile.Unmarshal(path, data, &other); err != nil {
		return nil, err
	}
	if other.PostProcessor.PrefixSpace {
		return nil, fmt.Errorf("%s: post_processor has add_prefix_space, which is for byte pairs; want false", path)
	}
	t := &otherTemplate{trims: other.PostProcessor.Trim}
	unknown := file.Model.Unknown // in place of the special tokens, which are those of the template
	var err error
	if t.words, err = file.tokenizer(files.config, unknown, unknown); err == nil {
		t.tokenizerOfFiles, err = newTokenizerOfFiles(files, t.words.vocabulary, file.Added,
			&other.PostProcessor.processor)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// mpnetNames are the special tokens of MPNet.
var mpnetNames = specialNames{Unknown: "[UNK]", Closing: "</s>", Pad: "<pad>", Opening: "<s>", Mask: "<mask>"}

// openMPNet reads the vocab.txt of a folder, if it is of MPNet.
func openMPNet(folder string) (t Tokenizer, ok bool, err error) {
	files, config, err := readOlder(folder, mpnetNames, true, "vocab.txt")
	if err != nil || config.family() != "mpnet" {
		return nil, false, nil // errors are those of the reader of BERT's
	}
	path := files.path("vocab.txt")
	if files.data["tokenizer.json"], err = config.mpnetFile(files.data["vocab.txt"]); err != nil {
		return nil, true, fmt.Errorf("%s: %w", path, err)
	}
	files.config.specialNames = config.specialNames
	t, err = newOtherTemplate(files, path)
	return t, true, err
}

// mpnetFile returns the tokenizer.json that transformers makes of MPNet's vocab.txt.
func (c *olderConfig) mpnetFile(lines []byte) ([]byte, error) {
	v, err := vocabularyOfLines(lines)
	if err != nil {
		return nil, err
	}
	added, err := c.addedTokens(v)
	if err != nil {
		return nil, err
	}
	type object = map[string]any
	return json.Marshal(object{
		"version": "1.0", "added_tokens": added, "normalizer": c.normalizer(),
		"pre_tokenizer": typed{"BertPreTokenizer"}, "decoder": decoder{"WordPiece", innerPrefix, true},
		"post_processor": object{"type": "RobertaProcessing", "trim_offsets": true, "add_prefix_space": false,
			"sep": []any{c.Closing, v.whole[string(c.Closing)]}, "cls": []any{c.Opening, v.whole[string(c.Opening)]}},
		"model": wordPieceModel{"WordPiece", string(c.Unknown), innerPrefix, bertMaxRunes, v.whole},
	})
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
