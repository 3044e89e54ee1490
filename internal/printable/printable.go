// Package printable decides what of a text that someone else wrote, as a label or a file's name, is written to a
// terminal as it is.
package printable

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// obeyed reports whether a terminal may obey a character in place of showing it: controls, also those of Unicode's
// second block (U+0080 to U+009F, of which U+009B begins an escape sequence), marks and overrides of the direction, and
// separators of lines.
func obeyed(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

// Is reports whether a terminal shows all characters of a text, and none is a blank but the space.
func Is(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// IsLine reports whether a terminal obeys no character of a text, as those of several lines. Unlike with Is, some may
// not be seen: blanks of other widths, joiners.
func IsLine(text string) bool { return utf8.ValidString(text) && !strings.ContainsFunc(text, obeyed) }

// Escape returns text with \uXXXX, as JSON writes it, in place of each character that a terminal obeys, but for line
// ends and tabs, and \xXX in place of each byte that is not UTF-8. JSON without control characters, which its strings
// cannot have, is equal JSON afterwards.
func Escape(text []byte) []byte {
	isWritten := func(r rune) bool { return !obeyed(r) || r == '\n' || r == '\t' }
	if utf8.Valid(text) && !bytes.ContainsFunc(text, func(r rune) bool { return !isWritten(r) }) {
		return text
	}
	var escaped bytes.Buffer
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRune(text[at:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&escaped, `\x%02x`, text[at])
		case !isWritten(r):
			fmt.Fprintf(&escaped, `\u%04x`, r)
		default:
			escaped.Write(text[at : at+size])
		}
		at += size
	}
	return escaped.Bytes()
}

// Writer writes to another one what Escape returns of each text that is written to it, which ends with a whole
// character.
type Writer struct{ Raw io.Writer }

// Write implements io.Writer.
func (w Writer) Write(text []byte) (int, error) {
	if _, err := w.Raw.Write(Escape(text)); err != nil {
		return 0, err
	}
	return len(text), nil
}
