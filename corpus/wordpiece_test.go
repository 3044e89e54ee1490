package corpus

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/jenga-nlp/jenga/internal/shared"
)

// The fixtures are results of the crate tokenizers 0.23.3, written by scripts/fixtures/tokens.py.
const tokensDir = "testdata/tokens"

// normalizerSettings are the options of BERT's normaliser.
type normalizerSettings struct {
	Type    string `json:"type"`
	Clean   bool   `json:"clean_text"`
	Chinese bool   `json:"handle_chinese_chars"`
	Strip   *bool  `json:"strip_accents"`
	Lower   bool   `json:"lowercase"`
}

// crateSettings are the normalisers of the fixtures.
var crateSettings = map[string]normalizerSettings{
	"uncased":          {Clean: true, Chinese: true, Lower: true},
	"uncased, accents": {Clean: true, Chinese: true, Strip: new(bool), Lower: true},
	"cased":            {Clean: true, Chinese: true},
	"cased, stripped":  {Clean: true, Chinese: true, Strip: ptr(true)},
	"chinese together": {Clean: true, Lower: true},
	"raw":              {Strip: new(bool)},
	"not cleaned":      {Chinese: true, Strip: ptr(true), Lower: true},
}

func ptr(b bool) *bool { return &b }

// crateRuns are the settings and forms of input of the fixtures, in the order of sums.bin.
var crateRuns = [][2]string{
	{"uncased", "alone"}, {"uncased, accents", "alone"}, {"cased", "alone"}, {"cased, stripped", "alone"},
	{"chinese together", "alone"}, {"raw", "alone"}, {"not cleaned", "alone"},
	{"uncased", "pairs"}, {"uncased", "words"}, {"uncased", "cut"},
	{"cased", "pairs"}, {"cased", "words"}, {"cased", "cut"},
}

// readFixture returns the content of a file of tokensDir.
func readFixture(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(tokensDir, name))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(name, ".gz") {
		return data
	}
	unzip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if data, err = io.ReadAll(unzip); err != nil {
		t.Fatal(err)
	}
	return data
}

// readFixtureJSON decodes a JSON file of tokensDir.
func readFixtureJSON(t testing.TB, name string, to any) {
	t.Helper()
	if err := json.Unmarshal(readFixture(t, name), to); err != nil {
		t.Fatal(err)
	}
}

// fixtureTokenizer returns the tokenizer of the fixtures' vocabulary with some of crateSettings.
func fixtureTokenizer(t testing.TB, settings string) Tokenizer {
	t.Helper()
	type object = map[string]any
	vocab, added := object{}, []object{}
	for id, token := range strings.Split(strings.TrimSuffix(string(readFixture(t, "vocab.txt")), "\n"), "\n") {
		vocab[token] = id
		if slices.Contains([]string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}, token) {
			added = append(added, object{"id": id, "content": token, "special": true})
		}
	}
	normalizer := crateSettings[settings]
	normalizer.Type = "BertNormalizer"
	data, err := json.Marshal(object{
		"added_tokens": added, "normalizer": normalizer, "pre_tokenizer": object{"type": "BertPreTokenizer"},
		"post_processor": object{"type": "BertProcessing", "cls": []any{"[CLS]", vocab["[CLS]"]},
			"sep": []any{"[SEP]", vocab["[SEP]"]}},
		"model": object{"type": "WordPiece", "unk_token": "[UNK]", "vocab": vocab},
	})
	if err != nil {
		t.Fatal(err)
	}
	w, err := OpenTokenizer(writeFiles(t, "tokenizer.json", string(data)))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// formatEncoding formats an encoding like the fixtures: one line per token with its id, offsets, type and word.
func formatEncoding(e Encoding) string {
	var out strings.Builder
	for i, id := range e.IDs {
		word := int32(-1)
		if e.Words != nil {
			word = e.Words[i]
		}
		fmt.Fprintf(&out, "%d %d %d %d %d\n", id, e.Offsets[i].Start, e.Offsets[i].End, e.Segments[i], word)
	}
	return out.String()
}

// formatSpans formats words like the fixtures.
func formatSpans(words []Span) string {
	var out strings.Builder
	for _, word := range words {
		fmt.Fprintf(&out, "%d %d\n", word.Start, word.End)
	}
	return out.String()
}

// crateExample returns text number i in one of the forms of crateRuns, and the length to truncate it to.
func crateExample(kind string, texts []string, i int) (e *Example, maxLength int) {
	text := texts[i]
	switch kind {
	case "alone":
		return &Example{Text: text}, 0
	case "cut":
		return &Example{Text: text}, 2 + i%9
	case "pairs":
		if i%3 != 0 {
			maxLength = 3 + 13*i%40
		}
		return &Example{Text: text, Pair: texts[(7*i+3)%len(texts)], Paired: true}, maxLength
	case "words":
		return &Example{Text: text, Words: chunks(text, i)}, 0
	}
	panic("corpus: unknown kind of run")
}

// formatCrateExample encodes text number i in one of the forms of crateRuns.
func formatCrateExample(w Tokenizer, kind string, texts []string, i int) string {
	got := formatEncoding(w.Encode(crateExample(kind, texts, i)))
	if kind == "alone" {
		got += formatSpans(w.Split(texts[i]))
	}
	return got
}

// chunks divides text into words of 1 to 7 runes, as the fixtures' script does.
func chunks(text string, i int) []Span {
	words := []Span{}
	for at := 0; at < len(text); {
		end := at
		for range 1 + (i+5*len(words))%7 {
			_, size := utf8.DecodeRuneInString(text[end:])
			end += size
		}
		words = append(words, Span{at, end})
		at = end
	}
	return words
}

func TestTokensMatchTokenizersCrate(t *testing.T) {
	var texts []string
	readFixtureJSON(t, "texts.json.gz", &texts)
	sums := readFixture(t, "sums.bin")
	if len(texts) < 2000 || len(sums) != 4*len(crateRuns)*len(texts) {
		t.Fatalf("%d texts, %d bytes of sums; want 2000 texts or more, and four bytes per run and text", len(texts),
			len(sums))
	}
	for run, names := range crateRuns {
		settings, kind := names[0], names[1]
		t.Run(settings+" "+kind, func(t *testing.T) {
			w := fixtureTokenizer(t, settings)
			wrong := 0
			for i, text := range texts {
				got := formatCrateExample(w, kind, texts, i)
				sum := sha256.Sum256([]byte(got))
				if want := sums[4*(run*len(texts)+i):][:4]; bytes.Equal(sum[:4], want) {
					continue
				}
				if wrong++; wrong <= 3 {
					t.Errorf("text %d, %+q: the fixture differs from\n%s", i, text, got)
				}
			}
			if wrong > 0 {
				t.Errorf("%d of %d texts differ", wrong, len(texts))
			}
		})
	}
}

func TestEncodedSentences(t *testing.T) {
	var golden []struct{ Text, Tokens, Listing string }
	readFixtureJSON(t, "golden.json", &golden)
	w := fixtureTokenizer(t, "uncased")
	for _, sentence := range golden {
		e := w.Encode(&Example{Text: sentence.Text}, 0)
		var tokens []string
		for _, id := range e.IDs {
			tokens = append(tokens, w.Token(id))
		}
		if got := strings.Join(tokens, " "); got != sentence.Tokens {
			t.Errorf("%q: got %q, want %q", sentence.Text, got, sentence.Tokens)
		}
		if got := formatEncoding(e) + formatSpans(w.Split(sentence.Text)); got != sentence.Listing {
			t.Errorf("%q: got\n%s\nwant\n%s", sentence.Text, got, sentence.Listing)
		}
	}
}

func TestAddedTokens(t *testing.T) {
	w, err := OpenTokenizer(filepath.Join(tokensDir, "added"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct{ Text, Listing string }
	readFixtureJSON(t, "added/texts.json", &cases)
	for _, c := range cases {
		if got := formatEncoding(w.Encode(&Example{Text: c.Text}, 0)); got != c.Listing {
			t.Errorf("%q: got\n%s\nwant\n%s", c.Text, got, c.Listing)
		}
	}
}

func TestEncode(t *testing.T) {
	w := fixtureTokenizer(t, "uncased")

	t.Run("special tokens are never removed", func(t *testing.T) {
		for maxLength := 1; maxLength < 5; maxLength++ {
			e := w.Encode(&Example{Text: "a b c d"}, maxLength)
			if got, want := len(e.IDs), max(2, maxLength); got != want {
				t.Errorf("%d tokens of at most %d, want %d", got, maxLength, want)
			}
			if w.Token(e.IDs[0]) != "[CLS]" || w.Token(e.IDs[len(e.IDs)-1]) != "[SEP]" {
				t.Errorf("Encode(…, %d) = %v", maxLength, e.IDs)
			}
		}
	})

	t.Run("words only if the example has words", func(t *testing.T) {
		if e := w.Encode(&Example{Text: "a b", Pair: "c", Paired: true}, 0); e.Words != nil {
			t.Errorf("words %v without words", e.Words)
		}
		e := w.Encode(&Example{Text: "a b-c d", Words: []Span{{0, 1}, {2, 5}}, Pair: "c", Paired: true}, 0)
		if want := []int32{-1, 0, 1, 1, 1, -1, -1, -1}; !slices.Equal(e.Words, want) {
			t.Errorf("words %v, want %v", e.Words, want)
		}
		if want := []int8{0, 0, 0, 0, 0, 0, 1, 1}; !slices.Equal(e.Segments, want) {
			t.Errorf("types %v, want %v", e.Segments, want)
		}
		if e := w.Encode(&Example{Words: []Span{}}, 0); !slices.Equal(e.Words, []int32{-1, -1}) {
			t.Errorf("words %v of no words", e.Words)
		}
	})

	t.Run("an empty pair has its closing token", func(t *testing.T) {
		e := w.Encode(&Example{Text: "a", Paired: true}, 0)
		if want := []int8{0, 0, 0, 1}; !slices.Equal(e.Segments, want) {
			t.Errorf("types %v, want %v", e.Segments, want)
		}
	})

	t.Run("concurrent encoding", func(t *testing.T) {
		var texts []string
		readFixtureJSON(t, "texts.json.gz", &texts)
		texts = texts[:300]
		results := make(chan string)
		for range 4 {
			go func() {
				var all strings.Builder
				for _, text := range texts {
					all.WriteString(formatEncoding(w.Encode(&Example{Text: text}, 0)))
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

func FuzzEncode(f *testing.F) {
	f.Add("Hello, wörld [SEP] \u0301", "İ\x00 각\u0323\u0301", uint8(7), true)
	f.Add("\xff\xf0\x9f a\xc3", "\u0f73\u0344\u0d3c", uint8(0), false)
	f.Add("[MASK", "中文 \U0001d15e\u302e", uint8(3), true)
	tokenizers := make(map[string]Tokenizer)
	for name := range crateSettings {
		tokenizers[name] = fixtureTokenizer(f, name)
	}
	f.Fuzz(func(t *testing.T, text, pair string, maxLength uint8, paired bool) {
		for name, w := range tokenizers {
			example := &Example{Text: text, Pair: pair, Paired: paired}
			e := w.Encode(example, int(maxLength))
			checkEncoding(t, w, example, e)
			if again := w.Encode(example, int(maxLength)); formatEncoding(again) != formatEncoding(e) {
				t.Errorf("%s: got\n%s\nthen\n%s", name, formatEncoding(e), formatEncoding(again))
			}
			example.Words = w.Split(text)
			checkSpans(t, example.Words, len(text))
			checkEncoding(t, w, example, w.Encode(example, int(maxLength)))
		}
	})
}

// checkEncoding reports an invalid encoding of e.
func checkEncoding(t *testing.T, w Tokenizer, e *Example, got Encoding) {
	t.Helper()
	n := len(got.IDs)
	if len(got.Offsets) != n || len(got.Segments) != n || e.Words != nil && len(got.Words) != n {
		t.Fatalf("%d ids, %d offsets, %d types, %d words", n, len(got.Offsets), len(got.Segments), len(got.Words))
	}
	for _, id := range got.IDs {
		if id < 0 || int(id) >= w.Size() {
			t.Errorf("id %d of %d", id, w.Size())
		}
	}
	closing := n
	if e.Paired {
		closing = slices.Index(got.Segments, 1)
		checkSpans(t, got.Offsets[closing:n-1], len(e.Pair))
	}
	checkSpans(t, got.Offsets[1:closing-1], len(e.Text))
}

// checkSpans reports spans that are empty, out of range or out of order.
func checkSpans(t *testing.T, spans []Span, end int) {
	t.Helper()
	last := Span{}
	for _, span := range spans {
		if span.Start >= span.End || span.End > end || span.Start < last.Start || span.End < last.End {
			t.Fatalf("spans %v of %d bytes", spans, end)
		}
		last = span
	}
}

func BenchmarkEncode(b *testing.B) {
	for _, name := range []string{"snips/train/seq.in", "sst/stsa.fine.train", "ud_ewt/en_ewt-ud-train.conllu"} {
		b.Run(name, func(b *testing.B) {
			w, err := OpenTokenizer(filepath.Join(shared.Dir(b), "models", "minilm-l6"))
			if err != nil {
				b.Fatal(err)
			}
			encodeLines(b, w, name)
		})
	}
}

// encodeLines encodes the first lines of a file of the corpora.
func encodeLines(b *testing.B, tokenizer Tokenizer, name string) {
	data, err := os.ReadFile(filepath.Join(shared.Dir(b), "data", filepath.FromSlash(name)))
	if err != nil {
		b.Fatal(err)
	}
	lines := strings.Split(string(data), "\n")
	lines = lines[:min(len(lines), 8000)]
	b.ReportAllocs()
	tokens := 0
	for b.Loop() {
		for _, line := range lines {
			tokens += len(tokenizer.Encode(&Example{Text: line}, 0).IDs) - 2
		}
	}
	b.ReportMetric(float64(tokens)/b.Elapsed().Seconds(), "tokens/s")
}
