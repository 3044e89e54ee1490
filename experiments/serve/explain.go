package serve

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/jenga-nlp/jenga/predict"
)

// maxExplanations is how many explanations of a run are made at a time, those that wait for each other included: they
// hold bytes for their attention maps, which are large.
const maxExplanations = 4

// AttentionPerByte is how many bytes of attention maps count as one of Options.MaxBytes: a byte of a body was measured
// to take as many until it is answered.
const AttentionPerByte = 150

// explained is the answer of POST /v1/explain.
type explained struct {
	predict.Explanation
	*hold
}

// hold is what an explanation takes until it is written, or its request has ended: bytes at hand for its attention
// maps. Of each run one explanation may still be computed whose request has ended.
type hold struct {
	server *Server
	bytes  int64
}

// reserve takes the bytes at hand for attention maps of so many bytes.
func (h *hold) reserve(attention int64) error {
	n, most := attention/AttentionPerByte, h.server.options.MaxBytes
	if n > most {
		return mistake(http.StatusUnprocessableEntity, "the attention maps have %d bytes, at most %d are possible; "+
			"leave attention out, or explain a shorter text", attention, most*AttentionPerByte)
	}
	h.bytes = n
	if h.server.bytes.Add(n) > most {
		return predict.ErrBusy
	}
	return nil
}

func (h *hold) release() { h.server.bytes.Add(-h.bytes) }

// explain answers POST /v1/explain.
func (s *Server) explain(r *http.Request) (value any, err error) {
	q := s.newRequest(r)
	defer q.end()
	if err := s.read(q, r, "tasks", "offsets", "top", "attention", "gradients", "steps"); err != nil {
		return nil, err
	}
	if q.explain.Steps > 0 && !q.explain.Gradients {
		return nil, mistake(http.StatusBadRequest, "steps: integrated gradients need gradients: true")
	}
	s.logTexts("explain", q)
	q.explain.Form = q.form
	if err := q.model.CheckTasks(q.form.Tasks); err != nil {
		return nil, mistake(http.StatusBadRequest, "tasks: %w", err)
	}
	if err := q.run.explains.take(r.Context()); err != nil {
		return nil, err
	}
	defer q.run.explains.release() // a client that does not read holds up no other
	held := &hold{server: s}
	answered := false
	defer func() {
		if !answered {
			held.release()
		}
	}()
	q.explain.Reserve = held.reserve
	var began atomic.Pointer[time.Time] // the steps of integrated gradients
	q.explain.Progress = func(int, int) {
		now := time.Now()
		began.CompareAndSwap(nil, &now)
	}
	explanation, err := q.model.Explain(r.Context(), q.explain, q.texts[0].example)
	if start := began.Load(); errors.Is(err, context.DeadlineExceeded) && start != nil &&
		time.Since(*start) > s.options.Timeout/2 {
		return nil, mistake(http.StatusUnprocessableEntity, "%d steps take longer than %v; want fewer, or fewer "+
			"tasks, or a shorter text", q.explain.Steps, s.options.Timeout)
	}
	if err != nil {
		return nil, err
	}
	s.metrics.texts.WithLabelValues(q.run.name).Inc()
	answered = true
	explanation.Run = q.run.name
	return explained{explanation, held}, nil
}

// slots bound how many requests are at something at a time, and how many wait for it.
type slots struct {
	taken   chan struct{}
	waiting *atomic.Int64
	most    int64 // that wait; 0: any number
}

func newSlots(n, most int) slots {
	return slots{make(chan struct{}, n), new(atomic.Int64), int64(most)}
}

// take waits for a slot.
func (s *slots) take(ctx context.Context) error {
	select {
	case s.taken <- struct{}{}:
		return nil
	default:
	}
	defer s.waiting.Add(-1)
	if n := s.waiting.Add(1); s.most > 0 && n > s.most {
		return predict.ErrBusy
	}
	select {
	case s.taken <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *slots) release() { <-s.taken }

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
