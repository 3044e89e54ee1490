package corpus

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
)

// robertaNames are the special tokens of RoBERTa, and of the models with its tokenizer.
var robertaNames = specialNames{Unknown: "<unk>", Closing: "</s>", Pad: "<pad>", Opening: "<s>", Mask: "<mask>"}

// endOfText is the special token of GPT-2.
const endOfText = "<|endoftext|>"

// isGPT2 reports whether the tokenizer is GPT-2's, which adds no special tokens, not RoBERTa's.
func (c *olderConfig) isGPT2() (bool, error) {
	switch c.family() {
	case "gpt2":
		return true, nil
	case "roberta", "bart", "longformer":
		return false, nil
	}
	return false, fmt.Errorf("the tokenizer is of class %q; without a tokenizer.json, jenga reads RobertaTokenizer "+
		"and GPT2Tokenizer, which tokenizer_class of tokenizer_config.json or model_type of config.json names",
		cmp.Or(c.Class, c.ModelType))
}

// openMerges reads the vocab.json and merges.txt of a folder.
func openMerges(folder string) (*subwords, error) {
	files, config, err := readOlder(folder, robertaNames, false, "vocab.json", "merges.txt")
	if err != nil {
		return nil, err
	}
	data, err := mergesFile(files, config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", files.path("vocab.json"), err)
	}
	files.data["tokenizer.json"] = data
	return newSubwords(files, data)
}

// mergesFile returns the tokenizer.json that transformers makes of vocab.json and merges.txt.
func mergesFile(files *tokenizerFiles, config *olderConfig) ([]byte, error) {
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
	names := &config.specialNames
	if gpt2 {
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
	files.config.specialNames = *names
	if file["added_tokens"], err = config.addedTokens(&vocabulary{whole: vocab}); err != nil {
		return nil, err
	}
	return json.Marshal(file)
}
