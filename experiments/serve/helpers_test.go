package serve

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/internal/shared"
	trainedrun "github.com/jenga-nlp/jenga/internal/trained"
	"github.com/jenga-nlp/jenga/predict"
)

// trained returns the folder of a run of the small sample, which is the test's own. It is trained once for all tests.
func trained(t testing.TB, name string) string {
	t.Helper()
	smallRun := filepath.Join(shared.PackageDir(), "small")
	if !runfolder.HasModel(smallRun) {
		run := trainedFrom(t, sample.Small(t, ""), name)
		if err := os.CopyFS(smallRun, os.DirFS(run)); err != nil {
			t.Fatal(err)
		}
	}
	folder := filepath.Join(t.TempDir(), name)
	if err := os.CopyFS(folder, os.DirFS(smallRun)); err != nil {
		t.Fatal(err)
	}
	return folder
}

// trainedFrom trains the experiment at path, and returns the folder of the run.
func trainedFrom(t testing.TB, path, name string) string {
	t.Helper()
	return trainedrun.Run(t, path, filepath.Join(t.TempDir(), name))
}

// options are those of most tests.
func options() Options {
	return Options{
		Model: predict.Options{MaxWaiting: 100}, MaxBody: 10_000, MaxBytes: 100_000, MaxTexts: 20,
		Timeout: 10 * time.Second, Log: slog.New(slog.DiscardHandler),
	}
}

// served is a server with an address.
type served struct {
	*Server
	url string
}

func start(t testing.TB, o Options, folders ...string) served {
	t.Helper()
	s, err := New(t.Context(), folders, o)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		web.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return served{s, web.URL}
}

// send sends a request, and returns the response and its body.
func (s served) send(t testing.TB, method, path, body string, header ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(text)
}

// post sends a request that is answered with 200, and returns the answer.
func post[T any](t testing.TB, s served, path, body string) (answer T) {
	t.Helper()
	response, text := s.send(t, "POST", path, body)
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%s %s: %s\n%s", path, body, response.Status, text)
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Errorf("%v: %s", err, text)
	}
	return answer
}

type predicted struct {
	Run         string
	Predictions []json.RawMessage
}
