package claims

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// splitsOf returns the splits of a set.
func splitsOf(t *testing.T, folder string) []Split {
	t.Helper()
	for _, set := range Sets {
		if set.Folder == folder {
			return set.Splits
		}
	}
	t.Fatalf("no set %s", folder)
	return nil
}

func TestTheFilesOfSetsAreUpToDate(t *testing.T) {
	for _, set := range Sets {
		for _, split := range set.Splits {
			var want bytes.Buffer
			if err := set.Write(&want, split); err != nil {
				t.Fatal(err)
			}
			name := filepath.Join(set.Folder, split.Name+".jsonl.gz")
			if !bytes.Equal(content(t, name), want.Bytes()) {
				t.Errorf("%s differs from the generator's output: run go generate ./...", name)
			}
		}
	}
}

// sentences lists the sentences of the sets that belong to one split.
func sentences(part int) []string {
	lists := [][3][]string{treatments, direct, sums, shares, rests, elsewhere, only, never}
	for _, c := range slices.Concat(settings, codes) {
		lists = append(lists, c.stated, c.denied)
	}
	for _, s := range signs {
		lists = append(lists, s.sentences)
	}
	for _, c := range conditions {
		lists = append(lists, c.stated[0], c.stated[1])
	}
	for _, s := range statements {
		lists = append(lists, s.sentences)
		for _, a := range s.asks {
			lists = append(lists, a.wordings)
		}
	}
	var all []string
	for _, list := range lists {
		for _, sentence := range list[part] {
			all = append(all, variants(sentence)...)
		}
	}
	return all
}

// quickstart lists the sentences of the quickstart's patterns.
func quickstart(p *patterns) []string {
	var all []string
	for _, list := range [][]string{p.openings, p.claims, p.settled, p.contrasts, p.asides, p.urgent, p.soon, p.routine,
		p.closings} {
		for _, sentence := range list {
			all = append(all, variants(sentence)...)
		}
	}
	return all
}

func TestNoSentenceOfTheSetsIsInTwoSplits(t *testing.T) {
	owner := map[string]string{}
	plain := regexp.MustCompile(`[^a-z{}]+`)
	for _, split := range Splits {
		for _, s := range sentences(split.part) {
			words := strings.TrimSpace(plain.ReplaceAllString(strings.ToLower(s), " "))
			if first, taken := owner[words]; taken && first != split.Name {
				t.Errorf("%q is in %s and in %s", s, first, split.Name)
			}
			owner[words] = split.Name
		}
	}
}

func TestWordsOfDevAndTestAreInTrain(t *testing.T) {
	word := regexp.MustCompile(`[a-z]+`)
	slots := regexp.MustCompile(`\{[^}]*\}`)
	words := func(s string) []string {
		return word.FindAllString(slots.ReplaceAllString(strings.ToLower(s), " "), -1)
	}
	known := map[string]bool{}
	for _, s := range slices.Concat(sentences(0), quickstart(&trainPatterns)) {
		for _, w := range words(s) {
			known[w] = true
		}
	}
	for _, split := range Splits[1:] {
		for _, s := range sentences(split.part) {
			for _, w := range words(s) {
				if !known[w] {
					t.Errorf("%q of %s: %q is not in train", s, split.Name, w)
				}
			}
		}
	}
}

func TestRatesOfLabelsInClaims(t *testing.T) {
	for _, split := range splitsOf(t, "full") {
		counts := map[string]int{}
		all := split.claims()
		for _, c := range all {
			counts[c.Fraud]++
			counts[c.Structure]++
			for _, code := range c.Codes {
				counts[code]++
			}
			if c.Amount < 60 || c.Amount >= 2000 {
				t.Errorf("%d euros are claimed in %q", c.Amount, c.Text)
			}
			if c.Fraud == "fraud" && c.Structure == "anomalous" {
				t.Errorf("%q is fraud and anomalous", c.Text)
			}
		}
		fraction := func(label string) float64 { return float64(counts[label]) / float64(len(all)) }
		if got := fraction("fraud"); got < 0.03 || got > 0.05 {
			t.Errorf("%s: a fraction of %v is fraud, want 0.03 to 0.05", split.Name, got)
		}
		least, most := 0.09, 0.11
		if split.Name == "train" {
			least, most = 0.01, 0.03
		}
		if got := fraction("anomalous"); got < least || got > most {
			t.Errorf("%s: a fraction of %v is anomalous, want %v to %v", split.Name, got, least, most)
		}
		for _, c := range slices.Concat(settings, codes) {
			if got := fraction(c.name); got < 0.05 || got > 0.8 {
				t.Errorf("%s: a fraction of %v has code %s, want 0.05 to 0.8", split.Name, got, c.name)
			}
		}
	}
}

func TestNoEntityValueOfTheClaimsIsInTwoSplits(t *testing.T) {
	owner := map[string]string{}
	for _, split := range splitsOf(t, "full") {
		for _, c := range split.claims() {
			end := 0
			for _, e := range c.Entities {
				if e.Start < end || e.End <= e.Start || e.End > len([]rune(c.Text)) {
					t.Fatalf("entity %+v of %q", e, c.Text)
				}
				end = e.End
				value := strings.ToLower(string([]rune(c.Text)[e.Start:e.End]))
				if first, taken := owner[value]; taken && first != split.Name {
					t.Fatalf("%s %q is in %s and in %s", e.Label, value, first, split.Name)
				}
				owner[value] = split.Name
			}
			if strings.ContainsAny(c.Text, "{}[]|") {
				t.Fatalf("a note reads %q", c.Text)
			}
		}
	}
	if len(owner) < 1000 {
		t.Errorf("%d entity values, want 1000 at least", len(owner))
	}
}

// sorted returns the words of sentences in order of the alphabet.
func sorted(sentences []string) []string {
	words := unit.FindAllString(strings.ToLower(strings.Join(sentences, " ")), -1)
	for i := range words {
		words[i] = strings.TrimRight(words[i], ".?!:,")
	}
	slices.Sort(words)
	return words
}

func TestAnAnomalousOrderHasTheWordsOfTheNormalOne(t *testing.T) {
	w := newWriter(rand.New(rand.NewPCG(1, 0)), Splits[0])
	normal := []string{"Dear team,", "I was seen by {clinic} on {day}.", "Please pay {sum} for {claimed}.",
		"Thanks, policy {policy}."}
	turned := 0
	for range 100 {
		got := w.disorder(normal)
		if !slices.Equal(sorted(got), sorted(normal)) {
			t.Fatalf("disorder(%q) = %q", normal, got)
		}
		if strings.HasSuffix(got[len(got)-1], normal[3]) || got[0] == normal[0] {
			t.Errorf("disorder(%q) = %q, which starts or ends like it", normal, got)
		}
		if slices.Contains(got, "{sum} for {claimed} Please pay.") {
			turned++
		}
	}
	if turned < 30 || turned > 70 {
		t.Errorf("the sentences of %d%% of the notes are turned, want about 50%%", turned)
	}
}

func TestNeitherNoteNorClauseDeterminesTheLabel(t *testing.T) {
	for _, split := range splitsOf(t, "clauses") {
		byClause := map[string]map[string]int{}
		pairs := split.pairs()
		if len(pairs) != split.Notes {
			t.Errorf("%s has %d pairs, want %d", split.Name, len(pairs), split.Notes)
		}
		for _, p := range pairs {
			if byClause[p.Clause] == nil {
				byClause[p.Clause] = map[string]int{}
			}
			byClause[p.Clause][p.Covered]++
			if strings.ContainsAny(p.Text+p.Clause, "{}[]|") {
				t.Fatalf("a pair reads %q, %q", p.Text, p.Clause)
			}
		}
		for clause, counts := range byClause {
			for _, answer := range answers {
				if counts[answer] != counts[answers[0]] {
					t.Errorf("%s: %q has answers %v, want as many of each", split.Name, clause, counts)
				}
			}
		}
		if split.Name != "train" {
			continue
		}
		for _, c := range conditions {
			for _, sentence := range slices.Concat(c.stated[0][0], c.stated[1][0]) {
				checkEven(t, sentence, pairs)
			}
		}
	}
}

// checkEven checks that each label has a third of the notes with a sentence, to within four standard deviations.
func checkEven(t *testing.T, sentence string, pairs []Pair) {
	t.Helper()
	start, _, _ := strings.Cut(sentence, "{")
	counts, n := map[string]int{}, 0
	for _, p := range pairs {
		if strings.Contains(p.Text, start) {
			counts[p.Covered]++
			n++
		}
	}
	for _, answer := range answers {
		off := float64(counts[answer]) - float64(n)/3
		if n < 20 || off*off > 16*float64(n)*2/9 {
			t.Errorf("notes with %q have answers %v", sentence, counts)
		}
	}
}

func TestAnswersAreAtTheirOffsets(t *testing.T) {
	for _, split := range splitsOf(t, "questions") {
		asked := map[string]bool{}
		for _, q := range split.questions() {
			asked[q.Question] = true
			if strings.ContainsAny(q.Question+q.Context, "{}[]|") || len(q.Answers) != 1 {
				t.Fatalf("%+v", q)
			}
			a := q.Answers[0]
			characters := []rune(q.Context)
			if end := a.Start + len([]rune(a.Text)); a.Text == "" || end > len(characters) ||
				string(characters[a.Start:end]) != a.Text {
				t.Fatalf("%q is not at character %d of %q", a.Text, a.Start, q.Context)
			}
		}
		wordings := 0
		for _, s := range statements {
			for _, a := range s.asks {
				wordings += len(a.wordings[split.part])
			}
		}
		if len(asked) != wordings {
			t.Errorf("%s has %d wordings of questions, want %d: %q", split.Name, len(asked), wordings,
				slices.Sorted(maps.Keys(asked)))
		}
	}
}
