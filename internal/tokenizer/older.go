package tokenizer

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/jenga-nlp/jenga/internal/files"
)

// older returns the settings of an older form, which tokenizer_config.json, special_tokens_map.json and config.json
// have. The special tokens that no file names are names.
func (s *source) older(names specialNames) (c tokenizerConfig, err error) {
	c.specialNames = names
	if c.ModelType, err = s.modelType(); err != nil {
		return c, err
	}
	if s.has(configFile) {
		if err := files.UnmarshalJSON(s.path(configFile), s.data[configFile], &c); err != nil {
			return c, err
		}
	}
	if s.has(specialFile) && len(c.Added) == 0 { // added_tokens_decoder has the special tokens too
		if err := files.UnmarshalJSON(s.path(specialFile), s.data[specialFile], &c.specialNames); err != nil {
			return c, err
		}
	}
	if err := s.readAdded(&c); err != nil {
		return c, err
	}
	if s.added != "" {
		s.paths = append(s.paths, s.added)
	}
	return c, nil
}

// modelType returns the encoder's model_type, which says what the tokenizer is where no class is named; "" for none.
func (s *source) modelType() (string, error) {
	var config struct {
		Type string `json:"model_type"`
	}
	err := files.ReadJSON(s.path("config.json"), files.MaxConfig, &config)
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return config.Type, err
}

// openLines reads the vocab.txt of a folder, of BERT or MPNet, and its settings: one token a line, its id the line's
// index.
func openLines(folder string) (*Tokenizer, error) {
	s, err := readSource(folder, linesFile)
	if err != nil {
		return nil, err
	}
	names := bertNames
	if s.config.ModelType, err = s.modelType(); err == nil && s.config.family() == "mpnet" {
		names = mpnetNames
	}
	if err == nil {
		s.config, err = s.older(names)
	}
	if err != nil {
		return nil, err
	}
	path := s.path(linesFile)
	var t *Tokenizer
	tokens, err := linesOf(s.data[linesFile])
	switch err = cmp.Or(err, s.config.checkFast()); {
	case err != nil:
	case s.config.family() == "mpnet":
		if s.data[tokenizerFile], err = s.config.mpnetJSON(tokens); err == nil {
			return s.open(path)
		}
	default:
		t, err = bertOf(s, tokens)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	t.setFiles(s, path)
	if s.added != "" {
		t.paths = append(t.paths, s.added)
	}
	return t, nil
}

func bertOf(s *source, tokens []string) (*Tokenizer, error) {
	if !s.has(configFile) {
		return nil, errors.New("no tokenizer_config.json beside it, which sets do_lower_case")
	}
	switch strings.TrimSuffix(s.config.Class, "Fast") {
	case "", "BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer", "MobileBertTokenizer":
		return newBERTFiles(tokens, s.config)
	}
	return nil, fmt.Errorf("the tokenizer_config.json beside it has tokenizer_class %q, whose vocab.txt may "+
		"have another format; want BertTokenizer or DistilBertTokenizer", s.config.Class)
}

// robertaNames are the special tokens of RoBERTa, and of the models with its tokenizer.
var robertaNames = specialNames{Unknown: specialName{text: "<unk>"}, Closing: specialName{text: "</s>"},
	Pad: specialName{text: "<pad>"}, Opening: specialName{text: "<s>"}, Mask: specialName{text: "<mask>"}}

const endOfText = "<|endoftext|>"

// isGPT2 reports whether the tokenizer is GPT-2's, which adds no special tokens, not RoBERTa's.
func (c *tokenizerConfig) isGPT2() (bool, error) {
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

var mpnetNames = specialNames{Unknown: bertNames.Unknown, Closing: robertaNames.Closing, Pad: robertaNames.Pad,
	Opening: robertaNames.Opening, Mask: specialName{"<mask>", true}}

// mpnetJSON returns the tokenizer.json that transformers makes of MPNet's vocab.txt.
func (c *tokenizerConfig) mpnetJSON(tokens []string) ([]byte, error) {
	vocab := idsOf(tokens)
	added, err := c.addedTokens(vocab)
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{
		"version": "1.0", "added_tokens": added, "normalizer": bertPart{typed{"BertNormalizer"}, c.normalizer()},
		"pre_tokenizer": typed{"BertPreTokenizer"}, "decoder": decoder{"WordPiece", innerPrefix, true},
		"post_processor": c.roberta(vocab, false), "model": bertModel(c.Unknown, vocab),
	})
}

func (n *specialNames) roberta(vocab map[string]int32, prefixSpace bool) map[string]any {
	return map[string]any{"type": "RobertaProcessing", "trim_offsets": true, "add_prefix_space": prefixSpace,
		"sep": []any{n.Closing, vocab[n.Closing.text]}, "cls": []any{n.Opening, vocab[n.Opening.text]}}
}

func openMerges(folder string) (*Tokenizer, error) {
	s, err := readSource(folder, idsFile, mergesFile)
	if err != nil {
		return nil, err
	}
	if s.config, err = s.older(robertaNames); err != nil {
		return nil, err
	}
	if s.data[tokenizerFile], err = s.mergesJSON(); err != nil {
		return nil, err
	}
	return s.open(s.path(tokenizerFile))
}

// mergesJSON returns the tokenizer.json that transformers makes of vocab.json and merges.txt.
func (s *source) mergesJSON() ([]byte, error) {
	path, config := s.path(idsFile), &s.config
	gpt2, err := config.isGPT2()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var vocab map[string]int32
	if err := json.Unmarshal(s.data[idsFile], &vocab); err != nil {
		return nil, fmt.Errorf("%s: want an object of tokens and their ids: %w", path, err)
	}
	merges, err := mergeLines(string(s.data[mergesFile]), vocab)
	if err != nil {
		return nil, fmt.Errorf("%s:%w", s.path(mergesFile), err)
	}

	type object = map[string]any
	bytePairs := object{"type": "ByteLevel", "add_prefix_space": config.prefixSpace(), "trim_offsets": true,
		"use_regex": true}
	file := object{
		"version": "1.0", "normalizer": nil, "pre_tokenizer": bytePairs, "post_processor": nil, "decoder": bytePairs,
		"model": object{"type": "BPE", "vocab": json.RawMessage(s.data[idsFile]), "merges": merges},
	}
	if !gpt2 {
		file["post_processor"] = config.roberta(vocab, config.prefixSpace())
	} else {
		config.specialNames = specialNames{}
		if _, ok := vocab[endOfText]; ok {
			config.Unknown.text = endOfText
		}
	}
	if file["added_tokens"], err = config.addedTokens(vocab); err != nil {
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
