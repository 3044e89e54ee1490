package guess

import (
	"strings"
	"testing"
	"unicode"
)

func TestTheYAMLGivesReasons(t *testing.T) {
	write(t, map[string]string{
		"data/mails.csv": "nr;body;team;note\n" + rows(60, "%[1]d;this is text number %[1]d;%[2]s;x%[1]d"),
	})
	e, err := Files([]string{"data/mails.csv"})
	if err != nil {
		t.Fatal(err)
	}
	want := `tasks:

  # data/mails.csv: 60 records, all of it
  # semicolons separate the columns
  # text: column body, 5 words on average
  # nr is left out: another number in each of 60 rows
  # note is left out: 60 different values in 60 rows
  # team: 3 labels in 60 rows
  - name: team
    type: classification
    data:
      path: ../data/mails.csv
      split: {dev: 0.2} # no file is named as dev
      delimiter: ";"
      text: body
      label: team

training:
`
	got := string(e.YAML("experiments", Model{Name: "org/small", Others: []string{"large"}}))
	if _, got, _ = strings.Cut(got, "tasks:\n"); !strings.HasPrefix("tasks:\n"+got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}

	// without a model it trains from scratch, and names the command that downloads one
	scratch := string(e.YAML(".", Model{}))
	for _, part := range []string{"jenga pull sentence-transformers/all-MiniLM-L6-v2", "type: transformer",
		"path: data/mails.csv"} {
		if !strings.Contains(strings.ReplaceAll(scratch, "\n#", ""), part) {
			t.Errorf("%q not found in\n%s", part, scratch)
		}
	}
}

// YAML has no control characters, and a reader of comments no use for them.
func TestTheYAMLIsPrintable(t *testing.T) {
	write(t, map[string]string{
		"a.csv": "te\x01xt,\x7flabel\u0085,x\ufffe\n" + rows(30, "a text with number %[1]d,%[2]s\x02,\x1b%[2]s"),
	})
	e, err := Files([]string{"a.csv"})
	if err != nil {
		t.Fatal(err)
	}
	text := string(e.YAML(".", Model{Name: "a\x03"}))
	checkPrintable(t, text)
	if want := `label: "\u007flabel\u0085"`; !strings.Contains(text, want) {
		t.Errorf("%s not found in\n%s", want, text)
	}
}

func checkPrintable(t *testing.T, text string) {
	t.Helper()
	at := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) })
	if at >= 0 {
		t.Errorf("an unprintable character: %q", text[max(0, at-40):min(len(text), at+10)])
	}
}
