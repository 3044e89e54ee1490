package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/corpus"
	_ "github.com/jenga-nlp/jenga/encoders/transformer"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/predict"
)

func TestAnswersAreThoseOfAModel(t *testing.T) {
	folder := trained(t, "mails")
	s := start(t, options(), folder)
	m, err := predict.Open(t.Context(), folder, predict.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, test := range []struct {
		body string
		form predict.Form
		want []corpus.Example
	}{
		{`{"text": "the card came_late"}`, predict.Form{}, []corpus.Example{{Text: "the card came_late"}}},
		{`{"texts": ["the card", {"text": "a <b> & é"}], "top": 2, "tasks": ["team"]}`,
			predict.Form{Top: 2, Tasks: []string{"team"}}, []corpus.Example{{Text: "the card"}, {Text: "a <b> & é"}}},
		{`{"text": "é, the window hangs", "offsets": "bytes", "run": "mails"}`, predict.Form{Unit: corpus.Bytes},
			[]corpus.Example{{Text: "é, the window hangs"}}},
		{`{"words": ["a", "menu"]}`, predict.Form{},
			[]corpus.Example{{Text: "a menu", Words: []corpus.Span{{Start: 0, End: 1}, {Start: 2, End: 6}}}}},
	} {
		got := post[predicted](t, s, "/v1/predict", test.body)
		if got.Run != "mails" || len(got.Predictions) != len(test.want) {
			t.Fatalf("%s: %+v", test.body, got)
		}
		for i, e := range test.want {
			predictions, err := m.PredictExamples(t.Context(), test.form, &e)
			if err != nil {
				t.Fatal(err)
			}
			want, err := json.Marshal(predictions[0])
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(compact(t, got.Predictions[i]), compact(t, want)) {
				t.Errorf("%s: got %s, want %s", test.body, got.Predictions[i], want)
			}
		}
	}
}

// compact writes a JSON value in one way.
func compact(t testing.TB, text []byte) []byte {
	t.Helper()
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	again, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return again
}

func TestVectorsAreThoseOfAnEmbedder(t *testing.T) {
	folder := trained(t, "mails")
	s := start(t, options(), folder)
	embedder, err := predict.OpenEmbedder(t.Context(), folder, 0, "")
	if err != nil {
		t.Fatal(err)
	}
	defer embedder.Close()
	texts := []string{"the card came late", "a", strings.Repeat("a window ", 100)}
	for _, pool := range []predict.Pool{predict.MeanPool, predict.ClsPool} {
		body, _ := json.Marshal(map[string]any{"texts": texts, "pool": pool})
		got := post[struct{ Embeddings []predict.Embedding }](t, s, "/v1/embed", string(body))
		for i, text := range texts {
			e := &corpus.Example{Text: text}
			states, err := embedder.States([]*corpus.Example{e})
			if err != nil {
				t.Fatal(err)
			}
			embedding := got.Embeddings[i]
			if want := pool.Of(states[0]); !slices.Equal(embedding.Vector, want) || embedding.Tokens != e.Tokens() {
				t.Errorf("%s of %.10q: got %+v, want %v", pool, text, embedding, want)
			}
			if (embedding.Truncated > 0) != (i == 2) {
				t.Errorf("%.10q: %d tokens are truncated", text, embedding.Truncated)
			}
		}
	}
}

func TestRoutes(t *testing.T) {
	s := start(t, options(), trained(t, "mails"))
	for _, test := range []struct {
		method, path, header, value string
		status                      int
		want                        string
	}{
		{"GET", "/healthz", "", "", 200, "ok\n"},
		{"GET", "/readyz", "", "", 200, "ok\n"},
		{"GET", "/v1/tasks", "", "", 200, `"labels":["billing","support"]`},
		{"GET", "/metrics", "", "", 200, "jenga_texts_waiting 0"},
		{"GET", "/openapi.json", "", "", 200, `"openapi":"3.1.0"`},
		{"POST", "/v1/reload", "", "", 200, `"run":"mails"`},
		{"GET", "/v1/predict", "", "", 405, `"GET /v1/predict: method not allowed; want POST"`},
		{"POST", "/predict", "", "", 404, `"POST /predict: not found; GET /openapi.json lists what there is"`},
		{"POST", "/v1/tasks", "", "", 405, `"POST /v1/tasks: method not allowed; want GET or HEAD"`},
		{"GET", "/v1/nothing", "", "", 404, `"GET /v1/nothing: not found; GET /openapi.json lists what there is"`},
		{"GET", "/", "", "", 200, "<title>jenga</title>"},
		{"GET", "/nothing", "", "", 404, "not found"},
		{"GET", "/page/nothing", "", "", 404, "not found"},
		{"POST", "/v1/predict", "Content-Type", "text/plain", 415, "want application/json"},
		{"POST", "/v1/predict", "Content-Type", ";", 415, "want application/json"},
		{"POST", "/v1/predict", "Content-Type", "application/json; charset=utf-8", 400, "no text"},
		{"POST", "/v1/reload", "Sec-Fetch-Site", "cross-site", 403, `{"error":"the request comes from a page`},
	} {
		var header []string
		if test.header != "" {
			header = []string{test.header, test.value}
		}
		response, text := s.send(t, test.method, test.path, "{}", header...)
		if response.StatusCode != test.status || !strings.Contains(text, test.want) {
			t.Errorf("%s %s: %s, want %d and %q\n%s", test.method, test.path, response.Status, test.status, test.want,
				text)
		}
		if allowed := response.Header.Get("Allow"); (allowed != "") != (test.status == 405) {
			t.Errorf("%s %s: Allow is %q", test.method, test.path, allowed)
		}
	}
	s.Drain()
	if response, text := s.send(t, "GET", "/readyz", ""); response.StatusCode != 503 || text != "draining\n" {
		t.Errorf("while it drains, /readyz is %s, %s", response.Status, text)
	}
	if response, _ := s.send(t, "GET", "/healthz", ""); response.StatusCode != 200 {
		t.Errorf("while it drains, /healthz is %s", response.Status)
	}
}

func TestAFullQueueIs429(t *testing.T) {
	o := options()
	o.Model.MaxWaiting = 2
	s := start(t, o, trained(t, "mails"))
	response, text := s.send(t, "POST", "/v1/predict", `{"texts": ["a", "b", "c"]}`)
	again := response.Header.Get("Retry-After")
	if response.StatusCode != 429 || again != "1" || !strings.Contains(text, "too many texts") {
		t.Errorf("%s, Retry-After %q\n%s", response.Status, again, text)
	}
}

func TestALateAnswerIs503(t *testing.T) {
	o := options()
	o.Timeout = time.Nanosecond
	s := start(t, o, trained(t, "mails"))
	response, text := s.send(t, "POST", "/v1/predict", `{"text": "a"}`)
	if response.StatusCode != 503 || !strings.Contains(text, "no answer in 1ns") {
		t.Errorf("%s\n%s", response.Status, text)
	}
}

func TestAPanicIsAnInternalError(t *testing.T) {
	var log bytes.Buffer
	o := options()
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	s := start(t, o, trained(t, "mails"))
	w := httptest.NewRecorder()
	answer := func(*request) (any, error) { panic("a secret") }
	s.answering(answer).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if w.Code != 500 || strings.Contains(w.Body.String(), "secret") || !strings.Contains(log.String(), "secret") {
		t.Errorf("%d %s\n%s", w.Code, w.Body, log.String())
	}
}

func TestAnAnswerThatIsNoJSONIsAnInternalError(t *testing.T) {
	s := start(t, options(), trained(t, "mails"))
	w := httptest.NewRecorder()
	answer := func(*request) (any, error) { return []float64{1, math.NaN()}, nil }
	s.answering(answer).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if w.Code != 500 || w.Body.String() != `{"error":"internal error"}`+"\n" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestACancelledRequestIsCountedAsOne(t *testing.T) {
	s := start(t, options(), trained(t, "mails"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequestWithContext(ctx, "POST", "/v1/predict", strings.NewReader(`{"text": "a"}`))
	s.Handler().ServeHTTP(httptest.NewRecorder(), r)
	want := `jenga_requests_total{path="/v1/predict",status="499"} 1`
	if _, text := s.send(t, "GET", "/metrics", ""); !strings.Contains(text, want) {
		t.Errorf("no %s in\n%s", want, text)
	}
}

func TestBodiesAtHandAreBounded(t *testing.T) {
	o := options()
	o.MaxBytes = 12_000
	s := start(t, o, trained(t, "mails"))
	long := `{"text": "` + strings.Repeat("a ", 4500) + `"}`
	reader, writer := io.Pipe()
	slow := make(chan int)
	go func() {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/predict", reader)
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		slow <- w.Code
	}()
	io.WriteString(writer, long[:9000])
	for s.bytes.Load() < 9000 {
		time.Sleep(time.Millisecond)
	}
	if response, text := s.send(t, "POST", "/v1/predict", long); response.StatusCode != 429 {
		t.Errorf("while 9000 bytes are at hand, more than 3000 are %s\n%s", response.Status, text)
	}
	post[predicted](t, s, "/v1/predict", `{"text": "a"}`)
	io.WriteString(writer, long[9000:])
	writer.Close()
	if status := <-slow; status != 200 {
		t.Errorf("the request at hand is %d", status)
	}
	post[predicted](t, s, "/v1/predict", long)
	if n := s.bytes.Load(); n != 0 {
		t.Errorf("%d bytes are at hand in the end", n)
	}
}

func TestNamesOfOtherHostsAreRefused(t *testing.T) {
	folder := trained(t, "mails")
	o := options()
	anyHost := start(t, o, folder)
	o.Hosts = []string{"localhost", "Jenga.example"}
	s := start(t, o, folder)
	for host, status := range map[string]int{
		"localhost:8080": 200, "LOCALHOST": 200, "127.0.0.1:8080": 200, "[::1]:8080": 200, "10.1.2.3": 200,
		"jenga.example": 200, "jenga.example:443": 200, "evil.example:8080": 403, "localhost.evil.example": 403,
		"127.0.0.1.evil.example": 403, "": 403,
	} {
		for _, server := range []served{s, anyHost} {
			r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/predict", strings.NewReader(`{"text": "a"}`))
			r.Host = host
			r.Header.Set("Sec-Fetch-Site", "same-origin")
			w := httptest.NewRecorder()
			server.Handler().ServeHTTP(w, r)
			want := status
			if server == anyHost {
				want = 200
			}
			if w.Code != want || want == 403 && !strings.Contains(w.Body.String(), "want localhost or Jenga.example") {
				t.Errorf("host %q: %d, want %d\n%s", host, w.Code, want, w.Body)
			}
		}
	}
}

func TestTheDocumentSaysThatNamesAreRefused(t *testing.T) {
	o := options()
	folder := trained(t, "mails")
	for _, o.Hosts = range [][]string{nil, {"localhost"}} {
		paths := start(t, o, folder).openAPI()["paths"].(object)
		responses := paths["/v1/tasks"].(object)["get"].(object)["responses"].(object)
		if (responses["403"] != nil) != (o.Hosts != nil) {
			t.Errorf("with hosts %v the answers of /v1/tasks are %v", o.Hosts, responses)
		}
	}
}

func TestTheTokenIsRequired(t *testing.T) {
	o := options()
	o.Token = "a token"
	s := start(t, o, trained(t, "mails"))
	for _, path := range []string{"/v1/tasks", "/metrics", "/openapi.json"} {
		for authorization, status := range map[string]int{
			"": 401, "Bearer a toke": 401, "Bearer ": 401, "Basic a token": 401, "Bearer a token": 200,
			"a token": 401, "bearer a token": 200,
		} {
			response, text := s.send(t, "GET", path, "", "Authorization", authorization)
			if response.StatusCode != status {
				t.Errorf("%s with %q: %s, want %d\n%s", path, authorization, response.Status, status, text)
			}
			wrong := strings.HasPrefix(authorization, "Bearer ")
			if status == 401 && wrong != strings.Contains(text, "is wrong") {
				t.Errorf("%s with %q: %s", path, authorization, text)
			}
			if status == 401 && response.Header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("%s with %q: no WWW-Authenticate", path, authorization)
			}
		}
	}
	if response, _ := s.send(t, "GET", "/readyz", ""); response.StatusCode != 200 {
		t.Errorf("without a token /readyz is %s", response.Status)
	}
	paths := s.openAPI()["paths"].(object)
	if of := paths["/readyz"].(object)["get"].(object)["security"]; !reflect.DeepEqual(of, []any{}) {
		t.Errorf("the document says that /readyz needs %v", of)
	}
	if paths["/metrics"].(object)["get"].(object)["responses"].(object)["401"] == nil {
		t.Error("the document says nothing of /metrics without a token")
	}
}

func TestNoRequestIsLostWhenRunsAreOpenedAgain(t *testing.T) {
	s := start(t, options(), trained(t, "mails"))
	want := post[predicted](t, s, "/v1/predict", `{"text": "the card came_late"}`).Predictions[0]
	ended := make(chan struct{})
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
				}
				got := post[predicted](t, s, "/v1/predict", `{"texts": ["the card came_late", "a menu"]}`)
				if len(got.Predictions) != 2 || !bytes.Equal(got.Predictions[0], want) {
					t.Errorf("the answer is %s, want %s", got.Predictions, want)
				}
			}
		})
	}
	for range 10 {
		post[any](t, s, "/v1/reload", "")
	}
	close(ended)
	callers.Wait()
}

func TestARunThatCannotBeOpenedAgainIsServedAsItWas(t *testing.T) {
	folder := trained(t, "mails")
	s := start(t, options(), folder)
	sample.Write(t, filepath.Join(folder, "experiment.yaml"), "{")
	response, text := s.send(t, "POST", "/v1/reload", "")
	if response.StatusCode != 409 || !strings.Contains(text, "experiment.yaml") {
		t.Errorf("%s\n%s", response.Status, text)
	}
	post[predicted](t, s, "/v1/predict", `{"text": "the card"}`)
}

func TestRunsOfOneName(t *testing.T) {
	folder := trained(t, "mails")
	_, err := New(t.Context(), []string{folder, folder}, options())
	if err == nil || !strings.Contains(err.Error(), `both runs are called "mails"`) {
		t.Errorf("error is %v", err)
	}
	_, err = New(t.Context(), []string{t.TempDir()}, options())
	if err == nil || !strings.Contains(err.Error(), "no run") {
		t.Errorf("error is %v", err)
	}
}

func TestReloadsDoNotPileUp(t *testing.T) {
	s := start(t, options(), trained(t, "mails"))
	_, done := s.runs[0].use() // of the model that the first reload replaces, and then waits for
	first := make(chan error)
	go func() { first <- s.Reload() }()
	for s.reload.TryLock() {
		s.reload.Unlock()
		time.Sleep(time.Millisecond)
	}
	response, text := s.send(t, "POST", "/v1/reload", "")
	if response.StatusCode != 409 || !strings.Contains(text, "being opened again") {
		t.Errorf("%s\n%s", response.Status, text)
	}
	post[predicted](t, s, "/v1/predict", `{"text": "the card"}`)
	done()
	if err := <-first; err != nil {
		t.Error(err)
	}
}

func TestAReloadDuringAnotherIsNotLost(t *testing.T) {
	var log bytes.Buffer
	o := options()
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	s := start(t, o, trained(t, "mails"))
	_, done := s.runs[0].use() // of the model that the first reload replaces, and then waits for
	reloads := make(chan error)
	for range 2 {
		go func() { reloads <- s.Reload() }()
	}
	select {
	case err := <-reloads:
		t.Errorf("a reload ended, with %v, while the model before is used", err)
	case <-time.After(50 * time.Millisecond):
	}
	done()
	for range 2 {
		if err := <-reloads; err != nil {
			t.Error(err)
		}
	}
	if n := strings.Count(log.String(), "a run was opened again"); n != 2 {
		t.Errorf("opened again %d times, want 2\n%s", n, log.String())
	}
}

func TestAServerThatEndedOpensNoRun(t *testing.T) {
	s, err := New(t.Context(), []string{trained(t, "mails")}, options())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Reload(); err != errEnds {
		t.Errorf("Reload = %v, want %v", err, errEnds)
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest("POST", "/v1/predict", strings.NewReader(`{"text": "a"}`)))
	if w.Code != 503 {
		t.Errorf("a request after Close is %d %s", w.Code, w.Body)
	}
}

func TestWarningsOfARunAreInTheLog(t *testing.T) {
	folder := trained(t, "mails")
	if err := os.RemoveAll(filepath.Join(folder, "best")); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	o := options()
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	s := start(t, o, folder)
	if n := strings.Count(log.String(), "there is no best model; using last"); n != 1 {
		t.Errorf("%d warnings\n%s", n, log.String())
	}
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(log.String(), "there is no best model; using last"); n != 2 {
		t.Errorf("%d warnings after a reload\n%s", n, log.String())
	}
}

// A disk that does not answer holds up neither requests nor the server's end.
func TestAReloadThatHangsIsLeftAtTheEnd(t *testing.T) {
	s, err := New(t.Context(), []string{trained(t, "mails")}, options())
	if err != nil {
		t.Fatal(err)
	}
	begun, never := make(chan struct{}), make(chan struct{})
	s.runs[0].read = func(context.Context, string, predict.Options) (*predict.Model, error) {
		close(begun)
		<-never
		return nil, io.EOF
	}
	defer close(never)
	reloaded := make(chan error, 1)
	go func() { reloaded <- s.Reload() }()
	<-begun
	if _, done := s.runs[0].use(); done != nil {
		done()
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-reloaded; !errors.Is(err, errEnds) {
		t.Errorf("the reload: %v, want %v", err, errEnds)
	}
}

// Nor do weights that take long to sum, as the sparse ones here.
func TestAReloadThatSumsEndsWithTheServer(t *testing.T) {
	folder := trained(t, "mails")
	s, err := New(t.Context(), []string{folder}, options())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(folder, "best", "model.safetensors"), 1<<40); err != nil {
		t.Fatal(err)
	}
	read, ended := s.runs[0].read, make(chan error, 1)
	s.runs[0].read = func(ctx context.Context, folder string, o predict.Options) (*predict.Model, error) {
		m, err := read(ctx, folder, o)
		ended <- err
		return m, err
	}
	reloaded := make(chan error, 1)
	go func() { reloaded <- s.Reload() }()
	select {
	case err := <-ended:
		t.Errorf("the run was opened before the end: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	s.Drain()
	for what, got := range map[string]chan error{"the reload": reloaded, "the sum": ended} {
		select {
		case err := <-got:
			if !errors.Is(err, errEnds) && !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", what, err)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("%s goes on after the end", what)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
