package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/jenga-nlp/jenga/experiments/predict"
)

// stream is JSON in parts. Attention maps, which may have many megabytes, are encoded as they are written.
type stream []any // []byte or predict.AttentionWeights

// streamed is an answer that is written in parts.
type streamed interface{ stream() (stream, error) }

// streamOf returns the JSON of a value.
func streamOf(value any) (stream, error) {
	if s, ok := value.(streamed); ok {
		return s.stream()
	}
	text, err := marshal(value)
	return stream{text}, err
}

func (s stream) write(w io.Writer) error {
	for _, part := range s {
		var err error
		switch part := part.(type) {
		case []byte:
			_, err = w.Write(part)
		case predict.AttentionWeights:
			err = part.WriteJSON(w)
		default:
			panic(fmt.Sprintf("serve: %T in a stream", part))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// text adds a text.
func (s *stream) text(text string) { *s = append(*s, []byte(text)) }

// object adds the JSON object of a value, which is not empty, without its end.
func (s *stream) object(value any) error {
	text, err := marshal(value)
	*s = append(*s, bytes.TrimSuffix(text, []byte("}\n")))
	return err
}

// list adds a field with a list of n items, which item adds.
func (s *stream) list(name string, n int, item func(i int)) {
	s.text(`,"` + name + `":[`)
	for i := range n {
		if i > 0 {
			s.text(",")
		}
		item(i)
	}
	s.text("]")
}

// stream returns the JSON of an explanation, which ends each object with the lists that are long. A nil field of a
// struct takes the place of that with its name in the embedded one.
func (e explained) stream() (s stream, err error) {
	object := func(value any) { err = errors.Join(err, s.object(value)) }
	object(struct {
		explained
		Readings any `json:"readings,omitempty"`
	}{e, nil})
	s.list("readings", len(e.Readings), func(i int) {
		r := e.Readings[i]
		object(struct {
			predict.Reading
			Windows any `json:"windows,omitempty"`
		}{r, nil})
		s.list("windows", len(r.Windows), func(i int) {
			w := r.Windows[i]
			object(struct {
				predict.Window
				Attention any `json:"attention,omitempty"`
			}{w, nil})
			if len(w.Attention) > 0 {
				s.text(`,"attention":`)
				s = append(s, w.Attention)
			}
			s.text("}")
		})
		s.text("}")
	})
	s.text("}\n")
	return s, err
}

// marshal returns a value's JSON and the end of its line, without escapes for HTML.
func marshal(value any) ([]byte, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	err := e.Encode(value)
	return text.Bytes(), err
}
