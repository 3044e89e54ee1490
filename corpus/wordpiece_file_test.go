package corpus

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/internal/shared"
)

// A small tokenizer, whose files the tests modify.
const (
	smallTokenizer = `{
  "added_tokens": [{"id": 0, "content": "[PAD]", "special": true}],
  "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
  "pre_tokenizer": {"type": "BertPreTokenizer"},
  "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
  "model": {"type": "WordPiece", "unk_token": "[UNK]", "vocab": {
    "[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4, "a": 5}}
}`
	smallVocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##a\n"
	smallTemplate   = `"post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}},
 {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "[SEP]", "type_id": 0}}], "pair": [], "special_tokens": {}}`
)

// writeFiles creates a folder of files, given by name and content in turn.
func writeFiles(t testing.TB, files ...string) string {
	t.Helper()
	folder := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		if err := os.WriteFile(filepath.Join(folder, files[i]), []byte(files[i+1]), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func TestBadTokenizerFilesAreErrors(t *testing.T) {
	spoiled := func(old, with string) string {
		if !strings.Contains(smallTokenizer, old) {
			t.Fatalf("no %q to spoil", old)
		}
		return strings.Replace(smallTokenizer, old, with, 1)
	}
	for _, c := range []struct {
		rule  string
		files []string
		want  string // the error, with FOLDER/ for the folder of the files
	}{
		{"an empty folder", nil, `FOLDER: no tokenizer: want tokenizer.json, vocab.txt, or vocab.json with merges.txt`},
		{"an empty file", []string{"tokenizer.json", ""},
			`FOLDER/tokenizer.json:1: not JSON: unexpected end of JSON input`},
		{"a truncated file", []string{"tokenizer.json", smallTokenizer[:400]},
			`FOLDER/tokenizer.json:6: not JSON: unexpected end of JSON input`},
		{"a list", []string{"tokenizer.json", "[]"},
			`FOLDER/tokenizer.json: it holds a JSON array; want an object`},
		{"not UTF-8", []string{"tokenizer.json", spoiled(`"a"`, "\"\xff\"")}, `FOLDER/tokenizer.json:7: not UTF-8`},
		{"an id that contradicts the template",
			[]string{"tokenizer.json", spoiled(`"cls"`, `"special_tokens": {"[CLS]": {"ids": [3]}}, "cls"`)},
			`FOLDER/tokenizer.json: post_processor gives "[CLS]" the ids [3], the vocabulary 2`},
		{"no vocabulary", []string{"tokenizer.json", spoiled(`"vocab"`, `"vocabulary"`)},
			`FOLDER/tokenizer.json: model has no vocab`},
		{"no [UNK]", []string{"tokenizer.json", spoiled(`"[UNK]": 1`, `"b": 1`)},
			`FOLDER/tokenizer.json: no token "[UNK]", which a WordPiece tokenizer requires`},
		{"no [CLS]", []string{"tokenizer.json", spoiled(`"[CLS]": 2`, `"b": 2`)},
			`FOLDER/tokenizer.json: no token "[CLS]", which a WordPiece tokenizer requires`},
		{"a duplicate id", []string{"tokenizer.json", spoiled(`"a": 5`, `"b": 4`)},
			`FOLDER/tokenizer.json: tokens "[MASK]" and "b" both have id 4`},
		{"an id below 0", []string{"tokenizer.json", spoiled(`"a": 5`, `"a": -5`)},
			`FOLDER/tokenizer.json: token "a" has id -5, want 0 to 2097151`},
		{"an id that requires gigabytes", []string{"tokenizer.json", spoiled(`"a": 5`, `"a": 2000000000`)},
			`FOLDER/tokenizer.json: token "a" has id 2000000000, want 0 to 2097151`},
		{"an id that is text", []string{"tokenizer.json", spoiled(`"a": 5`, `"a": "5"`)},
			`FOLDER/tokenizer.json:7: model.vocab is a string; want a whole number`},
		{"words of length 0", []string{"tokenizer.json", spoiled(`"vocab"`, `"max_input_chars_per_word": 0, "vocab"`)},
			`FOLDER/tokenizer.json: max_input_chars_per_word is 0, want 1 to 1000`},
		{"an added token with another's id",
			[]string{"tokenizer.json", spoiled(`"[PAD]", "special"`, `"<x>", "special"`)},
			`FOLDER/tokenizer.json: added token "<x>" has id 0, but tokenizers gives it 6`},
		{"an added token with another id", []string{"tokenizer.json", spoiled(`"id": 0`, `"id": 7`)},
			`FOLDER/tokenizer.json: added token "[PAD]" has id 7, but tokenizers gives it 0`},
		{"an added token with a huge id", []string{"tokenizer.json",
			spoiled(`"id": 0, "content": "[PAD]"`, `"id": 2000000000, "content": "<x>"`)},
			`FOLDER/tokenizer.json: added token "<x>" has id 2000000000, but tokenizers gives it 6`},
		{"settings that contradict the file", []string{"tokenizer.json", smallTokenizer, "tokenizer_config.json",
			`{"do_lower_case": false}`},
			`FOLDER/tokenizer.json: the normalizer has lowercase true, but by the tokenizer_config.json beside it ` +
				`transformers has false; write "do_lower_case": true there, or make tokenizer.json again: ` +
				`AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)`},
		{"settings that are not JSON", []string{"tokenizer.json", smallTokenizer, "tokenizer_config.json",
			"{\n\"do_lower_case\": yes}"},
			`FOLDER/tokenizer_config.json:2: not JSON: invalid character 'y' looking for beginning of value`},
		{"settings of a wrong kind", []string{"vocab.txt", smallVocabulary, "tokenizer_config.json",
			`{"do_lower_case": "yes"}`},
			`FOLDER/tokenizer_config.json:1: do_lower_case is a string; want true or false`},
		{"a vocabulary alone", []string{"vocab.txt", smallVocabulary},
			`FOLDER/vocab.txt: no tokenizer_config.json beside it, which sets do_lower_case`},
		{"a vocabulary in another format",
			[]string{"vocab.txt", smallVocabulary, "tokenizer_config.json",
				`{"tokenizer_class": "BertJapaneseTokenizer"}`},
			`FOLDER/vocab.txt: the tokenizer_config.json beside it has tokenizer_class "BertJapaneseTokenizer", whose vocab.txt may have another format; want BertTokenizer or DistilBertTokenizer`},
		{"a vocabulary that is not UTF-8",
			[]string{"vocab.txt", smallVocabulary + "caf\xe9\n", "tokenizer_config.json", `{}`},
			`FOLDER/vocab.txt:8: not UTF-8`},
		{"a vocabulary without [MASK]", []string{"vocab.txt", strings.Replace(smallVocabulary, "[MASK]", "b", 1),
			"tokenizer_config.json", `{}`},
			`FOLDER/vocab.txt: no special token "[MASK]"`},
		{"an empty vocabulary", []string{"vocab.txt", "", "tokenizer_config.json", `{}`},
			`FOLDER/vocab.txt: no special token "[PAD]"`},
		{"a huge vocabulary", []string{"vocab.txt", strings.Repeat("a\n", 1<<21+1), "tokenizer_config.json",
			`{}`},
			`FOLDER/vocab.txt: 2097153 lines, want at most 2097152`},
		{"no unknown token", []string{"vocab.txt", smallVocabulary, "tokenizer_config.json", `{"unk_token": null}`},
			`FOLDER/vocab.txt: no token "", which a WordPiece tokenizer requires`},
		{"an added token without an id",
			[]string{"vocab.txt", smallVocabulary, "tokenizer_config.json",
				`{"added_tokens_decoder": {"x": {"content": "<x>"}}}`},
			`FOLDER/vocab.txt: added_tokens_decoder of tokenizer_config.json has the key "x", want an id`},
	} {
		t.Run(c.rule, func(t *testing.T) {
			folder := writeFiles(t, c.files...)
			_, err := OpenTokenizer(folder)
			if err == nil {
				t.Fatal("no error")
			}
			if got := strings.ReplaceAll(err.Error(), folder, "FOLDER"); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}

	t.Run("a file that is too large is not read", func(t *testing.T) {
		folder := writeFiles(t, "tokenizer.json", "")
		if err := os.Truncate(filepath.Join(folder, "tokenizer.json"), 1<<40); err != nil {
			t.Fatal(err)
		}
		_, err := OpenTokenizer(folder)
		want := filepath.Join(folder, "tokenizer.json") + ": more than 67108864 bytes, which is the most that is read"
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	})
}

func TestOpenWordPiece(t *testing.T) {
	encode := func(t *testing.T, text string, files ...string) string {
		t.Helper()
		w, err := OpenTokenizer(writeFiles(t, files...))
		if err != nil {
			t.Fatal(err)
		}
		var tokens []string
		for _, id := range w.Encode(&Example{Text: text}, 0).IDs {
			tokens = append(tokens, w.Token(id))
		}
		return strings.Join(tokens, " ")
	}
	vocabulary := "[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\n[MASK]\r\na\r\n##a\r\nA\r\ná\r\n中a\r\n\r\n##\r\n"
	for _, c := range []struct{ rule, config, text, want string }{
		{"lower case by default", `{}`, "Aa á 中a", "[CLS] a ##a a [UNK] a [SEP]"},
		{"cased", `{"do_lower_case": false}`, "Aa á 中a", "[CLS] A ##a á [UNK] a [SEP]"},
		{"accents kept", `{"strip_accents": false}`, "Aa Á", "[CLS] a ##a á [SEP]"},
		{"accents dropped from cased letters", `{"do_lower_case": false, "strip_accents": true}`, "Á á",
			"[CLS] A a [SEP]"},
		{"ideographs not spaced", `{"tokenize_chinese_chars": false}`, "中a", "[CLS] 中a [SEP]"},
		{"names as objects", `{"cls_token": {"content": "[MASK]", "lstrip": false}}`, "a", "[MASK] a [SEP]"},
		{"an old class", `{"tokenizer_class": "DistilBertTokenizerFast"}`, "a", "[CLS] a [SEP]"},
		{"an added token after the vocabulary", `{"added_tokens_decoder": {"12": {"content": "<x>"}}}`, "a<x>a",
			"[CLS] a <x> a [SEP]"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			if got := encode(t, c.text, "vocab.txt", vocabulary, "tokenizer_config.json", c.config); got != c.want {
				t.Errorf("%q: got %q, want %q", c.text, got, c.want)
			}
		})
	}

	// as in transformers, whose tokens are the same then
	t.Run("a mask with lstrip includes the blank before it", func(t *testing.T) {
		for config, want := range map[string]Span{
			`{"mask_token": {"content": "[MASK]", "lstrip": true}}`:  {1, 8},
			`{"mask_token": {"content": "[MASK]", "lstrip": false}}`: {2, 8},
			`{"mask_token": "[MASK]"}`:                               {2, 8},
		} {
			w, err := OpenTokenizer(writeFiles(t, "vocab.txt", vocabulary, "tokenizer_config.json", config))
			if err != nil {
				t.Fatal(err)
			}
			e := w.Encode(&Example{Text: "a [MASK] a"}, 0)
			if ids := []int32{2, 5, 4, 5, 3}; !slices.Equal(e.IDs, ids) || e.Offsets[2] != want {
				t.Errorf("%s: tokens %v, the mask at %v; want %v, %v", config, e.IDs, e.Offsets, ids, want)
			}
		}
	})

	t.Run("the last of duplicate tokens counts", func(t *testing.T) {
		w, err := OpenTokenizer(writeFiles(t, "vocab.txt", smallVocabulary+"a\n", "tokenizer_config.json", "{}"))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := w.Encode(&Example{Text: "a"}, 0).IDs, []int32{2, 7, 3}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})

	t.Run("without a mask token Mask returns false", func(t *testing.T) {
		for _, files := range [][]string{
			{"tokenizer.json", strings.Replace(smallTokenizer, `"[MASK]": 4, "a": 5`, `"a": 4`, 1)},
			{"tokenizer.json", strings.Replace(smallTokenizer, `"[MASK]": 4, `, ``, 1)}, // no token has id 4
			{"vocab.txt", "[PAD]\n\n" + strings.TrimPrefix(smallVocabulary, "[PAD]\n"), "tokenizer_config.json",
				`{"mask_token": null}`},
		} {
			w, err := OpenTokenizer(writeFiles(t, files...))
			if err != nil {
				t.Fatal(err)
			}
			if id, ok := w.Mask(); id != 0 || ok {
				t.Errorf("Mask() = %d, %v of\n%s\nwant 0, false", id, ok, files[1])
			}
		}
	})

	t.Run("a byte-order mark is skipped", func(t *testing.T) {
		if got, want := encode(t, "a", "tokenizer.json", "\ufeff"+smallTokenizer), "[CLS] a [SEP]"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// sameTokens reports texts that two tokenizers encode differently.
func sameTokens(t *testing.T, got, want Tokenizer, texts []string) {
	t.Helper()
	for _, text := range texts {
		e := &Example{Text: text, Pair: text, Paired: true}
		if got, want := formatEncoding(got.Encode(e, 0)), formatEncoding(want.Encode(e, 0)); got != want {
			t.Fatalf("%q: got\n%s\nwant\n%s", text, got, want)
		}
	}
}

func TestSave(t *testing.T) {
	var texts []string
	readFixtureJSON(t, "texts.json.gz", &texts)
	texts = texts[:len(texts)/4]
	for name := range crateSettings {
		t.Run(name, func(t *testing.T) {
			w := fixtureTokenizer(t, name)
			folder := filepath.Join(t.TempDir(), "made", "anew")
			if err := w.Save(folder); err != nil {
				t.Fatal(err)
			}
			again, err := OpenTokenizer(folder)
			if err != nil {
				t.Fatal(err)
			}
			sameTokens(t, again, w, texts)

			// vocab.txt and its settings alone give the same tokenizer, if they can express it.
			if !crateSettings[name].Clean {
				return
			}
			if err := os.Remove(filepath.Join(folder, "tokenizer.json")); err != nil {
				t.Fatal(err)
			}
			if again, err = OpenTokenizer(folder); err != nil {
				t.Fatal(err)
			}
			sameTokens(t, again, w, texts)
		})
	}

	t.Run("added tokens and their ids", func(t *testing.T) {
		w, err := OpenTokenizer(filepath.Join(tokensDir, "added"))
		if err != nil {
			t.Fatal(err)
		}
		var cases []struct{ Text string }
		readFixtureJSON(t, "added/texts.json", &cases)
		texts := texts[:100]
		for _, c := range cases {
			texts = append(texts, c.Text)
		}
		folder := t.TempDir()
		if err := w.Save(folder); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{"tokenizer.json", "vocab.txt"} {
			again, err := OpenTokenizer(folder)
			if err != nil {
				t.Fatal(err)
			}
			sameTokens(t, again, w, texts)
			if err := os.Remove(filepath.Join(folder, file)); err != nil {
				t.Fatal(err)
			}
		}
	})

	t.Run("the same bytes each time", func(t *testing.T) {
		w := fixtureTokenizer(t, "uncased")
		first, second := t.TempDir(), t.TempDir()
		for _, folder := range []string{first, second} {
			if err := w.Save(folder); err != nil {
				t.Fatal(err)
			}
		}
		for _, file := range []string{"tokenizer.json", "vocab.txt", "tokenizer_config.json",
			"special_tokens_map.json"} {
			a, err := os.ReadFile(filepath.Join(first, file))
			if err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(filepath.Join(second, file))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(a, b) {
				t.Errorf("%s differs", file)
			}
		}
	})

	t.Run("a file as the crate writes it", func(t *testing.T) {
		// The crate's file of this tokenizer, without padding and truncation, which are not kept.
		w, err := OpenTokenizer(filepath.Join(tokensDir, "added"))
		if err != nil {
			t.Fatal(err)
		}
		var want, got map[string]any
		readFixtureJSON(t, "added/tokenizer.json", &want)
		want["truncation"], want["padding"] = nil, nil
		folder := t.TempDir()
		if err := w.Save(folder); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(folder, "tokenizer.json"))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatal(err)
		}
		want["decoder"] = got["decoder"] // the crate had none, AutoTokenizer expects one
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(want)
		if !bytes.Equal(a, b) {
			t.Errorf("got  %s\nwant %s", a, b)
		}
	})
}

func TestTokenizersOfModels(t *testing.T) {
	dir := shared.Dir(t)
	var texts []string
	readFixtureJSON(t, "texts.json.gz", &texts)
	want, err := OpenTokenizer(filepath.Join(dir, "tokenizer", "bert-base-uncased"))
	if err != nil {
		t.Fatal(err)
	}
	if want.Size() != 30522 || want.Token(101) != "[CLS]" {
		t.Errorf("%d tokens, %q the 101st", want.Size(), want.Token(101))
	}
	for _, model := range []string{"minilm-l6", "distil-l6"} {
		t.Run(model, func(t *testing.T) {
			got, err := OpenTokenizer(filepath.Join(dir, "models", model))
			if err != nil {
				t.Fatal(err)
			}
			sameTokens(t, got, want, texts)
		})
	}
}

func FuzzOpenTokenizer(f *testing.F) {
	f.Add([]byte(smallTokenizer), true)
	f.Add([]byte(strings.Replace(smallTokenizer, `"special"`,
		`"normalized": true, "lstrip": true, "single_word": true, "special"`, 1)), true)
	f.Add([]byte(smallVocabulary), false)
	f.Add(readFixture(f, "added/tokenizer.json"), true)
	f.Fuzz(func(t *testing.T, data []byte, isJSON bool) {
		files := []string{"tokenizer.json", string(data)}
		if !isJSON {
			files = []string{"vocab.txt", string(data), "tokenizer_config.json", "{}"}
		}
		w, err := OpenTokenizer(writeFiles(t, files...))
		if err != nil {
			return
		}
		e := &Example{Text: "Aa [MASK] <x>é中 [CLS", Pair: string(data[:min(len(data), 100)]), Paired: true}
		checkEncoding(t, w, e, w.Encode(e, 50))

		folder := t.TempDir()
		if err := w.Save(folder); err != nil {
			t.Fatal(err)
		}
		again, err := OpenTokenizer(folder)
		if err != nil {
			t.Fatalf("what was saved does not open: %v", err)
		}
		sameTokens(t, again, w, []string{e.Text, e.Pair})
	})
}

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
		"long words": {`"unk_token"`, `"max_input_chars_per_word": 1001, "unk_token"`, "want 1 to 1000"},
		"a long piece": {`"vocab": {`, `"vocab": {"` + long + `": 9, `,
			`model.vocab has a token of 1025 bytes, "` + long[:20] + `", want at most 1024`},
		"a long added token": {`"added_tokens": [`, `"added_tokens": [{"id": 9, "content": "` + long + `"}, `,
			`added_tokens has a token of 1025 bytes, "` + long[:20] + `", want at most 1024`},
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
