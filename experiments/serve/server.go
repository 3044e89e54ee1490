// Package serve answers texts over HTTP by the models of trained runs.
package serve

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jenga-nlp/jenga/experiments/serve/page"
	"github.com/jenga-nlp/jenga/internal/suggest"
	"github.com/jenga-nlp/jenga/predict"
)

// Options of a server.
type Options struct {
	Model    predict.Options
	MaxBody  int64 // bytes of a request's body
	MaxBytes int64 // bytes of the bodies of all requests at hand, and of what answers count for
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
	ends     context.Context // by end, which Close calls
	end      context.CancelFunc
	closed   bool // under reload
}

// New opens the runs in folders, unless ctx ends before. The caller closes the server, which may outlive ctx.
func New(ctx context.Context, folders []string, o Options) (*Server, error) {
	m := newMetrics()
	o.Model.Observe = m.batch
	runs, err := openRuns(ctx, folders, o.Model)
	if err != nil {
		return nil, err
	}
	s := &Server{options: o, runs: runs, metrics: m}
	s.ends, s.end = context.WithCancel(context.WithoutCancel(ctx))
	s.metrics.watch(s.waiting)
	for _, r := range runs {
		s.warn(r)
	}
	return s, nil
}

// Close ends the server, after the last request. A reload that goes on ends without a run that it has not opened yet,
// as one whose disk does not answer.
func (s *Server) Close() error {
	s.end()
	s.reload.Lock()
	defer s.reload.Unlock()
	s.closed = true
	return closeRuns(s.runs)
}

// Drain makes the server say that it is not ready, so that no new requests are sent to it. A reload that goes on ends,
// and no other begins.
func (s *Server) Drain() {
	s.draining.Store(true)
	s.end()
}

// Handler returns the routes.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /healthz", s.health(func() bool { return true }))
	mux.Handle("GET /readyz", s.health(func() bool { return !s.draining.Load() }))
	for pattern, answer := range map[string]func(*request) (any, error){
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
	mux.HandleFunc(anyPath, s.unknown(mux))
	return s.counted(mux, s.byOwnName(protection.Handler(mux)))
}

func (s *Server) waiting() (n int) {
	for _, r := range s.runs {
		m, done := r.use()
		n += m.Waiting()
		done()
	}
	return n
}

// anyPath is the pattern of paths and methods that no route has.
const anyPath = "/"

// unknown answers what no route has by an error in JSON, as all others are.
func (s *Server) unknown(mux *http.ServeMux) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		status, advice := http.StatusNotFound, "GET /openapi.json lists what there is"
		var allowed []string
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
			other := &http.Request{Method: method, URL: r.URL, Host: r.Host}
			if _, pattern := mux.Handler(other); pattern != anyPath {
				allowed = append(allowed, method)
			}
		}
		if len(allowed) > 0 {
			status = http.StatusMethodNotAllowed
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			advice = "want " + strings.Join(allowed, " or ")
		}
		s.fail(w, r, mistake(status, "%s %s: %s; %s", r.Method, r.URL.Path, strings.ToLower(http.StatusText(status)),
			advice))
	}
}

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

func (s *Server) answering(answer func(*request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), s.options.Timeout)
		defer cancel()
		q := &request{Request: r.WithContext(ctx), answer: held{server: s}}
		defer q.answer.release()
		value, err := safely(answer, q)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		body, err := predict.JSONOf(value)
		if err == nil { // else a number that is not finite
			value = nil
			err = q.answer.reserve(body.Bytes(), AnswerPerByte, "the answer has %d bytes, at most %d are possible; "+
				"ask for fewer texts, tasks or labels")
		}
		if err != nil {
			s.fail(w, r, err)
			return
		}
		send(w, http.StatusOK, body)
	})
}

func safely(answer func(*request) (any, error), q *request) (value any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
		for _, done := range q.done {
			done()
		}
	}()
	return answer(q)
}

func (s *Server) write(w http.ResponseWriter, r *http.Request, status int, value any) {
	body, err := predict.JSONOf(value)
	if err != nil { // as a number that is not finite
		s.fail(w, r, err)
		return
	}
	send(w, status, body)
}

func send(w http.ResponseWriter, status int, body predict.JSON) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	body.Write(w) // an error is the client's, who is gone
}

func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	status, message := http.StatusInternalServerError, "internal error"
	var body bodyError
	var long *predict.LengthError
	var refused *predict.ExampleError
	var call *predict.CallError
	switch {
	case errors.As(err, &body):
		status, message = body.status, body.Error()
	case errors.As(err, &call):
		status, message = http.StatusBadRequest, call.Error()
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
	if status == http.StatusRequestEntityTooLarge { // else the rest of the body is awaited, up to 256 KiB of it
		w.Header().Set("Connection", "close")
	}
	s.write(w, r, status, object{"error": message})
}

// statusCanceled is the status of a request whose client is gone, in the log and the metrics, as that of nginx.
const statusCanceled = 499

func isTooLarge(err error) bool {
	var large *http.MaxBytesError
	return errors.As(err, &large)
}

// byOwnName refuses requests that call the server by a name that is none of its own.
func (s *Server) byOwnName(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := (&url.URL{Host: r.Host}).Hostname()
		own := func(name string) bool { return strings.EqualFold(name, host) }
		if len(s.options.Hosts) > 0 && net.ParseIP(host) == nil && !slices.ContainsFunc(s.options.Hosts, own) {
			s.fail(w, r, mistake(http.StatusForbidden, "the host %q: want %s, or a server that is started to allow it",
				host, strings.Join(s.options.Hosts, " or ")))
			return
		}
		h.ServeHTTP(w, r)
	})
}

func (s *Server) authorised(h http.Handler) http.Handler {
	want := sha256.Sum256([]byte(s.options.Token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.options.Token != "" {
			scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
			sum := sha256.Sum256([]byte(given)) // of equal length, whatever is given
			bearer, right := strings.EqualFold(scheme, "Bearer"), subtle.ConstantTimeCompare(sum[:], want[:]) == 1
			if !bearer || !right {
				err := mistake(http.StatusUnauthorized, "want the header Authorization: Bearer TOKEN")
				if bearer {
					err = mistake(http.StatusUnauthorized, "the bearer token is wrong")
				}
				w.Header().Set("WWW-Authenticate", "Bearer")
				s.fail(w, r, err)
				return
			}
		}
		h.ServeHTTP(w, r)
	})
}

// liveRun is a run that is served. Its model may be replaced.
type liveRun struct {
	name, folder string
	// read is predict.Open, but in tests.
	read func(ctx context.Context, folder string, o predict.Options) (*predict.Model, error)

	mu     sync.RWMutex
	used   *used
	closed bool
}

type used struct {
	*predict.Model
	requests sync.WaitGroup
}

func openRuns(ctx context.Context, folders []string, o predict.Options) (runs []*liveRun, err error) {
	for _, folder := range folders {
		name := filepath.Base(filepath.Clean(folder))
		if name == "." || name == string(filepath.Separator) {
			if whole, absErr := filepath.Abs(folder); absErr == nil {
				name = filepath.Base(whole)
			}
		}
		r := &liveRun{name: name, folder: folder, read: predict.Open}
		if at := slices.IndexFunc(runs, func(other *liveRun) bool { return other.name == name }); at >= 0 {
			err = fmt.Errorf("%s and %s: both runs are called %q; name a symbolic link "+
				"of another name in place of one", runs[at].folder, folder,
				name)
		} else {
			_, err = r.open(ctx, o)
		}
		if err != nil {
			return nil, errors.Join(err, closeRuns(runs))
		}
		runs = append(runs, r)
	}
	return runs, nil
}

// open opens the run's folder, in place of the model that is open, nil for the first, which the caller closes. Once
// ctx ends it does not wait for the folder's disk any longer.
func (r *liveRun) open(ctx context.Context, o predict.Options) (before *used, err error) {
	var m *predict.Model
	opened := make(chan error, 1)
	go func() {
		model, err := r.read(ctx, r.folder, o)
		m = model
		opened <- err
	}()
	select {
	case err = <-opened:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	before, r.used = r.used, &used{Model: m}
	return before, nil
}

func (u *used) close() error {
	u.requests.Wait()
	return u.Model.Close()
}

// use returns the run's model. The caller calls done in the end. After closeRuns, as in a request that outlived the
// server's timeout, the model answers nothing.
func (r *liveRun) use() (m *predict.Model, done func()) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.closed {
		return r.used.Model, func() {}
	}
	r.used.requests.Add(1)
	return r.used.Model, r.used.requests.Done
}

func closeRuns(runs []*liveRun) error {
	var all []error
	for _, r := range runs {
		r.mu.Lock()
		u := r.used
		r.closed = true
		r.mu.Unlock()
		all = append(all, u.close())
	}
	return errors.Join(all...)
}

// find returns the run with a name, the only one for "". Its errors are those of a request.
func find(runs []*liveRun, name string) (*liveRun, error) {
	if name == "" && len(runs) == 1 {
		return runs[0], nil
	}
	var names []string
	for _, r := range runs {
		if r.name == name {
			return r, nil
		}
		names = append(names, r.name)
	}
	if name == "" {
		return nil, mistake(http.StatusBadRequest, "several runs are served; want run: %s", strings.Join(names, " or "))
	}
	return nil, mistake(http.StatusNotFound, "no run %q%s", name, nearest(name, names))
}

func nearest(name string, names []string) string {
	if similar, ok := suggest.Nearest(name, names); ok {
		return fmt.Sprintf("; did you mean %q?", similar)
	}
	return "; want " + strings.Join(names, ", ")
}

// Errors of a reload while another goes on, and after Close.
var (
	errReloading = errors.New("the runs are being opened again")
	errEnds      = errors.New("the server ends")
)

// Reload opens all runs again, which may have been trained further, and returns when the models before are closed.
// Requests at that time are answered by the one or the other model. A run that cannot be opened is still served as it
// was. While another reload goes on, Reload waits for its end: that one may have opened what was there before.
func (s *Server) Reload() error {
	s.reload.Lock()
	defer s.reload.Unlock()
	return s.openAgain()
}

// openAgain is Reload. The caller has locked it.
func (s *Server) openAgain() error {
	if s.closed || s.ends.Err() != nil {
		return errEnds
	}
	var all []error
	for _, r := range s.runs {
		before, err := r.open(s.ends, s.options.Model)
		if err != nil && s.ends.Err() != nil {
			err = errEnds
		}
		if err != nil {
			s.options.Log.Error("a run cannot be opened again, and is served as it was", "run", r.name, "error", err)
			all = append(all, err)
			continue
		}
		s.options.Log.Info("a run was opened again", "run", r.name)
		s.warn(r)
		if err := before.close(); err != nil {
			s.options.Log.Error("the model before cannot be closed", "run", r.name, "error", err)
		}
	}
	return errors.Join(all...)
}

func (s *Server) warn(r *liveRun) {
	m, done := r.use()
	defer done()
	for _, warning := range m.Warnings() {
		s.options.Log.Warn("a run has a warning", "run", r.name, "warning", warning)
	}
}

// reloadNow answers POST /v1/reload.
func (s *Server) reloadNow(*request) (any, error) {
	if !s.reload.TryLock() {
		return nil, mistake(http.StatusConflict, "%w", errReloading)
	}
	defer s.reload.Unlock()
	if err := s.openAgain(); err != nil {
		return nil, mistake(http.StatusConflict, "%w", err)
	}
	return s.tasks(nil)
}
