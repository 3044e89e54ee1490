package tokenizer

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

// trainByDefinition trains by the definition: it counts all pairs again for each merge.
func trainByDefinition(t *trainer, size int) []string {
	for len(t.tokens) < size {
		counts := make(map[neighbours]int)
		for _, word := range t.words {
			for pair := range word.neighbours() {
				counts[pair] += word.count
			}
		}
		var best neighbours
		for pair, count := range counts {
			smaller := pair.left < best.left || pair.left == best.left && pair.right < best.right
			if most := counts[best]; count > most || count == most && smaller {
				best = pair
			}
		}
		if counts[best] == 0 {
			break
		}
		merged := t.id(t.tokens[best.left] + strings.TrimPrefix(t.tokens[best.right], innerPrefix))
		for i := range t.words {
			t.words[i].replace(best, merged)
		}
	}
	return t.tokens
}

// tokensOf returns the tokens of a text, without special ones.
func tokensOf(t *Tokenizer, text string) []string {
	var tokens []string
	for _, k := range t.Append(nil, text, nil) {
		tokens = append(tokens, t.Token(k.ID))
	}
	return tokens
}

func TestTrainWordPiece(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var texts []string
	for range 300 {
		var text []byte
		for range random.IntN(40) {
			text = append(text, "aaabbcde fé. "[random.IntN(13)])
		}
		texts = append(texts, strings.ToValidUTF8(string(text), "ü"))
	}

	t.Run("a long text counts as often as it occurs", func(t *testing.T) {
		long, other := strings.Repeat("so it is ", 3000), strings.Repeat("so be it ", 3000)
		_, splitter := newTrained(true)
		counts := func(texts ...string) map[string]int {
			words, err := countWords(slices.Values(texts), splitter, 100)
			if err != nil {
				t.Fatal(err)
			}
			return words
		}
		got := counts("be", long, "is it", long, other, strings.Clone(other), long, long, "so")
		want := map[string]int{"so": 18001, "it": 18001, "is": 12001, "be": 6001}
		if !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	})

	t.Run("equal to training by the definition", func(t *testing.T) {
		for _, size := range []int{20, 40, 150, 100000} {
			w, err := TrainWordPiece(slices.Values(texts), size, true)
			if err != nil {
				t.Fatal(err)
			}
			_, splitter := newTrained(true)
			counts, _ := countWords(slices.Values(texts), splitter, minVocabulary)
			want := trainByDefinition(newTrainer(counts, size), size)
			if got := w.tokens; !slices.Equal(got, want) {
				t.Errorf("size %d: got %q, want %q", size, got, want)
			}
		}
	})

	t.Run("order of texts does not matter", func(t *testing.T) {
		first, err := TrainWordPiece(slices.Values(texts), 200, true)
		if err != nil {
			t.Fatal(err)
		}
		random.Shuffle(len(texts), func(i, j int) { texts[i], texts[j] = texts[j], texts[i] })
		second, err := TrainWordPiece(slices.Values(texts), 200, true)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := second.tokens, first.tokens; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})

	t.Run("a vocabulary computed by hand", func(t *testing.T) {
		w, err := TrainWordPiece(slices.Values([]string{"Hug hug hugs pug Pún"}), 40, true)
		if err != nil {
			t.Fatal(err)
		}
		// u-g occurs 4 times, then h-ug 3 times. The other pairs occur once; the left ids decide: those of p, hug and
		// pu.
		want := []string{
			"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "g", "h", "n", "p", "s", "u", "##g", "##n", "##s", "##u",
			"##ug", "hug", "pu", "pug", "hugs", "pun",
		}
		if got := w.tokens; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})

	t.Run("equal to the trainer of the tokenizers crate", func(t *testing.T) {
		var crate struct {
			Words  map[string]int
			Size   int
			Tokens []string
		}
		data, err := os.ReadFile("testdata/trained.json")
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, &crate); err != nil {
			t.Fatal(err)
		}
		words := func(yield func(string) bool) {
			for word, times := range crate.Words {
				if !yield(strings.Repeat(word+" ", times)) {
					return
				}
			}
		}
		w, err := TrainWordPiece(words, crate.Size, true)
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Sorted(slices.Values(w.tokens)); !slices.Equal(got, crate.Tokens) {
			t.Errorf("got %q, want %q", got, crate.Tokens)
		}
	})

	t.Run("no word of the texts is unknown", func(t *testing.T) {
		w, err := TrainWordPiece(slices.Values(texts), 60, true)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range texts {
			if got := tokensOf(w, text); slices.Contains(got, bertNames.Unknown.text) {
				t.Errorf("%q is %q", text, got)
			}
		}
	})

	t.Run("rare letters leave room for pieces", func(t *testing.T) {
		var all strings.Builder
		for r := 'a'; r < 'a'+2000; r++ {
			fmt.Fprintf(&all, "%c %s ", r, strings.Repeat("the cat sat ", 3))
		}
		w, err := TrainWordPiece(slices.Values([]string{all.String()}), 100, true)
		if err != nil {
			t.Fatal(err)
		}
		for _, token := range []string{"the", "cat", "sat"} {
			if !slices.Contains(w.tokens, token) {
				t.Errorf("no token %q", token)
			}
		}
	})

	t.Run("capitals and accents are kept if cased", func(t *testing.T) {
		w, err := TrainWordPiece(slices.Values([]string{"Éa Éa"}), 16, false)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := w.tokens[5:], []string{"a", "É", "##a", "Éa"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})

	t.Run("errors of texts without words and of invalid sizes", func(t *testing.T) {
		if _, err := TrainWordPiece(slices.Values([]string{"", " \t"}), 100, true); err == nil {
			t.Error("no error without words")
		}
		for _, size := range []int{-1, 0, 15, maxID + 1} {
			if _, err := TrainWordPiece(slices.Values(texts), size, true); err == nil {
				t.Errorf("no error with size %d", size)
			}
		}
	})
}

func TestTrainWords(t *testing.T) {
	texts := slices.Values([]string{"The red kite, the kite!", "A red kite unfolds"})
	w, err := TrainWords(texts, 16, true, func(add func(word string) bool) {
		for word, want := range map[string]bool{"kite": true, "blue": true, "Blue": false, "blue kite": false,
			"don't": false, "##ing": false, "": false} {
			if got := add(word); got != want {
				t.Errorf("add(%q) = %v, want %v", word, got, want)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	// the most frequent first, equally frequent ones in byte order, then added ones
	want := append(bertNames.all(), "kite", "red", "the", "!", ",", "a", "unfolds", "blue")
	if !slices.Equal(w.tokens, want) {
		t.Errorf("tokens %q, want %q", w.tokens, want)
	}
	const text = "Blue kites unfold: the KITE"
	if got, want := strings.Join(tokensOf(w, text), " "), "blue [UNK] [UNK] [UNK] the kite"; got != want {
		t.Errorf("%q is %s, want %s", text, got, want)
	}
	folder := t.TempDir()
	if err := w.Save(folder); err != nil {
		t.Fatal(err)
	}
	again, err := Open(folder)
	if err != nil || !slices.Equal(tokensOf(again, text), tokensOf(w, text)) {
		t.Errorf("a saved and reopened tokenizer encodes differently: %v", err)
	}
}

func TestTrainWordsLimitsSize(t *testing.T) {
	texts, added := slices.Values([]string{"a b c d e f g h i j k l m n o p q r s t"}), false
	w, err := TrainWords(texts, 16, true, func(add func(word string) bool) { added = add("more") })
	if err != nil || w.Size() != 16 || added {
		t.Fatalf("%v, error %v, added %v; want 16 tokens, and none added", w, err, added)
	}
	for _, c := range []struct {
		text string
		size int
		want string
	}{{"a", 3, "vocabulary of 3 tokens, want 16 to 2097152"}, {" ", 20, "no words to train a vocabulary on"}} {
		_, err := TrainWords(slices.Values([]string{c.text}), c.size, true, func(func(word string) bool) {})
		if err == nil || err.Error() != c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
}
