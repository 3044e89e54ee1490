package serve

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jenga-nlp/jenga/predict"
)

// AnswerPerByte is how many bytes of an answer count as one of Options.MaxBytes: a byte of a body was measured to take
// as many until it is answered. Of attention maps, beside which the next explanation is computed, fewer do.
const (
	AnswerPerByte = 150
	mapsPerByte   = 50
)

// explain answers POST /v1/explain.
func (s *Server) explain(q *request) (any, error) {
	if err := s.read(q, "tasks", "offsets", "top", "attention", "gradients", "steps"); err != nil {
		return nil, err
	}
	s.logTexts("explain", q)
	q.explain.Form, q.explain.Reserve = q.form, func(maps int64) error {
		return q.answer.reserve(maps, mapsPerByte, "the attention maps have %d bytes, at most %d are possible; "+
			"leave attention out, or explain a shorter text")
	}
	var began atomic.Pointer[time.Time] // the steps of integrated gradients
	q.explain.Progress = func(int, int) {
		now := time.Now()
		began.CompareAndSwap(nil, &now)
	}
	explanation, err := q.model.Explain(q.Context(), q.explain, q.texts[0].example)
	if start := began.Load(); errors.Is(err, context.DeadlineExceeded) && start != nil &&
		time.Since(*start) > s.options.Timeout/2 {
		return nil, mistake(http.StatusUnprocessableEntity, "%d steps take longer than %v; want fewer, or fewer "+
			"tasks, or a shorter text", q.explain.Steps, s.options.Timeout)
	}
	if err != nil {
		return nil, err
	}
	s.metrics.texts.WithLabelValues(q.run.name).Inc()
	explanation.Run = q.run.name
	return explanation, nil
}

// held is what the answer of a request takes of the bytes at hand, until it is written or the request has ended. Of
// each run one explanation may still be computed whose request has ended.
type held struct {
	server *Server

	mu    sync.Mutex
	bytes int64
	ended bool
}

// reserve takes bytes for an answer, or a part of it, of n bytes, of which perByte count as one. TooMany is the error
// of more than there can ever be, with n and the most.
func (a *held) reserve(n, perByte int64, tooMany string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	counted, most := n/perByte, a.server.options.MaxBytes
	switch {
	case a.ended:
		return context.Canceled
	case counted > most:
		return mistake(http.StatusUnprocessableEntity, tooMany, n, most*perByte)
	}
	a.bytes += counted
	if a.server.bytes.Add(counted) > most {
		return predict.ErrBusy
	}
	return nil
}

func (a *held) release() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.server.bytes.Add(-a.bytes)
	a.ended = true
}

// explainFields are the schemas of the fields of a request for an explanation, given those of one for predictions.
func explainFields(predictFields object) object {
	fields := maps.Clone(predictFields)
	fields["attention"] = object{"type": "boolean", "default": true, "description": "the encoder's attention maps"}
	fields["gradients"] = object{"type": "boolean", "default": true, "description": "gradient × input of each answer"}
	fields["steps"] = object{"type": "integer", "minimum": 0, "maximum": maxSteps, "default": 0,
		"description": "points of the path of integrated gradients, which need gradients; 0: none"}
	return fields
}

// stepsWithoutGradients is the schema of a request that is refused, though each of its fields is valid.
var stepsWithoutGradients = object{"required": []string{"steps", "gradients"},
	"properties": object{"steps": object{"minimum": 1}, "gradients": object{"const": false}}}
