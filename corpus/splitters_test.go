package corpus

import (
	"slices"
	"strings"
	"testing"
)

// splitAll are the words that a way finds in a text; the tokenizer's way is not tested here.
func splitAll(way, text string) []string {
	words := []string{}
	for _, w := range Splitter(way, nil)(text) {
		words = append(words, text[w.Start:w.End])
	}
	return words
}

func TestSplitters(t *testing.T) {
	for _, c := range []struct{ text, ends, clitics, whitespace string }{
		{"", "", "", ""},
		{" \t\n", "", "", ""},
		{"Hello, world!", "Hello|,|world|!", "Hello|,|world|!", "Hello,|world!"},
		{"(don't) e-mail U.S.", "(|don't|)|e-mail|U.S|.", "(|do|n't|)|e-mail|U.S|.", "(don't)|e-mail|U.S."},
		{"He’S n't's 's", "He’S|n't's|'|s", "He|’S|n't|'s|'|s", "He’S|n't's|'s"},
		{"... ?!", ".|.|.|?|!", ".|.|.|?|!", "...|?!"},
		{"«مرحبا، عالم» 你好。", "«|مرحبا|،|عالم|»|你好|。", "«|مرحبا|،|عالم|»|你好|。", "«مرحبا،|عالم»|你好。"},
		{"a\u00a0b 😀😀", "a|b|😀😀", "a|b|😀😀", "a|b|😀😀"},
	} {
		for way, want := range map[string]string{
			SplitEnds: c.ends, SplitClitics: c.clitics, SplitWhitespace: c.whitespace,
		} {
			if got := strings.Join(splitAll(way, c.text), "|"); got != want {
				t.Errorf("%s of %q: %s, want %s", way, c.text, got, want)
			}
		}
	}
}

func TestSplitAgreementPrefersTheWayOfTheData(t *testing.T) {
	tokenizer, err := TrainWordPiece(slices.Values([]string{"a"}), 100, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		texts string // of words between blanks, a text a line
		best  string
	}{
		{"He does n't live ( here ) , I 'm sure .\nThe U.S. e-mail was sent to a.b@c.org , too .", SplitClitics},
		{"live ( here ) , we're sure .\nThe U.S. e-mail was sent to a.b@c.org , too .", SplitEnds},
		{"hello, world! @you\nso: what?", SplitWhitespace},
		{"hello , world ! it ' s fine - a - b .", SplitPunctuation},
	} {
		var examples []*Example
		for line := range strings.Lines(c.texts) {
			e := &Example{}
			e.Text, e.Words = joinWords(strings.Fields(line))
			examples = append(examples, e)
		}
		f1 := map[string]float64{}
		for _, way := range []string{SplitPunctuation, SplitEnds, SplitClitics, SplitWhitespace} {
			f1[way] = SplitAgreement(Splitter(way, tokenizer), examples)
		}
		for way, other := range f1 {
			if other > f1[c.best] || f1[c.best] < 0.7 {
				t.Errorf("%s: %s agrees by %.3f, %s by %.3f", c.texts, way, other, c.best, f1[c.best])
			}
		}
	}
	e := &Example{Text: "a,b", Words: []Span{{0, 1}, {1, 2}, {2, 3}}} // with a text
	if got := SplitAgreement(splitWhitespace, []*Example{e}); got != 0 {
		t.Errorf("agreement %v, want 0", got)
	}
	if got := SplitAgreement(splitEnds, nil); got != 1 || !slices.Equal(splitEnds(""), []Span{}) {
		t.Errorf("agreement of nothing %v, want 1", got)
	}
}
