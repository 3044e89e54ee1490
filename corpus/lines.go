package corpus

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"unicode/utf8"
)

// next returns the next line, in UTF-8 and without its end. A line that is too long or not valid text is a mistake;
// next returns what can be read of it, so that the lines after it are still parsed correctly.
func (d *reader) next() (line string, ok bool) {
	d.line = d.line[:0]
	long := false
	for {
		part, err := d.in.ReadSlice('\n')
		if len(d.line)+len(part) <= maxRecord {
			d.line = append(d.line, part...)
		} else {
			long = true
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		if err != nil && err != io.EOF {
			d.add(Place{File: d.file, Line: d.place.Line + 1}, "%w", err)
			return "", false
		}
		if err == io.EOF && len(d.line) == 0 && !long {
			return "", false
		}
		break
	}
	d.place.Line++
	if long {
		d.add(d.place, "the line has more than %d MiB; want one record a line", maxRecord>>20)
		return "", true
	}
	text := bytes.TrimSuffix(d.line, []byte("\n"))
	return d.decode(bytes.TrimSuffix(text, []byte("\r")), d.place), true
}

// decode returns text, which begins at a place, in UTF-8.
func (d *reader) decode(text []byte, at Place) string {
	if d.format.Encoding == "latin1" {
		return fromLatin1(text)
	}
	if utf8.Valid(text) {
		return string(text)
	}

	// The first bad byte, and its line where text has several.
	bad := invalidAt(text)
	at.Line += bytes.Count(text[:bad], []byte("\n"))
	column := utf8.RuneCount(text[bytes.LastIndexByte(text[:bad], '\n')+1:bad]) + 1
	remedy := "save the file as UTF-8"
	if isLatin1(text) {
		remedy = "encoding: latin1 would read it"
	}
	d.add(at, "byte 0x%02x at character %d is not UTF-8; %s", text[bad], column, remedy)
	return strings.ToValidUTF8(string(text), string(utf8.RuneError))
}

// isLatin1 reports whether text, which is not UTF-8, may be Latin-1: it has none of the control codes 0x80 to 0x9f,
// which do not occur in texts.
func isLatin1(text []byte) bool {
	for _, b := range text {
		if b >= 0x80 && b < 0xa0 {
			return false
		}
	}
	return true
}

// fromLatin1 converts a text from Latin-1, whose bytes are the code points.
func fromLatin1(text []byte) string {
	var b strings.Builder
	b.Grow(len(text))
	for _, c := range text {
		b.WriteRune(rune(c))
	}
	return b.String()
}
