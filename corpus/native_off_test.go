//go:build !native

package corpus

import (
	"strings"
	"testing"
)

// smallSubwords is a tokenizer.json of byte pairs.
const smallSubwords = `{"version": "1.0", "added_tokens": [], "normalizer": null, "pre_tokenizer": null,
 "post_processor": null, "model": {"type": "BPE", "unk_token": "u", "vocab": {"u": 0, "a": 1, "b": 2}, "merges": []}}`

// libraryHint ends the errors of forms that a build with the library reads.
const libraryHint = "; scripts/native.sh makes the library that reads all, for go build -tags native"

// refusedForm is a file with a form that is not read.
type refusedForm struct{ rule, file, old, with, want string }

func TestFormsThatAreNotReadAreErrors(t *testing.T) {
	const parts = "NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Replace, Prepend, Nmt, Precompiled or Sequence"
	processor := `"post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]}`
	checkRefusals(t, []refusedForm{
		{"WordPiece with another normaliser", smallTokenizer, `"BertNormalizer"`, `"NFC"`,
			`the normalizer is of type "NFC"; this build of jenga reads BertNormalizer with WordPiece` + libraryHint},
		{"WordPiece with another split", smallTokenizer, `{"type": "BertPreTokenizer"}`, `null`,
			`the pre_tokenizer is of type ""; this build of jenga reads BertPreTokenizer with WordPiece` + libraryHint},
		{"WordPiece without a template for pairs", smallTokenizer, processor, smallTemplate,
			`post_processor for a text: special_tokens lacks "[CLS]"`},
		{"WordPiece with nameless special tokens", smallTokenizer, `["[SEP]", 3]`, `[3]`,
			`post_processor's sep: [3], want a token and its id`},
		{"another model", smallSubwords, `"BPE"`, `"WordLevel"`,
			`the model is of type "WordLevel"; this build of jenga reads WordPiece, BPE or Unigram` + libraryHint},
		{"another normaliser", smallSubwords, `"normalizer": null`, `"normalizer": {"type": "BertNormalizer"}`,
			`the normalizer is of type "BertNormalizer"; this build of jenga reads ` + parts + libraryHint},
		{"another normaliser in a sequence", smallSubwords, `"normalizer": null`,
			`"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Magic"}]}`,
			`the normalizer.normalizers[1] is of type "Magic"; this build of jenga reads ` + parts + libraryHint},
		{"another split", smallSubwords, `"pre_tokenizer": null`, `"pre_tokenizer": {"type": "UnicodeScripts"}`,
			`the pre_tokenizer is of type "UnicodeScripts"; this build of jenga reads ByteLevel, Metaspace, Split, ` +
				`WhitespaceSplit, Digits or Sequence` + libraryHint},
		{"bytes before another split", smallSubwords, `"pre_tokenizer": null`,
			`"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "ByteLevel"}, {"type": "Digits"}]}`,
			`the pre_tokenizer is a Sequence in which another part follows ByteLevel; this build of jenga reads ` +
				`ByteLevel at the end` + libraryHint},
		{"bytes for characters of bytes", smallSubwords, `"merges": []`,
			`"merges": [], "byte_fallback": true, "end_of_word_suffix": "</w>"`,
			`the model is BPE with byte_fallback and bytes, prefixes or suffixes; this build of jenga reads either ` +
				`of them` + libraryHint},
	})
}

func TestPatternsThatAreNotReadAreErrors(t *testing.T) {
	const patterns = "patterns without looking around and references, and those of GPT-2, Llama 3 and Qwen 2" +
		libraryHint
	checkRefusals(t, []refusedForm{
		{"a pattern that looks around", smallSubwords, `"pre_tokenizer": null`,
			`"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "a(?=b)"}, "behavior": "Isolated"}`,
			`the pre_tokenizer is the pattern "a(?=b)", with a group that looks around or has options; this build of ` +
				`jenga reads ` + patterns},
		{"a pattern with a reference", smallSubwords, `"normalizer": null`,
			`"normalizer": {"type": "Replace", "pattern": {"Regex": "(a)\\1"}, "content": ""}`,
			`the normalizer is the pattern "(a)\\1", with \1; this build of jenga reads ` + patterns},
		{"a pattern that matches nothing", smallSubwords, `"normalizer": null`,
			`"normalizer": {"type": "Replace", "pattern": {"Regex": "a*"}, "content": ""}`,
			`the normalizer is the pattern "a*", with matches of no characters; this build of jenga reads ` + patterns},
		{"a pattern whose search takes quadratic time", smallSubwords, `"normalizer": null`,
			`"normalizer": {"type": "Replace", "pattern": {"Regex": "a[^b]*x|a"}, "content": ""}`,
			`the normalizer is the pattern "a[^b]*x|a", with an unbounded repetition that something must follow, ` +
				`whose search takes quadratic time; this build of jenga reads ` + patterns},
	})
}

func checkRefusals(t *testing.T, cases []refusedForm) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			if !strings.Contains(c.file, c.old) {
				t.Fatalf("no %q to spoil", c.old)
			}
			folder := writeFiles(t, "tokenizer.json", strings.Replace(c.file, c.old, c.with, 1))
			_, err := OpenTokenizer(folder)
			if err == nil {
				t.Fatal("no error")
			}
			if got := strings.TrimPrefix(err.Error(), folder+"/tokenizer.json: "); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestATemplateOfAnotherTextIsAnError(t *testing.T) {
	const template = `"post_processor": {"type": "TemplateProcessing",
 "single": [{"Sequence": {"id": "", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}], "pair": []}`
	const want = `post_processor for a text: a Sequence has the id "", want A or B`
	folder := writeFiles(t, "tokenizer.json", strings.Replace(smallSubwords, `"post_processor": null`, template, 1))
	if _, err := OpenTokenizer(folder); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("OpenTokenizer = %v, want %s", err, want)
	}
}
