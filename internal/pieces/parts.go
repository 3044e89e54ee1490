package pieces

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// part is a normaliser or a pre-tokenizer of a tokenizer.json, with the keys of all types.
type part struct {
	Type          string   `json:"type"`
	Normalizers   partList `json:"normalizers"`
	PreTokenizers partList `json:"pretokenizers"`
	Pattern       *pattern `json:"pattern"`
	strip

	Content  string `json:"content"`              // Replace
	Prepend  string `json:"prepend"`              // Prepend
	Charsmap string `json:"precompiled_charsmap"` // Precompiled

	PrefixSpace *bool    `json:"add_prefix_space"`  // ByteLevel; old Metaspace
	UseRegex    *bool    `json:"use_regex"`         // ByteLevel; null: true
	Mark        string   `json:"replacement"`       // Metaspace
	Prefix      string   `json:"prepend_scheme"`    // Metaspace: always, first or never
	Split       *bool    `json:"split"`             // Metaspace; null: true
	Behavior    behavior `json:"behavior"`          // Split
	Invert      bool     `json:"invert"`            // Split
	Individual  bool     `json:"individual_digits"` // Digits
}

// partList is the parts of a Sequence, of which there may be maxParts.
type partList []*part

// UnmarshalJSON implements json.Unmarshaler. A part takes more memory than its text.
func (l *partList) UnmarshalJSON(data []byte) error {
	var all []json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	if len(all) > maxParts {
		return fmt.Errorf("a Sequence has %d parts, want at most %d", len(all), maxParts)
	}
	return json.Unmarshal(data, (*[]*part)(l))
}

// typeOf returns the type of a part, "" for null; other parts must have one.
func (p *part) typeOf(key string) (string, error) {
	if p == nil {
		return "", nil
	}
	if p.Type == "" {
		return "", fmt.Errorf("%s has no type", key)
	}
	return p.Type, nil
}

// normalizers returns the normalisers of a part, which is at key.
func (p *part) normalizers(key string, depth int) ([]normalizer, error) {
	switch kind, err := p.typeOf(key); {
	case kind == "":
		return nil, err
	case kind == "Sequence":
		return flatten(p.Normalizers, key, "normalizers", depth, (*part).normalizers)
	}
	n, err := p.normalizer(key)
	return []normalizer{n}, err
}

// flatten returns what read makes of each part of a Sequence.
func flatten[T any](parts partList, key, name string, depth int,
	read func(p *part, key string, depth int) ([]T, error)) ([]T, error) {
	if len(parts) > maxParts || depth > maxParts {
		return nil, fmt.Errorf("%s has more than %d parts", key, maxParts)
	}
	var all []T
	for i := range parts {
		one, err := read(parts[i], fmt.Sprintf("%s.%s[%d]", key, name, i), depth+1)
		if err != nil {
			return nil, err
		}
		if all = append(all, one...); len(all) > maxParts {
			return nil, fmt.Errorf("%s has more than %d parts", key, maxParts)
		}
	}
	return all, nil
}

// normalizer returns a normaliser that is not a Sequence.
func (p *part) normalizer(key string) (normalizer, error) {
	switch p.Type {
	case "NFC", "NFD", "NFKC", "NFKD":
		return unicodeForm{compatible: p.Type[2] == 'K', composed: p.Type[len(p.Type)-1] == 'C'}, nil
	case "Lowercase":
		return lowercase{}, nil
	case "StripAccents":
		return mapped(stripAccent), nil
	case "Nmt":
		return mapped(nmt), nil
	case "Strip":
		return &p.strip, nil
	case "Prepend":
		if len(p.Prepend) > maxToken {
			return nil, fmt.Errorf("%s.prepend has %d bytes, want at most %d", key, len(p.Prepend), maxToken)
		}
		return prepend(p.Prepend), nil
	case "Replace":
		if len(p.Content) > maxContent {
			return nil, fmt.Errorf("%s.content has %d bytes, want at most %d", key, len(p.Content), maxContent)
		}
		f, err := p.Pattern.finder(key)
		return &replace{f, p.Content}, err
	case "Precompiled":
		n, err := newPrecompiled(p.Charsmap)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		return n, nil
	}
	return nil, &Unsupported{key, fmt.Sprintf("of type %q", p.Type),
		"NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Replace, Prepend, Nmt, Precompiled or Sequence"}
}

// preTokenizers returns the pre-tokenizers of a part, which is at key.
func (p *part) preTokenizers(key string, depth int) ([]preTokenizer, error) {
	switch kind, err := p.typeOf(key); {
	case kind == "":
		return nil, err
	case kind == "Sequence":
		all, err := flatten(p.PreTokenizers, key, "pretokenizers", depth, (*part).preTokenizers)
		for i := range all {
			if _, ok := all[i].(*byteLevel); ok && i < len(all)-1 && err == nil {
				err = &Unsupported{key, "a Sequence in which another part follows ByteLevel", "ByteLevel at the end"}
			}
		}
		return all, err
	}
	one, err := p.preTokenizer(key)
	return []preTokenizer{one}, err
}

// preTokenizer returns a pre-tokenizer that is not a Sequence.
func (p *part) preTokenizer(key string) (preTokenizer, error) {
	switch p.Type {
	case "ByteLevel":
		return &byteLevel{prefixSpace: p.PrefixSpace != nil && *p.PrefixSpace, blanks: key == "pre_tokenizer",
			regex: p.UseRegex == nil || *p.UseRegex}, nil
	case "Metaspace":
		return p.metaspaces(key)
	case "Split":
		f, err := p.Pattern.finder(key)
		if err != nil {
			return nil, err
		}
		switch p.Behavior {
		case isolated, removed, contiguous, mergedPrevious, mergedNext:
			return &divideAt{f, p.Behavior, p.Invert}, nil
		}
		return nil, fmt.Errorf("%s.behavior is %q, want Isolated, Removed, Contiguous, MergedWithPrevious or "+
			"MergedWithNext", key, p.Behavior)
	case "WhitespaceSplit":
		return &divideAt{runesOf(isSpace), removed, false}, nil
	case "Digits":
		if p.Individual {
			return &divideAt{runesOf(isNumber), isolated, false}, nil
		}
		return &divideAt{runesOf(isNumber), contiguous, false}, nil
	}
	return nil, &Unsupported{key, fmt.Sprintf("of type %q", p.Type),
		"ByteLevel, Metaspace, Split, WhitespaceSplit, Digits or Sequence"}
}

// metaspaces returns a Metaspace. Old files have add_prefix_space in place of prepend_scheme.
func (p *part) metaspaces(key string) (preTokenizer, error) {
	m := &metaspaces{mark: p.Mark, prefix: p.Prefix}
	if utf8.RuneCountInString(m.mark) != 1 {
		return nil, fmt.Errorf("%s.replacement is %.20q, want one character", key, m.mark)
	}
	if p.Split == nil || *p.Split {
		m.words = literal(p.Mark)
	}
	switch m.prefix {
	case "":
		m.prefix = "always"
		if p.PrefixSpace != nil && !*p.PrefixSpace {
			m.prefix = "never"
		}
	case "always", "first", "never":
		if p.PrefixSpace != nil && !*p.PrefixSpace && m.prefix != "never" {
			return nil, fmt.Errorf("%s has add_prefix_space false and prepend_scheme %q, which contradict each other",
				key, m.prefix)
		}
	default:
		return nil, fmt.Errorf("%s.prepend_scheme is %q, want always, first or never", key, m.prefix)
	}
	return m, nil
}
