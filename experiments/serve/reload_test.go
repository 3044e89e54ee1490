package serve

import (
	"bytes"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/experiments/internal/sample"
)

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
	_, err := New([]string{folder, folder}, options())
	if err == nil || !strings.Contains(err.Error(), `both runs are called "mails"`) {
		t.Errorf("error is %v", err)
	}
	if _, err := New([]string{t.TempDir()}, options()); err == nil || !strings.Contains(err.Error(), "no run") {
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
	s, err := New([]string{trained(t, "mails")}, options())
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
