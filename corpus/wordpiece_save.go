package corpus

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Save implements Tokenizer.
func (w *WordPiece) Save(folder string) error {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	config := w.config
	config.Lower, config.Chinese, config.Strip = &w.settings.Lower, &w.settings.Chinese, w.settings.Strip
	config.Class = "BertTokenizer"
	if !w.settings.Clean || w.vocabulary.prefix != innerPrefix || w.maxRunes != bertMaxRunes {
		// this class reads all settings from tokenizer.json; BertTokenizer lacks these
		config.Class = "PreTrainedTokenizerFast"
	}
	config.Added = make(map[string]addedForm, len(w.added))
	for _, token := range w.added {
		config.Added[fmt.Sprint(token.ID)] = token.AddedForm
	}

	for _, file := range []struct {
		name    string
		content any
	}{
		{"tokenizer.json", w.file()},
		{"tokenizer_config.json", config},
		{"special_tokens_map.json", config.specialNames},
	} {
		var out bytes.Buffer
		encoder := json.NewEncoder(&out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(file.content); err != nil {
			panic("corpus: " + err.Error()) // all of it is strings and numbers
		}
		if err := os.WriteFile(filepath.Join(folder, file.name), out.Bytes(), 0o666); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(folder, "vocab.txt"), w.lines(), 0o666)
}

// lines returns the vocabulary as a vocab.txt: empty lines for ids that have no piece.
func (w *WordPiece) lines() []byte {
	var out []byte
	for id, token := range w.vocabulary.tokens {
		if other, ok := w.vocabulary.whole[token]; ok && int(other) == id {
			out = append(out, token...)
		}
		out = append(out, '\n')
	}
	return append(bytes.TrimRight(out, "\n"), '\n')
}

// file returns the tokenizer as a tokenizer.json.
func (w *WordPiece) file() tokenizerFile {
	opening, closing := string(w.config.Opening), string(w.config.Closing)
	special := func(name string, segment int) templatePiece {
		return templatePiece{Special: &templateID{name, segment}}
	}
	text := func(name string, segment int) templatePiece {
		return templatePiece{Sequence: &templateID{name, segment}}
	}
	single := []templatePiece{special(opening, 0), text("A", 0), special(closing, 0)}
	return tokenizerFile{
		Version:      "1.0",
		Added:        w.added,
		Normalizer:   w.settings,
		PreTokenizer: typed{"BertPreTokenizer"},
		PostProcessor: postProcessor{
			Type:   "TemplateProcessing",
			Single: single,
			Pair:   append(slices.Clip(single), text("B", 1), special(closing, 1)),
			Tokens: map[string]templateUnit{
				opening: {opening, []int32{w.opening}, []string{opening}},
				closing: {closing, []int32{w.closing}, []string{closing}},
			},
		},
		Decoder: decoder{"WordPiece", w.vocabulary.prefix, true},
		Model: wordPieceModel{"WordPiece", string(w.config.Unknown), w.vocabulary.prefix, w.maxRunes,
			w.vocabulary.whole},
	}
}
