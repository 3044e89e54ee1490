package corpus

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/internal/shared"
)

// A file with one thing wrong gives one error, however many rows it has.
func TestOneCauseIsOneError(t *testing.T) {
	rows := func(header, format string) string {
		text := header
		for i := range 50 {
			text += fmt.Sprintf(format, i, []string{"billing", "support"}[i%2])
		}
		return text
	}
	columns := map[string]string{"text": "body", "label": "team"}
	const headless = "; header: false with columns: [NAME, …] is for a file without a header"
	for _, test := range []struct {
		name, data, file string
		format           Format
		want             string
	}{
		{"semicolons", rows("text;label\n", "\"say \"\"%d\"\", a, or b\";%s\n"), "x.csv", Format{},
			`x.csv:1: "text;label" has another delimiter than ","; delimiter: ";" divides it into 2 columns`},
		{"semicolons without quotes", rows("body;team\r\n", "case %d, once;%s\r\n"), "x.csv", Format{Fields: columns},
			`x.csv:1: "body;team" has another delimiter than ","; delimiter: ";" divides it into 2 columns`},
		{"semicolons, all cells quoted", rows("\"body\";\"team\"\n", "\"case, %d\";\"%s\"\n"), "x.csv", Format{},
			`x.csv:1: "\"body\";\"team\"" has another delimiter than ","; delimiter: ";" divides ` +
				`it into 2 columns`},
		{"semicolons, and quotes that are letters",
			rows("text;label\n", "\"a; %d\";%s\n") + "no, \"b\" is it;support\n", "x.csv", Format{},
			`x.csv:1: "text;label" has another delimiter than ","; delimiter: ";" divides it into 2 columns`},
		{"semicolons without a header", rows("", "case %d;%s\n"), "x.csv",
			Format{NoHeader: true, Columns: []string{"body", "team"}},
			`x.csv:1: "case 0;billing" has another delimiter than ","; delimiter: ";" divides ` +
				`it into 2 columns`},
		{"semicolons, and a sample that ends within a cell", rows("body;team\n",
			"\""+strings.Repeat("a long line\n", 40)+"%d\";%s\n"), "x.csv", Format{},
			`x.csv:1: "body;team" has another delimiter than ","; delimiter: ";" divides it into 2 columns`},
		{"tabs", rows("body\tteam\n", "case %d, once\t%s\n"), "x.csv", Format{},
			`x.csv:1: "body\tteam" has another delimiter than ","; delimiter: "\t" divides it into 2 columns`},
		{"commas in tsv", rows("body,team\n", "case %d,%s\n"), "x.tsv", Format{},
			`x.tsv:1: "body,team" has another delimiter than "\t"; delimiter: "," divides it into 2 columns`},
		{"no header", rows("", "case %d,%s\n"), "x.csv", Format{Fields: columns},
			`x.csv:1: the first line names none of the columns "body", "team"; it has billing, case 0` + headless},
		{"no header, and commas", rows("", "case %d,%s\n") + rows("", "a, case %d,%s\n"), "x.csv", Format{},
			`x.csv:1: the first line, "case 0", "billing", is a record, not the names of columns` + headless},
		{"no header, of two equal cells", "a,a\nb,c\n", "x.csv", Format{},
			`x.csv:1: two columns are named "a"; columns: [NAME, …] gives them other names, with header: false if ` +
				`the line is a record`},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Read(strings.NewReader(test.data), test.file, test.format)
			if err == nil || err.Error() != test.want {
				t.Errorf("error\n%v\nwant\n%s", err, test.want)
			}
		})
	}
}

// Files that are as their format says are read, whatever characters they have.
func TestNoDiagnosisOfGoodFiles(t *testing.T) {
	for _, test := range []struct {
		name, data string
		format     Format
		records    int
	}{
		{"one column", "text\na;b\nc;d\n", Format{}, 2},
		{"semicolons within cells", "text,label\na;b,x\nc;d,y\n", Format{}, 2},
		{"one column that is named", "a;b\nc;d\n", Format{NoHeader: true, Columns: []string{"text"}}, 2},
		{"no header, one column", "a;b\nc;d\n", Format{NoHeader: true}, 2},
		{"a value that is a column's name", "text,label\na,label\nb,c\n", Format{}, 2},
		{"the delimiter of the format", "text;label\na,b;x\n", Format{Delimiter: ";"}, 1},
		{"a header alone with another character", "a;b\nc\nd\n", Format{}, 2},
	} {
		records, err := Read(strings.NewReader(test.data), "x.csv", test.format)
		if err != nil || len(records) != test.records {
			t.Errorf("%s: %d records, %v", test.name, len(records), err)
		}
	}
}

// The error for an unclosed quote names the line where it opens, and advises quote: none only where no cell needs its
// quotes.
func TestQuotesThatAreNotClosed(t *testing.T) {
	for _, test := range []struct{ name, data, want string }{
		{"another quote closes it", "text,label\n\"one, two\",a\n\"three,b\nfour,a\n\"five, six\",b\nseven,a\n",
			`x.csv:3: the quote here is closed by that of line 5, before "five, six\",b"; close it where its cell ` +
				`ends, with "" for a quote in it`},
		{"no other closes it", "text,label\n\"one, two\",a\n\"three,b\nfour,a\n",
			"x.csv:3: the row has a quote that is not closed; close it"},
		{"no cell needs quotes", "text,label\n\"one\",a\n\"two,b\nthree,a\n",
			"x.csv:3: the row has a quote that is not closed; close it, or quote: none where quotes are letters"},
		{"in a later line of its row", "text,label\n\"one\ntwo\",\"a\nthree,b\n",
			"x.csv:3: the row has a quote that is not closed; close it"},
		{"a quote within a quoted cell", "text,label\n\"say \"hi\" to\",a\n",
			`x.csv:2: "hi\" to\",a" after a closing quote; write "" for a quote in a cell, or quote: none where ` +
				"quotes are letters"},
		{"a quoted word after a blank", "text,label\none, \"two\" of them\n", `x.csv:2: a quote within the cell ` +
			`" \"two\" of them"; write "" in a quoted cell, or quote: none where quotes are letters`},
		{"a quote after a blank in two rows", "text,label\na, \"b\nc, d\"\n", `x.csv:2: a quote within the cell ` +
			`" \"b"; write "" in a quoted cell, or quote: none where quotes are letters` +
			"\nx.csv:3: a quote within the cell \" d\\\"\"; write \"\" in a quoted cell, or quote: none where quotes " +
			"are letters"},
	} {
		_, err := Read(strings.NewReader(test.data), "x.csv", Format{})
		if err == nil || err.Error() != test.want {
			t.Errorf("%s: %v, want %s", test.name, err, test.want)
		}
	}
}

func TestATableWithoutATextMayHaveNoHeader(t *testing.T) {
	records, err := Read(strings.NewReader("once,billing\ntwice,billing\n"), "x.csv", Format{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = records[0].Example()
	want := "x.csv:2: no text; data: {text: FIELD} names the field that holds it; available: billing, once; " +
		"header: false with columns: [NAME, …] is for a file without a header"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	records, err = Read(strings.NewReader("Ada\tB-PER\nlives\tO\n\nso\tO\n"), "x.tsv", Format{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = records[0].Example()
	want = "format: conll, with the file's delimiter, reads lines of words and tags with empty lines between sentences"
	if err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("words: error %v, want %s", err, want)
	}
	records, err = Read(strings.NewReader("Name,E-Mail,Message\nAda,a@b.c,so\n"), "x.csv", Format{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = records[0].Example(); err == nil || strings.Contains(err.Error(), "conll") {
		t.Errorf("a table of mails: error %v", err)
	}
}

// A quote that is a letter at the beginning of a cell, closed by another rows later, makes one row of them: a doubt
// whose remedy reads all rows.
func TestQuotesThatOpenAndCloseInOtherRowsAreDoubted(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(shared.Dir(t), "cases/tsv-quotes/a.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	doubt := func(from, to, lines int, more string) string {
		return fmt.Sprintf("%d: a quote that opens here is closed in line %d: the %d lines are read as one row%s; "+
			"quote: none reads quotes as letters", from, to, lines, more)
	}
	for _, test := range []struct {
		rule, name, data string
		format           Format
		want             string
		records          int // with quote: none
	}{
		{"the case", "a.tsv", string(data), Format{}, doubt(5, 9, 5, ""), 24},
		{"two of them", "a.tsv", "a\tb\n\"x\t1\ny\"\t2\nz\t3\n\"x\t1\ny\"\t2\n", Format{},
			doubt(2, 3, 2, ", as of 1 more row"), 5},
		{"the second column of a tsv", "a.tsv", "a\tb\n0\t\"x\n1\ty\"\n", Format{}, doubt(2, 3, 2, ""), 2},
		{"a csv with the text first", "a.csv", "text,label\nso,0\n\"yes he said,0\nthe end,1\nhe did\",1\n", Format{},
			doubt(3, 5, 3, ""), 4},
		{"a csv with the label first, which others repeat later", "a.csv",
			"label,text\n0,\"yes\n1,no\n1,he did\"\n1,so\n", Format{}, doubt(2, 4, 3, ""), 4},
		{"no header, and semicolons", "a.csv", "\"yes;0\nno\";1\nso;0\n",
			Format{Delimiter: ";", NoHeader: true, Columns: []string{"text", "label"}}, doubt(1, 2, 2, ""), 3},
		{"texts of several lines", "a.csv", "label,text\nspam,\"Hi\nhow, are you\nbye, Al\"\nham,so\n", Format{},
			"", 0},
		{"texts of several lines before the label", "a.csv", "text,label\n\"Hi\nhow, are\",spam\nso,spam\n", Format{},
			"", 0},
		{"lines of several columns", "a.csv", "text,label\n\"Hi\nyou\",spam\nso,spam\n", Format{}, "", 0},
		{"one column", "a.csv", "text\n\"Hi\nyou\"\nHi\n", Format{}, "", 0},
	} {
		t.Run(test.rule, func(t *testing.T) {
			_, doubts, err := readBoth(t, test.name, test.data, test.format)
			if got := strings.Join(doubts, "\n"); err != nil || got != test.want {
				t.Fatalf("doubts %q, %v, want %q", got, err, test.want)
			}
			if test.records == 0 {
				return
			}
			test.format.Quote = "none"
			records, doubts, err := readBoth(t, test.name, test.data, test.format)
			if err != nil || len(records) != test.records || doubts != nil {
				t.Errorf("with quote: none %d records, %q, %v, want %d", len(records), doubts, err, test.records)
			}
		})
	}
	needed := "a\tb\n\"x, \"\"y\"\"\"\t1\n\"x\t1\ny\"\t2\n"
	_, doubts, err := readBoth(t, "a.tsv", needed, Format{})
	if err != nil || len(doubts) != 1 || strings.Contains(doubts[0], "quote: none") {
		t.Errorf("where another cell needs its quotes: %q, %v", doubts, err)
	}
	mended := "a\tb\n\"x, \"\"y\"\"\"\t1\n\"\"\"x\"\t1\n\"y\"\"\"\t2\n" // as the remedy says
	records, doubts, err := readBoth(t, "a.tsv", mended, Format{})
	if err != nil || len(records) != 3 || doubts != nil || records[1].Fields["a"] != `"x` {
		t.Errorf("with the remedy: %v, %q, %v", records, doubts, err)
	}
}

// Lines above a table that begin with a mark, and are none of its rows, are one mistake, whose remedy reads all rows. A
// header or a row that begins so is none.
func TestCommentsAboveATable(t *testing.T) {
	const mistake = "a.csv:1: %q has 1 cell, and the rows below it have %d; if it is a comment, %s"
	many := strings.Repeat("so it is,a\n", sampleSize/10) + "#exported so,a\n"
	for _, test := range []struct {
		text, want string
		doubt      string // with the remedy
	}{
		{"# exported 2024\n\n# by: me\ntext,label\n#so,a\nyes,b\n", fmt.Sprintf(mistake, "# exported 2024", 2,
			`comments: "# " skips lines that begin so`), ""},
		{"# exported, as it is\n# for all\ntext,label,x,y\n#so,a,1,2\nyes,b,1,2\n", fmt.Sprintf(mistake,
			"# exported, as it is", 4, `comments: "# " skips lines that begin so`), ""},
		{"#exported\ntext,label\n#so,a\n#no,b\n", fmt.Sprintf(mistake, "#exported", 2,
			`comments: "#exported" skips lines that begin so`), ""},
		{"#été\n#écoute\ntext,label\n#so,a\nno,b\n", fmt.Sprintf(mistake, "#été", 2,
			`comments: "#é" skips lines that begin so`), ""},
		{"#exported\ntext,label\n#so,a\n" + many, fmt.Sprintf(mistake, "#exported", 2,
			`comments: "#exported" skips lines that begin so`), `comments: "#exported" skips 1 line below ` +
			"the header, with as many cells as a row; if these are records, want how comments alone begin"},
		{"Report of mails\n\ntext,label\n#so,a\nno,b\n", fmt.Sprintf(mistake, "Report of mails", 2,
			`comments: "Report of mails" skips lines that begin so`), ""},
		{"Report,,\r\nid,text,label\r\n1,#so,a\r\n2,no,b\r\n", `a.csv:1: "Report,," has one cell that is not ` +
			`empty, and the row below it names 3 columns; ` +
			`if it is a title, comments: "Report,," skips lines that begin so`, ""},
		{"text,,\nso,label,c\nno,b,d\n", "", ""},
		{"Report,,\nso,,\nno,b,c\n", "", ""},
		{"# a\ntext,label\n# a so,a\n# a no,b\n", fmt.Sprintf(mistake, "# a", 2, "remove it"), ""},
		{"% a\n% b\ntext,label\n% ab,a\n% so,b\n", fmt.Sprintf(mistake, "% a", 2, "remove it"), ""},
		{"#text,label\nso,a\nyes,b\n", "", ""},
		{"#text\n#so\nyes\n", "", ""},
		{"%text,label\n%so,a\n%no,b\n", "", ""},
		{" Text , Label \nso,a\nno,b\n", "", ""},
		{"\ttext,label\nso,a\nno,b\n", "", ""},
		{",text\n0,so\n1,no\n", "", ""},
		{"\n\r\ntext,label\nso,a\nno,b\n", "", ""},
		{"\n# exported\n# by: me\ntext,label\n#so,a\nyes,b\n", fmt.Sprintf(mistake, "# exported", 2,
			`comments: "# " skips lines that begin so`), ""},
		{" Report of mails\ntext,label\n#so,a\nno,b\n", fmt.Sprintf(mistake, " Report of mails", 2,
			`comments: " Report of mails" skips lines that begin so`), ""},
		{"#text,label\n1,so,a\n2,yes,b\n", "a.csv:2: the row goes on after column \"label\"", ""},
	} {
		_, _, err := readBoth(t, "a.csv", test.text, Format{})
		if got := fmt.Sprint(err); !strings.Contains(got, test.want) || test.want == "" && err != nil {
			t.Errorf("%.60q: error\n%s\nwant\n%s", test.text, got, test.want)
		}
		if _, key, named := strings.Cut(test.want, "comments: "); named {
			key, _, _ = strings.Cut(strings.TrimPrefix(key, `"`), `"`)
			records, doubts, err := readBoth(t, "a.csv", test.text, Format{Comments: key})
			doubt := strings.Join(doubts, "")
			if err != nil || records[0].Fields["text"] != "#so" || !strings.HasSuffix(doubt, test.doubt) ||
				test.doubt == "" && doubts != nil {
				t.Errorf("%.60q, comments %q: %v, %q", test.text, key, err, doubts)
			}
		}
	}
}

// A table whose first column, as the index of another program, has no name begins with its delimiter.
func TestAHeaderBeginsWithAnEmptyName(t *testing.T) {
	for _, text := range []string{"\ttext\n0\tso\n1\tno\n", "\n\ttext\tlabel\n0\tso\ta\n1\tno\tb\n"} {
		records, doubts, err := readBoth(t, "a.tsv", text, Format{})
		if err != nil || doubts != nil || len(records) != 2 || records[0].Fields["text"] != "so" {
			t.Errorf("%q: %v, %q, %v; want 2 records", text, records, doubts, err)
		}
	}
}

func TestAHeaderThatStandsAgainIsNoRecord(t *testing.T) {
	records, doubts, err := readBoth(t, "a.csv", "text,label\nso,a\ntext,label\nno,b\n\ufefftext,label\n", Format{})
	want := "3: 2 rows are the header again, as where tables were joined, and left out"
	if err != nil || len(records) != 2 || strings.Join(doubts, "; ") != want {
		t.Errorf("%v, %q, %v; want 2 records and %s", records, doubts, err, want)
	}
}
