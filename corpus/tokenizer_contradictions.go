package corpus

import (
	"fmt"
	"slices"
	"strings"
)

// bytePairClasses are the tokenizers of transformers that set add_prefix_space of ByteLevel from their configuration.
var bytePairClasses = []string{"roberta", "gpt2", "bart", "longformer"}

// family returns the tokenizer's class in lower case, without its usual ending.
func (c *tokenizerConfig) family() string {
	if c.Class == "PreTrainedTokenizerFast" {
		return "" // of no family
	}
	return strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(c.Class, "Fast"), "Tokenizer"))
}

// prefixSpace reports whether byte pairs have a blank before a text.
func (c *tokenizerConfig) prefixSpace() bool { return c.PrefixSpace != nil && *c.PrefixSpace }

// check returns an error if a tokenizer_config.json contradicts a tokenizer.json with added tokens, whose pre-tokenizer
// is ByteLevel with or without a blank before a text, or another one: AutoTokenizer goes by the former.
func (c *tokenizerConfig) check(added []addedToken, byteLevel, blank bool) error {
	const remedy = "; transformers writes both alike: AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)"
	want := c.prefixSpace()
	if byteLevel && want != blank && slices.Contains(bytePairClasses, c.family()) {
		return fmt.Errorf("pre_tokenizer.add_prefix_space is %v, but that of the tokenizer_config.json beside it is "+
			"%v%s", blank, want, remedy)
	}
	for _, form := range c.Added {
		at := slices.IndexFunc(added, func(t addedToken) bool { return t.Content == form.Content })
		if at < 0 {
			return fmt.Errorf("added_tokens lacks %q, which the tokenizer_config.json beside it has%s", form.Content,
				remedy)
		}
		file := added[at]
		if file.LStrip != form.LStrip || file.RStrip != form.RStrip || file.SingleWord != form.SingleWord {
			return fmt.Errorf("added token %q has other options (lstrip, rstrip, single_word) than in the "+
				"tokenizer_config.json beside it%s", form.Content, remedy)
		}
	}
	return nil
}
