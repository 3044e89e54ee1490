package corpus

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The fixtures are results of the crate tokenizers 0.23.3, written by scripts/fixtures/tokens_native.py.
const nativeDir = "testdata/native"

// checkCases compares a tokenizer with the cases of a fixture.
func checkCases(t *testing.T, tokenizer Tokenizer, name string) {
	t.Helper()
	var cases []struct {
		Text, Listing string
		Pair          *string
		Words         [][2]int
		MaxLength     int `json:"max_length"`
	}
	readFixtureJSON(t, "../native/"+name+"/cases.json.gz", &cases)
	if len(cases) < 100 {
		t.Fatalf("%d cases", len(cases))
	}
	for _, c := range cases {
		e := &Example{Text: c.Text}
		if c.Pair != nil {
			e.Pair, e.Paired = *c.Pair, true
		}
		for _, word := range c.Words {
			e.Words = append(e.Words, Span{word[0], word[1]})
		}
		if got := formatWithTokenTypes(tokenizer.Encode(e, c.MaxLength)); got != c.Listing {
			t.Errorf("%+q, pair %+q, words %v, truncated to %d: got\n%swant\n%s", e.Text, e.Pair, e.Words, c.MaxLength,
				got, c.Listing)
		}
	}
}

func openSubwordFixture(t testing.TB, name string) Tokenizer {
	t.Helper()
	tokenizer, err := OpenTokenizer(filepath.Join(nativeDir, name))
	if err != nil {
		t.Fatal(err)
	}
	return tokenizer
}

func TestSubwordsMatchTokenizersCrate(t *testing.T) {
	for _, name := range []string{"bpe", "unigram"} {
		t.Run(name, func(t *testing.T) { checkCases(t, openSubwordFixture(t, name), name) })
	}
}

func TestSubwordsReadInvalidBytesAsReplacements(t *testing.T) {
	tokenizer := openSubwordFixture(t, "bpe")
	clean := tokenizer.Encode(&Example{Text: "a\ufffdb\ufffd c"}, 0)
	spoiled := tokenizer.Encode(&Example{Text: "a\xfeb\xff c"}, 0)
	if !slices.Equal(spoiled.IDs, clean.IDs) {
		t.Errorf("tokens %v, want %v", spoiled.IDs, clean.IDs)
	}
	places := map[int]int{0: 0, 1: 1, 4: 2, 5: 3, 8: 4, 9: 5, 10: 6} // U+FFFD has three bytes
	for i, at := range clean.Offsets {
		if got, want := spoiled.Offsets[i], (Span{places[at.Start], places[at.End]}); got != want {
			t.Errorf("token %d is at %v, want %v", i, got, want)
		}
	}
}

func TestSubwordsAreEncodedConcurrently(t *testing.T) {
	var texts []string
	readFixtureJSON(t, "texts.json.gz", &texts)
	for _, family := range []string{"modernbert", "gemma", "xlmr"} {
		tokenizer := openFamily(t, family)
		results := make(chan string)
		for range 4 {
			go func() {
				var all strings.Builder
				for _, text := range texts[:300] {
					all.WriteString(formatEncoding(tokenizer.Encode(&Example{Text: text}, 0)))
				}
				results <- all.String()
			}()
		}
		want := <-results
		for range 3 {
			if got := <-results; got != want {
				t.Errorf("%s: concurrent encoding gives other tokens", family)
			}
		}
	}
}

func TestSubwordsAreSaved(t *testing.T) {
	for name, mask := range map[string]string{"bpe": "<mask>", "unigram": "[MASK]"} {
		first, second := t.TempDir(), t.TempDir()
		tokenizer := openSubwordFixture(t, name)
		if id, ok := tokenizer.Mask(); !ok || tokenizer.Token(id) != mask || int(id) != tokenizer.Size()-1 {
			t.Errorf("%s: mask %d %v, %q, of %d", name, id, ok, tokenizer.Token(id), tokenizer.Size())
		}
		if err := tokenizer.Save(first); err != nil {
			t.Fatal(err)
		}
		again, err := OpenTokenizer(first)
		if err != nil {
			t.Fatal(err)
		}
		if err := again.Save(second); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{"tokenizer.json", "tokenizer_config.json"} {
			saved, _ := os.ReadFile(filepath.Join(second, file))
			source, err := os.ReadFile(filepath.Join(nativeDir, name, file))
			if err == nil && !bytes.Equal(saved, source) {
				t.Errorf("%s/%s differs", name, file)
			}
			if err != nil && !bytes.Contains(saved, []byte("PreTrainedTokenizerFast")) {
				t.Errorf("%s/%s: %q", name, file, saved)
			}
		}
	}
}

// Added tokens of blanks, as ModernBERT has, are no words; special tokens are, without the blanks that they take.
func TestWordsOfSubwordsHaveNoBlanks(t *testing.T) {
	for family, special := range map[string]string{"modernbert": "[MASK]", "gemma": "<mask>", "roberta": "<mask>"} {
		const blanks = "Hello  world\n\n   again\t\tit's "
		text := blanks + special
		var words []string
		for _, at := range openFamily(t, family).Split(text) {
			words = append(words, text[at.Start:at.End])
		}
		if want := []string{"Hello", "world", "again", "it", "'", "s", special}; !slices.Equal(words, want) {
			t.Errorf("%s: words %q, want %q", family, words, want)
		}
	}
}
