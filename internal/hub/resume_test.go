package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/internal/hub/hubtest"
	"github.com/jenga-nlp/jenga/internal/hubcache"
)

// A file whose etag is another at the second request is requested anew, under its new name.
func TestAFileThatChanges(t *testing.T) {
	x := newTest(t, small())
	change := true
	x.server.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
		if change && r.Method == "GET" && strings.HasSuffix(r.URL.Path, "/resolve/"+hubtest.Commit+"/vocab.txt") {
			change, x.server.Files["vocab.txt"] = false, "[UNK]\n[PAD]\n"
		}
		return false
	}
	if _, err := x.pull(t, "org/small"); err != nil {
		t.Fatal(err)
	}
	x.wantStored(t, usual, "main")
	want := []string{"vocab.txt: the file changed during the download; starting again"}
	if !slices.Equal(x.notes, want) {
		t.Errorf("notes %q, want %q", x.notes, want)
	}

	n := 0
	x = newTest(t, small())
	x.server.Intercept = of("GET", "/vocab.txt", func(w http.ResponseWriter, r *http.Request) bool {
		n++
		x.server.Files["vocab.txt"] = fmt.Sprint(n)
		return false
	})
	_, err := x.pull(t, "org/small")
	x.wantError(t, err, "vocab.txt: it changed 3 times during the download")
}

// incomplete writes the beginning of the weights into the cache, as an earlier download left it.
func (x *test) incomplete(t *testing.T, text string) {
	t.Helper()
	tag := hubtest.ETag("model.safetensors", weights)
	path := hubcache.NewRepo(x.root, hubtest.Name).Blob(tag) + ".incomplete"
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func TestPullGoesOnFromWhatIsThere(t *testing.T) {
	for _, c := range []struct {
		name, kept string
		ranges     []string // of the requests for the weights from the storage
	}{
		{"the beginning", weights[:100], []string{"bytes=100-"}},
		{"all of it", weights, nil},
		{"something else", "x" + weights[1:100], []string{"bytes=100-", ""}},
		{"all of something else", other, []string{""}},
		{"more", weights + "x", []string{""}},
		{"nothing", "", []string{""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newTest(t, small())
			x.incomplete(t, c.kept)
			if _, err := x.pull(t, "org/small"); err != nil {
				t.Fatal(err)
			}
			x.wantStored(t, usual, "main")
			if got := x.server.Headers(x.server.Storage, "Range"); !slices.Equal(got, c.ranges) {
				t.Errorf("ranges %q, want %q", got, c.ranges)
			}
			for _, value := range x.server.Headers(x.server.Storage, "If-Range") {
				if value != "" {
					t.Errorf("the storage, whose etags are others, gets If-Range %s", value)
				}
			}
		})
	}
	t.Run("of a file on the hub itself", func(t *testing.T) {
		x := newTest(t, small())
		tag := hubtest.ETag("config.json", x.server.Files["config.json"])
		path := hubcache.NewRepo(x.root, hubtest.Name).Blob(tag)
		x.incomplete(t, "")
		if err := os.WriteFile(path+".incomplete", []byte("{"), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := x.pull(t, "org/small"); err != nil {
			t.Fatal(err)
		}
		x.wantStored(t, usual, "main")
		if got := x.server.Headers(x.server.Hub, "If-Range"); !slices.Contains(got, `"`+tag+`"`) {
			t.Errorf("If-Range %q, want one to be the etag", got)
		}
	})
	t.Run("a blob of another length", func(t *testing.T) {
		x := newTest(t, small())
		x.incomplete(t, "")
		blob := hubcache.NewRepo(x.root, hubtest.Name).Blob(hubtest.ETag("model.safetensors", weights))
		if err := os.Rename(blob+".incomplete", blob); err != nil {
			t.Fatal(err)
		}
		if _, err := x.pull(t, "org/small"); err != nil {
			t.Fatal(err)
		}
		x.wantStored(t, usual, "main")
	})
}

// Without a hash as etag nothing can show that two halves belong together.
func TestWithoutAChecksumNothingIsResumed(t *testing.T) {
	x := newTest(t, small())
	x.server.Intercept = of("HEAD", "/config.json", status(200, "ETag", `W/"abc"`, "Content-Length", "2"))
	m, _ := hubcache.Parse("org/small")
	repo := hubcache.NewRepo(x.root, m.Name)
	address := x.address(m.Name, "resolve", hubtest.Commit, "config.json")
	b, err := x.stat(t.Context(), address, file{"config.json", "", 9})
	if err != nil || b.etag != "abc" || b.size != 2 || b.newSum() != nil {
		t.Fatalf("stat: %+v, %v", b, err)
	}
	x.incomplete(t, "")
	if err := os.WriteFile(repo.Blob("abc")+".incomplete", []byte("{"), 0o666); err != nil {
		t.Fatal(err)
	}
	x.server.Intercept = of("GET", "/config.json", func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Range") != "" {
			t.Errorf("Range %s", r.Header.Get("Range"))
		}
		return body(200, "{}")(w, r)
	})
	if err := x.download(t.Context(), repo, b); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(repo.Blob("abc")); err != nil || string(got) != "{}" {
		t.Errorf("%q, %v; want {}", got, err)
	}
}

func TestAFullDiskKeepsWhatIsThere(t *testing.T) {
	x := newTest(t, small())
	room := 50
	x.write = func(f *os.File, data []byte) (int, error) {
		n, err := f.Write(data[:min(room, len(data))])
		if room -= n; n < len(data) && err == nil {
			err = &os.PathError{Op: "write", Path: "BLOB", Err: syscall.ENOSPC}
		}
		return n, err
	}
	delete(x.server.Files, "tokenizer.json")
	_, err := x.pull(t, "org/small")
	x.wantError(t, err, "model.safetensors: write BLOB: no space left on device; the same command goes on after the "+
		"22 of 8000 bytes that are there")
	if !errors.Is(err, syscall.ENOSPC) {
		t.Error("the cause is lost")
	}

	x.write = (*os.File).Write
	if _, err := x.pull(t, "org/small"); err != nil {
		t.Fatal(err)
	}
	x.wantStored(t, []string{"config.json", "vocab.txt", "model.safetensors"}, "main")
	if got, want := x.server.Headers(x.server.Storage, "Range"), []string{"", "bytes=22-"}; !slices.Equal(got, want) {
		t.Errorf("ranges %q, want %q", got, want)
	}
}

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
	if got, want := x.server.Headers(x.server.Storage, "Range"), []string{"", "bytes=10-"}; !slices.Equal(got, want) {
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
	for _, request := range x.server.Requests() {
		if strings.HasPrefix(request, "GET") && strings.HasSuffix(request, "/config.json") {
			n++
		}
	}
	if n != 1 {
		t.Errorf("config.json is downloaded %d times, want once", n)
	}
}
