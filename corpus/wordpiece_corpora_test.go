package corpus

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/jenga-nlp/jenga/internal/shared"
)

// TestTokensOfCorporaMatchTokenizersCrate reads about 60 MB: scripts/fixtures/tokens_corpora.py documents how.
func TestTokensOfCorporaMatchTokenizersCrate(t *testing.T) {
	shared.SkipUnlessLong(t)
	w, err := OpenTokenizer(filepath.Join(shared.Dir(t), "tokenizer", "bert-base-uncased"))
	if err != nil {
		t.Fatal(err)
	}
	var sums map[string]string
	readFixtureJSON(t, "corpora.json", &sums)
	encodeCorpora(t, w, sums)
}

// TestTokensOfFamiliesInCorporaMatchTokenizersCrate reads the same for several tokenizers. GPT-2's is read if
// JENGA_GPT2 names the folder of its encoder.json and vocab.bpe (see scripts/fixtures/tokens_families.py).
func TestTokensOfFamiliesInCorporaMatchTokenizersCrate(t *testing.T) {
	shared.SkipUnlessLong(t)
	var sums map[string]map[string]string
	readFixtureJSON(t, "../families/corpora.json", &sums)
	for family, sums := range sums {
		t.Run(family, func(t *testing.T) {
			if family == "gpt2" {
				encodeCorpora(t, openGPT2(t), sums)
			} else {
				encodeCorpora(t, openFamily(t, family), sums)
			}
		})
	}
}

// openGPT2 returns the published tokenizer of GPT-2.
func openGPT2(t testing.TB) Tokenizer {
	t.Helper()
	folder := os.Getenv("JENGA_GPT2")
	if folder == "" {
		t.Skip("JENGA_GPT2 names no folder with GPT-2's encoder.json and vocab.bpe")
	}
	files := []string{"tokenizer_config.json", `{"tokenizer_class": "GPT2Tokenizer"}`}
	for name, published := range map[string]string{"vocab.json": "encoder.json", "merges.txt": "vocab.bpe"} {
		data, err := os.ReadFile(filepath.Join(folder, published))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, name, string(data))
	}
	tokenizer, err := OpenTokenizer(writeFiles(t, files...))
	if err != nil {
		t.Fatal(err)
	}
	return tokenizer
}

// encodeCorpora reports files of the corpora that a tokenizer encodes differently from the crate.
func encodeCorpora(t *testing.T, tokenizer Tokenizer, sums map[string]string) {
	t.Helper()
	for name, want := range sums {
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join(shared.Dir(t), "data", filepath.FromSlash(name)))
			if err != nil {
				t.Fatal(err)
			}
			sum := sha256.New()
			for _, text := range textsOfFile(t, name, data) {
				addLines(sum, tokenizer, text)
			}
			if got := hex.EncodeToString(sum.Sum(nil)); got != want {
				t.Errorf("sum %s, want %s", got, want)
			}
		})
	}
}

// textsOfFile returns the content of a file, or of each file of an archive.
func textsOfFile(t *testing.T, name string, data []byte) [][]byte {
	t.Helper()
	if !strings.HasSuffix(name, ".zip") {
		return [][]byte{data}
	}
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	var texts [][]byte
	for _, member := range archive.File {
		file, err := member.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(file)
		if err != nil {
			t.Fatal(err)
		}
		file.Close()
		texts = append(texts, text)
	}
	return texts
}

// addLines adds the tokens of each line to sum.
func addLines(sum hash.Hash, tokenizer Tokenizer, data []byte) {
	text := string(data)
	if !utf8.Valid(data) {
		var latin1 strings.Builder
		for _, b := range data {
			latin1.WriteRune(rune(b))
		}
		text = latin1.String()
	}
	var numbers []byte
	for line := range strings.SplitSeq(text, "\n") {
		e := tokenizer.Encode(&Example{Text: line}, 0)
		numbers = binary.LittleEndian.AppendUint32(numbers[:0], uint32(len(e.IDs)))
		for _, id := range e.IDs {
			numbers = binary.LittleEndian.AppendUint32(numbers, uint32(id))
		}
		for _, at := range e.Offsets {
			numbers = binary.LittleEndian.AppendUint32(numbers, uint32(at.Start))
		}
		for _, at := range e.Offsets {
			numbers = binary.LittleEndian.AppendUint32(numbers, uint32(at.End))
		}
		sum.Write(numbers)
	}
}
