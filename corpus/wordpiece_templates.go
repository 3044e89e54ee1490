package corpus

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jenga-nlp/jenga/internal/jsonfile"
)

// processor is a post-processor of any kind.
type processor struct {
	postProcessor
	Processors []processor `json:"processors"`
}

// template is the order of the tokens of a text or a pair.
type template []templatePart

// templatePart is the tokens of a text, or special tokens.
type templatePart struct {
	isText  bool
	special []piece
	text    int8 // the text, 1 for the second of a pair; for special tokens, the text before them
	kind    int8 // token type
}

// templates returns the templates for a text and for a pair, with their special tokens. size bounds ids.
func (p *processor) templates(size int) (single, pair template, err error) {
	a, b := templatePart{isText: true}, templatePart{isText: true, text: 1, kind: 1}
	single, pair = template{a}, template{a, b}
	if p == nil {
		return single, pair, nil
	}
	switch p.Type {
	case "":
		return nil, nil, errors.New("post_processor has no type")
	case "ByteLevel":
		return single, pair, nil
	case "BertProcessing", "RobertaProcessing":
		opening, err := specialPart(p.Opening, size)
		if err != nil {
			return nil, nil, fmt.Errorf("post_processor's cls: %w", err)
		}
		closing, err := specialPart(p.Closing, size)
		if err != nil {
			return nil, nil, fmt.Errorf("post_processor's sep: %w", err)
		}
		last := closing
		last.text = 1
		single = template{opening, a, closing}
		if p.Type == "BertProcessing" {
			last.kind = 1
			return single, template{opening, a, closing, b, last}, nil
		}
		b.kind = 0
		return single, template{opening, a, closing, closing, b, last}, nil
	case "TemplateProcessing":
		if single, err = p.template(p.Single, "A", size); err != nil {
			return nil, nil, fmt.Errorf("post_processor for a text: %w", err)
		}
		if pair, err = p.template(p.Pair, "AB", size); err != nil {
			return nil, nil, fmt.Errorf("post_processor for a pair: %w", err)
		}
		return single, pair, nil
	case "Sequence":
		found := false
		for _, part := range p.Processors {
			if part.Type == "ByteLevel" {
				continue
			}
			if found {
				return nil, nil, errors.New("post_processor: two of its processors add special tokens, want one")
			}
			found = true
			if single, pair, err = part.templates(size); err != nil {
				return nil, nil, err
			}
		}
		return single, pair, nil
	}
	return nil, nil, fmt.Errorf("post_processor is of type %q; jenga reads TemplateProcessing, BertProcessing, "+
		"RobertaProcessing, ByteLevel, Sequence", p.Type)
}

// specialPart reads a special token written as [name, id].
func specialPart(token []any, size int) (templatePart, error) {
	if len(token) == 2 {
		if id, ok := token[1].(float64); ok {
			pieces, err := specialPieces([]int32{int32(min(max(id, -1), maxTokenID))}, size)
			return templatePart{special: pieces}, err
		}
	}
	return templatePart{}, fmt.Errorf("%v, want a token and its id", token)
}

func specialPieces(ids []int32, size int) ([]piece, error) {
	var pieces []piece
	for _, id := range ids {
		if id < 0 || int(id) >= size {
			return nil, fmt.Errorf("id %d is outside the vocabulary of %d", id, size)
		}
		pieces = append(pieces, piece{id: id, word: -1})
	}
	return pieces, nil
}

// template reads a template, which must have each text once.
func (p *processor) template(pieces []templatePiece, texts string, size int) (template, error) {
	var t template
	var seen string
	for _, piece := range pieces {
		part, id := templatePart{text: int8(max(0, len(seen)-1))}, piece.Special
		if piece.Sequence != nil {
			if id = piece.Sequence; id.ID != "A" && id.ID != "B" {
				return nil, fmt.Errorf("a Sequence has the id %q, want A or B", id.ID)
			}
			seen += id.ID
			part.isText, part.text = true, int8(len(seen)-1)
		} else if id != nil {
			unit, ok := p.Tokens[id.ID]
			if !ok {
				return nil, fmt.Errorf("special_tokens lacks %q", id.ID)
			}
			var err error
			if part.special, err = specialPieces(unit.IDs, size); err != nil {
				return nil, fmt.Errorf("special_tokens has %q: %w", id.ID, err)
			}
		} else {
			return nil, errors.New("a piece is neither SpecialToken nor Sequence")
		}
		if id.Type < 0 || id.Type > math.MaxInt8 {
			return nil, fmt.Errorf("%q has type_id %d, want 0 to %d", id.ID, id.Type, math.MaxInt8)
		}
		part.kind = int8(id.Type)
		t = append(t, part)
	}
	if seen != texts {
		return nil, fmt.Errorf("the template is %q, want each of the texts %q in it once", describe(pieces),
			strings.Split(texts, ""))
	}
	return t, nil
}

// special returns the number of special tokens.
func (t template) special() int {
	n := 0
	for _, part := range t {
		n += len(part.special)
	}
	return n
}

// encoding fills the template with the tokens of a text and of its pair.
func (t template) encoding(text, pair []piece, words bool) Encoding {
	n := t.special() + len(text) + len(pair)
	out := Encoding{IDs: make([]int32, 0, n), Offsets: make([]Span, 0, n), Segments: make([]int8, 0, n),
		TokenTypes: make([]int8, 0, n)}
	if words {
		out.Words = make([]int32, 0, n)
	}
	for _, part := range t {
		pieces := part.special
		if part.isText {
			pieces = [][]piece{text, pair}[part.text]
		}
		for _, p := range pieces {
			out.IDs = append(out.IDs, p.id)
			out.Offsets = append(out.Offsets, p.at)
			out.Segments = append(out.Segments, part.text)
			out.TokenTypes = append(out.TokenTypes, part.kind)
			if words {
				out.Words = append(out.Words, p.word)
			}
		}
	}
	return out
}

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
