package plugin

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, test := range []struct{ rule, file, want string }{
		{"scalars have their kinds", "[1, 1.5, true, ~, text, '1', 2024-01-01, .inf]",
			"[1, 1.5, true, ~, text, \"1\", \"2024-01-01\", .inf]"},
		{"a byte-order mark and CRLF are skipped", "\ufeffa: 1\r\nb: x\r\n", "a: 1\nb: x"},
		{"aliases are followed", "a: &x {b: 1}\nc: *x", "a:\n  b: 1\nc:\n  b: 1"},
		{"a mapping's own key overrides a merged one", "a: &x {b: 1, c: 2}\nd: {<<: *x, b: 3}",
			"a:\n  b: 1\n  c: 2\nd:\n  b: 3\n  c: 2"},
		{"the first of merged mappings overrides the second", "a: &x {b: 1}\nc: &y {b: 2, e: 3}\nd: {<<: [*x, *y]}",
			"a:\n  b: 1\nc:\n  b: 2\n  e: 3\nd:\n  b: 1\n  e: 3"},
		{"an alias may be a key", "- &x a\n- {*x : 1}", "- a\n- a: 1"},
		{"strings that YAML 1.1 reads as other kinds are quoted", "['no', 'Yes', on, 'null', '1e5', \"a\\nb\", '']",
			"[\"no\", \"Yes\", \"on\", \"null\", \"1e5\", \"a\\nb\", \"\"]"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			var mistakes Mistakes
			s := Parse("f", []byte(test.file), &mistakes)
			if err := mistakes.Err(); err != nil {
				t.Fatal(err)
			}
			if got := inline(s); got != test.want {
				t.Errorf("%q reads as\n%s\nwant\n%s", test.file, got, test.want)
			}
			if got := inline(Parse("f", []byte(test.want), &mistakes)); got != test.want {
				t.Errorf("the written section reads as\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

func TestParseValueIsAtItsPlace(t *testing.T) {
	var mistakes Mistakes
	place := Place{File: "a=…", Argument: "set"}
	s := ParseValue(place, "\n  {b: [1, 2]}", &mistakes)
	if got := s.At("b").Items[1].Place; got != place || s.Entries[0].Place != place {
		t.Errorf("a value is at %v, want %v", got, place)
	}
	if ParseValue(place, "[", &mistakes) != nil ||
		mistakes.Err().Error() != "argument set a=…: not YAML: did not find expected node content" {
		t.Errorf("a syntax error is %v", mistakes.Err())
	}
}

// The YAML library names the line before, or the one where a mapping or list begins.
func TestAMistakeOfSyntaxIsAtItsLine(t *testing.T) {
	const colon = "unexpected colon: the line has two, or the line above has none, or they are indented differently"
	for _, test := range []struct{ file, want string }{
		{"m:\n  a: 1\n  b 2\n  c: 3\n", `3: not YAML: could not find expected ':', in "b 2"`},
		{"m:\n  a: 1\n   b: 2\n  c: 3\n", `3: not YAML: ` + colon + `, in "b: 2"`},
		{"m:\n  a: 1\n b: 2\n  c: 3\n", `3: not YAML: did not find expected key, in "b: 2"`},
		{"t:\n  - name: a\n    type: b\n   - name: c\nx: 1\n",
			`4: not YAML: did not find expected '-' indicator, in "- name: c"`},
		{"x: 1\n\nm:\n  a: \"x\n  b: 2\n", `4: not YAML: the quote is not closed, in "a: \"x"`},
		{"x: 1\na: \"b\" c\nd: 1\n", `2: not YAML: did not find expected key, in "a: \"b\" c"`},
		{"m: {a: 1,\n b: 2}\nx: 1\nm: {a: 1\nx: 1\n", `4: not YAML: did not find expected ',' or '}', in "m: {a: 1"`},
		{"m: {a: 1,\n b: [2, 3}\nx: 1\n", `2: not YAML: did not find expected ',' or ']', in "b: [2, 3}"`},
		{"x: 1\nm: *a\nd: 1\n", `2: not YAML: unknown anchor 'a' referenced, in "m: *a"`},
		{"m:\n  a: 1\n\tb: 2\n", "3:1: not YAML: the line is indented with a tab; indent with spaces, not with a tab"},
	} {
		var mistakes Mistakes
		if Parse("f", []byte(test.file), &mistakes); mistakes.Err() == nil || mistakes.Err().Error() != "f:"+test.want {
			t.Errorf("%q: %v, want f:%s", test.file, mistakes.Err(), test.want)
		}
	}
}

func TestBounds(t *testing.T) {
	for _, test := range []struct{ rule, file, want string }{
		{"bytes", strings.Repeat("#", maxBytes+1), "f: 1048577 bytes; an experiment file has at most 1048576"},
		{"depth", strings.Repeat("[", 65) + strings.Repeat("]", 65), ""},
		{"more depth", strings.Repeat("[", 66) + strings.Repeat("]", 66), "f:1:66: values nest more than 64 deep"},
		{"depth beyond the YAML library's", strings.Repeat("[", 1<<19), "f:1: not YAML: exceeded max depth of 10000"},
		{"values", "[" + strings.Repeat("x,", maxValues-1) + "]", ""},
		{"more values", "[" + strings.Repeat("x,", maxValues) + "]",
			"f:1:200000: more than 100000 values, those of aliases counted each time"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			var mistakes Mistakes
			s := Parse("f", []byte(test.file), &mistakes)
			switch err := mistakes.Err(); {
			case test.want == "" && (err != nil || s == nil):
				t.Errorf("%v, want no mistake", err)
			case test.want != "" && (err == nil || err.Error() != test.want || s != nil):
				t.Errorf("%v, want %s", err, test.want)
			}
		})
	}
}

func TestMistakesAreSortedUniqueAndBounded(t *testing.T) {
	var m Mistakes
	m.Add(Place{File: "a=1", Argument: "set"}, "last")
	m.Add(Place{File: "f", Line: 2, Col: 10}, "third")
	m.Add(Place{File: "f", Line: 2, Col: 9}, "second")
	m.Add(Place{File: "f", Line: 1, Col: 0}, "first")
	m.Add(Place{File: "f", Line: 2, Col: 10}, "third")
	if got, want := m.Err().Error(), "f:1: first\nf:2:9: second\nf:2:10: third\nargument set a=1: last"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for i := range 2 * maxMistakes {
		m.Add(Place{File: "f", Line: 3, Col: i + 1}, "again")
	}
	lines := strings.Split(m.Err().Error(), "\n")
	if len(lines) != maxMistakes+1 || lines[maxMistakes] != "and 54 more" {
		t.Errorf("%d lines, the last %q; want %d and a count", len(lines), lines[len(lines)-1], maxMistakes+1)
	}
}

func TestQuotedIsTruncated(t *testing.T) {
	if got, want := quoted(strings.Repeat("é", 40)), `"`+strings.Repeat("é", 30)+`…"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestCommentsAreWrittenAboveTheirValues(t *testing.T) {
	s := SectionOf(map[string]int{})
	s.Put("a", &Section{Kind: Int, Text: "1", Comment: "# one\n# two"})
	s.Put("b", &Section{Kind: List, Items: []*Section{{Kind: Mapping, Comment: "# an item",
		Entries: []Entry{{Key: "c", Value: &Section{Kind: Text, Text: "d", Comment: "# within"}}}}}})
	var text strings.Builder
	if err := s.Write(&text); err != nil {
		t.Fatal(err)
	}
	if want := "# one\n# two\na: 1\nb:\n  # an item\n  - # within\n    c: d\n"; text.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &text, want)
	}
}
