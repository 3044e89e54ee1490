package tokenizer

import (
	"encoding/json"
	"slices"
	"testing"
)

func FuzzRead(f *testing.F) {
	for _, seed := range []string{smallBPE, smallUnigram,
		`{"normalizer": {"type": "Sequence", "normalizers": [
 {"type": "Precompiled", "precompiled_charsmap": "BAAAAAAAAABhAA=="}, {"type": "NFKC"}, {"type": "Nmt"},
 {"type": "Strip", "strip_left": true, "strip_right": true}, {"type": "Prepend", "prepend": "_"},
 {"type": "Replace", "pattern": {"Regex": "\\s+"}, "content": " "}, {"type": "StripAccents"}, {"type": "Lowercase"}]},
 "pre_tokenizer": {"type": "Metaspace", "replacement": "_", "prepend_scheme": "first", "split": true},
 "added_tokens": [{"id": 0, "content": "u", "lstrip": true, "rstrip": true},
 {"id": 2, "content": " ", "normalized": true}],
 "model": {"type": "Unigram", "unk_id": 0, "byte_fallback": true, "vocab": [["u", 0], ["_a", -1.5]]}}`,
		`{"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
 {"type": "Split", "pattern": {"String": "b"}, "behavior": "MergedWithNext", "invert": true}, {"type": "Digits"},
 {"type": "WhitespaceSplit"}, {"type": "ByteLevel", "add_prefix_space": false}]},
 "post_processor": {"type": "Sequence", "processors": [{"type": "ByteLevel", "trim_offsets": true},
 {"type": "RobertaProcessing"}]},
 "model": {"type": "BPE", "unk_token": "a", "continuing_subword_prefix": "#", "end_of_word_suffix": "b",
 "ignore_merges": true, "vocab": {"a": 0, "#b": 1, "ab": 2}, "merges": ["a #b"]}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !json.Valid(data) {
			return
		}
		tokenizer, err := readSubwords(data)
		if err != nil {
			return
		}
		for _, text := range []string{" a\x00b é中😀  \u0301_ab1 12\xff\xf0", string(data[:min(len(data), 300)])} {
			for _, blank := range []bool{false, true} {
				checkPieces(t, tokenizer, text, tokenizer.divideText(text, blank))
			}
		}
	})
}

func FuzzAppend(f *testing.F) {
	f.Add("abab b\u0301a  a", true)
	f.Add("▁ab\xff ▁▁", false)
	f.Add("it's 1234 \n\n x", false)
	var tokenizers []*subwords
	for _, file := range []string{smallBPE, smallUnigram,
		spoil(f, smallBPE, `{"model"`, `{"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}, "model"`),
		spoil(f, smallUnigram, `{"model"`, `{"normalizer": {"type": "NFKC"}, "pre_tokenizer": {"type": "Metaspace",
 "replacement": "a"}, "model"`)} {
		tokenizers = append(tokenizers, read(f, file))
	}
	f.Fuzz(func(t *testing.T, text string, blank bool) {
		for _, tokenizer := range tokenizers {
			got := tokenizer.divideText(text, blank)
			checkPieces(t, tokenizer, text, got)
			if again := tokenizer.divideText(text, blank); !slices.Equal(got, again) {
				t.Errorf("pieces %v, then %v", got, again)
			}
		}
	})
}

// checkPieces reports pieces with ids or offsets that do not exist.
func checkPieces(t *testing.T, tokenizer *subwords, text string, all []Token) {
	t.Helper()
	for _, p := range all {
		if p.ID < 0 || int(p.ID) >= len(tokenizer.tokens) || p.Start < 0 || p.Start > p.End || p.End > len(text) {
			t.Errorf("%+q: piece %v of %d tokens and %d bytes", text, p, len(tokenizer.tokens), len(text))
		}
	}
}
