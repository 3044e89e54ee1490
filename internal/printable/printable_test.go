package printable

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestEscape(t *testing.T) {
	for _, c := range []struct {
		text, want   string
		is, isLine   bool
		whatIsTested string
	}{
		{"Köln 東京 👩‍👩‍👧", "Köln 東京 👩‍👩‍👧", false, true, "joiners stay"},
		{"plain text", "plain text", true, true, "plain text"},
		{"a\u00a0b", "a\u00a0b", false, true, "a blank that looks like a space"},
		{"a\tb\nc", "a\tb\nc", false, false, "tabs and line ends stay"},
		{"\x1b[31mred\x07\r", `\u001b[31mred\u0007\u000d`, false, false, "controls of ASCII"},
		{"\u009b31m\u0085\x7f", `\u009b31m\u0085\u007f`, false, false, "C1 and DEL"},
		{"\u202egnirts\u2066\u200f", `\u202egnirts\u2066\u200f`, false, false, "directions"},
		{"a\u2028b", `a\u2028b`, false, false, "a separator of lines"},
		{"\x9b31m", `\x9b31m`, false, false, "a byte that is C1 in Latin-1"},
	} {
		t.Run(c.whatIsTested, func(t *testing.T) {
			var out bytes.Buffer
			if n, err := (Writer{&out}).Write([]byte(c.text)); n != len(c.text) || err != nil {
				t.Errorf("Write(%q) = %d, %v", c.text, n, err)
			}
			if out.String() != c.want {
				t.Errorf("Write(%q) wrote %q, want %q", c.text, out.String(), c.want)
			}
			if Is(c.text) != c.is || IsLine(c.text) != c.isLine {
				t.Errorf("Is(%q), IsLine = %v, %v, want %v, %v", c.text, Is(c.text), IsLine(c.text), c.is, c.isLine)
			}
		})
	}
}

func TestEscapedJSONIsEqual(t *testing.T) {
	want := "\x1b \u009b \x7f \u202e \\ \" \u2028 é"
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got string
	if err := json.Unmarshal(Escape(text), &got); err != nil || got != want {
		t.Errorf("JSON of %q is read again as %q, %v", want, got, err)
	}
}
