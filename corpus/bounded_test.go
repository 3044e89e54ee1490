package corpus

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unicode"

	"github.com/jenga-nlp/jenga/internal/tokenizer"
)

// long returns the texts of the fixtures beside each other in another order, with what between them.
func long(t testing.TB, between string) string {
	t.Helper()
	var texts []string
	readFixtureJSON(t, "texts.json.gz", &texts)
	random := rand.New(rand.NewPCG(1, 2))
	random.Shuffle(len(texts), func(i, k int) { texts[i], texts[k] = texts[k], texts[i] })
	return strings.Join(texts, between)
}

// A text that is read in pieces has the tokens of the whole text: in all families where it has blanks, as ordinary
// texts have, and of texts without any where the places of tokens are those of their text. Where they are not, as of
// llama2's bytes and nfd's, and where pieces are short, as the normaliser of forms may make a text thousands of
// times longer, a few tokens differ.
func TestABoundedTextHasTheTokensOfTheWhole(t *testing.T) {
	prose := long(t, " and so on ")
	spaceless := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Han, r) || unicode.Is(unicode.Cyrillic, r) || unicode.Is(unicode.Thai, r) {
			return r
		}
		return -1
	}, long(t, ""))
	spaceless = strings.Repeat(spaceless, 1+60_000/len(spaceless))
	for _, family := range families {
		t.Run(family, func(t *testing.T) {
			whole := openFamily(t, family)
			for name, text := range map[string]string{"prose": prose, "spaceless": spaceless} {
				e := &Example{Text: text}
				want := whole.Encode(e, 0)
				bounded := Bound(t.Context(), whole, math.MaxInt32)
				got := bounded.Encode(e, 0)
				if err := bounded.Err(); err != nil {
					t.Fatal(err)
				}
				same := 0
				for same < min(len(got.IDs), len(want.IDs)) && got.IDs[same] == want.IDs[same] &&
					got.Offsets[same] == want.Offsets[same] {
					same++
				}
				if family == "forms" || name == "spaceless" && slices.Contains([]string{"llama2", "nfd"}, family) {
					if n := len(got.IDs) - len(want.IDs); max(n, -n) > len(want.IDs)/1000 {
						t.Errorf("%s: %d tokens, want %d or nearly so", name, len(got.IDs), len(want.IDs))
					}
					continue
				}
				if same != len(want.IDs) || same != len(got.IDs) {
					at := min(same, len(want.IDs)-1)
					place := want.Offsets[at].Start
					t.Errorf("%s of %d bytes: %d tokens, want %d; the first that differs is %d, at byte %d: %+q", name,
						len(text), len(got.IDs), len(want.IDs), same, place,
						text[max(0, place-30):min(len(text), place+30)])
				}
			}
		})
	}
}

// What a text takes does not depend on its length, nor on what its characters become by normalisation.
func TestABoundedTextTakesBoundedMemory(t *testing.T) {
	const most, size = 512, 1 << 20
	for name, unit := range map[string]string{
		"one character that becomes 18": "\ufdfa", "letters": "a ", "a word": "a", "marks": "e\u0301",
		"marks alone": "\u0301", "blanks": " ", "ligatures": "\ufb03", "emoji": "\U0001f469\u200d", "halves": "\uff9e",
	} {
		text := strings.Repeat(unit, size/len(unit))
		for _, family := range []string{"xlmr", "deberta", "llama3", "roberta", "gemma", "mpnet", "nfd"} {
			whole := openFamily(t, family)
			bounded := Bound(t.Context(), whole, most)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			e := bounded.Encode(&Example{Text: text}, 0)
			runtime.ReadMemStats(&after)
			if n := len(e.IDs); n > most+2 {
				t.Errorf("%s, %s: %d tokens, want %d", family, name, n, most)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
				t.Errorf("%s, %s: %d MB for %d tokens of %d MB", family, name, took>>20, len(e.IDs), size>>20)
			}
		}
	}
}

func TestABoundedTextEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	bounded := Bound(ctx, openFamily(t, "xlmr"), 9)
	for _, e := range []*Example{{Text: "a b"}, {Text: "a b", Words: []Span{{0, 1}, {2, 3}}},
		{Text: "a", Pair: "b", Paired: true}} {
		if bounded.Encode(e, 0); !errors.Is(bounded.Err(), context.Canceled) {
			t.Errorf("%+v: error %v", e, bounded.Err())
		}
	}

	// in the middle of a text, too
	words, calls := strings.Repeat("\ufdfa", 1<<18), 0
	own := &countdown{Context: t.Context(), calls: &calls}
	tokens, err := openFamily(t, "xlmr").(*exampleTokenizer).AppendSome(own, nil, words, nil, math.MaxInt32)
	if !errors.Is(err, context.Canceled) || len(tokens) == 0 || calls != 4 {
		t.Errorf("%d tokens, %v after %d pieces; want the error in the fourth", len(tokens), err, calls)
	}
}

// countdown is a context that ends when it is asked for the fourth time.
type countdown struct {
	context.Context
	calls *int
}

func (c *countdown) Err() error {
	if *c.calls++; *c.calls == 4 {
		return context.Canceled
	}
	return nil
}

// The number of tokens that are not read is that of the whole text, as far as they are counted.
func TestBoundedCountsOfTruncatedTokens(t *testing.T) {
	whole := openFamily(t, "xlmr")
	for _, test := range []struct {
		text       string
		most, want int
	}{
		{strings.Repeat("so good ", 20_000), 1 << 20, -1},
		{long(t, " "), 1 << 20, -1},
		{strings.Repeat("good ", 1000), 500, 470},
		{strings.Repeat("good ", 10), 500, 0},
	} {
		e := &Example{Text: test.text}
		c := Windowing{MaxLength: 32}
		want := test.want
		if want < 0 {
			e.Windows = c.Encode(whole, e)
			want = c.TruncatedTokens(whole, e)
		}
		bounded := Bound(t.Context(), whole, test.most)
		e.Windows = c.Encode(bounded, e)
		if got := c.TruncatedTokens(bounded, e); got != want {
			t.Errorf("%.20q: %d tokens are truncated, want %d", test.text, got, want)
		}
	}
}

// uncounted is a tokenizer of which TruncatedTokens knows nothing but its methods.
type uncounted struct{ Tokenizer }

// Questions about one long context are encoded as each alone, and the context once.
func TestALongContextIsEncodedOnce(t *testing.T) {
	texts := []string{strings.Repeat("so it is ", 3000), strings.Repeat("that it was ", 3000)}
	trained, err := TrainWordPiece(slices.Values(texts), 100, true)
	if err != nil {
		t.Fatal(err)
	}
	own := trained.(*exampleTokenizer)
	var calls atomic.Int32 // of long texts
	counted := func(out []tokenizer.Token, text string, words []tokenizer.Range) []tokenizer.Token {
		if len(text) >= longBytes {
			calls.Add(1)
		}
		return own.Append(out, text, words)
	}
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			e := &Example{Text: "was it " + strings.Repeat("so ", i), Pair: strings.Clone(texts[i%2]), Paired: true}
			if i%4 > 1 {
				e.Text, e.Pair = e.Pair, e.Text
			}
			got := own.encode(e, i, &own.long, counted)
			if want := own.encode(e, i, nil, own.Append); formatEncoding(got) != formatEncoding(want) {
				t.Errorf("%d tokens at most: %s, want %s", i, formatEncoding(got), formatEncoding(want))
			}
			c := Windowing{MaxLength: len(got.IDs)}
			e.Windows = []Encoding{got}
			without := uncounted{own} // an encoding of all tokens is made
			if got, want := c.TruncatedTokens(own, e), c.TruncatedTokens(without, e); got != want {
				t.Errorf("%d tokens at most: %d are truncated, want %d", i, got, want)
			}
		})
	}
	all.Wait()
	if n := calls.Load(); n != 2 {
		t.Errorf("long texts were encoded %d times, want 2", n)
	}
}

// What is kept of long texts does not grow with their number, nor with that of their tokens.
func TestFewLongTextsAreKept(t *testing.T) {
	var l longTokens
	tokens := func(n int) func(string) []tokenizer.Token {
		return func(string) []tokenizer.Token { return make([]tokenizer.Token, n) }
	}
	kept := func() (n, size int) {
		for _, text := range l.last {
			size += len(text.text) + tokenSize*len(text.tokens)
		}
		return len(l.last), size
	}
	for i := range 100 {
		l.of(strings.Repeat(string(rune('a'+i)), longBytes), tokens(100))
		if n, size := kept(); n != min(i+1, mostTexts) || size > mostBytes {
			t.Fatalf("after %d texts %d are kept, of %d bytes", i+1, n, size)
		}
	}
	l.of(strings.Repeat("x", 2*longBytes), tokens(mostBytes/tokenSize/2))
	l.of(strings.Repeat("y", 2*longBytes), tokens(mostBytes/tokenSize*2/3))
	if n, size := kept(); n != 1 || size > mostBytes {
		t.Errorf("of two texts of many tokens %d are kept, of %d bytes, want the later one", n, size)
	}
	if got, _ := l.of(strings.Repeat("z", longBytes), tokens(mostBytes/tokenSize+1)); len(got.tokens) == 0 {
		t.Error("a text of too many tokens has none")
	}
	if n, _ := kept(); n != 0 {
		t.Errorf("%d texts are kept beside one of too many tokens", n)
	}
}
