package tokenizer

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// goldenFolders is testdata/folders.json, which scripts/fixtures/tokens_folders.py writes.
type goldenFolders struct {
	Vocabulary, Texts []string
	Cases             []struct {
		Name  string
		Files map[string]json.RawMessage
		IDs   [][]int32 // of each text, as AutoTokenizer of transformers gives them
	}
}

// refusedFolders are parts of the errors of folders that are refused, by the name of the case.
var refusedFolders = map[string]string{
	"added_tokens with a gap":              `added_tokens.json has the id 32 for "[NEW]", but transformers gives it 25`,
	"added_tokens of a whole":              `added_tokens lacks "[NEW]", which added_tokens.json, `,
	"decoder of a whole":                   `added_tokens lacks "[NEW]", which the tokenizer_config.json`,
	"additional_special_tokens of a whole": `added_tokens lacks "[NEW]", which added_tokens.json, tokenizer_config`,
	"special_tokens_map of a whole":        `added_tokens lacks "<ent>", which`,
	"do_basic_tokenize":                    `vocab.txt: the tokenizer_config.json beside it has do_basic_tok`,
	"do_basic_tokenize of Python":          `tokenizer.json: the tokenizer_config.json beside it has do_basic_tokenize`,
	"never_split":                          `the tokenizer_config.json beside it has never_split ["[SEP]" "hello"]`,
	"never_split of Python":                `the tokenizer_config.json beside it has never_split ["Héllo"]`,
}

// A folder's tokenizer gives the ids that transformers gives, or is refused with a remedy.
func TestFoldersReadAsTransformersReadsThem(t *testing.T) {
	var golden goldenFolders
	data, err := os.ReadFile("testdata/folders.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	for _, c := range golden.Cases {
		t.Run(c.Name, func(t *testing.T) {
			folder := t.TempDir()
			c.Files[linesFile] = json.RawMessage(strings.Join(golden.Vocabulary, "\n") + "\n")
			for name, content := range c.Files {
				if err := os.WriteFile(filepath.Join(folder, name), content, 0o666); err != nil {
					t.Fatal(err)
				}
			}

			tokenizer, err := Open(folder)
			if want := refusedFolders[c.Name]; want != "" {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Fatalf("error %v, want %s", err, want)
				}
			}
			if err != nil && strings.Contains(err.Error(), "; write \"") {
				followAdvice(t, folder, err, c.Files[configFile])
				if _, err := Open(folder); err != nil {
					t.Fatalf("after what the error advises: %v", err)
				}
				return
			}
			if refusedFolders[c.Name] != "" {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			checkIDs(t, tokenizer, golden.Texts, c.IDs)

			// what is saved for transformers, and reads again
			saved := t.TempDir()
			if err := tokenizer.Save(saved); err != nil {
				t.Fatal(err)
			}
			again, err := Open(saved)
			if err != nil {
				t.Fatalf("saved: %v", err)
			}
			checkIDs(t, again, golden.Texts, c.IDs)
		})
	}
}

func checkIDs(t *testing.T, tokenizer *Tokenizer, texts []string, want [][]int32) {
	t.Helper()
	for i, text := range texts {
		var got []int32
		for _, token := range tokenizer.Append(nil, text, nil) {
			got = append(got, token.ID)
		}
		if !slices.Equal(got, want[i]) {
			t.Errorf("%q has the ids %v, of transformers %v", text, got, want[i])
		}
	}
}

// followAdvice writes the keys into tokenizer_config.json that errors name, one after the other.
func followAdvice(t *testing.T, folder string, err error, config json.RawMessage) {
	t.Helper()
	keys := map[string]json.RawMessage{}
	if err := json.Unmarshal(config, &keys); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_, advice, found := strings.Cut(err.Error(), "; write \"")
		if !found {
			return
		}
		advice, _, _ = strings.Cut(advice, " there")
		key, value, _ := strings.Cut(advice, "\": ")
		keys[key] = json.RawMessage(value)
		text, failed := json.Marshal(keys)
		if failed == nil {
			failed = os.WriteFile(filepath.Join(folder, configFile), text, 0o666)
		}
		if failed != nil {
			t.Fatal(failed)
		}
		if _, err = Open(folder); err == nil {
			return
		}
	}
}

func TestAddedTokensThatNoFolderCanHave(t *testing.T) {
	for text, want := range map[string]string{
		`{"<e>": -1}`:  `added_tokens.json: the added token "<e>" has the id -1; want a text with an id from 0 on`,
		`{"": 9}`:      `added_tokens.json: the added token "" has the id 9; want`,
		`{"<e>": 1.5}`: "added_tokens.json",
	} {
		folder := t.TempDir()
		for name, content := range map[string]string{
			linesFile: "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n", addedFile: text,
			configFile: `{"tokenizer_class": "BertTokenizer"}`,
		} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Open(folder); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", text, err, want)
		}
	}
}
