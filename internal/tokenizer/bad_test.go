package tokenizer

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// smallBPE and smallUnigram are tokenizer.json files.
const (
	smallBPE = `{"model": {"type": "BPE", "unk_token": "u", "vocab": {"u": 0, "a": 1, "b": 2, "ab": 3, "abab": 4},
 "merges": [["a", "b"], ["ab", "ab"]]}}`
	smallUnigram = `{"model": {"type": "Unigram", "unk_id": 0,
 "vocab": [["u", 0], ["a", -1], ["b", -1], ["ab", -1.5]]}}`
)

// spoil returns file with another text in place of old.
func spoil(t testing.TB, file, old, with string) string {
	t.Helper()
	if !strings.Contains(file, old) {
		t.Fatalf("no %q to spoil", old)
	}
	return strings.Replace(file, old, with, 1)
}

// badFile is a file that is not read.
type badFile struct{ rule, file, want string }

// badModels returns files with errors in the model.
func badModels(t *testing.T) []badFile {
	return []badFile{
		{"no model", `{}`, `no model`},
		{"another version", spoil(t, smallBPE, `{"model"`, `{"version": "2.0", "model"`), `version is "2.0", want 1.0`},
		{"an id that is text", spoil(t, smallBPE, `"b": 2`, `"b": "2"`),
			`tokenizer.json:1: model.vocab is a string; want a whole number`},
		{"a model that is a list", `{"model": []}`, `tokenizer.json:1: model is an array; want an object`},
		{"a part that is a number", `{"normalizer": 3}`, `tokenizer.json:1: normalizer is a number; want an object`},
		{"no vocabulary", `{"model": {"type": "BPE", "merges": []}}`, `model has no vocab`},
		{"an empty vocabulary", `{"model": {"type": "BPE", "vocab": {}, "merges": []}}`, `model has no vocab`},
		{"a merge of a token that is not there", spoil(t, smallBPE, `["ab", "ab"]`, `["ab", "c"]`),
			`model.merges: merge 1 joins "ab" and "c", but vocab does not have "c"`},
		{"a merge into a token that is not there", spoil(t, smallBPE, `["ab", "ab"]`, `["b", "b"]`),
			`model.merges: merge 1 joins "b" and "b", but vocab does not have "bb"`},
		{"a merge of nothing, which makes its own part", spoil(t, spoil(t, smallBPE, `"a": 1`, `"": 5, "a": 1`),
			`["ab", "ab"]`, `["", "ab"]`), `model.merges: merge 1 joins "" and "ab", want two tokens`},
		{"a merge of three", spoil(t, smallBPE, `["ab", "ab"]`, `["a", "b", "a"]`),
			`model.merges: merge 1 is ["a" "b" "a"], want two tokens`},
		{"a merge without a blank", spoil(t, smallBPE, `[["a", "b"], ["ab", "ab"]]`, `["a b", "abab"]`),
			`model.merges: merge 1 is "abab", want two tokens with a blank between them`},
		{"merges of numbers", spoil(t, smallBPE, `[["a", "b"], ["ab", "ab"]]`, `[1, 2]`),
			`model.merges is "[1, 2]", want a list of pairs of tokens`},
		{"a prefix that is not there", spoil(t, smallBPE, `"vocab"`, `"continuing_subword_prefix": "#", "vocab"`),
			`model.merges: merge 0 joins "a" and "b", which does not begin with continuing_subword_prefix "#"`},
		{"a duplicate id", spoil(t, smallBPE, `"b": 2`, `"b": 1`), `tokens "a" and "b" both have id 1`},
		{"an id below 0", spoil(t, smallBPE, `"b": 2`, `"b": -2`), `token "b" has id -2, want 0 to 2097151`},
		{"an id that requires gigabytes", spoil(t, smallBPE, `"b": 2`, `"b": 2147483647`),
			`token "b" has id 2147483647, want 0 to 2097151`},
		{"an unknown token that is not there", spoil(t, smallBPE, `"unk_token": "u"`, `"unk_token": "x"`),
			`model.unk_token is "x", which vocab does not have`},
		{"random tokens", spoil(t, smallBPE, `"vocab"`, `"dropout": 0.1, "vocab"`),
			`model has dropout 0.1, which gives a text other tokens each time; want 0`},
	}
}

// badUnigrams returns files with errors in a model of Unigram.
func badUnigrams(t *testing.T) []badFile {
	return []badFile{
		{"no unknown token", spoil(t, smallUnigram, `"unk_id": 0`, `"unk_id": null`),
			`the model fails on characters outside its vocabulary: it needs an unknown token`},
		{"an unknown token outside the vocabulary", spoil(t, smallUnigram, `"unk_id": 0`, `"unk_id": 4`),
			`model.unk_id is 4, want one of the 4 ids of vocab`},
		{"a piece twice", spoil(t, smallUnigram, `"b"`, `"a"`), `model.vocab: entries 1 and 2 are both "a"`},
		{"a piece without a score", spoil(t, smallUnigram, `["b", -1]`, `["b"]`),
			`model.vocab: entry 2 is [b], want a token and its score`},
		{"a score that is too large", spoil(t, smallUnigram, `["b", -1]`, `["b", -1e999]`),
			`model.vocab: entry 2 has the score -Inf, want a finite one`},
	}
}

// partFiles returns functions that put a normaliser and a pre-tokenizer into a file.
func partFiles(t *testing.T) (normalizer, split func(part string) string) {
	with := func(key string) func(part string) string {
		return func(part string) string {
			return spoil(t, smallBPE, `{"model"`, fmt.Sprintf(`{%q: %s, "model"`, key, part))
		}
	}
	return with("normalizer"), with("pre_tokenizer")
}

// badForms returns files with parts that are none, contradict themselves, or are too large.
func badForms(t *testing.T) []badFile {
	normalizer, split := partFiles(t)
	return []badFile{
		{"a part without a type", normalizer(`{"typ": "NFC"}`), `normalizer has no type`},
		{"a part of a sequence without a type", split(`{"type": "Sequence", "pretokenizers": [{}]}`),
			`pre_tokenizer.pretokenizers[0] has no type`},
		{"too many parts", normalizer(`{"type": "Sequence", "normalizers": [` + strings.Repeat(`{},`, 64) + `{}]}`),
			`a Sequence has 65 parts, want at most 64`},
		{"options that contradict each other", split(`{"type": "Metaspace", "replacement": "_", "prepend_scheme": ` +
			`"first", "add_prefix_space": false}`), `pre_tokenizer has add_prefix_space false and prepend_scheme ` +
			`"first", which contradict each other`},
		{"added tokens that are long after normalisation", spoil(t, spoil(t, smallBPE, `{"model"`, `{"added_tokens": [{
 "id": 5, "content": "`+strings.Repeat("a", 1000)+`", "normalized": true}], "model"`), `{"added_tokens"`,
			`{"normalizer": {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}, "added_tokens"`),
			`added_tokens, normalised, has a token of 2000 bytes, "aaaaaaaaaaaaaaaaaaaa", want at most 1024`},
		{"a long prefix", spoil(t, smallBPE, `"vocab"`, `"end_of_word_suffix": "`+strings.Repeat("x", 1025)+
			`", "vocab"`), `model has a prefix or suffix of 1025 bytes, want at most 1024`},
	}
}

// badParts returns files with errors in the other parts.
func badParts(t *testing.T) []badFile {
	normalizer, split := partFiles(t)
	charsmap := func(data string) string {
		return normalizer(`{"type": "Precompiled", "precompiled_charsmap": "` +
			base64.StdEncoding.EncodeToString([]byte(data)) + `"}`)
	}
	added := func(id int, content string) string {
		return spoil(t, smallBPE, `{"model"`, fmt.Sprintf(`{"added_tokens": [{"id": %d, "content": %q}], "model"`, id,
			content))
	}
	return []badFile{
		{"an added token with another id", added(9, "<x>"), `added token "<x>" has id 9, but tokenizers gives it 5`},
		{"an added token of the model with another id", added(9, "a"),
			`added token "a" has id 9, but tokenizers gives it 1`},
		{"an empty added token", added(5, ""), "the added token of id 5 is empty; want a text"},
		{"a duplicate added token", spoil(t, added(5, "<x>"), `[{`, `[{"id": 5, "content": "<x>"}, {`),
			`duplicate added token "<x>"`},
		{"a long added token", added(5, strings.Repeat("x", 1025)),
			`added_tokens has a token of 1025 bytes, "xxxxxxxxxxxxxxxxxxxx", want at most 1024`},
		{"no pattern", normalizer(`{"type": "Replace", "content": "a"}`),
			`normalizer has no pattern, want a String or a Regex`},
		{"a long replacement", normalizer(`{"type": "Replace", "pattern": {"String": "a"}, "content": "` +
			strings.Repeat("a", 65) + `"}`), `normalizer.content has 65 bytes, want at most 64`},
		{"texts that grow without bound", normalizer(`{"type": "Sequence", "normalizers": [` + strings.Repeat(
			`{"type": "Replace", "pattern": {"String": "a"}, "content": "aaa"},`, 20) + `{"type": "NFC"}]}`),
			`normalizer and pre_tokenizer may make a text more than 8192 times longer`},
		{"a long pattern", split(`{"type": "Split", "pattern": {"Regex": "` + strings.Repeat("a", 4097) + `"}}`),
			`pre_tokenizer has a pattern of 4097 bytes, want at most 4096`},
		{"another behaviour", split(`{"type": "Split", "pattern": {"String": "a"}, "behavior": "Kept"}`),
			`pre_tokenizer.behavior is "Kept", want Isolated, Removed, Contiguous, MergedWithPrevious or ` +
				`MergedWithNext`},
		{"marks of two characters", split(`{"type": "Metaspace", "replacement": "__"}`),
			`pre_tokenizer.replacement is "__", want one character`},
		{"another scheme", split(`{"type": "Metaspace", "replacement": "_", "prepend_scheme": "last"}`),
			`pre_tokenizer.prepend_scheme is "last", want always, first or never`},
		{"a charsmap that is too short", charsmap("abc"),
			`normalizer: precompiled_charsmap has 3 bytes, want 4 at least`},
		{"a charsmap shorter than its array", charsmap("\xff\xff\xff\xffabcd"),
			`normalizer: precompiled_charsmap has an array of 4294967295 bytes, but 4 bytes follow`},
		{"a charsmap without an array", charsmap("\x00\x00\x00\x00ab"),
			`normalizer: precompiled_charsmap has an array without units`},
		{"a charsmap of no text", charsmap("\x04\x00\x00\x00abcd\xff"),
			`normalizer: precompiled_charsmap has replacements that are not UTF-8`},
		{"a charsmap of long replacements", charsmap("\x04\x00\x00\x00abcd" + strings.Repeat("a", 65)),
			`normalizer: precompiled_charsmap has a replacement of 65 bytes, want at most 64`},
	}
}

func TestBadFilesAreErrors(t *testing.T) {
	for _, c := range slices.Concat(badModels(t), badUnigrams(t), badForms(t), badParts(t)) {
		t.Run(c.rule, func(t *testing.T) {
			_, err := readSubwords([]byte(c.file))
			if err == nil {
				t.Fatal("no error")
			}
			if got := strings.TrimPrefix(err.Error(), "tokenizer.json: "); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestDeepSequencesAreErrors(t *testing.T) {
	deep := strings.Repeat(`{"type": "Sequence", "normalizers": [`, 100) + strings.Repeat(`]}`, 100)
	_, err := readSubwords([]byte(spoil(t, smallBPE, `{"model"`, `{"normalizer": `+deep+`, "model"`)))
	if err == nil || !strings.Contains(err.Error(), "64 parts") {
		t.Errorf("%v, want an error of 64 parts", err)
	}
	if _, err := readSubwords([]byte(smallBPE)); err != nil {
		t.Fatal(err)
	}
	var refusal *unsupported
	_, err = parse("tokenizer.json", []byte(`{"model": {"type": "WordLevel", "vocab": {"a": 0}}}`), tokenizerConfig{})
	if !errors.As(err, &refusal) || refusal.key != "model" {
		t.Errorf("%v, want a refusal of the model", err)
	}
}

// What makes a text longer counts wherever it stands.
func TestGrowthIsOfAllParts(t *testing.T) {
	part := func(key, kind string, parts ...string) string {
		return spoil(t, smallBPE, `{"model"`, fmt.Sprintf(`{%q: {"type": "Sequence", %q: [%s]}, "model"`, key, kind,
			strings.Join(parts, ", ")))
	}
	prepend := `{"type": "Prepend", "prepend": "` + strings.Repeat("a", 1000) + `"}`
	mark := `{"type": "Metaspace", "replacement": "%s", "split": false}`
	var marks []string
	for _, one := range []string{"_", "-", "+", "*", "/", ".", ":", ",", "!", "?", "#", "%", "&", "="} {
		marks = append(marks, fmt.Sprintf(mark, one))
	}
	nested := `{"type": "Sequence", "normalizers": [` + strings.Repeat(`{"type": "NFC"}, `, 32) + `{"type": "NFC"}]}`
	for rule, c := range map[string][2]string{
		"prepended": {part("normalizer", "normalizers", prepend, prepend), "8192 times longer"},
		"marks":     {part("pre_tokenizer", "pretokenizers", marks...), "8192 times longer"},
		"nested":    {part("normalizer", "normalizers", nested, nested), "normalizer has more than 64 parts"},
		"trims": {spoil(t, smallBPE, `{"model"`, `{"post_processor": {"type": "Sequence", "processors": [`+
			strings.Repeat(`{"type": "ByteLevel"}, `, 64)+`{"type": "ByteLevel"}]}, "model"`), "65 parts that trim"},
		"names": {spoil(t, smallBPE, `"vocab": {`, `"vocab": {"`+strings.Repeat("x", 1025)+`": 99, `), "1025 bytes"},
	} {
		if _, err := readSubwords([]byte(c[0])); err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%s: %v, want %q", rule, err, c[1])
		}
	}
}
