package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestQuickstartFilesAreGenerated(t *testing.T) {
	for _, split := range Splits {
		var want bytes.Buffer
		if err := Write(&want, split); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(readFile(t, split.File()), want.Bytes()) {
			t.Errorf("%s is not what the generator writes: go generate ./experiments", split.File())
		}
	}
}

// readFile returns the content of a file, decompressed if its name ends in .gz.
func readFile(t *testing.T, name string) []byte {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(dataFolder, name))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(name, ".gz") {
		return file
	}
	r, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestEntityValuesBelongToOneSplit(t *testing.T) {
	owner := map[string]string{}
	for _, split := range Splits {
		for _, note := range split.notes() {
			for _, e := range note.Entities {
				value := strings.ToLower(string([]rune(note.Text)[e.Start:e.End]))
				if first, taken := owner[value]; taken && first != split.Name {
					t.Fatalf("%s %q is in %s and in %s", e.Label, value, first, split.Name)
				}
				owner[value] = split.Name
			}
		}
	}
	if len(owner) < 1000 {
		t.Errorf("%d entity values, want 1000 at least", len(owner))
	}
}

func TestSentencesBelongToOneSplit(t *testing.T) {
	owner := map[string]string{}
	nonWords := regexp.MustCompile(`[^a-z{}]+`)
	for _, split := range Splits {
		for _, sentence := range quickstartSentences(split.patterns) {
			words := nonWords.ReplaceAllString(strings.ToLower(sentence), " ")
			if first, taken := owner[words]; taken && first != split.Name {
				t.Errorf("%q is in %s and in %s", sentence, first, split.Name)
			}
			owner[words] = split.Name
		}
	}
}

// quickstartSentences lists the sentences of patterns, with each choice of alternatives.
func quickstartSentences(p *patterns) []string {
	var all []string
	for _, list := range [][]string{p.openings, p.claims, p.settled, p.contrasts, p.asides, p.urgent, p.soon, p.routine,
		p.closings} {
		for _, pattern := range list {
			all = append(all, variants(pattern)...)
		}
	}
	return all
}

// variants lists the sentences that the alternatives of a pattern make.
func variants(pattern string) []string {
	at := alternativesPattern.FindStringIndex(pattern)
	if at == nil {
		return []string{pattern}
	}
	var all []string
	for _, choice := range strings.Split(pattern[at[0]+1:at[1]-1], "|") {
		all = append(all, variants(pattern[:at[0]]+choice+pattern[at[1]:])...)
	}
	return all
}

func TestNotesAreWellFormed(t *testing.T) {
	types := map[string]int{}
	for _, split := range Splits {
		for _, note := range split.notes() {
			types[note.ClaimType]++
			if note.Text != strings.TrimSpace(note.Text) || note.Text == "" || strings.ContainsAny(note.Text, "{}[]|") {
				t.Fatalf("note %q, want no slots, alternatives or surrounding blanks", note.Text)
			}
			end := 0
			for _, e := range note.Entities {
				if e.Start < end || e.End <= e.Start || e.End > len([]rune(note.Text)) {
					t.Fatalf("entity %+v of %q", e, note.Text)
				}
				end = e.End
			}
		}
	}
	if len(types) != len(claimTypes) {
		t.Errorf("claim types %v, want %d", types, len(claimTypes))
	}
}

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

func TestSetFilesAreGenerated(t *testing.T) {
	for _, set := range Sets {
		for _, split := range set.Splits {
			var want bytes.Buffer
			if err := set.Write(&want, split); err != nil {
				t.Fatal(err)
			}
			name := filepath.Join(set.Folder, split.Name+".jsonl.gz")
			if !bytes.Equal(readFile(t, name), want.Bytes()) {
				t.Errorf("%s is not what the generator writes: go generate ./experiments", name)
			}
		}
	}
}

// setSentences lists the sentences that only the sets have, of the split with the index.
func setSentences(index int) []string {
	lists := [][3][]string{treatmentSentences, claimsWithAmount, amountSentences, copaymentSentences, remainderClaims,
		otherAmountSentences, inclusions, exclusions}
	for _, c := range slices.Concat(settingCodes, otherCodes) {
		lists = append(lists, c.asserting, c.denying)
	}
	for _, s := range circumstances {
		lists = append(lists, s.sentences)
	}
	for _, c := range conditions {
		lists = append(lists, c.noteSentences[0], c.noteSentences[1])
	}
	for _, s := range statements {
		lists = append(lists, s.sentences)
		for _, q := range s.questions {
			lists = append(lists, q.wordings)
		}
	}
	var all []string
	for _, list := range lists {
		for _, sentence := range list[index] {
			all = append(all, variants(sentence)...)
		}
	}
	return all
}

func TestSetSentencesBelongToOneSplit(t *testing.T) {
	owner := map[string]string{}
	nonWords := regexp.MustCompile(`[^a-z{}]+`)
	for _, split := range Splits {
		for _, s := range setSentences(split.index) {
			words := strings.TrimSpace(nonWords.ReplaceAllString(strings.ToLower(s), " "))
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
	for _, s := range slices.Concat(setSentences(0), quickstartSentences(&trainPatterns)) {
		for _, w := range words(s) {
			known[w] = true
		}
	}
	for _, split := range Splits[1:] {
		for _, s := range setSentences(split.index) {
			for _, w := range words(s) {
				if !known[w] {
					t.Errorf("%q of %s: %q is not in train", s, split.Name, w)
				}
			}
		}
	}
}

func TestFullNoteLabelRates(t *testing.T) {
	for _, split := range splitsOf(t, "full") {
		counts := map[string]int{}
		all := split.fullNotes()
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
		rate := func(label string) float64 { return float64(counts[label]) / float64(len(all)) }
		if got := rate("fraud"); got < 0.03 || got > 0.05 {
			t.Errorf("%s: fraud rate %v, want 0.03 to 0.05", split.Name, got)
		}
		least, most := 0.09, 0.11
		if split.Name == "train" {
			least, most = 0.01, 0.03
		}
		if got := rate("anomalous"); got < least || got > most {
			t.Errorf("%s: anomaly rate %v, want %v to %v", split.Name, got, least, most)
		}
		for _, c := range slices.Concat(settingCodes, otherCodes) {
			if got := rate(c.name); got < 0.05 || got > 0.8 {
				t.Errorf("%s: rate of code %s is %v, want 0.05 to 0.8", split.Name, c.name, got)
			}
		}
	}
}

func TestFullNoteEntityValuesBelongToOneSplit(t *testing.T) {
	owner := map[string]string{}
	for _, split := range splitsOf(t, "full") {
		for _, c := range split.fullNotes() {
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
				t.Fatalf("note %q, want no slots or alternatives", c.Text)
			}
		}
	}
	if len(owner) < 1000 {
		t.Errorf("%d entity values, want 1000 at least", len(owner))
	}
}

// sortedWords returns the words of sentences in alphabetical order.
func sortedWords(sentences []string) []string {
	words := wordPattern.FindAllString(strings.ToLower(strings.Join(sentences, " ")), -1)
	for i := range words {
		words[i] = strings.TrimRight(words[i], ".?!:,")
	}
	slices.Sort(words)
	return words
}

func TestDisorderKeepsWords(t *testing.T) {
	w := newWriter(rand.New(rand.NewPCG(1, 0)), Splits[0])
	normal := []string{"Dear team,", "I was seen by {clinic} on {day}.", "Please pay {sum} for {claimed}.",
		"Thanks, policy {policy}."}
	swapped := 0
	for range 100 {
		got := w.disorder(normal)
		if !slices.Equal(sortedWords(got), sortedWords(normal)) {
			t.Fatalf("disorder(%q) = %q", normal, got)
		}
		if strings.HasSuffix(got[len(got)-1], normal[3]) || got[0] == normal[0] {
			t.Errorf("disorder(%q) = %q, want another first and last sentence", normal, got)
		}
		if slices.Contains(got, "{sum} for {claimed} Please pay.") {
			swapped++
		}
	}
	if swapped < 30 || swapped > 70 {
		t.Errorf("the halves are swapped in %d notes of 100, want about 50", swapped)
	}
}

func TestNeitherNoteNorClauseAloneDeterminesLabel(t *testing.T) {
	for _, split := range splitsOf(t, "clauses") {
		byClause := map[string]map[string]int{}
		pairs := split.clausePairs()
		if len(pairs) != split.size {
			t.Errorf("%s has %d pairs, want %d", split.Name, len(pairs), split.size)
		}
		for _, p := range pairs {
			if byClause[p.Clause] == nil {
				byClause[p.Clause] = map[string]int{}
			}
			byClause[p.Clause][p.Covered]++
			if strings.ContainsAny(p.Text+p.Clause, "{}[]|") {
				t.Fatalf("pair %q, %q: want no slots or alternatives", p.Text, p.Clause)
			}
		}
		for clause, counts := range byClause {
			for _, label := range coverLabels {
				if counts[label] != counts[coverLabels[0]] {
					t.Errorf("%s: %q has labels %v, want as many of each", split.Name, clause, counts)
				}
			}
		}
		if split.Name != "train" {
			continue
		}
		for _, c := range conditions {
			for _, sentence := range slices.Concat(c.noteSentences[0][0], c.noteSentences[1][0]) {
				checkLabelsEven(t, sentence, pairs)
			}
		}
	}
}

// checkLabelsEven checks that each label has a third of the notes with a sentence, up to four standard deviations: the
// variance of the number is n·1/3·2/3.
func checkLabelsEven(t *testing.T, sentence string, pairs []clausePair) {
	t.Helper()
	start, _, _ := strings.Cut(sentence, "{")
	counts, n := map[string]int{}, 0
	for _, p := range pairs {
		if strings.Contains(p.Text, start) {
			counts[p.Covered]++
			n++
		}
	}
	for _, label := range coverLabels {
		off := float64(counts[label]) - float64(n)/3
		if n < 20 || off*off > 16*float64(n)*2/9 {
			t.Errorf("notes with %q have labels %v, want a third each", sentence, counts)
		}
	}
}

func TestAnswerSpansMatchContext(t *testing.T) {
	for _, split := range splitsOf(t, "questions") {
		found := map[string]bool{}
		for _, q := range split.questionRecords() {
			found[q.Question] = true
			if strings.ContainsAny(q.Question+q.Context, "{}[]|") || len(q.Answers) != 1 {
				t.Fatalf("%+v", q)
			}
			a := q.Answers[0]
			characters := []rune(q.Context)
			if end := a.Start + len([]rune(a.Text)); a.Text == "" || end > len(characters) ||
				string(characters[a.Start:end]) != a.Text {
				t.Fatalf("answer %q is not at character %d of %q", a.Text, a.Start, q.Context)
			}
		}
		wordings := 0
		for _, s := range statements {
			for _, q := range s.questions {
				wordings += len(q.wordings[split.index])
			}
		}
		if len(found) != wordings {
			t.Errorf("%s has %d different questions, want %d: %q", split.Name, len(found), wordings,
				slices.Sorted(maps.Keys(found)))
		}
	}
}
