// Package serve answers texts over HTTP by the models of trained runs.
package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jenga-nlp/jenga/experiments/predict"
	"github.com/jenga-nlp/jenga/experiments/serve/page"
)

// Options of a server.
type Options struct {
	Model    predict.Options
	MaxBody  int64 // bytes of a request's body
	MaxBytes int64 // bytes of the bodies of all requests at hand, and of what explanations count for
	MaxTexts int   // texts of a request
	// MaxExplained is the most tokens of a text that is explained, 0 for predict.DefaultExplainTokens. The answer has
	// a number for each two tokens, in each layer and attention head.
	MaxExplained int
	Timeout      time.Duration // of a request, the time that it waits included
	Token        string        // bearer token of requests but those for health and the page; "": none
	// Hosts are the names that requests may call the server by, beside addresses; none: any. A page of another site
	// whose own name leads to this machine (DNS rebinding) is refused by them.
	Hosts    []string
	Log      *slog.Logger
	LogTexts bool // texts are in the log
	NoPage   bool // there is no web page at /
}

// Server answers requests. Handler has its routes.
type Server struct {
	options  Options
	runs     []*liveRun
	metrics  *metrics
	draining atomic.Bool
	bytes    atomic.Int64 // at hand, of MaxBytes
	reload   sync.Mutex
	closed   bool // under reload
}

// New opens the runs in folders. The caller closes the server.
func New(folders []string, o Options) (*Server, error) {
	m := newMetrics()
	o.Model.Observe = m.batch
	runs, err := openRuns(folders, o.Model)
	if err != nil {
		return nil, err
	}
	s := &Server{options: o, runs: runs, metrics: m}
	s.metrics.watch(s.waiting)
	for _, r := range runs {
		s.warn(r)
	}
	return s, nil
}

// Close ends the server, after the last request and a reload that goes on.
func (s *Server) Close() error {
	s.reload.Lock()
	defer s.reload.Unlock()
	s.closed = true
	return closeRuns(s.runs)
}

// Drain makes the server say that it is not ready, so that no new requests are sent to it.
func (s *Server) Drain() { s.draining.Store(true) }

// Handler returns the routes.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /healthz", s.health(func() bool { return true }))
	mux.Handle("GET /readyz", s.health(func() bool { return !s.draining.Load() }))
	for pattern, answer := range map[string]func(*http.Request) (any, error){
		"POST /v1/predict": s.predict,
		"POST /v1/embed":   s.embed,
		"POST /v1/explain": s.explain,
		"GET /v1/tasks":    s.tasks,
		"POST /v1/reload":  s.reloadNow,
	} {
		mux.Handle(pattern, s.authorised(s.answering(answer)))
	}
	mux.Handle("GET /metrics", s.authorised(s.metrics.handler()))
	mux.Handle("GET /openapi.json", s.authorised(http.HandlerFunc(s.document)))
	if !s.options.NoPage {
		web := page.Handler() // its files say nothing of the runs: the page asks for the token
		mux.Handle("GET /{$}", web)
		mux.Handle("GET /page/{file}", web)
	}
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, mistake(http.StatusForbidden, "the request comes from a page of another site"))
	}))
	return s.counted(mux, s.byOwnName(protection.Handler(s.named(mux))))
}

// waiting returns the number of texts that wait for an answer.
func (s *Server) waiting() (n int) {
	for _, r := range s.runs {
		m, done := r.use()
		n += m.Waiting() + int(r.explains.waiting.Load())
		done()
	}
	return n
}

// named gives paths and methods that no route has an error in JSON, as all others have.
func (s *Server) named(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		status := http.StatusNotFound
		probe := httpStatus{header: http.Header{}}
		mux.ServeHTTP(&probe, r) // the mux alone knows the methods of a path
		if probe.status == http.StatusMethodNotAllowed {
			status = probe.status
			w.Header().Set("Allow", probe.header.Get("Allow"))
		}
		s.fail(w, r, mistake(status, "%s %s: %s", r.Method, r.URL.Path, strings.ToLower(http.StatusText(status))))
	})
}

// httpStatus is a response of which only the status and the header are kept.
type httpStatus struct {
	header http.Header
	status int
}

func (h *httpStatus) Header() http.Header         { return h.header }
func (h *httpStatus) Write(p []byte) (int, error) { return len(p), nil }
func (h *httpStatus) WriteHeader(status int)      { h.status = status }

func (s *Server) health(good func() bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if !good() {
			w.WriteHeader(http.StatusServiceUnavailable)
			w.Write([]byte("draining\n"))
			return
		}
		w.Write([]byte("ok\n"))
	})
}

// answering writes what answer returns, as JSON.
func (s *Server) answering(answer func(*http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), s.options.Timeout)
		defer cancel()
		value, err := safely(answer, r.WithContext(ctx))
		if err != nil {
			s.fail(w, r, err)
			return
		}
		if held, ok := value.(releaser); ok {
			defer held.release()
		}
		s.write(w, r, http.StatusOK, value)
	})
}

// releaser is an answer that holds something until it is written.
type releaser interface{ release() }

// safely returns a panic of answer as an error.
func safely(answer func(*http.Request) (any, error), r *http.Request) (value any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return answer(r)
}

// write writes a value as JSON.
func (s *Server) write(w http.ResponseWriter, r *http.Request, status int, value any) {
	body, err := streamOf(value)
	if err != nil { // as a number that is not finite
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	body.write(w) // an error is the client's, who is gone
}

// fail writes an error.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	status, message := http.StatusInternalServerError, "internal error"
	var body bodyError
	var long *predict.LengthError
	var refused *predict.ExampleError
	switch {
	case errors.As(err, &body):
		status, message = body.status, body.Error()
	case errors.As(err, &long):
		status, message = http.StatusUnprocessableEntity, long.Error()
	case errors.As(err, &refused):
		status, message = http.StatusUnprocessableEntity, refused.Error()
	case errors.Is(err, predict.ErrBusy):
		status, message = http.StatusTooManyRequests, err.Error()
		w.Header().Set("Retry-After", "1")
	case errors.Is(err, predict.ErrClosed):
		status, message = http.StatusServiceUnavailable, "the server ends"
	case errors.Is(err, context.DeadlineExceeded):
		status, message = http.StatusServiceUnavailable, "no answer in "+s.options.Timeout.String()
		w.Header().Set("Retry-After", "1")
	case errors.Is(err, context.Canceled): // nobody reads the answer
		status, message = statusCanceled, err.Error()
	default:
		s.options.Log.Error("a request failed", "path", r.URL.Path, "error", err)
	}
	s.write(w, r, status, object{"error": message})
}

// statusCanceled is the status of a request whose client is gone, in the log and the metrics, as that of nginx.
const statusCanceled = 499

func isTooLarge(err error) bool {
	var large *http.MaxBytesError
	return errors.As(err, &large)
}
