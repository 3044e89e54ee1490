package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/predict"
)

func TestExplain(t *testing.T) {
	folder := trained(t, "mails")
	s := start(t, options(), folder)
	got := post[json.RawMessage](t, s, "/v1/explain",
		`{"text": "the card hangs", "steps": 4, "offsets": "bytes", "top": 1, "tasks": ["team"]}`)
	m, err := predict.Open(t.Context(), folder, predict.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	o := predict.ExplainOptions{Attention: true, Gradients: true, Steps: 4,
		Form: predict.Form{Unit: corpus.Bytes, Top: 1, Tasks: []string{"team"}}}
	x, err := m.Explain(t.Context(), o, &corpus.Example{Text: "the card hangs"})
	if err != nil {
		t.Fatal(err)
	}
	want, err := json.Marshal(struct {
		Run string `json:"run"`
		predict.Explanation
	}{"mails", x})
	if err != nil || !bytes.Equal(compact(t, got), compact(t, want)) {
		t.Errorf("%s\nwant %s; %v", got, want, err)
	}
	if w := x.Readings[0].Windows[0]; len(w.Attention) == 0 || len(w.Fusion) == 0 || len(w.Answers) != 1 {
		t.Errorf("an explanation without parts: %+v", w)
	}
}

func TestMistakesOfExplainRequests(t *testing.T) {
	o := options()
	o.MaxExplained = 8
	s := start(t, o, trained(t, "mails"))
	for _, test := range []struct {
		body, want string
		status     int
	}{
		{`{"texts": ["a"]}`, `unknown field \"texts\"; did you mean \"text\"?`, http.StatusBadRequest},
		{`{"text": "a", "steps": 1001}`, "steps: want a whole number from 0 to 1000", http.StatusBadRequest},
		{`{"text": "a", "steps": 2, "gradients": false}`, "steps: integrated gradients need", http.StatusBadRequest},
		{`{"text": "a", "attention": 1}`, "attention: want true or false", http.StatusBadRequest},
		{`{"text": "a", "tasks": ["teams"]}`, `did you mean`, http.StatusBadRequest},
		{`{}`, "no text; want text, or words, or question and context", http.StatusBadRequest},
		{`{"text": "a menu that hangs and hangs and hangs"}`, "want at most 8", http.StatusUnprocessableEntity},
	} {
		response, text := s.send(t, "POST", "/v1/explain", test.body)
		if response.StatusCode != test.status || !strings.Contains(text, test.want) {
			t.Errorf("%s: %s %s, want %d and %s", test.body, response.Status, text, test.status, test.want)
		}
	}
}

func TestExplanationsBeyondTheQueueAreRefused(t *testing.T) {
	o := options()
	o.Model.MaxWaiting = 1
	s := start(t, o, trained(t, "mails"))
	release := s.busy(t)
	var callers sync.WaitGroup
	statuses := make([]int, 3)
	for i := range statuses {
		callers.Go(func() {
			response, _ := s.send(t, "POST", "/v1/explain", `{"text": "the card"}`)
			if statuses[i] = response.StatusCode; statuses[i] == http.StatusTooManyRequests {
				release() // the one that waits goes on
			}
		})
	}
	callers.Wait()
	answered, refused := 0, 0
	for _, status := range statuses {
		switch status {
		case http.StatusOK:
			answered++
		case http.StatusTooManyRequests:
			refused++
		}
	}
	if answered == 0 || refused == 0 || answered+refused != len(statuses) {
		t.Errorf("statuses %v, want one or two each of 200 and 429", statuses)
	}
	if s.waiting() != 0 {
		t.Errorf("%d texts wait", s.waiting())
	}
}

func TestABusyRunLeavesExplanationsOfOthers(t *testing.T) {
	s := start(t, options(), trained(t, "mails"), trained(t, "others"))
	defer s.busy(t)()
	post[json.RawMessage](t, s, "/v1/explain", `{"text": "the card", "run": "others"}`)
}

// busy makes an explanation of the first run begin, and returns what lets it end.
func (s served) busy(t *testing.T) (release func()) {
	t.Helper()
	m, done := s.runs[0].use()
	began, goes := make(chan struct{}), make(chan struct{})
	o := predict.ExplainOptions{Attention: true, Reserve: func(int64) error {
		close(began)
		<-goes
		return nil
	}}
	go func() {
		defer done()
		if _, err := m.Explain(context.Background(), o, &corpus.Example{Text: "the card"}); err != nil {
			t.Error(err)
		}
	}()
	<-began
	return sync.OnceFunc(func() { close(goes) })
}

// slowly is a response whose client reads nothing before go is closed.
type slowly struct {
	*httptest.ResponseRecorder
	written  chan struct{} // one for the first write
	goes     chan struct{}
	announce sync.Once
}

func (s *slowly) Write(p []byte) (int, error) {
	s.announce.Do(func() { close(s.written) })
	<-s.goes
	return s.ResponseRecorder.Write(p)
}

func TestAttentionCountsUntilItIsWritten(t *testing.T) {
	text := strings.Repeat("q w e r t y u i o p a s d f g h j k l z x c v b n m ", 2)
	// 1 layer of 2 heads, 54 tokens with [CLS] and [SEP]
	const counted = 4 * 2 * 54 * 54 / mapsPerByte
	whole, without := `{"text": "`+text+`"}`, `{"text": "`+text+`", "attention": false}`
	o := options()
	o.MaxBytes = counted + 500 // a second explanation without attention, not one with it
	folder := trained(t, "mails")
	s := start(t, o, folder)
	slow := &slowly{ResponseRecorder: httptest.NewRecorder(), written: make(chan struct{}), goes: make(chan struct{})}
	var callers sync.WaitGroup
	callers.Go(func() {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/explain", strings.NewReader(whole))
		s.Handler().ServeHTTP(slow, r)
	})
	<-slow.written
	if n := s.bytes.Load(); n < counted || n > 3*counted {
		t.Errorf("%d bytes are at hand while the attention is written, want %d and those of the tokens", n, counted)
	}
	if response, text := s.send(t, "POST", "/v1/explain", whole); response.StatusCode != http.StatusTooManyRequests {
		t.Errorf("attention beyond the bytes at hand: %s %s", response.Status, text)
	}
	post[json.RawMessage](t, s, "/v1/explain", without)
	close(slow.goes)
	callers.Wait()
	var x explanation
	err := json.Unmarshal(slow.Body.Bytes(), &x)
	if err != nil || len(x.Readings[0].Windows[0].Attention[0][1]) != 54 {
		t.Errorf("%v: %s", err, slow.Body)
	}
	if n := s.bytes.Load(); n != 0 {
		t.Errorf("%d bytes are at hand in the end", n)
	}

	o.MaxBytes = int64(len(without) + 1)
	s = start(t, o, folder)
	response, answer := s.send(t, "POST", "/v1/explain", whole)
	if response.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(answer, "leave attention out") {
		t.Errorf("attention that never fits: %s %s", response.Status, answer)
	}
	response, answer = s.send(t, "POST", "/v1/explain", without)
	if response.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(answer, "ask for fewer texts") {
		t.Errorf("an answer that never fits: %s %s", response.Status, answer)
	}
}

func TestAnExplanationOfTooManyStepsIsAMistake(t *testing.T) {
	o := options()
	o.Timeout = 400 * time.Millisecond
	s := start(t, o, trained(t, "mails"))
	text := strings.Repeat("the card came_late ", 18)
	response, answer := s.send(t, "POST", "/v1/explain", `{"text": "`+text+`", "steps": 1000, "attention": false}`)
	const want = "1000 steps take longer than 400ms; want fewer"
	if response.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(answer, want) {
		t.Errorf("%s %s, want %s", response.Status, answer, want)
	}
	defer s.busy(t)() // a request that waits is no mistake
	if response, answer = s.send(t, "POST", "/v1/explain", `{"text": "a", "steps": 1}`); response.StatusCode != 503 {
		t.Errorf("%s %s, want 503", response.Status, answer)
	}
}

func TestClientsThatDoNotReadHoldUpNoExplanation(t *testing.T) {
	s := start(t, options(), trained(t, "mails"))
	goes := make(chan struct{})
	var callers sync.WaitGroup
	for range 4 {
		slow := &slowly{ResponseRecorder: httptest.NewRecorder(), written: make(chan struct{}), goes: goes}
		callers.Go(func() {
			r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/explain", strings.NewReader(`{"text": "a"}`))
			s.Handler().ServeHTTP(slow, r)
		})
		<-slow.written
	}
	post[json.RawMessage](t, s, "/v1/explain", `{"text": "the card"}`)
	close(goes)
	callers.Wait()
}

// written counts what is written.
type written int

func (w *written) Write(p []byte) (int, error) {
	*w += written(len(p))
	return len(p), nil
}

func TestAttentionIsNotInMemoryAsJSON(t *testing.T) {
	row := make([]float32, 128)
	for i := range row {
		row[i] = 1 / float32(i+3)
	}
	maps := predict.AttentionWeights(slices.Repeat([][][][]float32{slices.Repeat([][][]float32{
		slices.Repeat([][]float32{row}, len(row))}, 12)}, 12))
	x := predict.Explanation{Run: "mails", Readings: []predict.Reading{{Windows: []predict.Window{
		{Attention: maps}}}}}
	var before, after runtime.MemStats
	var out written
	runtime.ReadMemStats(&before)
	answer, err := predict.JSONOf(x)
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Write(&out); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; out < 10<<20 || n > 1<<20 {
		t.Errorf("%d bytes were allocated for %d of JSON", n, out)
	}
}

// Answers of all kinds count until they are read.
func TestAnswersCountUntilTheyAreWritten(t *testing.T) {
	folder := trained(t, "mails")
	words := strings.Repeat("a ", 400)
	for _, test := range []struct{ path, body string }{
		{"/v1/predict", `{"texts": ["` + words + `", "` + words + `"], "top": 2}`},
		{"/v1/embed", `{"texts": ["` + strings.Repeat(`a", "`, 18) + `a"]}`},
		{"/v1/explain", `{"text": "a b c d", "attention": false}`},
	} {
		o := options()
		o.MaxBytes = int64(len(test.body)) + 3
		s := start(t, o, folder)
		slow := &slowly{ResponseRecorder: httptest.NewRecorder(), written: make(chan struct{}),
			goes: make(chan struct{})}
		var callers sync.WaitGroup
		callers.Go(func() {
			r := httptest.NewRequestWithContext(t.Context(), "POST", test.path, strings.NewReader(test.body))
			s.Handler().ServeHTTP(slow, r)
		})
		<-slow.written
		if n := s.bytes.Load(); n < 4 {
			t.Errorf("%s: %d bytes are at hand while the answer is written, want some", test.path, n)
		}
		if r, text := s.send(t, "POST", test.path, test.body); r.StatusCode != http.StatusTooManyRequests {
			t.Errorf("%s beside an answer that is not read: %s %s", test.path, r.Status, text)
		}
		close(slow.goes)
		callers.Wait()
		if n := s.bytes.Load(); n != 0 || slow.Code != http.StatusOK {
			t.Errorf("%s: %d, and %d bytes are at hand in the end", test.path, slow.Code, n)
		}
	}
}
