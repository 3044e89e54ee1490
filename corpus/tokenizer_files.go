package corpus

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/jenga-nlp/jenga/internal/jsonfile"
	"github.com/jenga-nlp/jenga/internal/pieces"
)

// tokenizerFiles is the content of a tokenizer's files.
type tokenizerFiles struct {
	folder string
	data   map[string][]byte // by name: what Save writes
	paths  []string          // of the files read
	config tokenizerConfig
}

// readTokenizerFiles reads the files of a folder: required ones, and tokenizer_config.json and special_tokens_map.json
// if they exist.
func readTokenizerFiles(folder string, required ...string) (*tokenizerFiles, error) {
	f := &tokenizerFiles{folder: folder, data: map[string][]byte{},
		config: tokenizerConfig{specialNames: bertNames}}
	for i, name := range append(required, "tokenizer_config.json", "special_tokens_map.json") {
		data, err := readText(f.path(name))
		if err == nil {
			f.data[name], f.paths = data, append(f.paths, f.path(name))
		} else if i < len(required) || !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	data, ok := f.data["tokenizer_config.json"]
	if !ok {
		// Without it AutoTokenizer reads the encoder's config.json, which does not name the tokenizer.
		f.data["tokenizer_config.json"] = []byte("{\"tokenizer_class\": \"PreTrainedTokenizerFast\"}\n")
		return f, nil
	}
	return f, jsonfile.Unmarshal(f.path("tokenizer_config.json"), data, &f.config)
}

func (f *tokenizerFiles) path(name string) string { return filepath.Join(f.folder, name) }

// tokenizerOfFiles is what the tokenizers of a tokenizer.json have in common.
type tokenizerOfFiles struct {
	files      *tokenizerFiles
	vocabulary *vocabulary
	single     template
	pair       template
	mask       int32 // -1: none
	splitter   *WordPiece
}

// newTokenizerOfFiles returns a tokenizer with a vocabulary and added tokens, and the special tokens of a
// post-processor.
func newTokenizerOfFiles(files *tokenizerFiles, v *vocabulary, added []addedToken, p *processor) (tokenizerOfFiles,
	error) {
	t := tokenizerOfFiles{files: files, vocabulary: v, mask: -1}
	var err error
	if t.single, t.pair, err = p.templates(t.Size()); err != nil {
		return t, err
	}
	for _, name := range []tokenName{files.config.Mask, "<mask>"} {
		if id, ok := v.id(string(name)); ok && files.config.Mask != "" {
			t.mask = id
			break
		}
	}
	var special []addedToken
	for _, token := range added {
		if token.Special { // others may be runs of blanks
			token.LStrip, token.RStrip, token.Normalized = false, false, false
			special = append(special, token)
		}
	}
	t.splitter = &WordPiece{normalizer: newNormalizer(true, true, false, false),
		matched: pieces.NewAddedTokens(special, nil), scratch: sync.Pool{New: func() any { return new(scratch) }}}
	return t, nil
}

// Size implements Tokenizer.
func (t *tokenizerOfFiles) Size() int { return len(t.vocabulary.tokens) }

// Token implements Tokenizer.
func (t *tokenizerOfFiles) Token(id int32) string { return t.vocabulary.tokens[id] }

// Mask implements Tokenizer.
func (t *tokenizerOfFiles) Mask() (id int32, ok bool) { return t.mask, t.mask >= 0 }

// Files implements Tokenizer.
func (t *tokenizerOfFiles) Files() []string { return t.files.paths }

// Split implements Tokenizer. Words are split at white space and punctuation, as BERT does, whatever the file's own
// split is: that of sentencepiece leaves punctuation at the words. Special tokens are words.
func (t *tokenizerOfFiles) Split(text string) []Span { return t.splitter.Split(text) }

// Save implements Tokenizer. It writes the files that were read.
func (t *tokenizerOfFiles) Save(folder string) error {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	for name, data := range t.files.data {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// fill returns the encoding of e with the tokens of its text and its pair, truncated to maxLength.
func (t *tokenizerOfFiles) fill(e *Example, text, pair []piece, maxLength int) Encoding {
	form := t.single
	if e.Paired {
		form = t.pair
	}
	keep, keepPair := len(text), len(pair)
	if maxLength > 0 {
		keep, keepPair = longestFirst(keep, keepPair, max(0, maxLength-form.special()))
	}
	return form.encoding(text[:keep], pair[:keepPair], e.Words != nil)
}
