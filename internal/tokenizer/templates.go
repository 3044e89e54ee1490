package tokenizer

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// postProcessor is a post-processor of any type: it defines the special tokens around a text and around a pair, and
// what happens to offsets.
type postProcessor struct {
	Type   string                  `json:"type"`
	Single []templatePiece         `json:"single"`
	Pair   []templatePiece         `json:"pair"`
	Tokens map[string]templateUnit `json:"special_tokens"`
	// BertProcessing has only these two tokens.
	Closing []any `json:"sep,omitempty"`
	Opening []any `json:"cls,omitempty"`

	// of offsets; Trim is true for null
	Trim        *bool           `json:"trim_offsets,omitempty"`
	PrefixSpace *bool           `json:"add_prefix_space,omitempty"`
	Processors  []postProcessor `json:"processors,omitempty"` // of a Sequence
}

type templatePiece struct {
	Special  *templateID `json:"SpecialToken,omitempty"`
	Sequence *templateID `json:"Sequence,omitempty"`
}

type templateID struct {
	ID   string `json:"id"`
	Type int    `json:"type_id"`
}

type templateUnit struct {
	ID     string   `json:"id"`
	IDs    []int32  `json:"ids"`
	Tokens []string `json:"tokens"`
}

// Template is the order of the tokens of a text or a pair.
type Template []Part

// Part is the tokens of a text, or special tokens.
type Part struct {
	IsText  bool
	Special []Token
	Text    int8 // the text, 1 for the second of a pair; for special tokens, the text before them
	Type    int8 // token type
}

// templates returns the templates for a text and for a pair, with their special tokens. size bounds ids.
func (p *postProcessor) templates(size int) (single, pair Template, err error) {
	a, b := Part{IsText: true}, Part{IsText: true, Text: 1, Type: 1}
	single, pair = Template{a}, Template{a, b}
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
		last.Text = 1
		single = Template{opening, a, closing}
		if p.Type == "BertProcessing" {
			last.Type = 1
			return single, Template{opening, a, closing, b, last}, nil
		}
		b.Type = 0
		return single, Template{opening, a, closing, closing, b, last}, nil
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
func specialPart(token []any, size int) (Part, error) {
	if len(token) == 2 {
		if id, ok := token[1].(float64); ok {
			pieces, err := specialPieces([]int32{int32(min(max(id, -1), maxID))}, size)
			return Part{Special: pieces}, err
		}
	}
	return Part{}, fmt.Errorf("%v, want a token and its id", token)
}

func specialPieces(ids []int32, size int) ([]Token, error) {
	var pieces []Token
	for _, id := range ids {
		if id < 0 || int(id) >= size {
			return nil, fmt.Errorf("id %d is outside the vocabulary of %d", id, size)
		}
		pieces = append(pieces, Token{ID: id, Word: -1})
	}
	return pieces, nil
}

// template reads a template, which must have each text once.
func (p *postProcessor) template(pieces []templatePiece, texts string, size int) (Template, error) {
	var t Template
	var seen string
	for _, piece := range pieces {
		part, id := Part{Text: int8(max(0, len(seen)-1))}, piece.Special
		if piece.Sequence != nil {
			if id = piece.Sequence; id.ID != "A" && id.ID != "B" {
				return nil, fmt.Errorf("a Sequence has the id %q, want A or B", id.ID)
			}
			seen += id.ID
			part.IsText, part.Text = true, int8(len(seen)-1)
		} else if id != nil {
			unit, ok := p.Tokens[id.ID]
			if !ok {
				return nil, fmt.Errorf("special_tokens lacks %q", id.ID)
			}
			var err error
			if part.Special, err = specialPieces(unit.IDs, size); err != nil {
				return nil, fmt.Errorf("special_tokens has %q: %w", id.ID, err)
			}
		} else {
			return nil, errors.New("a piece is neither SpecialToken nor Sequence")
		}
		if id.Type < 0 || id.Type > math.MaxInt8 {
			return nil, fmt.Errorf("%q has type_id %d, want 0 to %d", id.ID, id.Type, math.MaxInt8)
		}
		part.Type = int8(id.Type)
		t = append(t, part)
	}
	if seen != texts {
		return nil, fmt.Errorf("the template is %q, want each of the texts %q in it once", describe(pieces),
			strings.Split(texts, ""))
	}
	return t, nil
}

// Specials returns the number of special tokens.
func (t Template) Specials() int {
	n := 0
	for _, part := range t {
		n += len(part.Special)
	}
	return n
}

// names returns the tokens before the first text and after each text. It is not ok if p, of which templates has read
// all, places them elsewhere.
func (p *postProcessor) names() (opening, closing string, ok bool) {
	if p.Type == "BertProcessing" {
		opening, _ = p.Opening[0].(string)
		closing, _ = p.Closing[0].(string)
		return opening, closing, opening != "" && closing != ""
	}
	if n := len(p.Single); n > 0 && p.Single[0].Special != nil && p.Single[n-1].Special != nil {
		opening, closing = p.Single[0].Special.ID, p.Single[n-1].Special.ID
	}
	single := fmt.Sprintf("%s:0 $A:0 %s:0", opening, closing)
	pair := single + fmt.Sprintf(" $B:1 %s:1", closing)
	return opening, closing, describe(p.Single) == single && describe(p.Pair) == pair
}

// describe formats a template in the short form of the crate tokenizers.
func describe(template []templatePiece) string {
	var parts []string
	for _, piece := range template {
		if piece.Special != nil {
			parts = append(parts, fmt.Sprintf("%s:%d", piece.Special.ID, piece.Special.Type))
		}
		if piece.Sequence != nil {
			parts = append(parts, fmt.Sprintf("$%s:%d", piece.Sequence.ID, piece.Sequence.Type))
		}
	}
	return strings.Join(parts, " ")
}
