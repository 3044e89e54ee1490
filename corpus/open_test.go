package corpus

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
)

// row is an expected record.
type row struct {
	line   int
	fields map[string]any
}

// text is the fields of a record.
type text = map[string]any

var readCases = []struct {
	rule, name, data string
	format           Format
	want             []row
}{
	{"CR before CRLF is removed", "x.csv", "text,label\r\r\n\"a\r\r\nb\",x\r\r\n\r\r\nc,y\r\r\n", Format{},
		[]row{{2, text{"text": "a\nb", "label": "x"}}, {5, text{"text": "c", "label": "y"}}}},
	{"so is it below the line of Excel's delimiter", "x.csv", "sep=;\r\r\ntext;label\r\r\na, b;x\r\r\n",
		Format{Delimiter: ";"}, []row{{3, text{"text": "a, b", "label": "x"}}}},
	{"and at the ends of sentences", "x.conll", "a X\r\r\n\r\r\nb Y\r\r\n", Format{}, []row{{1, text{
		"words": []string{"a"}, "tags": []string{"X"}, "1": []string{"a"}, "2": []string{"X"}}}, {3, text{
		"words": []string{"b"}, "tags": []string{"Y"}, "1": []string{"b"}, "2": []string{"Y"}}}}},
	{"byte-order mark and CRLF are removed", "x.csv", "\ufefftext,label\r\na,x\r\n", Format{},
		[]row{{2, text{"text": "a", "label": "x"}}}},
	{"the last line may have no end", "x.tsv", "text\tlabel\na, b\tx", Format{},
		[]row{{2, text{"text": "a, b", "label": "x"}}}},
	{"a quoted cell may have several lines; the place is the first", "x.csv",
		"text,label\n\"a\n\nb \"\"c\"\"\",x\n\nd,\"\"\n", Format{},
		[]row{{2, text{"text": "a\n\nb \"c\"", "label": "x"}}, {6, text{"text": "d", "label": ""}}}},
	{"blanks around a quoted cell are not its", "x.csv",
		"text, label\n\"a, \"\"b\"\"\",  \"x, y\"\n \"\" , \"z\"\" \"\n", Format{Columns: []string{"text", "label"}},
		[]row{{2, text{"text": `a, "b"`, "label": "x, y"}}, {3, text{"text": "", "label": `z" `}}}},
	{"a delimiter may begin with a blank", "x.csv", "text | label\n | \"a\"\n\"b\" | \"c\"\n", Format{Delimiter: " | "},
		[]row{{2, text{"text": "", "label": "a"}}, {3, text{"text": "b", "label": "c"}}}},
	{"quote none keeps quotes", "x.tsv", "text\tlabel\n\"a\" b\"\tx\n", Format{Quote: "none"},
		[]row{{2, text{"text": `"a" b"`, "label": "x"}}}},
	{"columns without a name are skipped", "x.csv", ",text,_,\n0,a,b,c\n", Format{}, []row{{2, text{"text": "a"}}}},
	{"the line that names Excel's delimiter is skipped", "x.csv", "sep=;\r\ntext;label\r\na, b;x\r\n",
		Format{Delimiter: ";"}, []row{{3, text{"text": "a, b", "label": "x"}}}},
	{"so is it without a header", "x.csv", "\ufeffsep=;\na, b;x\n",
		Format{Delimiter: ";", NoHeader: true, Columns: []string{"text", "label"}},
		[]row{{2, text{"text": "a, b", "label": "x"}}}},
	{"a cell may begin so", "x.csv", "text\nsep=;\n", Format{}, []row{{2, text{"text": "sep=;"}}}},
	{"columns replace those of the header", "x.csv", "a,b\n1,2\n", Format{Columns: []string{"text", "_"}},
		[]row{{2, text{"text": "1"}}}},
	{"without header and columns, columns are numbered", "x.csv", "a,b\nc,d\n", Format{NoHeader: true},
		[]row{{1, text{"1": "a", "2": "b"}}, {2, text{"1": "c", "2": "d"}}}},
	{"without a header, a row may have more columns", "x.csv", "a,b\nc,d,e\n",
		Format{NoHeader: true, Columns: []string{"text", "label"}},
		[]row{{1, text{"text": "a", "label": "b"}}, {2, text{"text": "c", "label": "d"}}}},
	{"a delimiter is any text", "x.txt", "text||label\n\"a||b\"||x\n", Format{Delimiter: "||"},
		[]row{{2, text{"text": "a||b", "label": "x"}}}},
	{"with a blank as delimiter, the last column has the rest of the line", "x.txt", "1  a \"b\" ,  c \n",
		Format{Delimiter: " ", NoHeader: true, Columns: []string{"label", "text"}},
		[]row{{1, text{"label": "1", "text": "a \"b\" ,  c "}}}},
	{"renamed fields hide fields of the same name", "x.csv", "text,body,note\na,b,c\n",
		Format{Fields: map[string]string{"text": "body", "body": "text", "note": ""}},
		[]row{{2, text{"text": "b", "body": "a", "note": nil}}}},
	{"the field of a head may be missing in some records", "x.jsonl",
		"{\"label\": \"a\"}\n{\"label\": \"b\", \"mood\": \"c\"}\n",
		Format{Fields: map[string]string{"label.mood": "mood"}},
		[]row{{1, text{"label": "a", "label.mood": nil}}, {2, text{"label": "b", "mood": "c", "label.mood": "c"}}}},
	{"latin1 is read as code points", "x.csv", "text\ncaf\xe9\n", Format{Encoding: "latin1"},
		[]row{{2, text{"text": "café"}}}},
	{"latin1 in an array", "x.json", "[{\"text\": \"\xe9\"}]", Format{Encoding: "latin1"},
		[]row{{1, text{"text": "é"}}}},
	{"JSON lines skip empty ones and keep numbers as written", "x.jsonl",
		"\n{\"text\": \"a\", \"label\": 1.50}\n \n{\"text\": null}\n", Format{},
		[]row{{2, text{"text": "a", "label": json.Number("1.50")}}, {4, text{"text": nil}}}},
	{"a key twice is an error", "x.jsonl", `{"text": "a", "text": "b"}`, Format{}, nil},
	{"a control byte after a backslash is invalid JSON", "x.jsonl", "{\"text\": \"a\\\x01\"}\n", Format{}, nil},
	{"control bytes in strings are text", "x.jsonl", "{\"text\": \"a\x00\tb\\\\\x01\\\"\x1f\"}\n", Format{},
		[]row{{1, text{"text": "a\x00\tb\\\x01\"\x1f"}}}},
	{"a NUL in a cell is text", "x.csv", "text\na\x00b\n", Format{}, []row{{2, text{"text": "a\x00b"}}}},
	{"records of an array have their line", "x.json",
		"\n[ {\"text\": \"a, ]\\\"\"},\n\n{\"text\":\n\"b\"}, {\"text\": [\"c\", {}]}\n ]\n", Format{},
		[]row{{2, text{"text": "a, ]\""}}, {4, text{"text": "b"}}, {5, text{"text": []any{"c", map[string]any{}}}}}},
	{"json may be JSON lines", "x.json", "\n {\"text\": \"a\"}\n{\"text\": \"b\"}\n", Format{},
		[]row{{2, text{"text": "a"}}, {3, text{"text": "b"}}}},
	{"the first and last column of conll are words and tags", "x.conll",
		"-DOCSTART- -X- O\n\nEU NNP B-ORG\nrejects VBZ O\n\t \n\nthe DT O", Format{},
		[]row{{3, text{"1": []string{"EU", "rejects"}, "2": []string{"NNP", "VBZ"}, "3": []string{"B-ORG", "O"},
			"words": []string{"EU", "rejects"}, "tags": []string{"B-ORG", "O"}}},
			{7, text{"1": []string{"the"}, "2": []string{"DT"}, "3": []string{"O"}, "words": []string{"the"},
				"tags": []string{"O"}}}}},
	{"columns name those of conll", "x.conll", "EU\tNNP\tB-ORG\n", Format{Columns: []string{"words", "tags"}},
		[]row{{1, text{"words": []string{"EU"}, "tags": []string{"NNP"}}}}},
	{"fields name columns of conll by number", "x.conll", "EU NNP B-ORG\n",
		Format{Fields: map[string]string{"tags": "2"}},
		[]row{{1, text{"1": []string{"EU"}, "2": []string{"NNP"}, "3": []string{"B-ORG"}, "words": []string{"EU"},
			"tags": []string{"NNP"}}}}},
	{"a conll file of words alone has no tags", "x.conll", "#\nEU\n", Format{},
		[]row{{1, text{"1": []string{"#", "EU"}, "words": []string{"#", "EU"}}}}},
	{"with tabs, words of conll may hold blanks", "x.conll", "1 / 2\tO\n", Format{},
		[]row{{1, text{"1": []string{"1 / 2"}, "2": []string{"O"}, "words": []string{"1 / 2"},
			"tags": []string{"O"}}}}},
	{"a delimiter of conll", "x.conll", "a b|O\n", Format{Delimiter: "|", Columns: []string{"words", "tags"}},
		[]row{{1, text{"words": []string{"a b"}, "tags": []string{"O"}}}}},
}

func TestRead(t *testing.T) {
	for _, c := range readCases {
		t.Run(c.rule, func(t *testing.T) {
			records, err := Read(strings.NewReader(c.data), c.name, c.format)
			if (err != nil) != (c.want == nil) {
				t.Fatalf("error %v", err)
			}
			if len(records) != len(c.want) {
				t.Fatalf("got %d records, want %d", len(records), len(c.want))
			}
			for i, want := range c.want {
				if got := records[i]; got.Place.File != c.name || got.Place.Line != want.line ||
					!reflect.DeepEqual(got.Fields, want.fields) {
					t.Errorf("got %v %q, want %v %q", got.Place, got.Fields, want.line, want.fields)
				}
			}
		})
	}
}

func TestConlluKeepsSyntacticWords(t *testing.T) {
	data := "# sent_id = 1\n# text = don't _\n" +
		"1-2\tdon't\t_\t_\t_\t_\t_\t_\t_\t_\n" +
		"1\tdo\tdo\tAUX\t_\t_\t0\troot\t_\t_\n" +
		"2\tn't\tnot\tPART\t_\t_\t1\tadvmod\t_\t_\n" +
		"2.1\tgone\tgo\tVERB\t_\t_\t_\t_\t_\t_\n" +
		"3\t_\t_\t_\t_\t_\t1\tpunct\t_\tSpaceAfter=No\n\n"
	records, err := Read(strings.NewReader(data), "x.conllu",
		Format{Fields: map[string]string{"tags.relation": "deprel"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(records) != 1 || records[0].Place.Line != 4 {
		t.Fatalf("got %v, want one record of line 4", records)
	}
	for field, want := range map[string]any{
		"words": []string{"do", "n't", "_"}, "tags": []string{"AUX", "PART", ""},
		"tags.relation": []string{"root", "advmod", "punct"}, "xpos": nil, "feats": nil,
	} {
		if got := records[0].Fields[field]; !reflect.DeepEqual(got, want) {
			t.Errorf("field %s is %q, want %q", field, got, want)
		}
	}
}

func TestOpenDecompressesFiles(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	io.WriteString(z, "text,label\na,x\n")
	z.Close()
	dir := t.TempDir()
	path := filepath.Join(dir, "x.csv.gz")
	write(t, path, packed.String())
	records, err := Open(t.Context(), path, Format{})
	if err != nil || len(records) != 1 || records[0].Fields["text"] != "a" ||
		records[0].Place != (Place{File: path, Line: 2}) {
		t.Errorf("got %v, %v", records, err)
	}

	// each file of a folder may be compressed
	for _, name := range slotFiles {
		packed.Reset()
		z.Reset(&packed)
		io.WriteString(z, name+" \n")
		z.Close()
		write(t, filepath.Join(dir, "slots", name+".gz"), packed.String())
	}
	records, err = Open(t.Context(), filepath.Join(dir, "slots"), Format{})
	want := text{"words": []string{"seq.in"}, "tags": []string{"seq.out"}, "label": "label"}
	if err != nil || len(records) != 1 || !reflect.DeepEqual(records[0].Fields, want) {
		t.Errorf("got %v, %v, want %v", records, err, want)
	}
}

func TestFirstReadsNoFurther(t *testing.T) {
	const record = `{"text": "a"}` + "\n"
	for name, content := range map[string]string{
		"a.jsonl": record + record + "broken\n", "a.csv": "text,label\na,b\nc,d\ne\n", "a.conll": "a O\n\nb O\n\nc\n",
		"a.json": "[" + strings.Repeat(record+",", 3) + "{}]",
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
		records, err := First(t.Context(), path, Format{}, 2)
		if err != nil || len(records) != 2 {
			t.Errorf("%s: %d records, %v; want 2", name, len(records), err)
		}
		all, err := First(t.Context(), path, Format{}, 10)
		if name == "a.json" && len(all) != 4 || name != "a.json" && err == nil {
			t.Errorf("%s: %d records, %v of the whole file", name, len(all), err)
		}
	}
}

// A file of which no row can be read would else be read to its end for its first records.
func TestFirstEndsAfterAsManyMistakes(t *testing.T) {
	for name, content := range map[string]string{
		"a.csv": "a,b\n" + strings.Repeat("c\n", 1000), "a.jsonl": strings.Repeat("[1]\n", 1000),
		"a.conll": strings.Repeat("a O\n", sampleSize) + strings.Repeat("c\n", 1000),
	} {
		path := filepath.Join(t.TempDir(), name)
		write(t, path, content)
		_, err := First(t.Context(), path, Format{}, 50)
		if want := "and 30 more mistakes"; err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
		_, err = Open(t.Context(), path, Format{})
		if want := "and 980 more mistakes"; err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v of the whole file, want %s", name, err, want)
		}
	}
}

// Each takes some 0.2 s; where each line looks for words in the next 16 KiB, lines of comments take minutes.
func TestFirstEndsAfterManyLinesWithoutARecord(t *testing.T) {
	for name, content := range map[string]string{
		"a.csv": "text\n" + strings.Repeat("\n", maxBlank), "a.conll": strings.Repeat("# a\n", maxBlank+1),
	} {
		path := filepath.Join(t.TempDir(), name)
		write(t, path, content+"\xff\n")
		_, err := First(t.Context(), path, Format{}, 50)
		if err == nil || !strings.Contains(err.Error(), "no record ends in the 2097152 lines before this one") ||
			strings.Contains(err.Error(), "0xff") {
			t.Errorf("%s: %v", name, err)
		}
	}
	path := filepath.Join(t.TempDir(), "b.csv")
	write(t, path, "text\na\n"+strings.Repeat("\n", maxBlank+1)+"b\n")
	if records, err := First(t.Context(), path, Format{}, 50); err != nil || len(records) != 1 {
		t.Errorf("%d records, %v, want the one before such lines", len(records), err)
	}
}

func TestLinesThatEndInCRAloneAreOneMistake(t *testing.T) {
	for name, lines := range map[string]string{"x.csv": "text,label\ra,x\rb,y\r", "x.conll": "a\tX\rb\tY\r\rc\tX\r",
		"x.jsonl": "{\"text\": \"a\"}\r{\"text\": \"b\"}", "x.tsv": "a\tx\rb\ty\r"} {
		_, err := Read(strings.NewReader(lines), name, Format{NoHeader: name == "x.tsv"})
		if want := name + ":1: the file's lines end in CR alone; save it with LF or CRLF"; err == nil ||
			err.Error() != want {
			t.Errorf("%q: %v, want %s", lines, err, want)
		}
	}
	for _, line := range []string{"{\"text\": \"a\"}\r", "{\"text\": \"a\rb\"}"} {
		if r, err := Read(strings.NewReader(line), "x.jsonl", Format{}); err != nil || len(r) != 1 {
			t.Errorf("%q: %v, %v", line, r, err)
		}
	}
}

func TestFilesThatAreNoDataAreNamed(t *testing.T) {
	packed := func(text string) string {
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		z.Write([]byte(text))
		z.Close()
		return out.String()
	}
	const page = "<!DOCTYPE html>\n<html><head><title>Log in</title></head></html>\n"
	for _, c := range []struct{ name, data, format, want string }{
		{"d.csv", page, "", "d.csv:1: a page of HTML, not the file; "},
		{"d.conll", "\n\n  <html lang=en><body>404</body></html>\n", "", "d.conll:1: a page of HTML"},
		{"d.ner", page, "conll", "d.ner:1: a page of HTML"},
		{"d.txt", page, "fasttext", "d.txt:1: a page of HTML"},
		{"d.csv.gz", page, "", "d.csv.gz:1: a page of HTML"},
		{"d.csv.gz", packed(page), "", "d.csv.gz:1: compressed by gzip is a page of HTML"},
		{"d.ner.gz", packed(page), "conll", "d.ner.gz:1: a page of HTML"},
		{"d.jsonl.gz", packed(packed("{}")), "", "d.jsonl.gz:1: compressed by gzip twice; in its folder, mv "},
		{"d.csv.gz", "text,label\nx,a\n", "", "d.csv.gz:1: the file is not a gzip file, but its name ends in .gz; "},
		{"d.csv.gz", packed("text\n\"<html>\"\n"), "", ""},
		{"d.csv", "<html>buy</html>,spam\n", "", "d.csv: no records"},
	} {
		_, err := Read(strings.NewReader(c.data), c.name, Format{Type: c.format})
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s %.20q: error %v, want %q", c.name, c.data, err, c.want)
		}
	}
}

func TestSizeLimits(t *testing.T) {
	long := strings.Repeat("x", maxRecord+1)
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	for range freeSize>>20 + 1 {
		z.Write(bytes.Repeat([]byte("x"), 1<<20))
	}
	z.Close()
	for name, c := range map[string]struct{ name, data, want string }{
		"a line": {"x.jsonl", `{"text": "a"}` + "\n" + long + "\n3\n",
			"x.jsonl:2: the line has more than 16 MiB; want one record a line\nx.jsonl:3: the record is a number; " +
				"want one JSON object a line"},
		"a record": {"x.json", "[\n\"" + long + `"]`,
			"x.json:2, record 1: the record has more than 16 MiB; want one record an element"},
		"a row": {"x.csv", "text\n\"a\n" + strings.Repeat(long[:1<<20]+"\n", 17),
			"x.csv:2: the row has a quote that is not closed within 16 MiB; close it, or quote: none where quotes " +
				"are letters"},
		"a row of several cells": {"x.csv", "a,b,c\n" + strings.Repeat("\"\n"+long[:maxRecord/2]+"\",", 3) + "\n",
			"x.csv:3: the row has a quote that is not closed within 16 MiB; close it"},
		"lines of a cell": {"x.csv", "text,b\n\"" + strings.Repeat("\n", maxLines+1) + "\",x\n",
			"x.csv:2: the row has a quote that is not closed within 1048576 lines; close it, or quote: none where " +
				"quotes are letters"},
		"words of a sentence": {"x.conll", "a O\n\n" + strings.Repeat("b O\n", maxWords+2) + "\nc\n",
			"x.conll:3: the sentence that begins here has more than 1048576 words, up to line 1048579; an empty line " +
				"ends a sentence\nx.conll:1048582: columns: 1, want 2; an empty line ends a sentence"},
		"a sentence": {"x.conllu", "# a\n" + strings.Repeat("1\t"+long[:maxRecord/4]+strings.Repeat("\t_", 8)+"\n",
			5), "x.conllu:2: the sentence that begins here has more than 16 MiB, up to line 5; an empty line ends a " +
			"sentence"},
		"columns": {"x.csv", strings.Repeat(",", maxColumns) + "\n",
			"x.csv:1: the row has more than 4096 columns; want one record a row"},
		"columns of conll": {"x.conll", strings.Repeat("x ", maxColumns+1) + "\n",
			"x.conll:1: the line has more than 4096 columns; want a word and its tags on a line"},
		"columns by tab": {"x.conll", strings.Repeat("x\t", maxColumns+1) + "\n",
			"x.conll:1: the line has more than 4096 columns; want a word and its tags on a line"},
		"a decompressed file": {"x.csv.gz", bomb.String(),
			"it decompresses to more than 100 times its size; if that is intended, decompress it first"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(strings.NewReader(c.data), c.name, Format{})
			if err == nil || !strings.HasSuffix(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestFormatIsChecked(t *testing.T) {
	for _, c := range []struct {
		path   string
		format Format
		want   string
	}{
		{"x", Format{}, `extension "" has no known format; format: TYPE sets it, one of jsonl, json, csv, tsv, ` +
			"parquet, conll, conllu, columns, fasttext, label_studio, brat"},
		{"x.csv", Format{Type: "xml"}, `no format "xml"; available: jsonl, json, csv, tsv, parquet, conll, conllu, ` +
			"columns, fasttext, label_studio, brat, and slots for a folder"},
		{"x.csv", Format{Encoding: "utf-9"}, `no encoding "utf-9"; want a name of IANA or the WHATWG, as utf-8, ` +
			`utf-16, cp1252, latin1, koi8-r, cp850, shift_jis, gbk`},
		{"x.csv", Format{Quote: "'"}, `no quote "'"; want none, or leave it out for the quotes of RFC 4180`},
		{"x.jsonl.gz", Format{Quote: "none"}, `format jsonl has no quote; csv and tsv have one`},
		{"x.ndjson", Format{NoHeader: true}, `format jsonl has no header; csv and tsv have one`},
		{"x.conll", Format{NoHeader: true}, `format conll has no header; csv and tsv have one`},
		{"x.conllu", Format{Columns: []string{"words"}},
			`format conllu has no columns option; csv, tsv and conll have one`},
		{"x.JSON", Format{Delimiter: "\t"}, `format json has no delimiter; csv, tsv and conll have one`},
		{"x.csv", Format{Delimiter: `"`},
			`delimiter "\"" cannot separate columns; it takes any text without quotes and line ends`},
		{"x.conll", Format{Delimiter: "\n"},
			`delimiter "\n" cannot separate columns; it takes any text without quotes and line ends`},
		{"x.train", Format{Delimiter: " ", NoHeader: true},
			`delimiter " " without columns; columns: [label, text] sets how many there are`},
		{"x.jsonl", Format{Columns: []string{}}, `format jsonl has no columns option; csv, tsv and conll have one`},
		{"x.csv", Format{Columns: []string{}}, `columns is empty; name them, or leave columns out`},
		{"x.csv", Format{Columns: []string{"_", "text", "_", "text"}},
			`two columns are named "text"; each has a name of its own, _ skips one`},
	} {
		if err := c.format.Check(c.path); err == nil || err.Error() != c.want {
			t.Errorf("Check(%q) of %+v = %v, want %s", c.path, c.format, err, c.want)
		}
	}
	for path, f := range map[string]Format{
		"x.tab.tsv.gz": {Quote: "none", NoHeader: true}, "x": {Delimiter: "|"},
		"x.conll": {Columns: []string{"words", "_", "_", "tags"}}, "x.csv": {Type: "jsonl"},
	} {
		if err := f.Check(path); err != nil {
			t.Errorf("Check(%q) of %+v = %v, want none", path, f, err)
		}
	}
}

func TestErrorsOfOpen(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "slots.txt", "a")
	for _, c := range []struct {
		path   string
		format Format
		want   string
	}{
		{"absent.csv", Format{}, "absent.csv: no such file"},
		{"absent", Format{Type: "slots"}, "absent: no such file"},
		{"slots.txt", Format{Type: "slots"},
			"slots.txt: a file; format slots is a folder with seq.in, seq.out and label"},
		{os.DevNull, Format{Type: "csv"}, os.DevNull + ": not a file; give a file, a pipe or a folder"},
	} {
		if _, err := Open(t.Context(), c.path, c.format); err == nil || err.Error() != c.want {
			t.Errorf("Open(%q) = %v, want %s", c.path, err, c.want)
		}
	}
}

// write creates a file and its folder.
func write(t *testing.T, path, data string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A read error has the line that could not be read.
func TestReadErrorsHaveLine(t *testing.T) {
	diskError := errors.New("disk failure")
	for name, data := range map[string]string{"x.csv": "text\na\n\"b", "x.json": "[{\"text\": \"a\"},\n\n{\"text\"",
		"y.json": "[{\"text\": \"a\"}\n,\n", "x.conll": "a O\n\n"} {
		_, err := Read(io.MultiReader(strings.NewReader(data), iotest.ErrReader(diskError)), name, Format{})
		if want := name + ":3: disk failure"; !errors.Is(err, diskError) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// What cannot be read on after a mistake has no other mistakes because of that.
func TestAFileThatEndsEarlyIsOneMistake(t *testing.T) {
	pack := func(text string) string { // whose last 8 bytes, the checksum and the size, are missing
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		io.WriteString(z, text)
		z.Close()
		return packed.String()[:packed.Len()-8]
	}
	t.Chdir(t.TempDir())
	for path, text := range map[string]string{"a.csv.gz": "text\na\n\"b\nc", "a.jsonl.gz": `{"text": "a"}`,
		"a.json.gz": `[{"text": "a"},`, "keys.json.gz": `{"data"`, "columns.json.gz": `{"text": ["a"]`,
		"a.conll.gz":    "a O\n",
		"squad.json.gz": `{"data": [{"paragraphs": `, "words/seq.in.gz": "a\nb\n", "words/seq.out": "O\nO\nO\n",
		"words/label": "x\ny\nz\n", "tags/seq.in": "a\nb\n", "tags/seq.out.gz": "O\n", "tags/label": "x\ny\n",
		"labels/seq.in": "a\nb\n", "labels/seq.out": "O\nO\n", "labels/label.gz": "x\n"} {
		if strings.HasSuffix(path, ".gz") {
			text = pack(text)
		}
		write(t, path, text)
	}
	for path, f := range map[string]Format{"a.csv.gz": {}, "a.jsonl.gz": {}, "a.json.gz": {},
		"keys.json.gz": {Records: "data"}, "columns.json.gz": {Type: columnsForm}, "a.conll.gz": {},
		"squad.json.gz": {}, "words": {}, "tags": {}, "labels": {}} {
		_, err := Open(t.Context(), path, f)
		const want = "the gzip file is truncated; want a whole one"
		if err == nil || !strings.HasSuffix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %s alone", path, err, want)
		}
	}
	for _, name := range []string{"a.csv", "a.jsonl", "a.json", "a.conll", "keys.json", "columns.json"} {
		f := map[string]Format{"keys.json": {Records: "data"}, "columns.json": {Type: columnsForm}}[name]
		if _, err := Read(strings.NewReader("\xff\xfea\x00"), name, f); err == nil ||
			err.Error() != name+":1: the file is UTF-16; encoding: utf-16 reads it" {
			t.Errorf("%s: %v, want that it is UTF-16 alone", name, err)
		}
	}
}

// Read is Open for a file whose bytes are read from r.
func Read(r io.Reader, name string, f Format) ([]Record, error) {
	records, err := read(context.Background(), r, name, f, math.MaxInt)
	if err != nil {
		return nil, err
	}
	return f.Rename(name, records)
}

// TestReadingEndsWithItsContext reads a file of each kind whose context has ended.
func TestReadingEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	paths := []string{"testdata/parquet/snappy.parquet"}
	for _, name := range []string{"a.jsonl", "a.json", "a.csv", "a.conll"} {
		paths = append(paths, filepath.Join(dir, name))
		if err := os.WriteFile(filepath.Join(dir, name), []byte("{}\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range paths {
		if _, err := Open(ctx, path, Format{}); !errors.Is(err, context.Canceled) {
			t.Errorf("Open(%q) = %v, want %v", path, err, context.Canceled)
		}
	}
}

// The records of a small compressed file are an error before they take much memory.
func TestManySmallRecordsOfACompressedFileAreAnError(t *testing.T) {
	pack := func(header, record string, n int, end string) []byte {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		io.WriteString(z, header+strings.Repeat(record, n)+end)
		z.Close()
		return packed.Bytes()
	}
	for _, test := range []struct {
		name, header, record, end string
	}{
		{"x.csv.gz", "a,b\n", "a,bc\n", ""}, {"x.jsonl.gz", "", "{\"a\":1}\n", ""}, {"x.conll.gz", "", "a\n\n", ""},
		{"x.json.gz", "[{}", ",{}", "]"}, {"x.jsonl.gz", "", `{"a":[[],[],{},"b"]}` + "\n", ""},
		{"x.tsv.gz", "a\n", "b\n", ""},
	} {
		const want = "the records up to here take more than 64 MiB of memory, which is the limit for a compressed " +
			"file of this size: 100 times the size, and at least 64 MiB; if that is intended, decompress it first"
		data := pack(test.header, test.record, 1_000_000, test.end)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Read(bytes.NewReader(data), test.name, Format{})
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s of %d bytes: error %v, want %s", test.name, len(data), err, want)
		}
		if made := after.TotalAlloc - before.TotalAlloc; made > 400<<20 {
			t.Errorf("%s of %d bytes: %d MiB were made", test.name, len(data), made>>20)
		}
		data = pack(test.header, test.record, 1000, test.end)
		if records, err := Read(bytes.NewReader(data), test.name, Format{}); err != nil {
			t.Errorf("%s: a thousand records: %d, %v", test.name, len(records), err)
		}
	}
}

func TestATextMayBeginAsParquetDoes(t *testing.T) {
	for _, text := range []string{"PAR1 is a gene,a\n", "PAR1\n", "PAR1,b\n", "PAR1"} {
		if r, err := Read(strings.NewReader(text), "a.csv", Format{NoHeader: true}); err != nil || len(r) != 1 {
			t.Errorf("%q: %v, %v", text, r, err)
		}
	}
	_, err := Read(strings.NewReader("PAR1\x15\x04\x15"), "a.csv", Format{})
	if err == nil || !strings.Contains(err.Error(), "format: parquet reads it") {
		t.Error(err)
	}
}
