package tokenizer

import (
	"encoding/base64"
	"errors"
	"math/rand/v2"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/unicode/norm"

	"github.com/jenga-nlp/jenga/internal/files"
)

// Ids and offsets are compared with the library tokenizers by the tests of package corpus.

// readSubwords returns what divides texts as a tokenizer.json of byte pairs or Unigram says.
func readSubwords(data []byte) (*subwords, error) {
	const path = "tokenizer.json"
	var f file
	if err := files.UnmarshalJSON(path, data, &f); err != nil {
		return nil, err
	}
	m, err := f.model(path, data)
	if err != nil {
		return nil, err
	}
	t, err := f.parts()
	if err != nil {
		return nil, err
	}
	return t, f.complete(t, m)
}

// divideText returns the tokens of a text, or with blank of a word.
func (t *subwords) divideText(text string, blank bool) []Token {
	word := int32(-1)
	if blank {
		word = 0
	}
	return t.appendPart(nil, new(state), text, 0, len(text), word)
}

func read(t testing.TB, file string) *subwords {
	t.Helper()
	tokenizer, err := readSubwords([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	return tokenizer
}

// An index of a hostile charsmap that leads outside of its array, or into the middle of a character, finds nothing.
func TestHostileCharsmaps(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		data := []byte("\x40\x00\x00\x00")
		for range 16 {
			data = append(data, byte(random.Uint32()), byte(random.Uint32()), byte(random.Uint32N(2)))
			data = append(data, byte(random.Uint32N(2)*128))
		}
		data = append(data, "é\x00中\x00"...)
		p, err := newPrecompiled(base64.StdEncoding.EncodeToString(data))
		if err != nil {
			t.Fatal(err)
		}
		var s segment
		text := "abc é\u0301 中\x00\xf0"
		s.fill(text, 0, len(text))
		p.normalize(&s)
	}
}

// TestLongWords divides words of megabytes: in quadratic time that would take hours.
func TestLongWords(t *testing.T) {
	size := 10 << 20
	if testing.Short() {
		size = 1 << 20
	}
	for name, file := range map[string]string{"bpe": smallBPE, "unigram": smallUnigram} {
		tokenizer, word, start := read(t, file), strings.Repeat("ab", size/2), time.Now()
		out := tokenizer.divideText(word, false)
		t.Logf("%s: %d bytes in %v", name, size, time.Since(start))
		want := Token{4, -1, 0, 4}
		if name == "unigram" {
			want = Token{3, -1, 0, 2}
		}
		if len(out) != size/want.End || out[0] != want || out[len(out)-1].End != size {
			t.Errorf("%s: %d pieces, the first %v", name, len(out), out[0])
		}
	}
}

// A word of few symbols and one of many are merged by different code, in the same way.
func TestMergesOfFewAndOfMany(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		b := randomBPE(random)
		for range 10 {
			var few, many bpeScratch
			word := make([]byte, 2+random.IntN(40))
			for i := range word {
				word[i] = "abcx"[random.IntN(4)]
			}
			b.fill(&few, word)
			b.fill(&many, word)
			b.mergeFew(&few)
			b.mergeMany(&many)
			got := slices.DeleteFunc(many.symbols, func(s symbol) bool { return s.size == 0 })
			if !slices.EqualFunc(few.symbols, got, func(a, b symbol) bool { return a.id == b.id && a.size == b.size }) {
				t.Fatalf("%q: %v, with a queue %v", word, few.symbols, got)
			}
		}
	}
}

// randomBPE returns a model with random merges of a, b and c.
func randomBPE(random *rand.Rand) *bpe {
	names, vocab := []string{"a", "b", "c"}, map[string]int32{"u": 0, "a": 1, "b": 2, "c": 3}
	var merges mergeList
	for range 12 {
		left, right := names[random.IntN(len(names))], names[random.IntN(len(names))]
		if _, ok := vocab[left+right]; !ok {
			vocab[left+right] = int32(len(vocab))
			names = append(names, left+right)
		}
		merges = append(merges, [2]string{left, right})
	}
	b, err := newBPE(&bpeFile{Unknown: "u", Vocab: vocab, Merges: merges}, false)
	if err != nil {
		panic(err)
	}
	return b
}

// Of text that Unicode 9.0 assigns, the forms are those of package norm.
func TestUnicodeForms(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	pool := []rune("aeAE \u0301\u0323\u0327\u0345\u0f71\u0f73\u0344éậỗÅ한각ᄒ\u1161\u11a8ﬁ½\u09c7\u09be\u0338≠カ\u3099が" +
		"\U0001d15e\u212b")
	for range 5000 {
		text := make([]rune, 1+random.IntN(12))
		for i := range text {
			text[i] = pool[random.IntN(len(pool))]
		}
		for _, want := range []norm.Form{norm.NFC, norm.NFD, norm.NFKC, norm.NFKD} {
			var s segment
			s.fill(string(text), 0, len(string(text)))
			unicodeForm(want).normalize(&s)
			if got := string(s.text); got != want.String(string(text)) {
				t.Fatalf("%+q: %+q, want %+q", string(text), got, want.String(string(text)))
			}
			if len(s.text) != len(s.at) {
				t.Fatalf("%d bytes, %d places", len(s.text), len(s.at))
			}
		}
	}
}

// Unicode 13 has a composite of two runes of its own, which the library's tables lack.
func TestRunesAfterUnicode9AreLeft(t *testing.T) {
	const text = "e\u0301\U00011935\U00011930"
	var s segment
	s.fill(text, 0, len(text))
	unicodeForm(norm.NFC).normalize(&s)
	if got, want := string(s.text), "\u00e9\U00011935\U00011930"; got != want {
		t.Errorf("NFC of %+q is %+q, want %+q", text, got, want)
	}
}

func BenchmarkAppend(b *testing.B) {
	bytePairs := spoil(b, smallBPE, `{"model"`, `{"pre_tokenizer": {"type": "ByteLevel"}, "model"`)
	for name, file := range map[string]string{"bpe": bytePairs, "unigram": smallUnigram} {
		b.Run(name, func(b *testing.B) {
			tokenizer, text, out := read(b, file), strings.Repeat("ab abab aab baba b ", 500), []Token(nil)
			pieces := 0
			for b.Loop() {
				out = tokenizer.append(out[:0], text, nil)
				pieces += len(out)
			}
			b.ReportMetric(float64(pieces)/b.Elapsed().Seconds(), "pieces/s")
		})
	}
}

// Words are divided by themselves where no merge crosses a mark, and have the pieces of the whole text.
func TestWordsAreDividedByThemselves(t *testing.T) {
	const file = `{"model": {"type": "BPE", "unk_token": "u", "fuse_unk": true,
 "vocab": {"u": 0, "▁": 1, "a": 2, "b": 3, "▁▁": 4, "▁a": 5, "ab": 6, "a▁": 7},
 "merges": [["▁", "▁"], ["▁", "a"], ["a", "b"]]}}`
	crossing := spoil(t, file, `[["▁", "▁"], `, `[["▁", "▁"], ["a", "▁"], `)
	if b := read(t, crossing).model.(*bpe); b.boundary != "" {
		t.Errorf("boundary %q where a merge crosses it", b.boundary)
	}
	words, whole := read(t, file), read(t, file)
	whole.model.(*bpe).boundary = ""
	if words.model.(*bpe).boundary != metaspace {
		t.Fatalf("boundary %q", words.model.(*bpe).boundary)
	}
	random := rand.New(rand.NewPCG(7, 8))
	for range 5000 {
		text := make([]rune, random.IntN(20))
		for i := range text {
			text[i] = []rune("▁▁abcé")[random.IntN(6)]
		}
		got, want := words.divideText(string(text), false), whole.divideText(string(text), false)
		if !slices.Equal(got, want) {
			t.Fatalf("%q: %v, as a whole %v", string(text), got, want)
		}
	}
}

func TestWordsThatNeedABlank(t *testing.T) {
	bytePairs := func(parts string) string {
		return spoil(t, `{PARTS "model": {"type": "BPE", "vocab": {"a": 0, "Ġ": 1, "▁": 2, "Ġa": 3, "▁a": 4},
 "merges": [["Ġ", "a"], ["▁", "a"]]}}`, "PARTS", parts)
	}
	for rule, c := range map[string]struct {
		file string
		want blankBy
	}{
		"no pre-tokenizer": {smallBPE, noBlank}, // no token begins with a blank
		"ByteLevel":        {bytePairs(`"pre_tokenizer": {"type": "ByteLevel"},`), blankByByteLevel},
		"ByteLevel with blank": {bytePairs(`"pre_tokenizer": {"type": "ByteLevel",
 "add_prefix_space": true},`), noBlank},
		"ByteLevel in a Sequence": {bytePairs(`"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
 {"type": "ByteLevel"}]},`), blankByText},
		"ByteLevel behind words": {bytePairs(`"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
 {"type": "Split", "pattern": {"String": " "}, "behavior": "Removed"}, {"type": "ByteLevel"}]},`), noBlank},
		"marks": {bytePairs(`"normalizer": {"type": "Replace", "pattern": {"String": " "},
 "content": "▁"},`), blankByText},
		"a mark before each text": {bytePairs(`"normalizer": {"type": "Sequence", "normalizers": [
 {"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},`), noBlank},
		"Metaspace": {bytePairs(`"pre_tokenizer": {"type": "Metaspace", "replacement": "▁",
 "prepend_scheme": "always"},`), noBlank},
		"Metaspace never": {bytePairs(`"pre_tokenizer": {"type": "Metaspace", "replacement": "▁",
 "prepend_scheme": "never"},`), blankByText},
	} {
		if got := read(t, c.file).blank; got != c.want {
			t.Errorf("%s: %d, want %d", rule, got, c.want)
		}
	}
}

// A word that begins with an added token has no blank before it, whether the token is found in raw or normalised text.
func TestAddedTokensHaveNoBlankBeforeThem(t *testing.T) {
	const file = `{"added_tokens": [{"id": 4, "content": "[E]", "normalized": NORMALIZED}],
 "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
 "model": {"type": "BPE", "unk_token": "u", "vocab": {"u": 0, "a": 1, "▁": 2, "▁a": 3}, "merges": [["▁", "a"]]}}`
	for _, normalized := range []string{"true", "false"} {
		tokenizer := read(t, spoil(t, file, "NORMALIZED", normalized))
		for word, want := range map[string][]int32{"[E]": {4}, "a": {3}, "[E]a": {4, 1}, "a[E]": {3, 4}} {
			var got []int32
			for _, p := range tokenizer.divideText(word, true) {
				got = append(got, p.ID)
			}
			if !slices.Equal(got, want) {
				t.Errorf("normalized %s, %q: %v, want %v", normalized, word, got, want)
			}
		}
	}
}

func TestPatternsWhoseSearchReadsOn(t *testing.T) {
	for pattern, want := range map[string]bool{
		`a[^b]*x|a`:            true,
		`\s*[\r\n]+`:           true,
		`(?:ab*){2,}`:          true,
		`(?:a|b+c)+`:           true,
		`a+b*c?d`:              true,
		`(?:a+|b)(?:c?|d)e`:    true,
		`a+`:                   false,
		` ?[^\s\pL]+[\r\n]*`:   false,
		`(?:ab*)+|c`:           false,
		`[\s\d]{1,40}-|!`:      false,
		`(?:ab*){0,9}`:         false,
		`a+(?:b?|c*)(?:d?e*)?`: false,
	} {
		re, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		if got := waits(re); got != want {
			t.Errorf("%s waits: %v, want %v", pattern, got, want)
		}
	}
}

// The text takes a tenth of a second, 2 s under the race detector; a search that read all of it for each match would
// take hours.
func TestPatternsFindAllMatchesInLinearTime(t *testing.T) {
	text := []byte(strings.Repeat("a", 1<<18))
	for _, regex := range []string{`a`, `ab?c*|a`, `[^b]{1,3}|b+`} {
		f, err := (&pattern{Regex: &regex}).finder("key")
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		for done := 0; done < len(text); {
			_, done = f.find(text, done)
			if took := time.Since(start); took > 30*time.Second {
				t.Fatalf("%s: %d of %d bytes after %v", regex, done, len(text), took)
			}
		}
	}
}

// In Oniguruma these have other meanings than in Go.
func TestPatternsOfOtherMeaningAreRefused(t *testing.T) {
	for regex, why := range map[string]string{
		`\w+`: `\w`, `[\W]`: `\W`, `[]a]+`: "begins with ]", `[^]a]+`: "begins with ]", `a{2}?b`: "with ?",
	} {
		_, err := (&pattern{Regex: &regex}).finder("key")
		if refusal := (*unsupported)(nil); !errors.As(err, &refusal) || !strings.HasSuffix(refusal.form, why) {
			t.Errorf("%s: %v, want that it is refused for %s", regex, err, why)
		}
	}
}
