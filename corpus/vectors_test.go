package corpus

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

func TestVectors(t *testing.T) {
	keepAll := func(string) bool { return true }
	for _, c := range []struct{ name, text, words string }{
		{"the format of GloVe", "the 0.1 -2 3e-2\nkite 4 5 6\n", "the kite"},
		{"the format of fastText, with a header", "2 3 \nthe 0.1 -2 3e-2 \nkite 4 5 6 \n", "the kite"},
		{"a word with blanks is skipped", "the 0.1 -2 3e-2\n. . . 1 2 3\nkite 4 5 6", "the kite"},
		{"duplicate words count once", "the 0.1 -2 3e-2\nkite 4 5 6\nkite 7 8 9\n", "the kite"},
		{"not ASCII", "the 0.1 -2 3e-2\nkite 4 5 6\nhöß\u00a0x 7 8 9\n", "the kite höß\u00a0x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, err := readVectors(t.Context(), strings.NewReader(c.text), "v.txt", keepAll)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(v.Words, " "); got != c.words || v.Width != 3 {
				t.Errorf("words %q of width %d", got, v.Width)
			}
			if !slices.Equal(v.Of("the"), []float32{0.1, -2, 0.03}) ||
				!slices.Equal(v.Of("kite"), []float32{4, 5, 6}) || v.Of("bird") != nil {
				t.Errorf("vectors %v and %v", v.Of("the"), v.Of("kite"))
			}
		})
	}

	v, err := readVectors(t.Context(), strings.NewReader("the 0.5\nof 0.25\n"), "v.txt", keepAll)
	if err != nil || v.Width != 1 ||
		!slices.Equal(v.Words, []string{"the", "of"}) {
		t.Errorf("%+v, %v: a first line of a word and a number is a vector", v, err)
	}
	v, err = readVectors(t.Context(), strings.NewReader("the 1 2\nkite 3 4\nbad x y\n"), "v.txt",
		func(word string) bool { return word == "kite" })
	if err != nil || v.Of("the") != nil || v.Of("kite") == nil {
		t.Errorf("vectors %v, %v: want only those of the words to keep", v, err)
	}
}

func TestMalformedVectors(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "v.txt: no vectors; want a word and its numbers in each line"},
		{"words without numbers", "the\n", "v.txt:1: a word and 0 numbers; want 1 to 16384"},
		{"truncated", "the 1 2 3\nkite 4\nbird 1 2 3\n", "v.txt:2: a word and 1 number; the lines before have 3"},
		{"truncated between lines", "3 2\nthe 1 2\nkite 3 4\n",
			"v.txt: 2 words, where the first line has 3: the file is truncated"},
		{"no numbers", "the 1 2\nkite x 2\nbird 1 NaN\n",
			"v.txt:2: \"x\" in a vector; want a number\nv.txt:3: \"NaN\" in a vector; want a number"},
		{"too large", "the 1 1e99\n", "v.txt:1: \"1e99\" in a vector; want a number"},
		{"too wide", "the" + strings.Repeat(" 1", maxVectorWidth+1),
			"v.txt:1: a word and 16385 numbers; want 1 to 16384"},
		{"not UTF-8", "the 1 2\nk\xffte 1 2\n", "v.txt:2: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := readVectors(t.Context(), strings.NewReader(c.text), "v.txt", func(string) bool { return true })
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("error %v, want %s", err, c.want)
			}
		})
	}
}

func FuzzVectors(f *testing.F) {
	f.Add([]byte("2 3\nthe 0.1 -2 3e-2\nkite 4 5 6\n. . 1 2 3\n"))
	f.Add([]byte("a 1\nb\xff 2\nb 1e39"))
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := readVectors(t.Context(), bytes.NewReader(data), "v.txt", func(word string) bool { return word != "" })
		if err != nil {
			return
		}
		for _, word := range v.Words {
			if len(v.Of(word)) != v.Width {
				t.Errorf("%q has %d numbers of %d", word, len(v.Of(word)), v.Width)
			}
		}
	})
}
