package corpus

import (
	"strings"
	"testing"
)

func TestContradictionsOfTokenizerFiles(t *testing.T) {
	const file = `{"added_tokens": [{"id": 3, "content": "<mask>", "lstrip": true, "special": true}],
 "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
 "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "Ġ": 2}, "merges": []}}`
	for _, c := range []struct{ rule, config, want string }{
		{"the class's default", `{"tokenizer_class": "RobertaTokenizer"}`, ""},
		{"a class without the option", `{"tokenizer_class": "PreTrainedTokenizerFast", "add_prefix_space": true}`, ""},
		{"a blank before texts", `{"tokenizer_class": "RobertaTokenizerFast", "add_prefix_space": true}`,
			"pre_tokenizer.add_prefix_space is false, but that of the tokenizer_config.json beside it is true; "},
		{"the same added token", `{"added_tokens_decoder": {"3": {"content": "<mask>", "lstrip": true}}}`, ""},
		{"an added token that the file lacks", `{"added_tokens_decoder": {"4": {"content": "[ENT]"}}}`,
			`added_tokens lacks "[ENT]", which the tokenizer_config.json beside it has; `},
		{"other options", `{"added_tokens_decoder": {"3": {"content": "<mask>", "lstrip": false}}}`,
			`added token "<mask>" has other options (lstrip, rstrip, single_word) than in the tokenizer_config.json`},
	} {
		folder := writeFiles(t, "tokenizer.json", file, "tokenizer_config.json", c.config)
		_, err := OpenTokenizer(folder)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), "tokenizer.json: "+c.want) {
			t.Errorf("%s: error %v, want %q", c.rule, err, c.want)
		}
	}
}

func TestWordPieceFilesHaveBounds(t *testing.T) {
	long := strings.Repeat("a", 1025)
	for rule, c := range map[string]struct{ old, with, want string }{
		"long words":   {`"unk_token"`, `"max_input_chars_per_word": 1001, "unk_token"`, "want 1 to 1000"},
		"a long piece": {`"vocab": {`, `"vocab": {"` + long + `": 9, `, "a piece of 1025 bytes, want at most 1024"},
		"a long added token": {`"added_tokens": [`, `"added_tokens": [{"id": 9, "content": "` + long + `"}, `,
			"has 1025 bytes, want at most 1024"},
	} {
		if !strings.Contains(smallTokenizer, c.old) {
			t.Fatalf("%s: no %q", rule, c.old)
		}
		_, err := OpenTokenizer(writeFiles(t, "tokenizer.json", strings.Replace(smallTokenizer, c.old, c.with, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", rule, err, c.want)
		}
	}
}
