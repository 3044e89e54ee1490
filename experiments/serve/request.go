package serve

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/inputs"
	"github.com/jenga-nlp/jenga/predict"
)

// request is a request and, once read has read it, what its body says.
type request struct {
	*http.Request
	run   *liveRun
	model *predict.Model
	done  []func() // what ends with the answer
	texts []text
	many  bool // the body may have a list of texts
	one   bool // the body has a single text, not a list
	form  predict.Form
	pool  predict.Pool

	explain predict.ExplainOptions // without the form
	answer  held
}

type text struct {
	example *corpus.Example
	err     error
}

// The most labels that a request may have listed, and the most points of the path of integrated gradients.
const (
	maxTop   = 1000
	maxSteps = 1000
)

type bodyError struct {
	status int
	error
}

func mistake(status int, format string, args ...any) error {
	return bodyError{status, fmt.Errorf(format, args...)}
}

// atHand reads the body of a request, and counts its bytes. Too many at hand are an error: a text of short words takes
// more than a hundred times its size, what is collected later included, until it is answered.
type atHand struct {
	io.Reader
	server *Server
	read   int64
}

func (a *atHand) Read(p []byte) (int, error) {
	n, err := a.Reader.Read(p)
	a.read += int64(n)
	if a.server.bytes.Add(int64(n)) > a.server.options.MaxBytes {
		err = predict.ErrBusy
	}
	return n, err
}

// read reads the body, an object with one text, or a list of texts if that is one of the options, and the options.
func (s *Server) read(q *request, options ...string) error {
	q.pool = predict.MeanPool
	q.explain = predict.ExplainOptions{Attention: true, Gradients: true, MaxTokens: s.options.MaxExplained}
	body, err := s.text(q)
	if err != nil {
		return err
	}
	q.many = slices.Contains(options, "texts")
	fields, err := corpus.ParseObject(body)
	if err != nil {
		return mistake(http.StatusBadRequest, "the body: %w; want a JSON object with text or texts", err)
	}
	known := slices.Concat(corpus.TextFields, []string{"run"}, options)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if slices.Contains(known, name) {
			continue
		}
		return mistake(http.StatusBadRequest, "unknown field %q%s", name, nearest(name, known))
	}
	var name string
	if err := stringField(fields, "run", &name); err != nil {
		return err
	}
	if q.run, err = find(s.runs, name); err != nil {
		return err
	}
	if err := q.readOptions(fields); err != nil {
		return err
	}
	model, done := q.run.use()
	q.model, q.done = model, append(q.done, done)
	return s.readTexts(q, fields)
}

// text returns the body of a request, which is bounded.
func (s *Server) text(q *request) (string, error) {
	if kind := q.Header.Get("Content-Type"); kind != "" {
		if media, _, err := mime.ParseMediaType(kind); err != nil || media != "application/json" {
			return "", mistake(http.StatusUnsupportedMediaType, "Content-Type %q: want application/json", kind)
		}
	}
	tooLarge := mistake(http.StatusRequestEntityTooLarge, "the body has more than %d bytes", s.options.MaxBody)
	if q.ContentLength > s.options.MaxBody { // by its length, before it comes
		return "", tooLarge
	}
	at := &atHand{Reader: http.MaxBytesReader(nil, q.Body, s.options.MaxBody), server: s}
	q.done = append(q.done, func() { s.bytes.Add(-at.read) })
	body, err := io.ReadAll(at)
	switch {
	case isTooLarge(err):
		return "", tooLarge
	case errors.Is(err, predict.ErrBusy):
		return "", err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "", mistake(http.StatusRequestTimeout, "the body did not come in time")
	case err != nil:
		return "", mistake(http.StatusBadRequest, "the body ends early")
	}
	text := string(body)
	if err := corpus.CheckUTF8(text); err != nil {
		return "", mistake(http.StatusBadRequest, "the body is %w", err)
	}
	return text, nil
}

func (q *request) readOptions(fields map[string]any) error {
	if value, ok := fields["tasks"]; ok {
		names, ok := stringList(value)
		if !ok || len(names) == 0 {
			return mistake(http.StatusBadRequest, "tasks: want a list of names of tasks")
		}
		q.form.Tasks = names
	}
	var unit, pool string
	if err := cmp.Or(
		wholeField(fields, "top", maxTop, &q.form.Top),
		wholeField(fields, "steps", maxSteps, &q.explain.Steps),
		boolField(fields, "attention", &q.explain.Attention),
		boolField(fields, "gradients", &q.explain.Gradients),
		q.readDecisions(fields),
		stringField(fields, "offsets", &unit),
		stringField(fields, "pool", &pool),
	); err != nil {
		return err
	}
	if unit != "" {
		var err error
		if q.form.Unit, err = corpus.ParseOffsetUnit(unit); err != nil {
			return mistake(http.StatusBadRequest, "offsets %w", err)
		}
	}
	if pool != "" {
		q.pool = predict.Pool(pool)
	}
	return nil
}

func (s *Server) readTexts(q *request, fields map[string]any) error {
	single := map[string]any{}
	for _, name := range corpus.TextFields {
		if value, ok := fields[name]; ok {
			single[name] = value
		}
	}
	value, many := fields["texts"]
	columns := q.model.Columns()
	switch {
	case many && len(single) > 0:
		return mistake(http.StatusBadRequest, "text and texts: want one of the two")
	case many:
		list, ok := anyList(value)
		if !ok || len(list) == 0 {
			return mistake(http.StatusBadRequest, "texts: want a list of at least one text")
		}
		if most := s.options.MaxTexts; len(list) > most {
			return mistake(http.StatusUnprocessableEntity, "texts: %d of them; want at most %d", len(list), most)
		}
		for i, one := range list {
			q.texts = append(q.texts, readText(one, fmt.Sprintf("texts[%d]", i), columns))
		}
		return nil
	case len(single) == 0:
		orTexts := ", or texts with a list"
		if !q.many {
			orTexts = ""
		}
		return mistake(http.StatusBadRequest, "no text; want text, or words, or question and context%s", orTexts)
	}
	q.one = true
	q.texts = []text{readText(single, "the body", columns)}
	if err := q.texts[0].err; err != nil {
		return mistake(http.StatusUnprocessableEntity, "%w", err)
	}
	return nil
}

func readText(value any, place string, columns inputs.Columns) text {
	at := corpus.Place{File: place}
	fields, ok := value.(map[string]any)
	if s, isText := value.(string); isText {
		fields, ok = map[string]any{"text": s}, true
		columns.Missing = nil // no column has it
	}
	if !ok {
		return text{err: fmt.Errorf("%s: want a text, or an object with text, pair or words", place)}
	}
	if err := checkText(fields, columns); err != nil {
		return text{err: fmt.Errorf("%s: %w", place, err)}
	}
	line, err := inputs.Object(fields, at, columns)
	return text{line.Example, err}
}

// checkText returns an error for fields of a text that contradict each other or are of another type, and for those that
// neither a form of a text nor the run's data has.
func checkText(fields map[string]any, columns inputs.Columns) error {
	known := slices.Concat(corpus.TextFields, slices.Concat(slices.Collect(maps.Values(columns.Names))...))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(known, name) {
			return fmt.Errorf("unknown field %q%s", name, nearest(name, corpus.TextFields))
		}
	}
	for _, name := range corpus.TextFields {
		value, given := fields[name]
		_, text := value.(string)
		_, words := stringList(value)
		switch {
		case given && name == "words" && !words:
			return fmt.Errorf("%s: want a list of strings", name)
		case given && name != "words" && !text:
			return fmt.Errorf("%s: want a string", name)
		}
	}
	var forms []string // of the text
	for _, role := range []string{"text", "words", "question"} {
		given := func(name string) bool { return fields[name] != nil }
		names := append([]string{role}, columns.Names[role]...)
		if at := slices.IndexFunc(names, given); at >= 0 && !slices.Contains(forms, names[at]) {
			forms = append(forms, names[at])
		}
	}
	_, pair := fields["pair"]
	_, context := fields["context"]
	switch questioned := slices.Contains(forms, "question"); {
	case len(forms) > 1:
		return fmt.Errorf("%s: want one of them", strings.Join(forms, " and "))
	case questioned && !context:
		return errors.New("question: want context beside it")
	case context && !questioned:
		return errors.New("context: want question beside it")
	case questioned && pair:
		return errors.New("question and pair: want context in place of pair")
	}
	return nil
}

func wholeField(fields map[string]any, name string, most int, to *int) error {
	value, ok := fields[name]
	if !ok {
		return nil
	}
	number, _ := value.(json.Number)
	v, err := number.Float64() // 3.0 is an integer in JSON
	if err != nil || !(v >= 0 && v <= float64(most)) || v != math.Trunc(v) {
		return mistake(http.StatusBadRequest, "%s: want a whole number from 0 to %d", name, most)
	}
	*to = int(v)
	return nil
}

func boolField(fields map[string]any, name string, to *bool) error {
	value, ok := fields[name]
	if !ok {
		return nil
	}
	if *to, ok = value.(bool); !ok {
		return mistake(http.StatusBadRequest, "%s: want true or false", name)
	}
	return nil
}

func stringField(fields map[string]any, name string, to *string) error {
	value, ok := fields[name]
	if *to, _ = value.(string); ok && *to == "" {
		return mistake(http.StatusBadRequest, "%s: want a string that is not empty", name)
	}
	return nil
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
