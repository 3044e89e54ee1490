package corpus

import (
	"bufio"
	"bytes"
	"io"
)

// next returns the next line, in UTF-8 and without its end. A line that is too long or not valid text is a mistake;
// next returns what can be read of it, so that the lines after it are still parsed correctly.
func (d *reader) next() (line string, ok bool) {
	d.line = d.line[:0]
	long := false
	for {
		part, err := d.in.ReadSlice('\n')
		d.offset += int64(len(part))
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
