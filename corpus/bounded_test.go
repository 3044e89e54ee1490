package corpus

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode"
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
