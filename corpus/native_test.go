//go:build native

package corpus

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/internal/shared"
	"github.com/jenga-nlp/jenga/internal/tokenizer"
)

// The fixtures are results of the crate tokenizers 0.23.3, written by scripts/fixtures/tokens_native.py.
func openFixture(t testing.TB, name string) Tokenizer {
	t.Helper()
	return openNatively(t, filepath.Join(nativeDir, name))
}

// openNatively opens with the crate a tokenizer that jenga can read itself.
func openNatively(t testing.TB, folder string) Tokenizer {
	t.Helper()
	n, err := newTokenizer(tokenizer.OpenNative(folder))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestNativeTokensMatchWordPiece(t *testing.T) {
	var texts []string
	readFixtureJSON(t, "texts.json.gz", &texts)
	compare := func(t *testing.T, ours Tokenizer, native Tokenizer, kind string, texts []string) {
		t.Helper()
		if ours.Size() != native.Size() {
			t.Errorf("size %d, want %d", native.Size(), ours.Size())
		}
		wrong := 0
		for i, text := range texts {
			e, maxLength := crateExample(kind, texts, i)
			want, got := ours.Encode(e, maxLength), native.Encode(e, maxLength)
			if formatEncoding(got) == formatEncoding(want) && formatWithTokenTypes(got) == formatEncoding(want) {
				continue
			}
			if wrong++; wrong <= 3 {
				t.Errorf("text %d, %+q: got\n%swant\n%s", i, text, formatEncoding(got), formatEncoding(want))
			}
		}
		if wrong > 0 {
			t.Errorf("%d of %d texts differ", wrong, len(texts))
		}
	}
	for _, names := range crateRuns {
		settings, kind := names[0], names[1]
		t.Run(settings+" "+kind, func(t *testing.T) {
			ours, folder := fixtureTokenizer(t, settings), t.TempDir()
			if err := ours.Save(folder); err != nil {
				t.Fatal(err)
			}
			compare(t, ours, openNatively(t, folder), kind, texts)
		})
	}

	t.Run("added tokens", func(t *testing.T) {
		folder := filepath.Join(tokensDir, "added")
		ours, err := OpenTokenizer(folder)
		if err != nil {
			t.Fatal(err)
		}
		var cases []struct{ Text string }
		readFixtureJSON(t, "added/texts.json", &cases)
		var texts []string
		for _, c := range cases {
			texts = append(texts, c.Text)
		}
		compare(t, ours, openNatively(t, folder), "alone", texts)
	})
}

func TestNativeTokensOfCorporaMatchTokenizersCrate(t *testing.T) {
	shared.SkipUnlessLong(t)
	var sums map[string]string
	readFixtureJSON(t, "corpora.json", &sums)
	encodeCorpora(t, openNatively(t, filepath.Join(shared.Dir(t), "tokenizer", "bert-base-uncased")), sums)
}

func TestNativeTokensMatchTokenizersCrate(t *testing.T) {
	for _, name := range []string{"bpe", "unigram"} {
		t.Run(name, func(t *testing.T) { checkCases(t, openFixture(t, name), name) })
	}
}

// The crate is the oracle of what jenga reads itself: both give the hard texts the same tokens. A NUL ends a text in C.
func TestNativeTokensMatchSubwords(t *testing.T) {
	var texts []string
	readFixtureJSON(t, "texts.json.gz", &texts)
	for i := range texts {
		texts[i] = strings.ReplaceAll(texts[i], "\x00", "")
	}
	for _, family := range families {
		if family == "neox" {
			continue // where bytes are dropped, offsets lie within characters, which the crate trims by bytes in C
		}
		t.Run(family, func(t *testing.T) {
			folder := writeFiles(t, "tokenizer.json", familyFile(t, family))
			crate, wrong := openNatively(t, folder), 0
			ours, err := OpenTokenizer(folder)
			if err != nil {
				t.Fatal(err)
			}
			for i, text := range texts {
				got, want := formatFamilyExample(ours, texts, i), formatFamilyExample(crate, texts, i)
				if got == want {
					continue
				}
				if wrong++; wrong <= 3 {
					t.Errorf("text %d, %+q: got\n%swant\n%s", i, text, got, want)
				}
			}
			if wrong > 0 {
				t.Errorf("%d of %d texts differ", wrong, len(texts))
			}
		})
	}
}

func TestNativeEncode(t *testing.T) {
	n := openFixture(t, "bpe")
	tokens := func(e Encoding) string {
		var all []string
		for _, id := range e.IDs {
			all = append(all, n.Token(id))
		}
		return strings.Join(all, " ")
	}

	t.Run("special tokens of a pair and their types", func(t *testing.T) {
		e := n.Encode(&Example{Text: "a", Pair: "b", Paired: true}, 0)
		if got, want := tokens(e), "<s> a </s> </s> b </s>"; got != want {
			t.Errorf("tokens %s, want %s", got, want)
		}
		if want := []int8{0, 0, 0, 0, 1, 1}; !slices.Equal(e.Segments, want) {
			t.Errorf("types %v, want %v", e.Segments, want)
		}
		if want := make([]int8, 6); !slices.Equal(e.TokenTypes, want) {
			t.Errorf("token types %v, want %v", e.TokenTypes, want)
		}
	})

	t.Run("special tokens are never removed", func(t *testing.T) {
		for maxLength := 1; maxLength < 7; maxLength++ {
			e := n.Encode(&Example{Text: "a b c d", Pair: "e", Paired: true}, maxLength)
			if got, want := len(e.IDs), max(4, maxLength); got != want {
				t.Errorf("%d tokens of at most %d, want %d", got, maxLength, want)
			}
		}
	})

	t.Run("a word has a blank before it, a text has none", func(t *testing.T) {
		words := n.Encode(&Example{Text: "the,the", Words: []Span{{0, 3}, {4, 7}}}, 0)
		behind, text := n.Encode(&Example{Text: " the the"}, 0), n.Encode(&Example{Text: "the the"}, 0)
		if !slices.Equal(words.IDs, behind.IDs) || slices.Equal(words.IDs, text.IDs) {
			t.Errorf("tokens %s, want %s, not %s", tokens(words), tokens(behind), tokens(text))
		}
		if want := []Span{{}, {0, 3}, {4, 7}, {}}; !slices.Equal(words.Offsets, want) {
			t.Errorf("offsets %v, want %v", words.Offsets, want)
		}
		if want := []int32{-1, 0, 1, -1}; !slices.Equal(words.Words, want) {
			t.Errorf("words %v, want %v", words.Words, want)
		}
		if e := n.Encode(&Example{Words: []Span{}}, 0); !slices.Equal(e.Words, []int32{-1, -1}) {
			t.Errorf("words %v of no words", e.Words)
		}
	})

	t.Run("invalid bytes and NUL are read as U+FFFD, each in its place", func(t *testing.T) {
		clean, spoiled := n.Encode(&Example{Text: "a\ufffdb\ufffd c"}, 0), n.Encode(&Example{Text: "a\x00b\xff c"}, 0)
		if !slices.Equal(spoiled.IDs, clean.IDs) {
			t.Errorf("tokens %s, want %s", tokens(spoiled), tokens(clean))
		}
		places := map[int]int{0: 0, 1: 1, 4: 2, 5: 3, 8: 4, 9: 5, 10: 6} // U+FFFD has three bytes
		for i, at := range clean.Offsets {
			if got, want := spoiled.Offsets[i], (Span{places[at.Start], places[at.End]}); got != want {
				t.Errorf("token %d is at %v, want %v", i, got, want)
			}
		}
	})

	t.Run("a token of a part of a character has the bytes of all of it", func(t *testing.T) {
		e := n.Encode(&Example{Text: "x😀"}, 0)
		for i, at := range e.Offsets[2 : len(e.Offsets)-1] {
			if at != (Span{1, 5}) {
				t.Errorf("token %d is at %v", i+2, at)
			}
		}
	})

	t.Run("words of a raw text", func(t *testing.T) {
		if got, want := n.Split("Isn't <mask>é? 中文"),
			[]Span{{0, 3}, {3, 4}, {4, 5}, {6, 12}, {12, 14}, {14, 15}, {16, 19}, {19, 22}}; !slices.Equal(got, want) {
			t.Errorf("words %v, want %v", got, want)
		}
	})

	t.Run("concurrent encoding", func(t *testing.T) {
		var texts []string
		readFixtureJSON(t, "texts.json.gz", &texts)
		results := make(chan string)
		for range 4 {
			go func() {
				var all strings.Builder
				for _, text := range texts[:300] {
					e := &Example{Text: text, Words: []Span{{0, len(text)}}}
					all.WriteString(formatEncoding(n.Encode(e, 0)))
				}
				results <- all.String()
			}()
		}
		want := <-results
		for range 3 {
			if got := <-results; got != want {
				t.Error("concurrent encoding gives other tokens")
			}
		}
	})
}

func TestNativeVocabulary(t *testing.T) {
	for name, mask := range map[string]string{"bpe": "<mask>", "unigram": "[MASK]"} {
		n := openFixture(t, name)
		id, ok := n.Mask()
		if !ok || n.Token(id) != mask || int(id) != n.Size()-1 {
			t.Errorf("%s: mask %d %v, %q, of %d", name, id, ok, n.Token(id), n.Size())
		}
		var texts []string
		readFixtureJSON(t, "texts.json.gz", &texts)
		for _, text := range texts {
			e := &Example{Text: text}
			got := n.Encode(e, 0)
			for i, id := range got.IDs {
				if at := got.Offsets[i]; int(id) >= n.Size() || at.Start > at.End || at.End > len(text) {
					t.Fatalf("%s: %+q: token %d at %v", name, text, id, at)
				}
			}
		}
	}
}

func TestNativeSave(t *testing.T) {
	for _, name := range []string{"bpe", "unigram"} {
		first, second := t.TempDir(), t.TempDir()
		if err := openFixture(t, name).Save(first); err != nil {
			t.Fatal(err)
		}
		again, err := tokenizer.OpenNative(first)
		if err != nil {
			t.Fatal(err)
		}
		if err := again.Save(second); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"} {
			saved, _ := os.ReadFile(filepath.Join(second, file))
			source, err := os.ReadFile(filepath.Join(nativeDir, name, file))
			if err == nil && !bytes.Equal(saved, source) {
				t.Errorf("%s/%s differs", name, file)
			}
			if err != nil && file == "tokenizer_config.json" &&
				!bytes.Contains(saved, []byte("PreTrainedTokenizerFast")) {
				t.Errorf("%s/%s: %q", name, file, saved)
			}
		}
	}
}

func TestNativeBadFilesAreErrors(t *testing.T) {
	const small = `{"version": "1.0", "model": {"type": "BPE", "unk_token": "u", "vocab": {"u": 0, "a": 1, "b": 2}, "merges": []}}`
	spoiled := func(old, with string) string {
		if !strings.Contains(small, old) {
			t.Fatalf("no %q to spoil", old)
		}
		return strings.Replace(small, old, with, 1)
	}
	processor := func(format string, a ...any) string {
		return spoiled(`"model"`, `"post_processor": `+fmt.Sprintf(format, a...)+`, "model"`)
	}
	if _, err := tokenizer.OpenNative(writeFiles(t, "tokenizer.json", small)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ rule, file, want string }{
		{"an unknown model", spoiled("BPE", "Words"), `data did not match any variant of untagged enum ModelUntagged`},
		{"another version", spoiled("1.0", "2.0"), `Unknown tokenizer version '2.0'`},
		{"a merge of no tokens", spoiled(`"merges": []`, `"merges": [["a", "c"]]`), "Token `c` out of vocabulary"},
		{"a merge that is NUL", spoiled(`"merges": []`, `"merges": [["a", "\u0000"]]`), "Token ` ` out of vocabulary"},
		{"a merge on which the crate panics",
			spoiled(`"merges": []`, `"continuing_subword_prefix": "##", "merges": [["a", "b"]]`),
			`the crate tokenizers panics`},
		{"random tokens", spoiled(`"merges"`, `"dropout": 0.1, "merges"`),
			`model has dropout 0.1, which gives a text other tokens each time; want 0`},
		{"no unknown token", `{"model": {"type": "Unigram", "vocab": [["a", 0.0]], "unk_id": null}}`,
			`the model fails on characters outside its vocabulary: it needs an unknown token`},
		{"no vocabulary", spoiled(`"vocab"`, `"words"`), `model has no vocab`},
		{"a vocabulary of numbers", `{"model": {"type": "Unigram", "vocab": [[1, 0.5]]}}`,
			`model.vocab: entry 0 is [1 0.5], want a token and its score`},
		{"a vocabulary of nothing", `{"model": {"type": "Unigram", "vocab": [[]]}}`,
			`model.vocab: entry 0 is [], want a token and its score`},
		{"a vocabulary of another kind", `{"model": {"type": "Unigram", "vocab": "a"}}`,
			`model.vocab is neither an object of token ids nor a list of tokens with their scores`},
		{"an id that requires gigabytes", spoiled(`"b": 2`, `"b": 2000000000`),
			`token "b" has id 2000000000, want 0 to 2097151`},
		{"an added token with another id",
			spoiled(`"model"`, `"added_tokens": [{"id": 9, "content": "<x>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}], "model"`),
			`added token "<x>" has id 9, but tokenizers gives it 3`},
		{"a special token outside the vocabulary",
			processor(`{"type": "RobertaProcessing", "sep": ["b", 3], "cls": ["a", 1], "trim_offsets": true, "add_prefix_space": false}`),
			`post_processor's sep: id 3 is outside the vocabulary of 3`},
		{"a special token without an id", processor(`{"type": "BertProcessing", "sep": ["b", 2], "cls": ["a"]}`),
			`post_processor's cls: [a], want a token and its id`},
		{"a template without its text", processor(`{"type": "TemplateProcessing", "single": [], "pair": [], "special_tokens": {}}`),
			`post_processor for a text: the template is "", want each of the texts ["A"] in it once`},
		{"a template of one text", processor(`{"type": "TemplateProcessing", "single": [%[1]s], "pair": [%[1]s], "special_tokens": {}}`, `{"Sequence": {"id": "A", "type_id": 0}}`),
			`post_processor for a pair: the template is "$A:0", want each of the texts ["A" "B"] in it once`},
		{"a type that does not fit", processor(`{"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 1000}}]}`),
			`post_processor for a text: "A" has type_id 1000, want 0 to 127`},
		{"a template of unknown tokens",
			processor(`{"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}], "special_tokens": {}}`),
			`post_processor for a text: special_tokens lacks "<s>"`},
		{"two templates", processor(`{"type": "Sequence", "processors": [{"type": "BertProcessing", "sep": ["b", 2], "cls": ["a", 1]}, {"type": "ByteLevel"}, {"type": "TemplateProcessing"}]}`),
			`post_processor: two of its processors add special tokens, want one`},
		{"an unknown post-processor", processor(`{"type": "Magic"}`),
			`post_processor is of type "Magic"; jenga reads TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel, Sequence`},
	} {
		t.Run(c.rule, func(t *testing.T) {
			folder := writeFiles(t, "tokenizer.json", c.file)
			_, err := tokenizer.OpenNative(folder)
			if err == nil {
				t.Fatal("no error")
			}
			if got, want := err.Error(), filepath.Join(folder, "tokenizer.json")+": "+c.want; got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func FuzzNativeOpen(f *testing.F) {
	f.Add([]byte(smallTokenizer))
	f.Add([]byte(`{"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAAAAAA"}, "pre_tokenizer": {"type": "Metaspace", "replacement": "_", "prepend_scheme": "first", "split": true},
 "model": {"type": "Unigram", "unk_id": 0, "vocab": [["u", 0], ["_a", -1.5]]}}`))
	f.Add([]byte(`{"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true}, "post_processor": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true},
 "model": {"type": "BPE", "unk_token": "a", "continuing_subword_prefix": "#", "vocab": {"a": 0, "#b": 1, "ab": 2}, "merges": [["a", "#b"]]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		n, err := newTokenizer(tokenizer.OpenNative(writeFiles(t, "tokenizer.json", string(data),
			"tokenizer_config.json", `{"mask_token": "<mask>"}`)))
		if err != nil {
			return
		}
		e := &Example{Text: " a\x00b é中😀 <mask>", Pair: string(data[:min(len(data), 100)]), Paired: true}
		got := n.Encode(e, 50)
		for i, at := range got.Offsets {
			end := len(e.Text)
			if got.Segments[i] == 1 {
				end = len(e.Pair)
			}
			if at.Start < 0 || at.Start > at.End || at.End > end {
				t.Errorf("token %d is at %v of %d bytes", i, at, end)
			}
		}
	})
}
