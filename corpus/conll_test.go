package corpus

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/internal/shared"
)

// readBoth reads a file in memory and as a stream, which must agree, and returns the records and what is doubted.
func readBoth(t *testing.T, name, data string, f Format) (records []Record, doubts []string, err error) {
	t.Helper()
	path := filepath.Join(writeFiles(t, name, data), name)
	var streamed [2][]string
	warn := func(i int) Format {
		f.Warn = func(at Place, text string) {
			streamed[i] = append(streamed[i], strings.TrimPrefix(at.String(), path+":")+": "+text)
		}
		return f
	}
	records, err = Open(t.Context(), path, warn(0))
	if f.CheckStream(path) == nil {
		var scanned []Record
		visit := func(r Record, _ int64) { scanned = append(scanned, r) }
		s, streamErr := Scan(t.Context(), []string{path}, warn(1), visit)
		if err != nil {
			if streamErr == nil || streamErr.Error() != err.Error() {
				t.Errorf("a stream has the error %v, want %v", streamErr, err)
			}
			return nil, streamed[0], err
		}
		if streamErr != nil {
			t.Fatal(streamErr)
		}
		defer s.Close()
		again := reopened(t, s, f)
		defer again.Close()
		for i, want := range records {
			if got, err := again.Record(i); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("record %d of the stream is %v, %v, want %v", i, got, err, want)
			}
		}
		if !reflect.DeepEqual(scanned, records) || !reflect.DeepEqual(streamed[1], streamed[0]) {
			t.Errorf("a stream has %d records and doubts %q, want %d and %q", len(scanned), streamed[1], len(records),
				streamed[0])
		}
	}
	return records, streamed[0], err
}

// shortPlaces removes the folder of a file from an error.
func shortPlaces(err error, name string) string {
	if err == nil {
		return ""
	}
	var lines []string
	for line := range strings.SplitSeq(err.Error(), "\n") {
		at := strings.Index(line, name)
		lines = append(lines, line[max(0, at):])
	}
	return strings.Join(lines, "\n")
}

// The separator and the number of columns are those of most lines of a file. A line unlike them has its own error, and
// the remedy of lines that look like comments reads the file.
func TestALineUnlikeTheRestIsTheError(t *testing.T) {
	sentence := strings.Repeat("Ada\tPROPN\nlives\tVERB\n\n", 5)
	blanks := strings.Repeat("Ada X PROPN\nlives X VERB\n\n", 5)
	comment := func(n, problem, more, key string) string {
		return "a.conll:" + n + ": " + problem + "; the line is unlike the rest" + more +
			"; if it is a comment, comments: \"" + key + "\" skips lines that begin so"
	}
	for _, test := range []struct {
		name, data string
		format     Format
		want       string
		remedy     string // comments of the format that reads it; "": delimiter " " does, or none
		records    int    // with the remedy
	}{
		{"a word without its tag", sentence + "It\tPRON\nNew York\n", Format{},
			"a.conll:17: columns: 1, want 2; an empty line ends a sentence", "", 0},
		{"the first word without its tag", "New York\n\n" + sentence, Format{},
			"a.conll:1: columns: 1, want 2; an empty line ends a sentence", "", 0},
		{"a line that is longer", "New York Y Z\n" + blanks, Format{},
			"a.conll:1: columns: 4, want 3; an empty line ends a sentence", "", 0},
		{"a tab among blanks", "New York\tY PROPN\n" + blanks, Format{},
			"a.conll:1: the line has a tab; blanks separate the columns of most lines; delimiter: \" \" " +
				"separates by tabs too", "", 0},
		{"tabs among blanks", blanks + "New\tY\tPROPN\n", Format{},
			"a.conll:16: columns: 1, want 3; blanks separate the columns of most lines; delimiter: \" \" " +
				"separates by tabs too", "", 0},
		{"a comment", "# one\n" + sentence, Format{}, comment("1", "columns: 1, want 2", "", "#"), "#", 5},
		{"comments", "# one\n" + sentence + "# two\n" + sentence, Format{},
			comment("1", "columns: 1, want 2", `, as 1 more line with "#" at the beginning`, "#"), "#", 10},
		{"comments, and words that begin so", "# id 1\n" + sentence + "# id 2\n#tag\tX\n" + sentence, Format{},
			comment("1", "columns: 1, want 2", `, as 1 more line with "#" at the beginning`, "# id "), "# id ", 10},
		{"comments of another mark", "%% one\n" + blanks + "%% two\n" + blanks, Format{},
			comment("1", "columns: 2, want 3", `, as 1 more line with "%" at the beginning`, "%"), "%", 10},
		{"a comment with a delimiter", "// a|b|c\nA b|O\n", Format{Delimiter: "|", Columns: nil},
			comment("1", "columns: 3, want 2", "", "/"), "//", 1},
		{"comments only before the words", strings.Repeat("# licence text\n", 2000) + sentence, Format{},
			comment("1", "no word and its tags", `, as 1999 more lines with "#" at the beginning`, "#"), "#", 5},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, _, err := readBoth(t, "a.conll", test.data, test.format)
			if got := shortPlaces(err, "a.conll:"); got != test.want {
				t.Errorf("error\n%s\nwant\n%s", got, test.want)
			}
			if test.remedy == "" {
				return
			}
			test.format.Comments = test.remedy
			records, _, err := readBoth(t, "a.conll", test.data, test.format)
			if err != nil || len(records) != test.records {
				t.Errorf("with comments: %q: %d records, %v, want %d", test.remedy, len(records), err, test.records)
			}
		})
	}
}

// Lines that are no words, before the words and longer than a sample of the file, show neither separator nor columns.
func TestLongBeginningsWithoutWords(t *testing.T) {
	const start = "-DOCSTART- -X- O O\n\n"
	comments := strings.Repeat("# a comment of some forty characters, so many\n", 400)
	spaced := strings.Repeat("Ada X PROPN\nlives X VERB\n\n", 5)
	tabbed := strings.ReplaceAll(spaced, " ", "\t")
	skip, bars := Format{Comments: "#"}, Format{Comments: "#", Delimiter: "|"}
	named := Format{Comments: "#", Columns: []string{"words", "x", "tags"}}
	for name, test := range map[string]struct {
		data    string
		format  Format
		records int
	}{
		"blanks":                    {start + comments + spaced, skip, 5},
		"tabs":                      {start + comments + tabbed, skip, 5},
		"named columns":             {start + comments + tabbed, named, 5},
		"a delimiter":               {start + comments + strings.ReplaceAll(spaced, " ", "|"), bars, 5},
		"comments first":            {comments + start + comments + spaced, skip, 5},
		"documents without words":   {strings.Repeat(start, 2000) + spaced + start + spaced, Format{}, 10},
		"a document alone":          {start, Format{}, 0},
		"documents and comments":    {start + comments + start, skip, 0},
		"a document, named columns": {"-DOCSTART-\n", Format{Columns: []string{"words", "tags"}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			records, _, err := readBoth(t, "a.conll", test.data, test.format)
			if test.records == 0 {
				if err == nil || !strings.HasSuffix(err.Error(), "a.conll: no records; want at least one") {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil || len(records) != test.records ||
				!reflect.DeepEqual(records[0].Fields["tags"], []string{"PROPN", "VERB"}) {
				t.Fatalf("%d records, %v", len(records), err)
			}

			var written strings.Builder
			path := filepath.Join(writeFiles(t, "a.conll", test.data), "a.conll")
			w, err := NewSentenceWriter(test.format, []string{"tags"}, path, false)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			for range records {
				if err := w.Write(&written, nil, [][]string{{"PROPN", "VERB"}}); err != nil {
					t.Fatal(err)
				}
			}
			if written.String() != test.data {
				t.Error("the sentences are not copied as they were")
			}
		})
	}
	two := comments + strings.Replace(comments, "#", "%", 1) + spaced
	_, _, err := readBoth(t, "a.conll", two, Format{})
	const want = "a.conll:1: no word and its tags; the line is unlike the rest, as 798 more lines with \"#\" at the " +
		"beginning; if it is a comment, comments: \"#\" skips lines that begin so\na.conll:401: no word and its tags"
	if got := shortPlaces(err, "a.conll:"); got != want {
		t.Errorf("two marks: error\n%s\nwant\n%s", got, want)
	}
}

// No remedy skips a word: neither one far in the file, nor one of another mark than the comments'.
func TestARemedyOfCommentsSkipsNoWord(t *testing.T) {
	const comments = "# a comment\n# another comment\n"
	many := func(n int, line string) (all string) {
		for i := range n {
			all += fmt.Sprintf(line, i)
		}
		return all + "\n"
	}
	remedy := func(key string) string { return "comments: \"" + key + "\" skips lines that begin so" }
	for name, test := range map[string]struct{ data, comments, remedy string }{
		"words of another mark first": {many(1100, "%%tag%d O\n") + comments + "#word O\n", "# a", remedy("# a")},
		"a mark alone is a word":      {many(1100, "/%d O\n") + comments + "# O\n", "# a", remedy("# a")},
		"one word often": {strings.Repeat("#tag O\n", 1100) + comments + "#word O\n", "# a",
			remedy("# a")},
		"many words of the mark": {many(1100, "#tag%d O\n") + comments + "#word O\n", "", "remove it"},
		"no word of the mark":    {many(1100, "%%tag%d O\n") + comments + "a O\n", "#", remedy("#")},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := readBoth(t, "a.conll", test.data, Format{})
			if err == nil {
				t.Fatal("no error")
			}
			if _, remedy, _ := strings.Cut(err.Error(), "; if it is a comment, "); remedy != test.remedy {
				t.Fatalf("remedy %q, want %q", remedy, test.remedy)
			}
			if test.comments == "" {
				return
			}
			records, _, err := readBoth(t, "a.conll", test.data, Format{Comments: test.comments})
			words := 0
			for _, r := range records {
				words += len(r.Fields["words"].([]string))
			}
			if want := strings.Count(test.data, " O\n"); err != nil || words != want {
				t.Errorf("with the remedy %d words, %v, want %d", words, err, want)
			}
		})
	}
}

// A file that was joined to another by its bytes has a byte-order mark, which is no part of a word. A word may be one.
func TestAByteOrderMarkAmidAFileIsDoubted(t *testing.T) {
	const data = "\ufeffAda B\n\n\ufeffBob B\nlives O\n\n\ufeff-DOCSTART- O\n\n\ufeff O\nCat B\n"
	records, doubts, err := readBoth(t, "a.conll", data, Format{})
	const want = "3: a byte-order mark, U+FEFF, begins 2 lines, as where files were joined; it is left out, and an " +
		"empty line before it ends the sentence"
	if err != nil || len(records) != 3 || strings.Join(doubts, "\n") != want ||
		!reflect.DeepEqual(records[1].Fields["words"], []string{"Bob", "lives"}) ||
		!reflect.DeepEqual(records[2].Fields["words"], []string{"\ufeff", "Cat"}) {
		t.Errorf("%v, %q, %v", records, doubts, err)
	}
}

func TestTabsAndBlanksAreReadByADelimiter(t *testing.T) {
	const data = "Ada PROPN\nlives\tVERB\nin ADP\n"
	records, _, err := readBoth(t, "a.conll", data, Format{Delimiter: " "})
	if err != nil || len(records) != 1 ||
		!reflect.DeepEqual(records[0].Fields["tags"], []string{"PROPN", "VERB", "ADP"}) {
		t.Errorf("%v, %v", records, err)
	}
}

// Comments that have as many columns as words are words: a doubt, unless such a word is elsewhere too.
func TestCommentsThatLookLikeWordsAreDoubted(t *testing.T) {
	for _, test := range []struct{ data, want string }{
		{"# x 1\nAda _ B\n\n# x 2\nBob _ B\n", "1: 2 sentences begin with the word \"#\", which is no other word: if " +
			"these lines are comments, comments: \"#\" skips them"},
		{"%x _ B\n% _ O\n\n# x 2\nBob _ B\n\n# x 3\nBob _ B\n", "4: 2 sentences begin with the word \"#\", which is " +
			"no other word: if these lines are comments, comments: \"#\" skips them"},
		{"# x 1\nAda _ B\n#tag _ O\n\n# x 2\nBob _ B\n", "1: 2 sentences begin with the word \"#\", which is no " +
			"other word: if these lines are comments, comments: \"# x \" skips them"},
		{"# x 1\nAda _ B\n\n# x 2\nBob _ B\n# _ O\n", ""},
		{"#ada _ O\nAda _ B\n\n#ada _ O\nBob _ B\n", ""}, // tags of tweets
		{"Ada _ B\n# _ O\n", ""},
	} {
		_, doubts, err := readBoth(t, "a.conll", test.data, Format{})
		if got := strings.Join(doubts, "\n"); err != nil || got != test.want {
			t.Errorf("%q: doubts %q, %v, want %q", test.data, got, err, test.want)
		}
	}
}

func TestCasesOfCommentsAndSeparators(t *testing.T) {
	folder := filepath.Join(shared.Dir(t), "cases")
	for _, test := range []struct {
		name, want string
		records    int // with comments: "#"; 0: an error all the same
	}{
		{"conll-comments/germeval.conll", "1: columns: 3, want 4; the line is unlike the rest, as ", 20},
		{"conll-comments/multiconer.conll", "1: columns: 3, want 4; the line is unlike the rest, as ", 20},
		{"conll-comments/pos_comment.conll", "1: columns: 1, want 2; the line is unlike the rest, as ", 20},
		{"separator/tabmiss.conll", "3: columns: 1, want 2", 0},
	} {
		data, err := os.ReadFile(filepath.Join(folder, test.name))
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = readBoth(t, "a.conll", string(data), Format{})
		got := shortPlaces(err, "a.conll:")
		if !strings.HasPrefix(got, "a.conll:"+test.want) || test.records > 0 && strings.Contains(got, "\n") {
			t.Errorf("%s: error\n%s\nwant one that begins with %s", test.name, got, test.want)
		}
		records, _, err := readBoth(t, "a.conll", string(data), Format{Comments: "#"})
		if (err == nil) != (test.records > 0) || len(records) != test.records {
			t.Errorf("%s: with comments %d records, %v, want %d", test.name, len(records), err, test.records)
		}
	}
}

func TestCommentsOfTablesAreSkipped(t *testing.T) {
	const data = "# made by us\ntext,label\n#one,a\n\"#two\",b\n\"three\n#four\",c\n"
	records, _, err := readBoth(t, "a.csv", data, Format{Comments: "#"})
	if err != nil || len(records) != 2 || records[0].Fields["text"] != "#two" ||
		records[1].Fields["text"] != "three\n#four" {
		t.Errorf("%v, %v", records, err)
	}
}
