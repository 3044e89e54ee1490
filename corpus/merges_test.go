package corpus

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mergesFolder returns a folder with the vocab.json and merges.txt of the family roberta, and further files.
func mergesFolder(t *testing.T, more ...string) string {
	t.Helper()
	var file struct {
		Added []struct {
			ID      int32
			Content string
		} `json:"added_tokens"`
		Model struct {
			Vocab  map[string]int32 `json:"vocab"`
			Merges [][2]string      `json:"merges"`
		} `json:"model"`
	}
	if err := json.Unmarshal([]byte(familyFile(t, "roberta")), &file); err != nil {
		t.Fatal(err)
	}
	for _, token := range file.Added {
		file.Model.Vocab[token.Content] = token.ID
	}
	vocab, err := json.Marshal(file.Model.Vocab)
	if err != nil {
		t.Fatal(err)
	}
	lines := []string{"#version: 0.2"}
	for _, merge := range file.Model.Merges {
		lines = append(lines, merge[0]+" "+merge[1])
	}
	return writeFiles(t, append([]string{"vocab.json", string(vocab), "merges.txt", strings.Join(lines, "\n") + "\n"},
		more...)...)
}

func TestVocabularyAndMerges(t *testing.T) {
	const text = "Hello <mask> wörld, </s> isn't"
	for _, c := range []struct {
		rule  string
		files []string
		want  []int32 // those of AutoTokenizer of transformers 5.23.0, but for the form of the mask, which is of 4
	}{
		{"the class", []string{"tokenizer_config.json", `{"tokenizer_class": "RobertaTokenizer"}`},
			[]int32{0, 1180, 224, 2000, 274, 131, 118, 85, 352, 15, 224, 2, 273, 81, 10, 87, 2}},
		{"the encoder's type", []string{"config.json", `{"model_type": "roberta"}`},
			[]int32{0, 1180, 224, 2000, 274, 131, 118, 85, 352, 15, 224, 2, 273, 81, 10, 87, 2}},
		{"a mask that includes the blank before it", []string{"tokenizer_config.json",
			`{"tokenizer_class": "RobertaTokenizerFast", "mask_token": {"content": "<mask>", "lstrip": true}}`},
			[]int32{0, 1180, 2000, 274, 131, 118, 85, 352, 15, 224, 2, 273, 81, 10, 87, 2}},
		{"special_tokens_map.json before tokenizer_config.json", []string{"tokenizer_config.json",
			`{"tokenizer_class": "RobertaTokenizer", "mask_token": {"content": "<mask>", "lstrip": false}}`,
			"special_tokens_map.json", `{"mask_token": {"content": "<mask>", "lstrip": true}}`},
			[]int32{0, 1180, 2000, 274, 131, 118, 85, 352, 15, 224, 2, 273, 81, 10, 87, 2}},
		{"added_tokens_decoder before special_tokens_map.json", []string{"tokenizer_config.json",
			`{"tokenizer_class": "RobertaTokenizer", "added_tokens_decoder": {
"2000": {"content": "<mask>", "special": true}}}`,
			"special_tokens_map.json", `{"mask_token": {"content": "<mask>", "lstrip": true}}`},
			[]int32{0, 1180, 224, 2000, 274, 131, 118, 85, 352, 15, 224, 2, 273, 81, 10, 87, 2}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			tokenizer, err := OpenTokenizer(mergesFolder(t, c.files...))
			if err != nil {
				t.Fatal(err)
			}
			if got := tokenizer.Encode(&Example{Text: text}, 0).IDs; !slices.Equal(got, c.want) {
				t.Errorf("tokens %v, want %v", got, c.want)
			}
			if id, ok := tokenizer.Mask(); !ok || tokenizer.Token(id) != "<mask>" {
				t.Errorf("mask %d, %v", id, ok)
			}
			folder := t.TempDir()
			if err := tokenizer.Save(folder); err != nil {
				t.Fatal(err)
			}
			again, err := OpenTokenizer(folder)
			if err != nil {
				t.Fatal(err)
			}
			if got := again.Encode(&Example{Text: text}, 0).IDs; !slices.Equal(got, c.want) {
				t.Errorf("tokens %v after saving, want %v", got, c.want)
			}
		})
	}
}

func TestVocabularyAndMergesThatAreNotRead(t *testing.T) {
	for _, c := range []struct{ rule, folder, want string }{
		{"no class", mergesFolder(t), `FOLDER/vocab.json: the tokenizer is of class ""; without a tokenizer.json, ` +
			`jenga reads RobertaTokenizer and GPT2Tokenizer, which tokenizer_class of tokenizer_config.json or ` +
			`model_type of config.json names`},
		{"no special tokens", writeFiles(t, "vocab.json", "{}", "merges.txt", "", "config.json",
			`{"model_type": "roberta"}`), `FOLDER/vocab.json: no special token "<pad>"`},
		{"no object", writeFiles(t, "vocab.json", "[]", "merges.txt", "", "config.json", `{"model_type": "gpt2"}`),
			`FOLDER/vocab.json: want an object of tokens and their ids: json: cannot unmarshal array into Go value ` +
				`of type map[string]int32`},
		{"a merge of one token", writeFiles(t, "vocab.json", `{"a": 0}`, "merges.txt", "#version: 0.2\nabc\n",
			"config.json", `{"model_type": "gpt2"}`), `FOLDER/merges.txt:2: "abc", want two tokens with a blank ` +
			`between them`},
		{"a merge of unknown tokens", writeFiles(t, "vocab.json", `{"a": 0}`, "merges.txt", "a b\n", "config.json",
			`{"model_type": "gpt2"}`), `FOLDER/merges.txt:1: "a b" joins "a" and "b", but vocab.json ` +
			`does not have "b"`},
		{"no merges", writeFiles(t, "vocab.json", "{}"), `open FOLDER/merges.txt: no such file or directory`},
		{"sentencepiece", writeFiles(t, "sentencepiece.bpe.model", ""), `FOLDER/sentencepiece.bpe.model: a model of ` +
			`sentencepiece, without the tokenizer.json that jenga reads; transformers makes it: ` +
			`AutoTokenizer.from_pretrained("FOLDER").save_pretrained("FOLDER")`},
	} {
		t.Run(c.rule, func(t *testing.T) {
			_, err := OpenTokenizer(c.folder)
			if err == nil {
				t.Fatal("no error")
			}
			if got := strings.ReplaceAll(err.Error(), filepath.Clean(c.folder), "FOLDER"); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func FuzzMerges(f *testing.F) {
	f.Add([]byte(`{"<s>": 0, "</s>": 1, "<pad>": 2, "<unk>": 3, "<mask>": 4, "a": 5, "b": 6, "ab": 7}`),
		[]byte("#version: 0.2\na b\n"),
		[]byte(`{"tokenizer_class": "RobertaTokenizer", "mask_token": {"content": "<mask>", "lstrip": true}}`))
	f.Add([]byte(`{"a": 5, "b": 6, "ab": 7}`), []byte("a b\r\n"), []byte(`{"tokenizer_class": "GPT2Tokenizer"}`))
	f.Fuzz(func(t *testing.T, vocab, merges, config []byte) {
		folder := writeFiles(t, "vocab.json", string(vocab), "merges.txt", string(merges), "tokenizer_config.json",
			string(config))
		tokenizer, err := OpenTokenizer(folder)
		if err != nil {
			return
		}
		const text = " ab\x00é <mask>"
		for _, at := range tokenizer.Encode(&Example{Text: text}, 0).Offsets {
			if at.Start < 0 || at.Start > at.End || at.End > len(text) {
				t.Errorf("a token is at %v of %d bytes", at, len(text))
			}
		}
	})
}
