package corpus

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/internal/jsonfile"
	"github.com/jenga-nlp/jenga/internal/pieces"
)

// notBERT is the error of a tokenizer.json that has another part than BERT's.
type notBERT struct{ path, key, got, want string }

func (e *notBERT) Error() string {
	return fmt.Sprintf("%s: the %s is of type %q; this build of jenga reads %s with WordPiece%s", e.path, e.key, e.got,
		e.want, nativeHint)
}

// parseTokenizer makes the tokenizer of a tokenizer.json. The names of tokens that play no part in it are config's.
func parseTokenizer(path string, data []byte, config tokenizerConfig) (*WordPiece, error) {
	// Other models have other values under the same keys, so the types are read first.
	var kinds struct {
		Normalizer    typed            `json:"normalizer"`
		PreTokenizer  typed            `json:"pre_tokenizer"`
		PostProcessor typed            `json:"post_processor"`
		Model         pieces.ModelKind `json:"model"`
	}
	if err := jsonfile.Unmarshal(path, data, &kinds); err != nil {
		return nil, err
	}
	for _, part := range []struct {
		key, got string
		want     []string
	}{
		{"model", kinds.Model.Name(), []string{"WordPiece"}},
		{"normalizer", kinds.Normalizer.Type, []string{"BertNormalizer"}},
		{"pre_tokenizer", kinds.PreTokenizer.Type, []string{"BertPreTokenizer"}},
		{"post_processor", kinds.PostProcessor.Type, []string{"TemplateProcessing", "BertProcessing"}},
	} {
		if !slices.Contains(part.want, part.got) {
			return nil, &notBERT{path, part.key, part.got, part.want[0]}
		}
	}

	file := newTokenizerFile()
	if err := jsonfile.Unmarshal(path, data, &file); err != nil {
		return nil, err
	}
	opening, closing, ok := file.PostProcessor.names()
	if !ok {
		return nil, &notBERT{path, "post_processor", kinds.PostProcessor.Type, "BERT's"}
	}
	w, err := file.tokenizer(config, opening, closing)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return w, nil
}

// newTokenizerFile returns a file with the defaults of WordPiece.
func newTokenizerFile() tokenizerFile {
	return tokenizerFile{Model: wordPieceModel{Unknown: "[UNK]", Prefix: innerPrefix, MaxRunes: bertMaxRunes}}
}

// tokenizer returns the tokenizer of a file with the special tokens before the first text and after each.
func (f *tokenizerFile) tokenizer(config tokenizerConfig, opening, closing string) (*WordPiece, error) {
	if len(f.Model.Vocab) == 0 {
		return nil, errors.New("model has no vocab")
	}
	tokens, err := tokensByID(f.Model.Vocab)
	if err != nil {
		return nil, err
	}
	for name, unit := range f.PostProcessor.Tokens {
		if id, ok := f.Model.Vocab[name]; ok && !slices.Equal(unit.IDs, []int32{id}) {
			return nil, fmt.Errorf("post_processor gives %q the ids %v, the vocabulary %d", name, unit.IDs, id)
		}
	}
	for _, setting := range []struct {
		key    string
		config *bool
		file   *bool
	}{
		{"do_lower_case", config.Lower, &f.Normalizer.Lower},
		{"tokenize_chinese_chars", config.Chinese, &f.Normalizer.Chinese},
		{"strip_accents", config.Strip, f.Normalizer.Strip},
	} {
		// transformers would use the config's setting, the crate tokenizers the file's.
		if setting.config != nil && setting.file != nil && *setting.config != *setting.file {
			return nil, fmt.Errorf("the normalizer contradicts %s: %v in the tokenizer_config.json beside it",
				setting.key, *setting.config)
		}
	}
	config.Unknown, config.Opening, config.Closing = tokenName(f.Model.Unknown), tokenName(opening), tokenName(closing)
	return newWordPiece(newVocabulary(tokens, f.Model.Prefix), f.Normalizer, f.Model.MaxRunes, config, f.Added)
}

// names returns the tokens before the first text and after each text. It is not ok if p places them elsewhere.
func (p *postProcessor) names() (opening, closing string, ok bool) {
	if p.Type == "BertProcessing" {
		opening, closing = nameIn(p.Opening), nameIn(p.Closing)
		return opening, closing, opening != "" && closing != ""
	}
	if n := len(p.Single); n > 0 && p.Single[0].Special != nil && p.Single[n-1].Special != nil {
		opening, closing = p.Single[0].Special.ID, p.Single[n-1].Special.ID
	}
	single := fmt.Sprintf("%s:0 $A:0 %s:0", opening, closing)
	pair := single + fmt.Sprintf(" $B:1 %s:1", closing)
	return opening, closing, describe(p.Single) == single && describe(p.Pair) == pair
}

// nameIn returns the name in a token's [name, id].
func nameIn(token []any) string {
	if len(token) == 0 {
		return ""
	}
	name, _ := token[0].(string)
	return name
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
