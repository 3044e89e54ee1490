package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/internal/hubcache"
)

func TestAnInterruptedPullCanBeResumed(t *testing.T) {
	x := newTest(t, small())
	ctx, cancel := context.WithCancel(t.Context())
	x.server.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/model.safetensors" || ctx.Err() != nil {
			return false
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(weights)))
		w.Write([]byte(weights[:10]))
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
		return true
	}
	x.report = func(e Event) {
		if e.File == "model.safetensors" && e.Done == 10 {
			cancel()
		}
	}
	m, _ := hubcache.Parse("org/small")
	if _, err := x.Pull(ctx, m, false); !errors.Is(err, context.Canceled) {
		t.Fatalf("the error is %v, want context.Canceled", err)
	}
	if _, err := x.pull(t, "org/small"); err != nil {
		t.Fatal(err)
	}
	x.wantStored(t, usual, "main")
	if got, want := x.headers(x.server.Storage, "Range"), []string{"", "bytes=10-"}; !slices.Equal(got, want) {
		t.Errorf("ranges %q, want %q", got, want)
	}
}

func TestAServerThatSendsNothingIsGivenUp(t *testing.T) {
	for _, path := range []string{"/api/models/org/small/revision/main", "/model.safetensors"} {
		x := newTest(t, small())
		x.stall = 100 * time.Millisecond
		x.server.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != path || len(x.pauses) > 0 {
				return false
			}
			w.Header().Set("Content-Length", fmt.Sprint(len(weights)))
			w.Write([]byte(" "))
			http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return true
		}
		if _, err := x.pull(t, "org/small"); err != nil {
			t.Fatal(err)
		}
		if len(x.notes) == 0 || !strings.HasSuffix(x.notes[0], ": the server sends nothing; trying again in 1s") {
			t.Errorf("%s: notes %q", path, x.notes)
		}
	}
}

// A disk that takes longer for a write than a server may take to send is not the server's fault.
func TestASlowDiskIsNoStalledServer(t *testing.T) {
	x := newTest(t, small())
	x.stall = 200 * time.Millisecond
	x.write = func(f *os.File, data []byte) (int, error) {
		time.Sleep(2 * x.stall)
		return f.Write(data)
	}
	if _, err := x.pull(t, "org/small"); err != nil {
		t.Fatal(err)
	}
	if len(x.notes) > 0 {
		t.Errorf("notes %q, want none", x.notes)
	}
}

// Of two pulls of one blob the second waits for the first, and then finds it.
func TestTwoPullsAtOnce(t *testing.T) {
	x := newTest(t, small())
	waits := make(chan string, 10)
	begun, release := make(chan bool), make(chan bool)
	x.server.Intercept = of("GET", "/config.json", times(1, func(http.ResponseWriter, *http.Request) bool {
		close(begun)
		<-release
		return false
	}))
	second := x.client(t)
	second.report = func(e Event) { waits <- e.Note }
	m, _ := hubcache.Parse("org/small")
	errs := make(chan error, 2)
	go func() {
		_, err := x.Pull(t.Context(), m, false)
		errs <- err
	}()
	<-begun
	go func() {
		_, err := second.Pull(t.Context(), m, false)
		errs <- err
	}()
	if got, want := <-waits, "config.json: another process downloads it; waiting for that"; got != want {
		t.Errorf("the second pull says %q, want %q", got, want)
	}
	second.report = func(Event) {}
	close(release)
	if err := errors.Join(<-errs, <-errs); err != nil {
		t.Fatal(err)
	}
	x.wantStored(t, usual, "main")
	n := 0
	for _, request := range x.requests() {
		if strings.HasPrefix(request, "GET") && strings.HasSuffix(request, "/config.json") {
			n++
		}
	}
	if n != 1 {
		t.Errorf("config.json is downloaded %d times, want once", n)
	}
}
