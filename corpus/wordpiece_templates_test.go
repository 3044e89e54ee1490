package corpus

import (
	"slices"
	"strings"
	"testing"
)

func TestVocabularyOfMPNet(t *testing.T) {
	const vocabulary = "<s>\n<pad>\n</s>\n<unk>\n[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\n##d\n.\n<mask>\n"
	for _, c := range []struct {
		rule  string
		files []string
		want  string // the tokens of MPNetTokenizer of transformers 5.23.0
	}{
		{"the class", []string{"tokenizer_config.json", `{"tokenizer_class": "MPNetTokenizer"}`},
			"<s> a b ##d . <mask> [UNK] </s>"},
		{"the encoder's type", []string{"config.json", `{"model_type": "mpnet"}`, "tokenizer_config.json",
			`{"do_lower_case": false}`}, "<s> [UNK] b ##d . <mask> [UNK] </s>"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			tokenizer, err := OpenTokenizer(writeFiles(t, append(c.files, "vocab.txt", vocabulary)...))
			if err != nil {
				t.Fatal(err)
			}
			e := tokenizer.Encode(&Example{Text: "A bd. <mask> zz"}, 0)
			var tokens []string
			for _, id := range e.IDs {
				tokens = append(tokens, tokenizer.Token(id))
			}
			if got := strings.Join(tokens, " "); got != c.want {
				t.Errorf("tokens %s, want %s", got, c.want)
			}
			if at := (Span{6, 12}); e.Offsets[5] != at {
				t.Errorf("the mask is at %v, want %v", e.Offsets[5], at)
			}
			folder := t.TempDir()
			if err := tokenizer.Save(folder); err != nil {
				t.Fatal(err)
			}
			again, err := OpenTokenizer(folder)
			if err != nil {
				t.Fatal(err)
			}
			pair := &Example{Text: "a", Pair: "b", Paired: true}
			if got, want := again.Encode(pair, 0).IDs, []int32{0, 9, 2, 2, 10, 2}; !slices.Equal(got, want) {
				t.Errorf("tokens of a pair after saving %v, want %v", got, want)
			}
		})
	}
}

// FuzzPostProcessor reads tokenizer.json files with a post-processor of any kind.
func FuzzPostProcessor(f *testing.F) {
	const wordPiece = `"normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
 "lowercase": true}, "pre_tokenizer": {"type": "BertPreTokenizer"}, "model": {"type": "WordPiece", "unk_token": "<u>",
 "vocab": {"<u>": 0, "<s>": 1, "</s>": 2, "a": 3, "##b": 4}}`
	const bytePairs = `"model": {"type": "BPE", "unk_token": "<u>", "vocab": {"<u>": 0, "<s>": 1, "</s>": 2, "a": 3},
 "merges": []}`
	for _, seed := range []string{
		`{"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 1], "trim_offsets": true}`,
		`{"type": "BertProcessing", "sep": ["</s>", 2], "cls": ["<s>", 1]}`,
		`{"type": "Sequence", "processors": [{"type": "ByteLevel", "trim_offsets": true}, {"type": "TemplateProcessing",
 "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
 "pair": [{"Sequence": {"id": "B", "type_id": 1}}, {"Sequence": {"id": "A", "type_id": 0}}],
 "special_tokens": {"<s>": {"id": "<s>", "ids": [1, 2], "tokens": ["<s>", "</s>"]}}}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, processor []byte) {
		for _, parts := range []string{wordPiece, bytePairs} {
			folder := writeFiles(t, "tokenizer.json", `{`+parts+`, "post_processor": `+string(processor)+`}`)
			tokenizer, err := OpenTokenizer(folder)
			if err != nil {
				continue
			}
			e := &Example{Text: "ab <s>é ba", Pair: " a</s>", Paired: true}
			for _, maxLength := range []int{0, 1, 7} {
				got := tokenizer.Encode(e, maxLength)
				n := len(got.IDs)
				if len(got.Offsets) != n || len(got.Segments) != n {
					t.Fatalf("%d ids, but %+v", n, got)
				}
				for i, at := range got.Offsets {
					text := []string{e.Text, e.Pair}[got.Segments[i]]
					if got.IDs[i] < 0 || int(got.IDs[i]) >= tokenizer.Size() {
						t.Errorf("token %d of %d", got.IDs[i], tokenizer.Size())
					}
					if at.Start > at.End || at.End > len(text) {
						t.Errorf("a token is at %v of %d bytes", at, len(text))
					}
				}
			}
		}
	})
}
