package corpus

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/internal/jsonfile"
)

// noTokenizerJSON returns the tokenizer of a folder that has neither tokenizer.json nor vocab.txt: byte pairs in the
// older form of vocab.json and merges.txt. It is not ok if there is another form in the folder, or none.
func noTokenizerJSON(folder string) (t Tokenizer, ok bool, err error) {
	files := tokenizerFiles{folder: folder}
	has := func(name string) bool {
		_, err := os.Stat(files.path(name))
		return err == nil
	}
	if has("tokenizer.json") || has("vocab.txt") {
		return nil, false, nil
	}
	if has("vocab.json") {
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

// robertaNames are the special tokens of RoBERTa, and of the models with its tokenizer.
var robertaNames = specialNames{Unknown: "<unk>", Closing: "</s>", Pad: "<pad>", Opening: "<s>", Mask: "<mask>"}

// mergesConfig is the part of tokenizer_config.json, or of config.json, that vocab.json and merges.txt lack.
type mergesConfig struct {
	Class       string `json:"tokenizer_class"`
	ModelType   string `json:"model_type"`
	PrefixSpace bool   `json:"add_prefix_space"`
	specialNames
	Mask maskForm `json:"mask_token"`
}

// maskForm is the mask token, of which LStrip is kept if it is an object.
type maskForm struct {
	name   tokenName
	LStrip bool `json:"lstrip"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *maskForm) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte("{")) {
		type plain maskForm
		if err := json.Unmarshal(data, (*plain)(m)); err != nil {
			return err
		}
	}
	return json.Unmarshal(data, &m.name)
}

// endOfText is the special token of GPT-2.
const endOfText = "<|endoftext|>"

// isGPT2 reports whether the tokenizer is GPT-2's, which adds no special tokens, not RoBERTa's.
func (c *mergesConfig) isGPT2() (bool, error) {
	name := strings.TrimSuffix(strings.TrimSuffix(c.Class, "Fast"), "Tokenizer")
	if name == "" {
		name = c.ModelType
	}
	switch strings.ToLower(name) {
	case "gpt2":
		return true, nil
	case "roberta", "bart", "longformer":
		return false, nil
	}
	return false, fmt.Errorf("the tokenizer is of class %q; without a tokenizer.json, jenga reads RobertaTokenizer "+
		"and GPT2Tokenizer, which tokenizer_class of tokenizer_config.json or model_type of config.json names", name)
}

// openMerges reads the vocab.json and merges.txt of a folder.
func openMerges(folder string) (*subwords, error) {
	files, err := readTokenizerFiles(folder, "vocab.json", "merges.txt")
	if err != nil {
		return nil, err
	}
	config := mergesConfig{specialNames: robertaNames, Mask: maskForm{name: robertaNames.Mask}}
	// The class may be absent: then the encoder's model_type says what the tokenizer is.
	err = jsonfile.Read(files.path("config.json"), jsonfile.MaxConfig, &struct {
		ModelType *string `json:"model_type"`
	}{&config.ModelType})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if slices.Contains(files.paths, files.path("tokenizer_config.json")) {
		err := jsonfile.Unmarshal(files.path("tokenizer_config.json"), files.data["tokenizer_config.json"], &config)
		if err != nil {
			return nil, err
		}
	}
	config.specialNames.Mask = config.Mask.name
	data, err := mergesFile(files, &config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", files.path("vocab.json"), err)
	}
	files.data["tokenizer.json"] = data
	return newSubwords(files, data)
}

// mergesFile returns the tokenizer.json that transformers makes of vocab.json and merges.txt.
func mergesFile(files *tokenizerFiles, config *mergesConfig) ([]byte, error) {
	gpt2, err := config.isGPT2()
	if err != nil {
		return nil, err
	}
	var vocab map[string]int32
	if err := json.Unmarshal(files.data["vocab.json"], &vocab); err != nil {
		return nil, fmt.Errorf("want an object of tokens and their ids: %w", err)
	}
	var merges []string
	for line := range strings.SplitSeq(strings.TrimSuffix(string(files.data["merges.txt"]), "\n"), "\n") {
		line = strings.TrimSuffix(line, "\r")
		if line != "" && !strings.HasPrefix(line, "#version") {
			merges = append(merges, line)
		}
	}

	type object = map[string]any
	bytePairs := object{"type": "ByteLevel", "add_prefix_space": config.PrefixSpace, "trim_offsets": true,
		"use_regex": true}
	file := object{
		"version": "1.0", "normalizer": nil, "pre_tokenizer": bytePairs, "post_processor": nil, "decoder": bytePairs,
		"model": object{"type": "BPE", "vocab": json.RawMessage(files.data["vocab.json"]), "merges": merges},
	}
	names := &files.config.specialNames
	if *names = config.specialNames; gpt2 {
		*names = specialNames{}
		if _, ok := vocab[endOfText]; ok {
			names.Unknown = endOfText
		}
	} else {
		file["post_processor"] = object{"type": "RobertaProcessing", "trim_offsets": true,
			"add_prefix_space": config.PrefixSpace,
			"sep":              []any{names.Closing, vocab[string(names.Closing)]},
			"cls":              []any{names.Opening, vocab[string(names.Opening)]}}
	}
	added, err := files.config.addedTokens(&vocabulary{whole: vocab})
	if err != nil {
		return nil, err
	}
	for i, token := range added {
		if token.Content == string(names.Mask) {
			added[i].LStrip = added[i].LStrip || config.Mask.LStrip
		}
	}
	file["added_tokens"] = added
	return json.Marshal(file)
}
