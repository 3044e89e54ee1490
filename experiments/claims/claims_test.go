package claims

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"regexp"
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
			t.Errorf("%s is not what the generator writes: go generate ./...", split.File())
		}
	}
}

// readFile returns the content of a file, decompressed if its name ends in .gz.
func readFile(t *testing.T, name string) []byte {
	t.Helper()
	file, err := os.ReadFile(name)
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
