package pieces

import (
	"slices"
	"testing"
)

func TestWordsThatNeedABlank(t *testing.T) {
	bytePairs := func(parts string) string {
		return spoil(t, `{PARTS "model": {"type": "BPE", "vocab": {"a": 0, "Ġ": 1, "▁": 2, "Ġa": 3, "▁a": 4},
 "merges": [["Ġ", "a"], ["▁", "a"]]}}`, "PARTS", parts)
	}
	for rule, c := range map[string]struct {
		file string
		want blankBy
	}{
		"no pre-tokenizer": {smallBPE, noBlank}, // no token begins with a blank
		"ByteLevel":        {bytePairs(`"pre_tokenizer": {"type": "ByteLevel"},`), blankByByteLevel},
		"ByteLevel with blank": {bytePairs(`"pre_tokenizer": {"type": "ByteLevel",
 "add_prefix_space": true},`), noBlank},
		"ByteLevel in a Sequence": {bytePairs(`"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
 {"type": "ByteLevel"}]},`), blankByText},
		"ByteLevel behind words": {bytePairs(`"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
 {"type": "Split", "pattern": {"String": " "}, "behavior": "Removed"}, {"type": "ByteLevel"}]},`), noBlank},
		"marks": {bytePairs(`"normalizer": {"type": "Replace", "pattern": {"String": " "},
 "content": "▁"},`), blankByText},
		"a mark before each text": {bytePairs(`"normalizer": {"type": "Sequence", "normalizers": [
 {"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},`), noBlank},
		"Metaspace": {bytePairs(`"pre_tokenizer": {"type": "Metaspace", "replacement": "▁",
 "prepend_scheme": "always"},`), noBlank},
		"Metaspace never": {bytePairs(`"pre_tokenizer": {"type": "Metaspace", "replacement": "▁",
 "prepend_scheme": "never"},`), blankByText},
	} {
		if got := read(t, c.file).blank; got != c.want {
			t.Errorf("%s: %d, want %d", rule, got, c.want)
		}
	}
}

// A word that begins with an added token has no blank before it, whether the token is found in raw or normalised text.
func TestAddedTokensHaveNoBlankBeforeThem(t *testing.T) {
	const file = `{"added_tokens": [{"id": 4, "content": "[E]", "normalized": NORMALIZED}],
 "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
 "model": {"type": "BPE", "unk_token": "u", "vocab": {"u": 0, "a": 1, "▁": 2, "▁a": 3}, "merges": [["▁", "a"]]}}`
	for _, normalized := range []string{"true", "false"} {
		tokenizer := read(t, spoil(t, file, "NORMALIZED", normalized))
		for word, want := range map[string][]int32{"[E]": {4}, "a": {3}, "[E]a": {4, 1}, "a[E]": {3, 4}} {
			var got []int32
			for _, p := range tokenizer.Append(nil, word, true) {
				got = append(got, p.ID)
			}
			if !slices.Equal(got, want) {
				t.Errorf("normalized %s, %q: %v, want %v", normalized, word, got, want)
			}
		}
	}
}
