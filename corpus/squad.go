package corpus

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// maxSquad is the largest size in bytes of a file in SQuAD's form, which is read at once.
const maxSquad = 256 << 20

// squadHead is how many bytes of a file tell whether it is in SQuAD's form.
const squadHead = 1 << 10

// beginsSquad matches the beginning of a file in the form of SQuAD 1.1 and 2.0, not of one record per line.
var beginsSquad = regexp.MustCompile(`^\s*\{\s*("version"\s*:\s*("[^"]*"|[0-9.]+)\s*,\s*)?"data"\s*:\s*\[`)

// isSquad reports whether the file, of which nothing has been read, is in SQuAD's form.
func (d *reader) isSquad() bool {
	head, _ := d.in.Peek(squadHead)
	return IsSquad(head)
}

// IsSquad reports whether a JSON text begins like a file in SQuAD's form.
func IsSquad(text []byte) bool { return beginsSquad.Match(text[:min(len(text), squadHead)]) }

// squadFile is the part of SQuAD's form that is read: articles and their paragraphs.
type squadFile struct {
	Data []struct {
		Title      any               `json:"title"`
		Paragraphs []json.RawMessage `json:"paragraphs"`
	} `json:"data"`
}

type squadParagraph struct {
	Context   any              `json:"context"`
	Questions []map[string]any `json:"qas"`
}

// squad reads a file in SQuAD's form: one record per question, with the fields question, context, the article's title,
// answers and the question's other fields. Its place is the line where its paragraph begins, and its id or number.
func (d *reader) squad() {
	first := Place{File: d.file, Line: 1}
	raw, err := io.ReadAll(io.LimitReader(d.in, maxSquad+1))
	switch {
	case err != nil:
		d.add(first, "%w", err)
		return
	case len(raw) > maxSquad:
		d.add(first, "the file has more than %d MiB; divide it, or write one question a line", maxSquad>>20)
		return
	}
	text := []byte(d.decode(raw, first))
	var file squadFile
	if at, err := unmarshal(text, &file); err != nil {
		d.add(Place{File: d.file, Line: lineOf(text, at)}, "not SQuAD's form: %w", err)
		return
	}
	line, done, newline := 1, 0, []byte("\n") // of the file, up to a paragraph
	for _, article := range file.Data {
		for _, p := range article.Paragraphs {
			before, behind, _ := bytes.Cut(text[done:], p)
			line += bytes.Count(before, newline)
			d.paragraph(Place{File: d.file, Line: line}, article.Title, p)
			line += bytes.Count(p, newline)
			done = len(text) - len(behind)
		}
	}
}

func (d *reader) paragraph(at Place, title any, raw []byte) {
	var p squadParagraph
	if i, err := unmarshal(raw, &p); err != nil {
		at.Line += lineOf(raw, i) - 1
		d.add(at, "not SQuAD's form: %w; a paragraph has a context and qas, a list of questions", err)
		return
	}
	for _, q := range p.Questions {
		if q == nil {
			d.add(at, "a question is null; want one with question and answers")
			continue
		}
		q["context"], q["title"] = p.Context, title
		own := at
		own.Entry = fmt.Sprint("question ", len(d.records)+1)
		if id, ok := scalar(q["id"]); ok && id != "" {
			own.Entry = fmt.Sprintf("question %q", id)
		}
		d.addRecord(Record{Place: own, Fields: q})
	}
}

// unmarshal is json.Unmarshal, but keeps numbers as json.Number. With an error it returns the byte where it is.
func unmarshal(text []byte, into any) (at int, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	err = decoder.Decode(into)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return int(syntax.Offset), fmt.Errorf("byte %d: %w", syntax.Offset, err)
	}
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return int(kind.Offset), fmt.Errorf("%s has a wrong value, the %s here",
			cmp.Or(strings.TrimPrefix(kind.Field, "."), "the whole"), kind.Value)
	}
	if err != nil {
		return len(text), err
	}
	end := int(decoder.InputOffset())
	if rest := bytes.TrimSpace(text[end:]); len(rest) > 0 {
		return len(text) - len(bytes.TrimLeft(text[end:], " \t\r\n")),
			fmt.Errorf("%q after its end", start(string(rest)))
	}
	return 0, nil
}
