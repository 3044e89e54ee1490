package corpus

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The fixtures are results of the crate tokenizers 0.23.3, written by scripts/fixtures/tokens_families.py.
const familiesDir = "testdata/families"

// families are the tokenizers of the fixtures, in the order of sums.bin.
var families = []string{"roberta", "roberta-prefix", "modernbert", "llama3", "qwen2", "gemma", "llama2", "xlmr",
	"deberta", "forms", "nfd", "mpnet", "neox"}

// unzip returns the content of a file of familiesDir.
func unzip(t testing.TB, name string) string {
	t.Helper()
	file, err := os.Open(filepath.Join(familiesDir, name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	packed, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(packed)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// familyFile returns the tokenizer.json of a family.
func familyFile(t testing.TB, family string) string {
	t.Helper()
	const key = `"precompiled_charsmap":"`
	return strings.Replace(unzip(t, family+".json.gz"), key, key+unzip(t, "nmt_nfkc.gz"), 1)
}

func openFamily(t testing.TB, family string) Tokenizer {
	t.Helper()
	tokenizer, err := OpenTokenizer(writeFiles(t, "tokenizer.json", familyFile(t, family)))
	if err != nil {
		t.Fatal(err)
	}
	return tokenizer
}

// formatWithTokenTypes is formatEncoding with the token types of the encoder.
func formatWithTokenTypes(e Encoding) string {
	if e.TokenTypes != nil {
		e.Segments = e.TokenTypes
	}
	return formatEncoding(e)
}

// formatFamilyExample encodes text number i in all forms of the fixtures.
func formatFamilyExample(tokenizer Tokenizer, texts []string, i int) string {
	var out strings.Builder
	for _, kind := range []string{"alone", "pairs", "words", "truncated"} {
		e, maxLength := &Example{Text: texts[i]}, 0
		switch kind {
		case "pairs":
			e.Pair, e.Paired = texts[(7*i+3)%len(texts)], true
			if i%3 != 0 {
				maxLength = 5 + 13*i%40
			}
		case "words":
			e.Words = chunks(texts[i], i)
		case "truncated":
			maxLength = 5 + i%9
		}
		out.WriteString(formatWithTokenTypes(tokenizer.Encode(e, maxLength)))
	}
	return out.String()
}

func TestTokensOfFamiliesMatchTokenizersCrate(t *testing.T) {
	var texts []string
	readFixtureJSON(t, "texts.json.gz", &texts)
	sums, err := os.ReadFile(filepath.Join(familiesDir, "sums.bin"))
	if err != nil || len(texts) < 2000 || len(sums) != 4*len(families)*len(texts) {
		t.Fatalf("%d texts, %d bytes of sums, %v; want 2000 texts or more, and four bytes per family and text",
			len(texts), len(sums), err)
	}
	for at, family := range families {
		t.Run(family, func(t *testing.T) {
			tokenizer, wrong := openFamily(t, family), 0
			for i, text := range texts {
				got := formatFamilyExample(tokenizer, texts, i)
				sum := sha256.Sum256([]byte(got))
				if bytes.Equal(sum[:4], sums[4*(at*len(texts)+i):][:4]) {
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

// TestTokensOfAllCodePointsMatchTokenizersCrate encodes texts with 4,096 code points each, between letters and before
// an accent: all blocks in which Unicode assigns some.
func TestTokensOfAllCodePointsMatchTokenizersCrate(t *testing.T) {
	if testing.Short() {
		t.Skip("encodes 200,000 code points with each tokenizer")
	}
	blocks := []rune{0xe0000, 0xf0000, 0x10f000}
	for first := rune(0x31000); first >= 0; first -= 0x1000 {
		blocks = slices.Insert(blocks, 0, first)
	}
	sums, err := os.ReadFile(filepath.Join(familiesDir, "runes.bin"))
	if err != nil || len(sums) != 4*len(families)*len(blocks) {
		t.Fatalf("%d bytes of sums, %v; want four bytes for each family and block", len(sums), err)
	}
	for at, family := range families {
		t.Run(family, func(t *testing.T) {
			tokenizer := openFamily(t, family)
			for i, first := range blocks {
				sum := sha256.Sum256(encodeBlock(tokenizer, first))
				if !bytes.Equal(sum[:4], sums[4*(at*len(blocks)+i):][:4]) {
					t.Errorf("the tokens of code points U+%04X to U+%04X differ", first, first+0xfff)
				}
			}
		})
	}
}

// encodeBlock returns lines of the tokens of 4,096 code points: id, start and end.
func encodeBlock(tokenizer Tokenizer, first rune) []byte {
	var text strings.Builder
	for r := first; r < first+0x1000; r++ {
		if r < 0xd800 || 0xe000 <= r {
			fmt.Fprintf(&text, "x%[1]cx %[1]c\u0301 ", r)
		}
	}
	e := tokenizer.Encode(&Example{Text: text.String()}, 0)
	var out []byte
	for i, id := range e.IDs {
		out = strconv.AppendInt(out, int64(id), 10)
		out = strconv.AppendInt(append(out, ' '), int64(e.Offsets[i].Start), 10)
		out = strconv.AppendInt(append(out, ' '), int64(e.Offsets[i].End), 10)
		out = append(out, '\n')
	}
	return out
}

// BenchmarkEncodeFamilies encodes the lines of three corpora; GPT-2's vocabulary as in
// TestTokensOfFamiliesInCorporaMatchTokenizersCrate.
func BenchmarkEncodeFamilies(b *testing.B) {
	for _, family := range []string{"roberta", "modernbert", "llama3", "gemma", "xlmr", "gpt2"} {
		for _, name := range []string{"snips/train/seq.in", "sst/stsa.fine.train", "ud_ewt/en_ewt-ud-train.conllu"} {
			b.Run(family+" "+name, func(b *testing.B) {
				tokenizer := Tokenizer(nil)
				if family == "gpt2" {
					tokenizer = openGPT2(b)
				} else {
					tokenizer = openFamily(b, family)
				}
				encodeLines(b, tokenizer, name)
			})
		}
	}
}
