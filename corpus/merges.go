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
		return nil, err
	}
	files.data["tokenizer.json"] = data
	return newSubwords(files, data)
}

// mergesFile returns the tokenizer.json that transformers makes of vocab.json and merges.txt.
func mergesFile(files *tokenizerFiles, config *olderConfig) ([]byte, error) {
	path := files.path("vocab.json")
	gpt2, err := config.isGPT2()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var vocab map[string]int32
	if err := json.Unmarshal(files.data["vocab.json"], &vocab); err != nil {
		return nil, fmt.Errorf("%s: want an object of tokens and their ids: %w", path, err)
	}
	merges, err := mergeLines(string(files.data["merges.txt"]), vocab)
	if err != nil {
		return nil, fmt.Errorf("%s:%w", files.path("merges.txt"), err)
	}

	type object = map[string]any
	bytePairs := object{"type": "ByteLevel", "add_prefix_space": config.prefixSpace(), "trim_offsets": true,
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
			"add_prefix_space": config.prefixSpace(),
			"sep":              []any{names.Closing, vocab[string(names.Closing)]},
			"cls":              []any{names.Opening, vocab[string(names.Opening)]}}
	}
	files.config.specialNames = *names
	if file["added_tokens"], err = config.addedTokens(&vocabulary{whole: vocab}); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return json.Marshal(file)
}

// mergeLines returns the merges of a merges.txt, in which a blank is between the two tokens of each. Errors begin with
// the number of the line.
func mergeLines(text string, vocab map[string]int32) ([]string, error) {
	var merges []string
	number := 0
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		number++
		line = strings.TrimSuffix(line, "\r")
		if line == "" || strings.HasPrefix(line, "#version") {
			continue
		}
		a, b, ok := strings.Cut(line, " ")
		if !ok || a == "" || b == "" {
			return nil, fmt.Errorf("%d: %.40q, want two tokens with a blank between them", number, line)
		}
		for _, token := range []string{a, b, a + b} {
			if _, ok := vocab[token]; !ok {
				return nil, fmt.Errorf("%d: %.40q joins %.20q and %.20q, but vocab.json does not have %.40q", number,
					line, a, b, token)
			}
		}
		merges = append(merges, line)
	}
	return merges, nil
}
