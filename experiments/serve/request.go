package serve

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/predict"
)

// request is the body of a request, read.
type request struct {
	run   *liveRun
	texts []text
	one   bool // the body has a single text, not a list
	form  predict.Form
	pool  predict.Pool
}

// text is a text of a request, or why it cannot be read.
type text struct {
	example *corpus.Example
	err     error
}

// textFields are the fields of a body with a single text.
var textFields = []string{"text", "pair", "words", "question", "context"}

// bodyError is a mistake in a request.
type bodyError struct {
	status int
	error
}

func mistake(status int, format string, args ...any) error {
	return bodyError{status, fmt.Errorf(format, args...)}
}

// read reads the body of a request, an object with one text or a list of texts, and the options named.
func (s *Server) read(r *http.Request, options ...string) (*request, error) {
	body, err := s.body(r)
	if err != nil {
		return nil, err
	}
	fields, err := corpus.ParseObject(body)
	if err != nil {
		return nil, mistake(http.StatusBadRequest, "the body: %w; want a JSON object with text or texts", err)
	}
	known := slices.Concat(textFields, []string{"texts", "run"}, options)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if slices.Contains(known, name) {
			continue
		}
		return nil, mistake(http.StatusBadRequest, "unknown field %q%s", name, nearest(name, known))
	}
	q := &request{pool: predict.MeanPool}
	name, err := stringField(fields, "run")
	if err != nil {
		return nil, err
	}
	if q.run, err = find(s.runs, name); err != nil {
		return nil, mistake(http.StatusNotFound, "%w", err)
	}
	if err := q.readOptions(fields); err != nil {
		return nil, err
	}
	return q, s.readTexts(q, fields)
}

// body returns the body of a request, which is bounded, as text.
func (s *Server) body(r *http.Request) (string, error) {
	if kind := r.Header.Get("Content-Type"); kind != "" {
		if media, _, err := mime.ParseMediaType(kind); err != nil || media != "application/json" {
			return "", mistake(http.StatusUnsupportedMediaType, "Content-Type %q: want application/json", kind)
		}
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, s.options.MaxBody))
	switch {
	case isTooLarge(err):
		return "", mistake(http.StatusRequestEntityTooLarge, "the body has more than %d bytes", s.options.MaxBody)
	case err != nil:
		return "", mistake(http.StatusBadRequest, "the body: %w", err)
	case !utf8.Valid(body):
		return "", mistake(http.StatusBadRequest, "the body is not UTF-8")
	}
	return string(body), nil
}

// readOptions reads the fields that are not texts.
func (q *request) readOptions(fields map[string]any) error {
	if value, ok := fields["tasks"]; ok {
		names, ok := stringList(value)
		if !ok || len(names) == 0 {
			return mistake(http.StatusBadRequest, "tasks: want a list of names of tasks")
		}
		q.form.Tasks = names
	}
	if value, ok := fields["top"]; ok {
		number, _ := value.(json.Number)
		top, err := strconv.Atoi(number.String())
		if err != nil || top < 0 {
			return mistake(http.StatusBadRequest, "top: want a number from 0 on")
		}
		q.form.Top = top
	}
	name, err := stringField(fields, "offsets")
	if err != nil {
		return err
	}
	if name != "" {
		if q.form.Unit, err = corpus.ParseOffsetUnit(name); err != nil {
			return mistake(http.StatusBadRequest, "offsets %w", err)
		}
	}
	pool, err := stringField(fields, "pool")
	if err != nil {
		return err
	}
	switch pool := predict.Pool(pool); pool {
	case "":
	case predict.MeanPool, predict.ClsPool:
		q.pool = pool
	default:
		return mistake(http.StatusBadRequest, "pool %q: want mean or cls", pool)
	}
	return nil
}

// readTexts reads the text or the texts of a body.
func (s *Server) readTexts(q *request, fields map[string]any) error {
	single := map[string]any{}
	for _, name := range textFields {
		if value, ok := fields[name]; ok {
			single[name] = value
		}
	}
	value, many := fields["texts"]
	m, done := q.run.use()
	columns := m.Columns()
	done()
	switch {
	case many && len(single) > 0:
		return mistake(http.StatusBadRequest, "text and texts: want one of the two")
	case many:
		list, ok := anyList(value)
		if !ok || len(list) == 0 {
			return mistake(http.StatusBadRequest, "texts: want a list of at least one text")
		}
		if most := s.options.MaxTexts; len(list) > most {
			return mistake(http.StatusRequestEntityTooLarge, "texts: %d of them; want at most %d", len(list), most)
		}
		for i, one := range list {
			q.texts = append(q.texts, readText(one, fmt.Sprintf("texts[%d]", i), columns))
		}
		return nil
	case len(single) == 0:
		return mistake(http.StatusBadRequest,
			"no text; want text, or words, or question and context, or texts with a list")
	}
	q.one = true
	q.texts = []text{readText(single, "the body", columns)}
	if err := q.texts[0].err; err != nil {
		return mistake(http.StatusUnprocessableEntity, "%w", err)
	}
	return nil
}

// readText reads a text, a string or an object.
func readText(value any, place string, columns predict.Columns) text {
	at := corpus.Place{File: place}
	fields, ok := value.(map[string]any)
	if s, isText := value.(string); isText {
		fields, ok = map[string]any{"text": s}, true
	}
	if !ok {
		return text{err: fmt.Errorf("%s: want a text, or an object with text, pair or words", place)}
	}
	for _, name := range textFields {
		value, given := fields[name]
		_, right := value.(string)
		if name == "words" {
			_, right = stringList(value)
		}
		if given && !right {
			return text{err: fmt.Errorf("%s: %s: want a string, of words a list of strings", place, name)}
		}
	}
	if s, isText := fields["text"].(string); isText && strings.TrimSpace(s) == "" {
		return text{err: fmt.Errorf("%s: the text is empty", place)}
	}
	line, err := predict.InputObject(fields, at, columns)
	return text{line.Example, err}
}

func stringField(fields map[string]any, name string) (string, error) {
	value, ok := fields[name]
	s, isText := value.(string)
	if ok && !isText {
		return "", mistake(http.StatusBadRequest, "%s: want a string", name)
	}
	return s, nil
}

// stringList returns the strings of a list; ok is false for other values.
func stringList(value any) (all []string, ok bool) {
	list, ok := anyList(value)
	for _, one := range list {
		s, isText := one.(string)
		all, ok = append(all, s), ok && isText
	}
	return all, ok
}

func anyList(value any) (list []any, ok bool) {
	switch value := value.(type) {
	case []any:
		return value, true
	case []string:
		for _, s := range value {
			list = append(list, s)
		}
		return list, true
	}
	return nil, false
}
