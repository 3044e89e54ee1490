package corpus

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
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
	split := splitting(appendEnds)
	if got := SplitAgreement(split, nil); got != 1 || !slices.Equal(split(""), []Span{}) {
		t.Errorf("agreement of nothing %v, want 1", got)
	}
}

func TestTreebankWordsOfEnglish(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"al-Qaeda's e-mail, re-elected", "al|-|Qaeda|'s|e-mail|,|re-elected"},
		{"It's 5 p.m. in the U.S. (Mr. W. Doe)...", "It|'s|5|p.m.|in|the|U.S.|(|Mr.|W.|Doe|)|..."},
		{"Stop!!! What?! ---- ***", "Stop|!!!|What|?!|----|***"},
		{"$40,000 and 50% on 10/12 or 1-4 of 651-7106", "$|40,000|and|50|%|on|10/12|or|1|-|4|of|651-7106"},
		{"and/or products,please", "and|/|or|products|,|please"},
		{"<a.b@c.org> http://a.b/c-d, @you #this", "<|a.b@c.org|>|http://a.b/c-d|,|@you|#this"},
		{"nice:) :-D ok;)", "nice|:)|:-D|ok|;)"},
		{"I cannot, don't, in '67", "I|can|not|,|do|n't|,|in|'67"},
		{"«مرحبا، عالم» école 😀! हिन्दी में", "«|مرحبا|،|عالم|»|école|😀|!|हिन्दी|में"},
		{"你好。\U000e0041", "你好。\U000e0041"},
		{"5pm, 10k at 7:30PM on 01-Feb-02", "5|pm|,|10|k|at|7:30|PM|on|01-Feb-02"},
		{"Dont 1-800-991-9019", "Do|nt|1-800-991-9019"},
		{"- ( \" .", "-|(|\"|."},
		{"(" + strings.Repeat("a-", 300) + "a)", "(|" + strings.Repeat("a-", 300) + "a|)"}, // a long one
	} {
		if got := strings.Join(splitAll(SplitTreebank, c.text), "|"); got != c.want {
			t.Errorf("%q: %s, want %s", c.text, got, c.want)
		}
	}
}

func TestAgreementIsWithTheTextThatCoNLLUHas(t *testing.T) {
	const word = "%\t_\t_\t_\t_\t_\t_\t_\t_\n"
	text := "# text = al-Qaeda (so)\n"
	for i, w := range []string{"al", "-", "Qaeda", "(", "so", ")"} {
		text += string(rune('1'+i)) + "\t" + strings.Replace(word, "%", w, 1)
	}
	path := filepath.Join(t.TempDir(), "a.conllu")
	text = "# text = none\n\n" + text + "\n1\t" + strings.Replace(word, "%", "a-b", 1)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	records, err := Open(t.Context(), path, Format{})
	if err != nil {
		t.Fatal(err)
	}
	var examples []*Example
	for _, r := range records {
		e, err := r.Example()
		if err != nil {
			t.Fatal(err)
		}
		examples = append(examples, &e)
	}
	if e := examples[0]; e.Written != "al-Qaeda (so)" || e.Text != "al - Qaeda ( so )" || examples[1].Written != "" {
		t.Fatalf("written %q, text %q, of the other %q", e.Written, e.Text, examples[1].Written)
	}
	for way, want := range map[string]float64{SplitTreebank: 1, SplitEnds: 0.6} { // 3 of 6 and 4 words
		if got := SplitAgreement(Splitter(way, nil), examples[:1]); got != want {
			t.Errorf("%s agrees by %v, want %v", way, got, want)
		}
	}
}

func FuzzSplitters(f *testing.F) {
	f.Add("It's (al-Qaeda)... :) ½ \u0301\u200d👩‍👧 में")
	f.Fuzz(func(t *testing.T, text string) {
		for _, way := range []string{SplitEnds, SplitClitics, SplitTreebank, SplitWhitespace} {
			var words []string
			for _, w := range Splitter(way, nil)(text) {
				if w.Start >= w.End {
					t.Fatalf("%s of %q: word %v", way, text, w)
				}
				words = append(words, text[w.Start:w.End])
			}
			if _, err := findWords(text, words); err != nil {
				t.Fatalf("%s of %q: %v", way, text, err)
			}
		}
	})
}

func TestWordsHaveTheCharactersThatTheTokenizerDrops(t *testing.T) {
	tokenizer, err := TrainWordPiece(slices.Values([]string{"a"}), 100, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ text, want string }{
		{"में है।", "में|है|।"}, // vowel signs at the end
		{"أغنيةٌ!", "أغنيةٌ|!"}, // a case ending
		{"e\u0301cole cafe\u0301", "e\u0301cole|cafe\u0301"},
		{"\ufeffa\u200d \u200db,\u200d \u200d", "\ufeffa\u200d|\u200db|,\u200d"},
		{"👩\u200d👩\u200d👧 ❤\ufe0f 我\ufe00想", "👩\u200d👩\u200d👧|❤\ufe0f|我\ufe00|想"},
		{"\u0301", ""},
		{"a\u2028b", "a|b"},
	} {
		var words []string
		spans := Splitter(SplitPunctuation, tokenizer)(c.text)
		for _, w := range spans {
			words = append(words, c.text[w.Start:w.End])
		}
		if found, err := findWords(c.text, words); err != nil || !slices.Equal(found, spans) && len(spans) > 0 {
			t.Errorf("%q: %v, %v; the words are at %v", c.text, found, err, spans)
		}
		if got := strings.Join(words, "|"); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}

// trimGapPlainly is trimGap, character by character, in time quadratic in the marks that a long word begins with.
func trimGapPlainly(rest, word string) string {
	rest = strings.TrimLeftFunc(rest, unicode.IsSpace)
	for rest != "" && (word == "" || !strings.HasPrefix(rest, word)) {
		r, size := utf8.DecodeRuneInString(rest)
		if !unicode.IsSpace(r) && !unicode.In(r, unicode.Mn, unicode.Cc, unicode.Cf) {
			break
		}
		rest = rest[size:]
	}
	return rest
}

func TestGapsEndAtTheNextWord(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	text := func(most int) string {
		parts := make([]string, random.IntN(most))
		for i := range parts {
			parts[i] = []string{"a", "b", " ", "\u0301", "\u200d", "\t"}[random.IntN(6)]
		}
		return strings.Join(parts, "")
	}
	for range 100_000 {
		rest, word := text(9), text(4)
		if got, want := trimGap(rest, word), trimGapPlainly(rest, word); got != want {
			t.Fatalf("%q before %q: %q, want %q", rest, word, got, want)
		}
	}
}

func TestTableOfSplittersIsRight(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "data.md"))
	if err != nil {
		t.Fatal(err)
	}
	tokenizer, err := TrainWordPiece(slices.Values([]string{"a"}), 100, true)
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^[|] `([a-z]+)`: .* [|] `(\".*)` [|]$").FindAllStringSubmatch(string(page), -1)
	if len(rows) != 5 {
		t.Fatalf("%d rows, want one for each of 5 ways", len(rows))
	}
	const text = `"Don't e-mail al-Qaeda...`
	for _, row := range rows {
		var words []string
		for _, w := range Splitter(row[1], tokenizer)(text) {
			words = append(words, text[w.Start:w.End])
		}
		if got := strings.Join(words, " "); got != row[2] {
			t.Errorf("%s: the page has %s, want %s", row[1], row[2], got)
		}
	}
}
