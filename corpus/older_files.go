package corpus

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/internal/jsonfile"
)

// noTokenizerJSON returns the tokenizer of a folder without tokenizer.json, in one of the older forms that are read as
// the tokenizer.json that transformers makes of them: the vocab.txt of MPNet, or vocab.json and merges.txt. It is not
// ok if there is another form in the folder, or none.
func noTokenizerJSON(folder string) (t Tokenizer, ok bool, err error) {
	files := tokenizerFiles{folder: folder}
	has := func(name string) bool {
		_, err := os.Stat(files.path(name))
		return err == nil
	}
	switch {
	case has("tokenizer.json"):
		return nil, false, nil
	case has("vocab.txt"):
		return openMPNet(folder)
	case has("vocab.json"):
		t, err := openMerges(folder)
		if err != nil {
			return nil, true, err
		}
		return t, true, nil
	}
	for _, name := range []string{"sentencepiece.bpe.model", "spiece.model", "spm.model", "tokenizer.model"} {
		if has(name) {
			return nil, true, fmt.Errorf("%s: a model of sentencepiece, without the tokenizer.json that jenga reads; "+
				"transformers makes it: AutoTokenizer.from_pretrained(%q).save_pretrained(%[2]q)", files.path(name),
				folder)
		}
	}
	return nil, false, nil
}

// olderConfig is what the older forms lack: the settings of tokenizer_config.json, special_tokens_map.json and
// config.json.
type olderConfig struct {
	tokenizerConfig
	ModelType string   `json:"-"` // of config.json
	Mask      maskForm `json:"mask_token"`
}

// maskForm is the mask token. LStrip is heeded only if the token is an object, as in transformers.
type maskForm struct {
	name   tokenName
	LStrip bool `json:"lstrip"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *maskForm) UnmarshalJSON(data []byte) error {
	*m = maskForm{}
	if bytes.HasPrefix(data, []byte("{")) {
		type plain maskForm
		if err := json.Unmarshal(data, (*plain)(m)); err != nil {
			return err
		}
	}
	return json.Unmarshal(data, &m.name)
}

// readOlder reads a folder's files of an older form, and their settings. The special tokens that no file names are
// names; the mask has the option lstrip if no file has it as an object.
func readOlder(folder string, names specialNames, lstrip bool, required ...string) (*tokenizerFiles, *olderConfig,
	error) {
	files, err := readTokenizerFiles(folder, required...)
	if err != nil {
		return nil, nil, err
	}
	c := &olderConfig{tokenizerConfig: tokenizerConfig{specialNames: names}, Mask: maskForm{names.Mask, lstrip}}
	// The class may be absent: then the encoder's model_type says what the tokenizer is.
	err = jsonfile.Read(files.path("config.json"), jsonfile.MaxConfig, &struct {
		ModelType *string `json:"model_type"`
	}{&c.ModelType})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, nil, err
	}
	for _, name := range []string{"tokenizer_config.json", "special_tokens_map.json"} {
		if !slices.Contains(files.paths, files.path(name)) || len(c.Added) > 0 {
			continue // added_tokens_decoder has the special tokens too
		}
		if err := jsonfile.Unmarshal(files.path(name), files.data[name], c); err != nil {
			return nil, nil, err
		}
	}
	c.specialNames.Mask = c.Mask.name
	return files, c, nil
}

// family returns the tokenizer's class in lower case, without its usual ending, or the encoder's model_type.
func (c *olderConfig) family() string {
	return cmp.Or(c.tokenizerConfig.family(), strings.ToLower(c.ModelType))
}

// addedTokens returns the tokens that are matched in raw text, with the mask's own form.
func (c *olderConfig) addedTokens(v *vocabulary) ([]addedToken, error) {
	added, err := c.tokenizerConfig.addedTokens(v)
	for i := range added {
		if added[i].Content == string(c.specialNames.Mask) {
			added[i].LStrip = added[i].LStrip || c.Mask.LStrip
		}
	}
	return added, err
}
